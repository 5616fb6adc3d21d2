# SPDX-License-Identifier: Apache-2.0
"""The expiry of offsets, and the removal of groups and of their offsets."""

from collections.abc import Iterable, Iterator
from itertools import islice

from coordinator.groups.group import Group
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.groups.outcome import Outcome
from protocol.errors import ErrorCode
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record

Committed = tuple[str, int, OffsetAndMetadata]
"""Topic, partition and committed offset."""


def compute_expiry_times(
    group: Group, retention_ms: int, offsets: Iterable[Committed]
) -> Iterator[tuple[str, int, int]]:
    """Yield when each of these offsets of a group expires, in the group's present state.

    Yields topic, partition and the moment of expiry in wall clock milliseconds. A record with an expire timestamp of
    its own (value version 1) expires at that moment if the group lets its offsets expire at all. Offsets that cannot
    expire are left out.
    """
    since, kept_topics = group.offset_expiration_condition()
    if since is None:
        return
    for topic, partition, committed in offsets:
        if topic not in kept_topics:
            own_ms = committed.expire_timestamp
            yield topic, partition, since(committed) + retention_ms if own_ms is None else own_ms


def plan_offset_expiry(
    group: Group, now_wall_ms: int, retention_ms: int, offsets: Iterable[Committed]
) -> Outcome:
    """Return an outcome with a tombstone for each of these offsets that has expired."""
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic, partition, at_ms in compute_expiry_times(group, retention_ms, offsets)
        if at_ms <= now_wall_ms
    ]
    return Outcome(None, records, independent=True)


def has_nothing_left(group: Group, offsets: CommittedOffsets, expiring: int) -> bool:
    """Return whether nothing of the group remains once `expiring` of its offsets are removed."""
    return group.is_empty and not group.has_members_or_pending and offsets.count == expiring


def is_unstored_blank_group(group: Group, offsets: CommittedOffsets) -> bool:
    """Return whether a loaded group does not exist: it was never stored, and all its offsets had tombstones."""
    return group.generation_id == 0 and not offsets.count and not group.has_members_or_pending


def plan_group_metadata_deletion(group: Group) -> Outcome:
    """Return an outcome that removes a group without offsets from the log; without records if it never was stored."""
    return Outcome(None, group.make_group_metadata_tombstones())


def plan_group_deletion(group: Group, offsets: CommittedOffsets) -> Outcome:
    """Return an outcome with tombstones of a group's offsets, then of the group itself (DeleteGroups).

    Its answer is an ErrorCode; if the group may not be deleted, there are no tombstones.
    """
    error = group.validate_delete_group()
    if error is not ErrorCode.NONE:
        return Outcome(error)
    records: list[Record] = [
        OffsetCommitRecord(group.group_id, topic, partition, None) for topic, partition, _ in offsets.all()
    ]
    return Outcome(error, [*records, *group.make_group_metadata_tombstones()], independent=True)


def plan_first_offsets_deletion(group: Group, offsets: CommittedOffsets, count: int) -> Outcome:
    """Return an outcome with the tombstones of the first `count` offsets of a group."""
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic, partition, _ in islice(offsets.all(), count)
    ]
    return Outcome(None, records, independent=True)


def plan_topic_offsets_deletion(
    group: Group, offsets: CommittedOffsets, topics: frozenset[str], count: int
) -> list[Outcome]:
    """Return outcomes with a tombstone for each of the group's offsets in these topics, at most `count` in each."""
    held = offsets.by_topic
    # iterate over whichever are fewer: this is called for every group of the node, with any number of topics
    gone = [topic for topic in held if topic in topics] if len(held) < len(topics) else held.keys() & topics
    if not gone:  # nearly always
        return []
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic in gone
        for partition in held[topic]
    ]
    return [
        Outcome(None, records[start : start + count], independent=True)
        for start in range(0, len(records), count)
    ]
