# SPDX-License-Identifier: Apache-2.0
"""Removes marks of groups that began here, once the group has been gone for as long as offsets are kept.

The cluster did not have such a group. If it has one by now, the group comes from a client that stayed at the cluster,
and is younger than the one here was, or the cluster would have expired it (if it keeps offsets no longer than we do,
`offsets.retention.minutes`). Marks of groups that came from the cluster stay; they are no more than the cluster had
groups.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from coordinator.partitions.group_adoption import MarkRecord, append_in_parts
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.ownership_markers import BEGUN
from coordinator.partitions.shard import Shard
from protocol.newtypes import GroupId

MARKS_PER_STEP: Final = 50


def expire_ownership_marks(
    manager: GroupMetadataManager, now_wall_ms: int, on_expired: Callable[[GroupId], None]
) -> Iterator[int]:
    """Remove expired marks in steps, each of which yields their number. Raises RecordTooLarge."""
    until_wall_ms = now_wall_ms - manager.env.config.offsets_retention_ms
    for shard in list(manager.owned_partitions.values()):
        groups = list(map(GroupId, shard.book.offsets.by_topic))
        for start in range(0, len(groups), MARKS_PER_STEP):
            if shard.is_lost:
                break
            some = groups[start : start + MARKS_PER_STEP]
            expired = [group for group in some if _is_over(shard, group, until_wall_ms)]
            if expired:
                _take_away(shard, expired, now_wall_ms)
            for group in expired:
                on_expired(group)
            yield len(expired)


def _is_over(shard: Shard, group_id: GroupId, until_wall_ms: int) -> bool:
    mark = shard.book.offsets.get_topic_offsets(group_id).get(0)
    if mark is None or mark.offset != BEGUN or mark.commit_timestamp > until_wall_ms:
        return False
    return (
        group_id not in shard.groups and group_id not in shard.migrating and group_id != shard.book.group_id
    )


def _take_away(shard: Shard, groups: Sequence[GroupId], now_wall_ms: int) -> None:
    records: list[MarkRecord] = [
        shard.make_ownership_mark_record(group, None, now_wall_ms) for group in groups
    ]
    append_in_parts(shard, None, [shard.make_mark_removal_count_record(now_wall_ms), *records])
