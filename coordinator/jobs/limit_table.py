# SPDX-License-Identifier: Apache-2.0
"""Lists the settings that limit what a node holds (groups, members, offsets, topics), each with its current use."""

from collections.abc import Callable

from coordinator.catalogue.limits import Totals
from coordinator.config import Settings
from coordinator.groups.group_totals import GroupTotals
from coordinator.jobs.limit_watch import Limit


def list_limits(
    settings: Settings, usage: GroupTotals, totals: Callable[[], Totals], unsent_bytes: Callable[[], int]
) -> list[Limit]:
    """Return the node's limits: `totals` returns the totals of topics, `unsent_bytes` the bytes not yet sent."""
    used: dict[str, Callable[[], int] | None] = {
        "connections_unsent_max_bytes": unsent_bytes,
        "group_members_max_bytes": None,
        "max_groups": lambda: usage.groups,
        "max_group_ids_bytes": lambda: usage.group_id_bytes,
        "max_members": lambda: usage.members,
        "max_members_bytes": lambda: usage.member_bytes,
        "max_pending_members": lambda: usage.pending_members,
        "max_offsets": lambda: usage.offsets,
        "max_offsets_metadata_bytes": lambda: usage.offset_metadata_bytes,
        "max_topics": lambda: totals().topics,
        "max_partitions": lambda: totals().partitions,
        "topic_config_total_max_bytes": lambda: totals().config_bytes,
    }
    return [Limit(name.replace("_", "."), getattr(settings, name), use) for name, use in used.items()]
