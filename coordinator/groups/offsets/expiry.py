# SPDX-License-Identifier: Apache-2.0
"""Which offsets have expired, and what is left of a group that has lost them all."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.state import GroupState
from coordinator.groups.outcome import Change, Outcome
from protocol.errors import ErrorCode
from storage.format.records import GroupMetadataRecord, OffsetAndMetadata, OffsetCommitRecord

Offsets = Iterable[tuple[str, int, OffsetAndMetadata]]
"""Topic, partition and what was committed there."""


def expiries(
    group: GroupMetadata, retention_ms: int, offsets: Offsets | None = None
) -> Iterator[tuple[str, int, int]]:
    """When each of the group's offsets, or of some, is expired, as the group is now.

    Gives topic, partition and the wall clock's milliseconds from which that is so.

    ClassicGroup.offsetExpirationCondition:

    | group                                 | the retention time counts from            |
    |---------------------------------------|-------------------------------------------|
    | Empty, with a protocol type           | the moment it became Empty                |
    | Stable consumers, known subscriptions | the commit, for topics nobody consumes    |
    | no protocol type (simple consumers)   | the commit                                |
    | of a protocol not served, in the log  | never: nobody here knows what it consumes |
    | any other                             | never                                     |

    A record with an expire timestamp of its own (value version 1) ends at that moment in all of these but the last.
    Offsets that cannot expire are left out.
    """
    base = _base_timestamp(group)
    if base is None:
        return
    consuming = group.subscribed_topics if group.state is GroupState.STABLE else None
    for topic, partition, committed in group.all_offsets() if offsets is None else offsets:
        if not (consuming and topic in consuming):
            own_ms = committed.expire_timestamp
            yield topic, partition, base(committed) + retention_ms if own_ms is None else own_ms


def expired_offsets(
    group: GroupMetadata, now_wall_ms: int, retention_ms: int, offsets: Offsets | None = None
) -> Outcome:
    """A tombstone for each of the group's offsets, or of some, that has expired."""
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic, partition, at_ms in expiries(group, retention_ms, offsets)
        if at_ms <= now_wall_ms
    ]
    return Outcome(None, records, independent=True)


def _base_timestamp(group: GroupMetadata) -> Callable[[OffsetAndMetadata], int] | None:
    if group.protocol_type is None:
        return None if group.of_other_protocol else _commit_timestamp
    if group.state is GroupState.EMPTY:
        since = group.current_state_timestamp
        return _commit_timestamp if since is None else lambda _: since
    if (
        group.uses_consumer_group_protocol
        and group.state is GroupState.STABLE
        and group.subscribed_topics is not None
    ):
        return _commit_timestamp
    return None


def _commit_timestamp(committed: OffsetAndMetadata) -> int:
    return committed.commit_timestamp


def is_finished(group: GroupMetadata, expiring: int) -> bool:
    """Whether nothing is left of the group once `expiring` of its offsets are gone."""
    return group.state is GroupState.EMPTY and not group.pending_members and group.num_offsets == expiring


def is_nothing(group: GroupMetadata) -> bool:
    """Whether a group that was loaded is none: all its offsets had tombstones, and it was never stored itself."""
    return group.generation_id == 0 and not group.offsets and not group.members


def remove_group(group: GroupMetadata) -> Outcome:
    """The record that removes a group from the log: none for one that never was in it (generation 0)."""
    return Outcome(None, _group_tombstone(group))


def _group_tombstone(group: GroupMetadata) -> list[Change]:
    return [GroupMetadataRecord(group.group_id, None)] if group.generation_id > 0 else []


def validate_delete_group(group: GroupMetadata) -> ErrorCode:
    """Whether the group may be deleted: not while it has members (ClassicGroup.validateDeleteGroup)."""
    if group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


def delete_group(group: GroupMetadata) -> Outcome:
    """The tombstones of all the offsets of a group and then its own (DeleteGroups). The answer is an ErrorCode."""
    error = validate_delete_group(group)
    if error is not ErrorCode.NONE:
        return Outcome(error)
    records: list[Change] = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic, partition, _ in group.all_offsets()
    ]
    return Outcome(error, records + _group_tombstone(group), independent=True)


def delete_first_offsets(group: GroupMetadata, count: int) -> Outcome:
    """Tombstones of as many offsets of a group."""
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic, partition, _ in islice(group.all_offsets(), count)
    ]
    return Outcome(None, records, independent=True)


def delete_offsets_of_topics(group: GroupMetadata, topics: frozenset[str], count: int) -> list[Outcome]:
    """A tombstone for each offset of these topics, at most `count` in each outcome."""
    if topics.isdisjoint(group.offsets):  # nearly always, and for every group of the node
        return []
    records = [
        OffsetCommitRecord(group.group_id, topic, partition, None)
        for topic in group.offsets.keys() & topics
        for partition in group.offsets[topic]
    ]
    return [
        Outcome(None, records[start : start + count], independent=True)
        for start in range(0, len(records), count)
    ]
