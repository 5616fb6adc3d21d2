# SPDX-License-Identifier: Apache-2.0
"""All groups of one partition of `__consumer_offsets`: route, decide, append, apply."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.member import NEVER
from coordinator.groups.classic.replay import apply_group_metadata, forget_metadata
from coordinator.groups.group import Group
from coordinator.groups.group_totals import GroupTotals
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.partitions.group_log import LogWriter
from coordinator.partitions.ownership_markers import BEGUN, OURS, UNDER_WAY, is_book
from coordinator.tickets import DURABLE, DurabilityTicket, later
from protocol.names import GroupId, Offset, Partition
from protocol.placement import Placement
from storage.format.records import (
    GroupMetadataRecord,
    OffsetAndMetadata,
    OffsetCommitRecord,
    OffsetCommits,
    Record,
    UnknownRecord,
    other_group,
)

MARKS_PER_STEP: Final = 500
NO_GROUP: Final = GroupId("")
VACANT_MAX: Final = 1_000
"""So many groups that are nowhere are remembered, beside those that have begun since."""


class GroupEntry:
    """What a partition keeps under a group's id: the group, of any kind, its offsets, and what their runner needs."""

    __slots__ = (
        "armed_ms",
        "commits",
        "group",
        "group_id",
        "is_kept",
        "offsets",
        "rebalances",
        "shard",
        "ticket",
    )

    def __init__(self, shard: "Shard", group: Group) -> None:
        self.shard = shard
        self.group = group
        self.group_id = group.group_id
        self.offsets = CommittedOffsets(shard.usage)
        self.ticket: DurabilityTicket = DURABLE
        """Of the newest record of this."""
        self.is_kept = False
        """Whether it is in the cache."""
        self.armed_ms = NEVER
        """When the runner will look at the group again."""
        self.commits = 0
        """How many offsets it has committed since it is in memory."""
        self.rebalances = 0
        """How often it has begun to rebalance since then."""

    @property
    def classic(self) -> ClassicGroup:
        """The group, which must be one of the classic protocol."""
        group = self.group
        assert isinstance(group, ClassicGroup), f"{self.group_id} is a {group.kind} group"
        return group


class Shard:
    """The groups of one partition; owned by the event loop.

    `append` is the live path: records go to the log's writer and are applied in the same step. `apply` alone is
    how loading uses the shard. Nothing else changes what the log holds of a group.
    """

    __slots__ = (
        "absence_ticket",
        "appender",
        "book",
        "closed",
        "groups",
        "is_lost",
        "moving",
        "other_groups",
        "partition",
        "placement",
        "readings_from_ms",
        "usage",
        "vacant",
        "void",
    )

    def __init__(
        self, partition: Partition, usage: GroupTotals | None = None, book_id: GroupId = NO_GROUP
    ) -> None:
        """A partition without groups; what they hold counts into `usage`, the node's books.

        `book_id` is the name of its book; one that is only looked at need not know it.
        """
        self.partition = partition
        self.usage = GroupTotals() if usage is None else usage
        self.placement: Placement | None = None
        """Where the groups belong that were loaded; None before that."""
        self.is_lost = False
        """Whether the partition is not ours any more: its groups are about to leave memory, and nothing is written."""
        self.groups: dict[GroupId, GroupEntry] = {}
        self.other_groups: set[GroupId] = set()
        """Groups in the log of protocols that are not served here."""
        self.appender: LogWriter | None = None  # while loading there is none
        self.absence_ticket: DurabilityTicket = DURABLE
        """Of the newest removal of a group: an answer that there is none waits for it."""
        self.book = GroupEntry(self, ClassicGroup(book_id, self.usage))
        """Which groups were taken over from a cluster (`book`), as the offsets of a hidden group."""
        self.void: dict[GroupId, GroupEntry] = {}
        """Groups that are being taken over or given back, or where that has ended half-way: they are hidden as well."""
        self.moving: set[GroupId] = set()
        """Those of which that is being done now."""
        self.closed: dict[GroupId, int] = {}
        """Those that are about to be given back, with the millisecond until which clients cannot change them."""
        self.vacant: dict[GroupId, int] = {}
        """Groups that are not here, and that the cluster knows nothing of, with the millisecond until which that
        counts; they may begin, and get their mark with the first of their records."""
        self.readings_from_ms = 0
        """What was read of the cluster counts if that was begun in this millisecond or later: what was read before may
        name topics that have gone since, and whose offsets were dropped here, or by the partition's last leader."""

    def append(self, records: Sequence[Record]) -> None:
        """Append all or none, in one batch, and apply. Raises RecordTooLarge before anything has changed."""
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append(records)
        for record in records:
            kept = self.apply(record)
            if kept is not None:
                kept.ticket = ticket
            else:
                self.absence_ticket = ticket

    def append_offsets(self, kept: GroupEntry, commits: list[OffsetCommits]) -> None:
        """Append the offsets of one commit of a group, all or none, and apply them: the hot path.

        Raises RecordTooLarge before anything has changed.
        """
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append_offsets(commits)
        for commit in commits:
            kept.offsets.apply_commits(commit)
        kept.ticket = ticket

    def apply(self, record: Record | OffsetCommits) -> GroupEntry | None:
        """Do what the record says; returns its group, or None when that is gone now or of a kind we do not know."""
        if isinstance(record, OffsetCommits):
            kept = self._find_or_add(record.group)
            kept.offsets.apply_commits(record)
            return kept
        if isinstance(record, OffsetCommitRecord):
            return self.apply_offset_commit(record.group, record.topic, record.partition, record.value)
        if isinstance(record, GroupMetadataRecord):
            return self._apply_group_metadata(record)
        self._note_other_group(record)
        return None

    def apply_offset_commit(
        self, group_id: GroupId, topic: str, partition: int, value: OffsetAndMetadata | None
    ) -> GroupEntry | None:
        """Apply one offset; a first offset brings a group of its own (a simple group) into being."""
        kept = self.groups.get(group_id) if value is None else self._find_or_add(group_id)
        if kept is not None:
            kept.offsets.apply_offset(topic, partition, value)
        return kept

    def _apply_group_metadata(self, record: GroupMetadataRecord) -> GroupEntry | None:
        if record.value is not None:
            kept = self._find_or_add(record.group)
            apply_group_metadata(kept.classic, record.value)
            return kept
        found = self.groups.get(record.group)
        if found is None:
            return None
        if found.offsets.count:
            # The tombstone of a group follows those of its offsets; should any be left, they are not lost with it.
            forget_metadata(found.classic)
            return found
        self.remove(found)
        return None

    def _find_or_add(self, group_id: GroupId) -> GroupEntry:
        kept = self.groups.get(group_id)
        return self.add(self.new_group(group_id)) if kept is None else kept

    def new_group(self, group_id: GroupId) -> GroupEntry:
        """A group without anything, which is not in the cache."""
        kept = GroupEntry(self, ClassicGroup(group_id, self.usage))
        # One of this name may have been deleted just now: what is said of the new one waits for that.
        kept.ticket = self.absence_ticket
        return kept

    def _note_other_group(self, record: UnknownRecord) -> None:
        group_id = other_group(record)
        if group_id is not None:
            (self.other_groups.discard if record.value is None else self.other_groups.add)(group_id)

    def mark_other_groups(self) -> None:
        """Once the log has been applied: which offsets are of groups not served, and which of simple consumers."""
        for group_id in self.other_groups & self.groups.keys():
            self.groups[group_id].classic.of_other_protocol = True

    # --- groups that were taken over from a cluster ---

    def open_book(self) -> Iterator[None]:
        """Once the log has been applied: take the book, and what is void, out of the groups. Gives way now and then."""
        book_id = self.book.group_id or next(filter(is_book, self.groups), None)
        found = None if book_id is None else self.groups.pop(book_id, None)
        if found is None:
            return
        found.is_kept = False
        found.group.leave_memory()
        self.book = found
        for number, group_id in enumerate(map(GroupId, list(found.offsets.by_topic))):
            kept = self.groups.get(group_id)
            if kept is not None and self.mark_of(group_id) == UNDER_WAY:
                self.make_void(kept)
            if number % MARKS_PER_STEP == 0:
                yield

    def mark_of(self, group_id: GroupId) -> int | None:
        """What the book says of a group; None where it says nothing."""
        mark = self.book.offsets.of(group_id).get(0)
        return None if mark is None else mark.offset

    def may_begin(self, group_id: GroupId, now_ms: int, *, needs_mark: bool) -> bool:
        """Whether a group that is not here is known not to be anywhere: it may be looked up, and made."""
        mark = self.mark_of(group_id)
        if mark is None:
            return self.is_vacant(group_id, now_ms) or (not needs_mark and group_id not in self.moving)
        return mark in OURS

    def is_vacant(self, group_id: GroupId, now_ms: int) -> bool:
        """Whether a group is nowhere, as the cluster has said a moment ago, or is just about to begin here.

        What nobody is in any more, and never was stored, has not begun: it may have begun at the cluster.
        """
        until_ms = self.vacant.get(group_id)
        if until_ms is None:
            return False
        kept = self.groups.get(group_id)
        return until_ms > now_ms or (kept is not None and kept.group.is_worth_keeping)

    @property
    def taken_away(self) -> int:
        """How often a mark was taken away (`book`)."""
        count = self.book.offsets.of(self.book.group_id).get(0)
        return 0 if count is None else count.offset

    def mark_record(self, group_id: GroupId, mark: int | None, now_wall_ms: int) -> OffsetCommitRecord:
        """The record that sets the mark of a group, or takes it away."""
        value = None if mark is None else OffsetAndMetadata(Offset(mark), -1, "", now_wall_ms, None)
        return OffsetCommitRecord(self.book.group_id, group_id, 0, value)

    def count_record(self, now_wall_ms: int) -> OffsetCommitRecord:
        """The record that goes along where marks are taken away."""
        return self.mark_record(self.book.group_id, self.taken_away + 1, now_wall_ms)

    def note_vacant(self, group_id: GroupId, until_ms: int, now_ms: int) -> None:
        """The cluster knows nothing of this group, which is not here either; others go for it whose time is over."""
        self.vacant.pop(group_id, None)
        self.vacant[group_id] = until_ms
        for oldest in list(islice(self.vacant, 2)):
            if oldest in self.groups:  # its first record is still to come
                self.vacant[oldest] = self.vacant.pop(oldest)
            elif self.vacant[oldest] <= now_ms or len(self.vacant) > VACANT_MAX:
                del self.vacant[oldest]

    def mark_begun(self, group_id: GroupId, now_wall_ms: int) -> None:
        """A group that was nowhere gets its first record now: it is ours from then on. Raises RecordTooLarge."""
        if group_id in self.vacant:
            self.append_hidden(None, [self.mark_record(group_id, BEGUN, now_wall_ms)])
            del self.vacant[group_id]

    def mark_ended(self, group_id: GroupId, now_wall_ms: int) -> None:
        """A group has gone: what is kept of it for a while counts from now. Raises RecordTooLarge."""
        if self.mark_of(group_id) == BEGUN:
            self.append_hidden(None, [self.mark_record(group_id, BEGUN, now_wall_ms)])

    def close(self, group_id: GroupId, until_ms: int, now_ms: int) -> None:
        """Keep clients from changing a group until then; others are forgotten whose time is over."""
        self.closed = {each: until for each, until in self.closed.items() if until > now_ms}
        self.closed[group_id] = until_ms

    def is_closed(self, group_id: GroupId, now_ms: int) -> bool:
        """Whether clients are kept from changing a group."""
        return self.closed.get(group_id, now_ms) > now_ms

    def make_void(self, kept: GroupEntry) -> None:
        """From now on this group is hidden; what the log has of it is to be deleted."""
        self.groups.pop(kept.group_id, None)
        kept.is_kept = False
        kept.group.leave_memory()
        self.void[kept.group_id] = kept

    def append_hidden(self, kept: GroupEntry | None, records: Sequence[Record]) -> None:
        """Append all or none, in one batch, and apply them to the book and to a hidden group.

        Raises RecordTooLarge before anything has changed.
        """
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append(records)
        for record in records:
            if isinstance(record, OffsetCommitRecord):
                target = self.book if kept is None or record.group != kept.group_id else kept
                target.offsets.apply_offset(record.topic, record.partition, record.value)
        self.book.ticket = self.absence_ticket = ticket
        if kept is not None:
            kept.ticket = ticket

    def forget_hidden(self) -> None:
        """The partition is lost: nothing of this counts any more."""
        for kept in (self.book, *self.void.values()):
            kept.offsets.leave_memory()
        self.void.clear()
        self.vacant.clear()

    # --- the cache ---

    def add(self, kept: GroupEntry) -> GroupEntry:
        """Put a group in the cache; returns the one of its id that is there already, if there is."""
        there = self.groups.get(kept.group_id)
        if there is not None:
            return there
        self.groups[kept.group_id] = kept
        kept.is_kept = True
        kept.group.enter_memory()
        return kept

    def remove(self, kept: GroupEntry) -> None:
        """Take a group out of the cache; it is Dead from then on."""
        if self.groups.pop(kept.group_id, None) is not None:
            kept.is_kept = False
            kept.group.leave_memory()
            kept.offsets.leave_memory()
            self.absence_ticket = later(self.absence_ticket, kept.ticket)
