# SPDX-License-Identifier: Apache-2.0
"""The groups of one partition of `__consumer_offsets`, and the appends that change them."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.member import NEVER
from coordinator.groups.group import Group
from coordinator.groups.group_totals import GroupTotals
from coordinator.groups.kinds import KINDS, GroupKind, GroupKinds
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.logs.group_log import LogWriter
from coordinator.partitions.ownership_markers import BEGUN, OURS, UNDER_WAY, is_markers_group
from coordinator.tickets import DURABLE, DurabilityTicket, find_later_ticket
from protocol.newtypes import GroupId, Offset, Partition
from protocol.placement import GroupPlacementTally
from storage.format.records import (
    GroupMetadataRecord,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    UnknownRecord,
    find_unserved_group,
)

MARKS_PER_STEP: Final = 500
NO_GROUP: Final = GroupId("")
CONFIRMED_ABSENT_MAX: Final = 1_000
"""The maximum number of confirmed absent groups that are remembered, not counting those that have begun since."""


class GroupEntry:
    """The entry of a group in its partition: the group, of any kind, its offsets, newest ticket and armed deadline."""

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
        """The ticket of the newest record of this entry."""
        self.is_kept = False
        """True if the entry is in the cache."""
        self.armed_ms = NEVER
        """The time of the armed deadline of the group; NEVER if none is armed."""
        self.commits = 0
        """The number of offsets that the group has committed since it entered memory."""
        self.rebalances = 0
        """The number of rebalances that the group has begun since it entered memory."""

    @property
    def classic_group(self) -> ClassicGroup:
        """The group, which must be one of the classic protocol."""
        group = self.group
        assert isinstance(group, ClassicGroup), f"{self.group_id} is a {group.kind} group"
        return group


class Shard:
    """The groups of one partition; owned by the event loop.

    `append_and_apply` is the live path: records go to the log's writer and are applied in the same step. Loading uses
    `apply` alone. Nothing else changes a group's records in the log.
    """

    __slots__ = (
        "absence_ticket",
        "appender",
        "book",
        "closed",
        "confirmed_absent",
        "groups",
        "hidden",
        "is_lost",
        "kinds",
        "migrating",
        "other_groups",
        "partition",
        "placement",
        "readings_from_ms",
        "usage",
    )

    def __init__(
        self,
        partition: Partition,
        usage: GroupTotals | None = None,
        book_id: GroupId = NO_GROUP,
        kinds: GroupKinds = KINDS,
    ) -> None:
        """Create a partition without groups, for groups of `kinds`, which count into `usage`, the totals of the node.

        `book_id` is the name of its book; a shard that is only read need not know it.
        """
        self.partition = partition
        self.usage = GroupTotals() if usage is None else usage
        self.kinds = kinds
        self.placement: GroupPlacementTally | None = None
        """The partitions to which the loaded groups belong; None before the load."""
        self.is_lost = False
        """True if this node has lost the partition: its groups are about to leave memory, and nothing is written."""
        self.groups: dict[GroupId, GroupEntry] = {}
        self.other_groups: set[GroupId] = set()
        """The groups in the log whose protocols are not served here."""
        self.appender: LogWriter | None = None  # None while loading
        self.absence_ticket: DurabilityTicket = DURABLE
        """The ticket of the newest removal of a group: a response that a group is absent waits for it."""
        self.book = GroupEntry(self, kinds.simple.make(book_id, self.usage))
        """The marks of the groups taken over from a cluster (`ownership_markers`), as offsets of a hidden group."""
        self.hidden: dict[GroupId, GroupEntry] = {}
        """Groups whose takeover or return is under way, or has ended half-way: they are hidden as well."""
        self.migrating: set[GroupId] = set()
        """The groups that are being taken over or given back now."""
        self.closed: dict[GroupId, int] = {}
        """The groups that are about to be given back, with the millisecond until which clients cannot change them."""
        self.confirmed_absent: dict[GroupId, int] = {}
        """Groups that neither this partition nor the cluster has, with the millisecond until which that counts; such
        groups may begin, and get their mark with their first record."""
        self.readings_from_ms = 0
        """The millisecond from which on readings of the cluster count: an earlier reading may name topics that were
        deleted since, and whose offsets were dropped here, or by the partition's last leader."""

    def append_and_apply(self, records: Sequence[Record]) -> None:
        """Append records, all or none, in one batch, and apply them. Raises RecordTooLarge before any change."""
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append(records)
        for record in records:
            kept = self.apply(record)
            if kept is not None:
                kept.ticket = ticket
            else:
                self.absence_ticket = ticket

    def append_and_apply_offsets(self, kept: GroupEntry, commits: list[TopicOffsetCommits]) -> None:
        """Append the offsets of one commit of a group, all or none, and apply them: the hot path.

        Raises RecordTooLarge before anything has changed.
        """
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append_offsets(commits)
        for commit in commits:
            kept.offsets.apply_commits(commit)
        kept.ticket = ticket

    def apply(self, record: Record | TopicOffsetCommits) -> GroupEntry | None:
        """Apply a record; return its group, or None if the group is gone now or of an unknown kind."""
        if isinstance(record, TopicOffsetCommits):
            kept = self._find_or_add(record.group)
            kept.offsets.apply_commits(record)
            return kept
        if isinstance(record, OffsetCommitRecord):
            return self.apply_offset_commit(record.group, record.topic, record.partition, record.value)
        if isinstance(record, UnknownRecord):
            self._note_other_group(record)
            return None
        return self._apply_group_record(record, self.kinds.by_record[type(record)])

    def apply_offset_commit(
        self, group_id: GroupId, topic: str, partition: int, value: OffsetAndMetadata | None
    ) -> GroupEntry | None:
        """Apply one offset; the first offset of an absent group creates that group (a simple group)."""
        kept = self.groups.get(group_id) if value is None else self._find_or_add(group_id)
        if kept is not None:
            kept.offsets.apply_offset(topic, partition, value)
        return kept

    def _apply_group_record(self, record: GroupMetadataRecord, kind: GroupKind) -> GroupEntry | None:
        """Apply a record of a group itself; return the group, or None if it is gone now.

        A simple group becomes one of the record's kind, as in Kafka. Raises ValueError for a group of another kind.
        """
        found = self.groups.get(record.group)
        if found is None:
            if record.value is None:
                return None
            found = self.add_or_get_existing(self.make_uncached_group(record.group, kind))
        elif type(found.group) is not kind.group_type:
            if found.group.protocol_type is not None:
                raise ValueError(
                    f"group {record.group}: a record of kind {kind.name}, and it is {found.group.kind}"
                )
            found.group.mark_dead_and_uncount()
            found.group = kind.make(record.group, self.usage)
            found.group.start_counting_in_totals()
        if found.group.apply_record(record):
            return found
        if found.offsets.count:
            # The tombstone of a group follows those of its offsets; if offsets are left, they are not lost with it.
            found.group.forget_records()
            return found
        self.remove(found)
        return None

    def _find_or_add(self, group_id: GroupId) -> GroupEntry:
        kept = self.groups.get(group_id)
        if kept is not None:
            return kept
        return self.add_or_get_existing(self.make_uncached_group(group_id))

    def make_uncached_group(self, group_id: GroupId, kind: GroupKind | None = None) -> GroupEntry:
        """Return an empty group, a simple one unless `kind` is passed, that is not in the cache."""
        kept = GroupEntry(self, (kind or self.kinds.simple).make(group_id, self.usage))
        # A group of this name may have been deleted just now: responses about the new one wait for that.
        kept.ticket = self.absence_ticket
        return kept

    def _note_other_group(self, record: UnknownRecord) -> None:
        group_id = find_unserved_group(record)
        if group_id is not None:
            (self.other_groups.discard if record.value is None else self.other_groups.add)(group_id)

    def flag_other_protocol_groups(self) -> None:
        """Mark the groups whose protocol is not served, lest they count as simple, once the log has been applied."""
        for group_id in self.other_groups & self.groups.keys():
            self.groups[group_id].classic_group.of_other_protocol = True

    # --- groups that were taken over from a cluster ---

    def hide_groups_in_steps(self) -> Iterator[None]:
        """Take the book and hidden groups out of `groups`, in steps, once the log has been applied."""
        book_id = self.book.group_id or next(filter(is_markers_group, self.groups), None)
        found = None if book_id is None else self.groups.pop(book_id, None)
        if found is None:
            return
        found.is_kept = False
        found.group.mark_dead_and_uncount()
        self.book = found
        for number, group_id in enumerate(map(GroupId, list(found.offsets.by_topic))):
            kept = self.groups.get(group_id)
            if kept is not None and self.get_mark(group_id) == UNDER_WAY:
                self.hide_group_until_deleted(kept)
            if number % MARKS_PER_STEP == 0:
                yield

    def get_mark(self, group_id: GroupId) -> int | None:
        """Return the mark of a group in the book; None if it has none."""
        mark = self.book.offsets.get_topic_offsets(group_id).get(0)
        return None if mark is None else mark.offset

    def can_group_begin_here(self, group_id: GroupId, now_ms: int, *, needs_mark: bool) -> bool:
        """Return whether an absent group has no state at the cluster that counts: it may be looked up, and created."""
        mark = self.get_mark(group_id)
        if mark is None:
            return self.is_confirmed_absent_everywhere(group_id, now_ms) or (
                not needs_mark and group_id not in self.migrating
            )
        return mark in OURS

    def is_confirmed_absent_everywhere(self, group_id: GroupId, now_ms: int) -> bool:
        """Return whether a group was neither here nor at the cluster a moment ago, or is about to begin here.

        A group that has no members any more, and was never stored, has not begun: it may have begun at the cluster.
        """
        until_ms = self.confirmed_absent.get(group_id)
        if until_ms is None:
            return False
        kept = self.groups.get(group_id)
        return until_ms > now_ms or (kept is not None and kept.group.has_members_or_pending)

    @property
    def ownership_mark_removal_count(self) -> int:
        """The number of times that a mark was taken away (`ownership_markers`)."""
        count = self.book.offsets.get_topic_offsets(self.book.group_id).get(0)
        return 0 if count is None else count.offset

    def make_ownership_mark_record(
        self, group_id: GroupId, mark: int | None, now_wall_ms: int
    ) -> OffsetCommitRecord:
        """Return the record that sets the mark of a group, or takes it away if `mark` is None."""
        value = None if mark is None else OffsetAndMetadata(Offset(mark), -1, "", now_wall_ms, None)
        return OffsetCommitRecord(self.book.group_id, group_id, 0, value)

    def make_mark_removal_count_record(self, now_wall_ms: int) -> OffsetCommitRecord:
        """Return the record that is appended along with a removal of marks, and counts it."""
        return self.make_ownership_mark_record(
            self.book.group_id, self.ownership_mark_removal_count + 1, now_wall_ms
        )

    def note_confirmed_absent(self, group_id: GroupId, until_ms: int, now_ms: int) -> None:
        """Note a group that neither this partition nor the cluster has, and forget some whose time is over."""
        self.confirmed_absent.pop(group_id, None)
        self.confirmed_absent[group_id] = until_ms
        for oldest in list(islice(self.confirmed_absent, 2)):
            if oldest in self.groups:  # its first record is still to come
                self.confirmed_absent[oldest] = self.confirmed_absent.pop(oldest)
            elif self.confirmed_absent[oldest] <= now_ms or len(self.confirmed_absent) > CONFIRMED_ABSENT_MAX:
                del self.confirmed_absent[oldest]

    def mark_begun_here_if_confirmed_absent(self, group_id: GroupId, now_wall_ms: int) -> None:
        """Mark a confirmed absent group as ours, as it gets its first record now. Raises RecordTooLarge."""
        if group_id in self.confirmed_absent:
            self.append_and_apply_hidden_records(
                None, [self.make_ownership_mark_record(group_id, BEGUN, now_wall_ms)]
            )
            del self.confirmed_absent[group_id]

    def renew_begun_group_mark(self, group_id: GroupId, now_wall_ms: int) -> None:
        """Restart the expiry of the mark of a removed group that began here. Raises RecordTooLarge."""
        if self.get_mark(group_id) == BEGUN:
            self.append_and_apply_hidden_records(
                None, [self.make_ownership_mark_record(group_id, BEGUN, now_wall_ms)]
            )

    def close_group(self, group_id: GroupId, until_ms: int, now_ms: int) -> None:
        """Keep clients from changing a group until `until_ms`; forget closed groups whose time is over."""
        self.closed = {each: until for each, until in self.closed.items() if until > now_ms}
        self.closed[group_id] = until_ms

    def is_group_closed(self, group_id: GroupId, now_ms: int) -> bool:
        """Return whether clients are kept from changing a group."""
        return self.closed.get(group_id, now_ms) > now_ms

    def hide_group_until_deleted(self, kept: GroupEntry) -> None:
        """Hide a group from now on; its records in the log are to be deleted."""
        self.groups.pop(kept.group_id, None)
        kept.is_kept = False
        kept.group.mark_dead_and_uncount()
        self.hidden[kept.group_id] = kept

    def append_and_apply_hidden_records(self, kept: GroupEntry | None, records: Sequence[Record]) -> None:
        """Append records, all or none, in one batch; apply them to the hidden group `kept`, or to the book.

        A record is for `kept` if it names that group, and for the book otherwise. Raises RecordTooLarge
        before anything has changed.
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
        """Forget the book and all hidden and confirmed absent groups, as the partition is lost."""
        for kept in (self.book, *self.hidden.values()):
            kept.offsets.subtract_from_totals()
        self.hidden.clear()
        self.confirmed_absent.clear()

    # --- the cache ---

    def add_or_get_existing(self, kept: GroupEntry) -> GroupEntry:
        """Add a group to the cache and return it, or the group of its id that is in the cache already."""
        there = self.groups.get(kept.group_id)
        if there is not None:
            return there
        self.groups[kept.group_id] = kept
        kept.is_kept = True
        kept.group.start_counting_in_totals()
        return kept

    def remove(self, kept: GroupEntry) -> None:
        """Take a group out of the cache; it is Dead from then on."""
        if self.groups.pop(kept.group_id, None) is not None:
            kept.is_kept = False
            kept.group.mark_dead_and_uncount()
            kept.offsets.subtract_from_totals()
            self.absence_ticket = find_later_ticket(self.absence_ticket, kept.ticket)
