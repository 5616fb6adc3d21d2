# SPDX-License-Identifier: Apache-2.0
"""What a group needs to know about its surroundings."""

from collections.abc import Callable

import msgspec

from coordinator.groups.limits import Limits
from coordinator.groups.usage import Usage


class GroupConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Kafka's `group.*` and `offset*` settings as the state machines use them; times in milliseconds."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    max_size: int = 2_147_483_647
    # GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS
    new_member_join_timeout_ms: int = 300_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 604_800_000
    limits: Limits = msgspec.field(default_factory=Limits)  # which is not frozen once it is compiled


class Environment(msgspec.Struct, frozen=True):
    """The settings, the one source of randomness, and the node's books.

    `new_member_suffix` gives the uuid of a new member's id.
    """

    config: GroupConfig
    new_member_suffix: Callable[[], str]
    usage: Usage = msgspec.field(default_factory=Usage)
