# SPDX-License-Identifier: Apache-2.0
"""All groups of one partition of `__consumer_offsets`: route, decide, append, apply."""

from collections.abc import Iterable, Sequence

from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.replay import (
    apply_group_metadata,
    apply_offset_commit,
    apply_offset_commits,
    forget_metadata,
)
from coordinator.groups.classic.state import GroupState
from coordinator.groups.usage import Usage
from coordinator.partitions.group_log import LogWriter
from coordinator.tickets import DURABLE, Ticket, later
from protocol.names import Partition
from storage.format.records import (
    GroupMetadataRecord,
    OffsetAndMetadata,
    OffsetCommitRecord,
    OffsetCommits,
    Record,
    UnknownRecord,
    other_group,
)


class Shard:
    """The groups of one partition; owned by the event loop.

    `append` is the live path: records go to the log's writer and are applied in the same step. `apply` alone is
    how loading uses the shard. Nothing else changes what the log holds of a group.
    """

    __slots__ = (
        "absence_ticket",
        "appender",
        "deleted_topics",
        "groups",
        "is_lost",
        "other_groups",
        "partition",
        "usage",
    )

    def __init__(self, partition: Partition, usage: Usage | None = None) -> None:
        """A partition without groups; what they hold counts into `usage`, the node's books."""
        self.partition = partition
        self.usage = Usage() if usage is None else usage
        self.is_lost = False
        """Whether the partition is not ours any more: its groups are about to leave memory, and nothing is written."""
        self.groups: dict[str, GroupMetadata] = {}
        self.other_groups: set[str] = set()
        """Groups in the log of protocols that are not served here."""
        self.appender: LogWriter | None = None  # while loading there is none
        self.deleted_topics: frozenset[str] = frozenset()
        """Topics that were deleted while this was loading: their offsets go when it is loaded."""
        self.absence_ticket: Ticket = DURABLE
        """Of the newest removal of a group: an answer that there is none waits for it."""

    def append(self, records: Sequence[Record]) -> None:
        """Append all or none, in one batch, and apply. Raises RecordTooLarge before anything has changed."""
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append(records)
        for record in records:
            group = self.apply(record)
            if group is not None:
                group.ticket = ticket
            else:
                self.absence_ticket = ticket

    def append_offsets(self, group: GroupMetadata, commits: Sequence[OffsetCommits]) -> None:
        """Append the offsets of one commit of a group, all or none, and apply them: the hot path.

        Raises RecordTooLarge before anything has changed.
        """
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append_offsets(commits)
        for commit in commits:
            apply_offset_commits(group, commit)
        group.ticket = ticket

    def apply(self, record: Record | OffsetCommits) -> GroupMetadata | None:
        """Do what the record says; returns its group, or None when that is gone now or of a kind we do not know."""
        if isinstance(record, OffsetCommits):
            group = self.groups.get(record.group)
            if group is None:
                group = self.add(GroupMetadata(record.group, self.usage))
            apply_offset_commits(group, record)
            return group
        if isinstance(record, OffsetCommitRecord):
            return self.apply_offset_commit(record.group, record.topic, record.partition, record.value)
        if isinstance(record, GroupMetadataRecord):
            return self._apply_group_metadata(record)
        self._note_other_group(record)
        return None

    def apply_offset_commit(
        self, group_id: str, topic: str, partition: int, value: OffsetAndMetadata | None
    ) -> GroupMetadata | None:
        """Apply one offset; a first offset brings a group of its own (a simple group) into being."""
        group = self.groups.get(group_id)
        if group is None:
            if value is None:
                return None
            group = self.add(GroupMetadata(group_id, self.usage))
        apply_offset_commit(group, topic, partition, value)
        return group

    def _apply_group_metadata(self, record: GroupMetadataRecord) -> GroupMetadata | None:
        group = self.groups.get(record.group)
        if record.value is not None:
            if group is None:
                group = self.add(GroupMetadata(record.group, self.usage))
            apply_group_metadata(group, record.value)
            return group
        if group is None:
            return None
        if group.offsets:
            # The tombstone of a group follows those of its offsets; should any be left, they are not lost with it.
            forget_metadata(group)
            return group
        self.remove(group)
        return None

    def _note_other_group(self, record: UnknownRecord) -> None:
        group_id = other_group(record)
        if group_id is not None:
            (self.other_groups.discard if record.value is None else self.other_groups.add)(group_id)

    def mark_other_groups(self) -> None:
        """Once the log has been applied: tell the offsets of groups that are not served from a simple consumer's."""
        for group_id in self.other_groups & self.groups.keys():
            self.groups[group_id].of_other_protocol = True

    def add(self, group: GroupMetadata) -> GroupMetadata:
        """Put a group in the cache; returns the one of its id that is there already, if there is."""
        there = self.groups.get(group.group_id)
        if there is not None:
            return there
        self.groups[group.group_id] = group
        group.enter_memory()
        return group

    def remove(self, group: GroupMetadata) -> None:
        """Take a group out of the cache; it is Dead from then on."""
        if self.groups.pop(group.group_id, None) is not None:
            group.leave_memory()
            group.state = GroupState.DEAD
            self.absence_ticket = later(self.absence_ticket, group.ticket)

    def states(self) -> Iterable[GroupState]:
        """The state of each group."""
        return (group.state for group in self.groups.values())
