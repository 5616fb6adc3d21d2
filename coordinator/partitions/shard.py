# SPDX-License-Identifier: Apache-2.0
"""The groups of one partition of `__consumer_offsets`, and the appends that change them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.member import NEVER
from coordinator.groups.group import Group
from coordinator.groups.group_totals import GroupTotals
from coordinator.groups.kinds import KINDS, GroupKind, GroupKinds
from coordinator.groups.offsets.committed import CommittedOffsets
from coordinator.logs.group_log import LogWriter
from coordinator.migration.ledger import MigrationLedger, is_ledger
from coordinator.migration.model import Mark
from coordinator.tickets import DURABLE, DurabilityTicket, find_later_ticket
from protocol.newtypes import GroupId, Partition
from protocol.placement import GroupPlacementTally
from storage.errors import RecordTooLarge
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
        "groups",
        "hidden",
        "is_lost",
        "kinds",
        "ledger",
        "other_groups",
        "partition",
        "placement",
        "usage",
    )

    def __init__(
        self,
        partition: Partition,
        usage: GroupTotals | None = None,
        ledger_id: GroupId = NO_GROUP,
        kinds: GroupKinds = KINDS,
    ) -> None:
        """Create a partition without groups, for groups of `kinds`, which count into `usage`, the totals of the node.

        `ledger_id` is the name of its ledger; a shard that is only read need not know it.
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
        self.ledger = MigrationLedger(ledger_id, self.usage, self.groups)
        """The groups that were taken over from a cluster, or may begin here."""
        self.hidden: dict[GroupId, GroupEntry] = {}
        """Groups whose takeover or return is under way, or has ended half-way: they are hidden as well."""

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
        """Take the ledger's group and hidden groups out of `groups`, in steps, once the log has been applied."""
        ledger = self.ledger
        ledger_id = ledger.group_id or next(filter(is_ledger, self.groups), None)
        found = None if ledger_id is None else self.groups.pop(ledger_id, None)
        if found is None:
            return
        found.is_kept = False
        found.group.mark_dead_and_uncount()
        ledger.group_id, ledger.marks = found.group_id, found.offsets
        for number, group_id in enumerate(map(GroupId, list(found.offsets.by_topic))):
            kept = self.groups.get(group_id)
            if kept is not None and ledger.get_mark(group_id) == Mark.UNDER_WAY:
                self.hide_group_until_deleted(kept)
            if number % MARKS_PER_STEP == 0:
                yield

    def hide_group_until_deleted(self, kept: GroupEntry) -> None:
        """Hide a group from now on; its records in the log are to be deleted."""
        self.groups.pop(kept.group_id, None)
        kept.is_kept = False
        kept.group.mark_dead_and_uncount()
        self.hidden[kept.group_id] = kept

    def append_and_apply_mark(self, mark: OffsetCommitRecord | None) -> None:
        """Append a mark, unless it is None, and apply it. Raises RecordTooLarge before any change."""
        if mark is not None:
            self.append_and_apply_to_ledger([mark])

    def append_and_apply_to_ledger(self, records: Sequence[Record], kept: GroupEntry | None = None) -> None:
        """Append records, all or none, in one batch; apply them to the ledger, or to the hidden group `kept`.

        A record is for `kept` if it names that group, and for the ledger otherwise. Raises RecordTooLarge
        before anything has changed.
        """
        assert self.appender is not None, f"partition {self.partition} is still loading"
        ticket = self.appender.append(records)
        for record in records:
            if isinstance(record, OffsetCommitRecord):
                if kept is None or record.group != kept.group_id:
                    self.ledger.apply(record)
                else:
                    kept.offsets.apply_offset(record.topic, record.partition, record.value)
        self.ledger.ticket = self.absence_ticket = ticket
        if kept is not None:
            kept.ticket = ticket

    def forget_hidden(self) -> None:
        """Forget the ledger and all hidden groups, as the partition is lost."""
        self.ledger.forget()
        for kept in self.hidden.values():
            kept.offsets.subtract_from_totals()
        self.hidden.clear()

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


def append_in_parts(append: Callable[[Sequence[Record]], None], records: Sequence[Record]) -> None:
    """Append records that need not stay together in one batch, or in several if no batch holds all of them.

    Raises RecordTooLarge if a single record fits in no batch; those before it have been appended.
    """
    try:
        append(records)
    except RecordTooLarge:
        if len(records) == 1:
            raise
        middle = len(records) // 2
        append_in_parts(append, records[:middle])
        append_in_parts(append, records[middle:])
