# SPDX-License-Identifier: Apache-2.0
"""Which offsets have expired, and what is left of a group that has lost them all."""

from collections.abc import Iterable, Iterator
from itertools import islice

from coordinator.groups.group import Group
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.groups.outcome import Outcome
from protocol.errors import ErrorCode
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record

Committed = tuple[str, int, OffsetAndMetadata]
"""Topic, partition and what was committed there."""


def expiries(group: Group, retention_ms: int, offsets: Iterable[Committed]) -> Iterator[tuple[str, int, int]]:
    """When each of these offsets of a group is expired, as the group is now.

    Gives topic, partition and the wall clock's milliseconds from which that is so. A record with an expire timestamp of
    its own (value version 1) ends at that moment where the group lets its offsets expire at all. Offsets that cannot
    expire are left out.
    """
    since, kept_topics = group.retention()
    if since is None:
        return
    for topic, partition, committed in offsets:
        if topic not in kept_topics:
            own_ms = committed.expire_timestamp
            yield topic, partition, since(committed) + retention_ms if own_ms is None else own_ms


def expired_offsets(
    group: Group, now_wall_ms: int, retention_ms: int, offsets: Iterable[Committed]
) -> Outcome:
    """A tombstone for each of these offsets of a group that has expired."""
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic, partition, at_ms in expiries(group, retention_ms, offsets)
        if at_ms <= now_wall_ms
    ]
    return Outcome(None, records, independent=True)


def is_finished(group: Group, offsets: CommittedOffsets, expiring: int) -> bool:
    """Whether nothing is left of the group once `expiring` of its offsets are gone."""
    return group.is_empty and not group.is_worth_keeping and offsets.count == expiring


def is_no_group(group: Group, offsets: CommittedOffsets) -> bool:
    """Whether a group that was loaded is none: all its offsets had tombstones, and it was never stored itself."""
    return group.generation_id == 0 and not offsets.count and not group.is_worth_keeping


def remove_group(group: Group) -> Outcome:
    """The records that remove a group without offsets from the log: none for one that never was in it."""
    return Outcome(None, group.tombstones())


def delete_group(group: Group, offsets: CommittedOffsets) -> Outcome:
    """The tombstones of all the offsets of a group and then its own (DeleteGroups). The answer is an ErrorCode."""
    error = group.validate_delete_group()
    if error is not ErrorCode.NONE:
        return Outcome(error)
    records: list[Record] = [
        OffsetCommitRecord(group.group_id, topic, partition, None) for topic, partition, _ in offsets.all()
    ]
    return Outcome(error, [*records, *group.tombstones()], independent=True)


def delete_first_offsets(group: Group, offsets: CommittedOffsets, count: int) -> Outcome:
    """Tombstones of as many offsets of a group."""
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic, partition, _ in islice(offsets.all(), count)
    ]
    return Outcome(None, records, independent=True)


def delete_offsets_of_topics(
    group: Group, offsets: CommittedOffsets, topics: frozenset[str], count: int
) -> list[Outcome]:
    """A tombstone for each offset of these topics, at most `count` in each outcome."""
    held = offsets.by_topic
    # whichever are fewer are walked: this is asked of every group of the node, for any number of topics
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
