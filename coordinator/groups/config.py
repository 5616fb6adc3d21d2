# SPDX-License-Identifier: Apache-2.0
"""The settings and the environment that groups use."""

from collections.abc import Callable
from typing import Final

from coordinator.groups.group_totals import GroupTotals
from coordinator.groups.limits import NodeMemoryLimits
from protocol.compiled_struct import FieldsValue
from protocol.mypyc_shim import mypyc_attr


@mypyc_attr(acyclic=True)
class GroupCoordinatorConfig(FieldsValue):
    """Kafka's `group.*` and `offset*` settings as the state machines use them; times in milliseconds."""

    __match_args__: Final = (
        "min_session_timeout_ms",
        "max_session_timeout_ms",
        "initial_rebalance_delay_ms",
        "max_size",
        "new_member_join_timeout_ms",
        "offset_metadata_max_bytes",
        "offsets_retention_ms",
        "limits",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        *,
        min_session_timeout_ms: int = 6_000,
        max_session_timeout_ms: int = 1_800_000,
        initial_rebalance_delay_ms: int = 3_000,
        max_size: int = 2_147_483_647,
        # GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS
        new_member_join_timeout_ms: int = 300_000,
        offset_metadata_max_bytes: int = 4_096,
        offsets_retention_ms: int = 604_800_000,
        limits: NodeMemoryLimits | None = None,
    ) -> None:
        self.min_session_timeout_ms: Final = min_session_timeout_ms
        self.max_session_timeout_ms: Final = max_session_timeout_ms
        self.initial_rebalance_delay_ms: Final = initial_rebalance_delay_ms
        self.max_size: Final = max_size
        self.new_member_join_timeout_ms: Final = new_member_join_timeout_ms
        self.offset_metadata_max_bytes: Final = offset_metadata_max_bytes
        self.offsets_retention_ms: Final = offsets_retention_ms
        self.limits: Final = NodeMemoryLimits() if limits is None else limits


@mypyc_attr(acyclic=True)
class GroupEnvironment(FieldsValue):
    """The settings, the one source of randomness, and the node's totals.

    `new_member_suffix` returns the uuid for a new member's id.
    """

    __match_args__: Final = ("config", "new_member_suffix", "usage")
    __slots__ = __match_args__

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        new_member_suffix: Callable[[], str],
        usage: GroupTotals | None = None,
    ) -> None:
        self.config: Final = config
        self.new_member_suffix: Final = new_member_suffix
        self.usage: Final = GroupTotals() if usage is None else usage
