# SPDX-License-Identifier: Apache-2.0
"""Taking groups over from the cluster that a gateway stands before, and giving them back.

Whose offsets count is said by the mark in the book (`book.py`), in one record: those of the cluster up to the append of
ADOPTED, and again from that of UNDER_WAY on. Few offsets are appended together with their mark. For more of them the
mark is UNDER_WAY first, and what is written then is of no group that clients can see: it is *void*, wherever that ends,
until the mark is ADOPTED; and void is cleared away before anything else is done with the group.

What was read of the cluster counts only while no mark of the partition was taken away since (`book.py`): an adopter
that has slept while its group came, committed, and went back has read offsets that are older than the cluster's. And it
counts for a moment only, as clients at the cluster go on without our knowing; and only while no topic is deleted, as
the offsets in that are dropped from the groups that are here by then, and from no others.

A group that is about to be given back is *closed*, in memory: clients read it, and are told to try again with what
would change it. Its mover closes it before the cluster is written to, and it opens by itself where the mover does not
come back, or the partition moves. So `give_back` still looks for members, and compares the offsets.

A group that is nowhere gets no mark, or a client that asks for endless ids would fill the log: it is *vacant* for a
moment, in memory. Its mark BEGUN comes with its first record, and goes some time after the group (`mark_expiry.py`).
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from coordinator.groups.limits import new_group, new_offsets
from coordinator.groups.offsets.expiry import is_no_group
from coordinator.partitions.append_errors import append_error
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.ownership_markers import ADOPTED, BEGUN, OURS, UNDER_WAY, is_book
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.telemetry.logs import get_logger
from coordinator.tickets import ReplyDependencies, later
from protocol import names
from protocol.errors import ErrorCode
from protocol.names import GroupId
from storage.errors import RecordTooLarge
from storage.format.records import GroupMetadataRecord, OffsetAndMetadata, OffsetCommitRecord

log = get_logger("adoption")

AT_ONCE: Final = 500
"""So many offsets are appended together with their mark."""
PER_STEP: Final = 50
"""Of more than that so many are appended before others get a chance: some 500 microseconds."""
COMPARED_PER_STEP: Final = 500
READING_MS: Final = 30_000
"""What was read of the cluster counts for so long. Who reads for longer, or sleeps meanwhile, has to read again."""
CLOSED_MS: Final = 30_000
"""For so long a group stays closed after its mover's last request: it may have died."""
VACANT_MS: Final = 10_000
"""For so long the cluster is not asked again about a group that it knows nothing of."""

MarkRecord = OffsetCommitRecord | GroupMetadataRecord


class AdoptedOffset(NamedTuple):
    """One committed offset, as the cluster has it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class AdoptionReading(NamedTuple):
    """What was read of the cluster."""

    offsets: Sequence[AdoptedOffset]
    epoch: int
    """What `AdoptionOutcome.epoch` was before that."""
    asked_ms: int
    """And when that was, by the clock of the node that was asked."""
    is_unknown: bool = False
    """Whether the cluster knows nothing of the group, which has no offsets then."""


class AdoptionOutcome(NamedTuple):
    """What an adoption came to; STALE where what was read of the cluster may be too old by now."""

    error: ErrorCode
    is_adopted: bool = False
    taken: int = 0
    """How many offsets of the cluster are here now."""
    is_vacant: bool = False
    """Whether the group is nowhere: it may be asked for, and begin, for a moment."""
    epoch: int = 0
    """How often marks of this partition were taken away."""
    asked_ms: int = 0
    """When this was said, in milliseconds of a clock that does not go back."""


STALE: Final = ErrorCode.FENCED_LEADER_EPOCH


Steps = Generator[None, None, AdoptionOutcome]


class Adoptions:
    """The groups of a node that were taken over. Replies wait for what was found, and for what was changed."""

    def __init__(self, manager: GroupMetadataManager) -> None:
        self._manager = manager
        self.on_given_back: Callable[[GroupId], None] = lambda _group_id: None
        """Called with a group that is the cluster's again, or will be, unless a crash takes that back."""

    def ask(self, waiting: ReplyDependencies, group_id: GroupId) -> AdoptionOutcome:
        """Whether a group was taken over, or is vacant."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return AdoptionOutcome(shard)
        waiting.wait_for(shard.book.ticket)
        return AdoptionOutcome(
            ErrorCode.NONE,
            shard.mark_of(group_id) in OURS,
            is_vacant=shard.is_vacant(group_id, self._manager.clock.mono_ms()),
            epoch=shard.taken_away,
            asked_ms=self._manager.clock.mono_ms(),
        )

    def locate(self, waiting: ReplyDependencies, group_id: GroupId, *, discard_readings: bool) -> bool:
        """Whether requests about a group are for this node: it is here, or the node answers with an error.

        Here is a group that was taken over, has something stored here, or has a member here. If it is not, and
        something of it was deleted at the cluster, `discard_readings` keeps what was read there before from being
        stored.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return True
        kept = shard.groups.get(group_id)
        has_something = kept is not None and not is_no_group(kept.group, kept.offsets)
        self._wait(waiting, shard, group_id)
        if has_something or shard.mark_of(group_id) in OURS:
            return True
        if discard_readings:
            shard.readings_from_ms = self._manager.clock.mono_ms() + 1
        return False

    def _is_new(self, reading: AdoptionReading) -> bool:
        """Whether there was hardly time for a client to join at the cluster, and commit there what was not read."""
        return 0 <= self._manager.clock.mono_ms() - reading.asked_ms <= READING_MS

    def adopt(self, waiting: ReplyDependencies, group_id: GroupId, reading: AdoptionReading) -> Steps:
        """Take a group over as the cluster has it, giving way now and then, unless it was taken over before.

        A group that has anything here keeps that, and gets its mark. One that is nowhere gets none.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return AdoptionOutcome(shard)
        if shard.mark_of(group_id) in OURS:
            waiting.wait_for(shard.book.ticket)
            return AdoptionOutcome(ErrorCode.NONE, is_adopted=True)
        if group_id in shard.moving:
            return AdoptionOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if reading.epoch != shard.taken_away or not self._is_new(reading):
            return AdoptionOutcome(STALE)
        if self._may_store(shard, reading) is STALE:
            return AdoptionOutcome(STALE)
        shard.moving.add(group_id)
        try:
            adopted = yield from self._adopt(shard, group_id, reading)
        except RecordTooLarge as error:
            log.error("a group cannot be taken over", group=group_id, reason=str(error))
            adopted = AdoptionOutcome(append_error(error))
        finally:
            shard.moving.discard(group_id)
        self._wait(waiting, shard, group_id)
        return adopted

    def _adopt(self, shard: Shard, group_id: GroupId, reading: AdoptionReading) -> Steps:
        env = self._manager.env
        error = new_group(env.config.limits, env.usage, group_id)
        if error is ErrorCode.NONE:
            error = new_offsets(env.config.limits, env.usage, len(reading.offsets) + 1)
        if error is not ErrorCode.NONE:
            return AdoptionOutcome(error)
        if reading.is_unknown and self._leave_vacant(shard, group_id):
            return AdoptionOutcome(ErrorCode.NONE, is_vacant=True)
        shard.vacant.pop(group_id, None)
        kept = shard.groups.get(group_id)
        if kept is not None and is_no_group(kept.group, kept.offsets):
            shard.remove(kept)  # somebody wanted to join, and never came: it has nothing that it could keep
        if not (yield from self._clear(shard, group_id)):
            return AdoptionOutcome(ErrorCode.NOT_COORDINATOR)
        if group_id in shard.groups:
            mark = BEGUN if reading.is_unknown else ADOPTED
            self._append(shard, None, [self._mark(shard, group_id, mark)])
            log.info("a group keeps what it has here", group=group_id)
            return AdoptionOutcome(ErrorCode.NONE, is_adopted=True)
        kept = shard.new_group(group_id)
        error = yield from self._write(shard, kept, reading)
        if error is not ErrorCode.NONE:
            return AdoptionOutcome(error)
        if kept.offsets.count:
            shard.add(kept)
        log.info("a group was taken over from the cluster", group=group_id, offsets=kept.offsets.count)
        return AdoptionOutcome(ErrorCode.NONE, is_adopted=True, taken=kept.offsets.count)

    def _leave_vacant(self, shard: Shard, group_id: GroupId) -> bool:
        """Note a group that is nowhere; False where there is, or was to be, something of it here."""
        has_records = group_id in shard.groups and group_id not in shard.vacant
        if has_records or shard.mark_of(group_id) is not None:
            return False
        now_ms = self._manager.clock.mono_ms()
        shard.note_vacant(group_id, now_ms + VACANT_MS, now_ms)
        return True

    def may_go(self, waiting: ReplyDependencies, group_id: GroupId) -> ErrorCode:
        """Whether a group could be given back now.

        NON_EMPTY_GROUP while it has members, and GROUP_ID_NOT_FOUND for a group of which there is nothing here.
        """
        shard = self._shard(group_id)
        return shard if isinstance(shard, ErrorCode) else self._may_go(waiting, shard, group_id)

    def close(self, waiting: ReplyDependencies, group_id: GroupId) -> ErrorCode:
        """As `may_go`; one that could is closed for CLOSED_MS from now."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        error = self._may_go(waiting, shard, group_id)
        if error is ErrorCode.NONE:
            self._close(shard, group_id)
        return error

    def reopen(self, group_id: GroupId) -> ErrorCode:
        """Let clients change a group again; one that was not closed stays as it is."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        shard.closed.pop(group_id, None)
        return ErrorCode.NONE

    def _close(self, shard: Shard, group_id: GroupId) -> None:
        now_ms = self._manager.clock.mono_ms()
        shard.close(group_id, now_ms + CLOSED_MS, now_ms)

    def _may_go(self, waiting: ReplyDependencies, shard: Shard, group_id: GroupId) -> ErrorCode:
        self._wait(waiting, shard, group_id)
        kept = shard.groups.get(group_id)
        if group_id in shard.moving or (kept is not None and kept.group.is_dead):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # it is being moved, or deleted, in steps
        if kept is not None:
            return kept.group.validate_delete_group()
        return ErrorCode.NONE if shard.mark_of(group_id) in OURS else ErrorCode.GROUP_ID_NOT_FOUND

    def give_back(
        self, waiting: ReplyDependencies, group_id: GroupId, offsets: Sequence[AdoptedOffset]
    ) -> Generator[None, None, ErrorCode]:
        """Take a group's mark away, and the group itself: the cluster has its offsets, if they are still these.

        NON_EMPTY_GROUP while it has members, OFFSET_OUT_OF_RANGE where the offsets are others, and GROUP_ID_NOT_FOUND
        for a group of which there is nothing here.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        if group_id in shard.moving:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if shard.is_closed(group_id, self._manager.clock.mono_ms()):
            self._close(shard, group_id)
        shard.moving.add(group_id)
        try:
            error = yield from self._give_back(shard, group_id, offsets)
        finally:
            shard.moving.discard(group_id)
        self._wait(waiting, shard, group_id)
        return error

    def _give_back(
        self, shard: Shard, group_id: GroupId, offsets: Sequence[AdoptedOffset]
    ) -> Generator[None, None, ErrorCode]:
        kept = shard.groups.get(group_id)
        if kept is not None or shard.mark_of(group_id) in OURS:
            error = yield from self._compare(shard, kept, offsets)
            if error is not ErrorCode.NONE:
                return error
            count = shard.count_record(self._manager.clock.wall_ms())
            self._append(shard, None, [self._mark(shard, group_id, UNDER_WAY), count])
            shard.vacant.pop(group_id, None)
            shard.closed.pop(group_id, None)
            if kept is not None:
                shard.make_void(kept)
        elif shard.mark_of(group_id) is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if not (yield from self._clear(shard, group_id)):
            return ErrorCode.NOT_COORDINATOR
        self._append(shard, None, [self._mark(shard, group_id, None)])
        self.on_given_back(group_id)
        log.info("a group was given back to the cluster", group=group_id, offsets=len(offsets))
        return ErrorCode.NONE

    def _compare(
        self, shard: Shard, kept: GroupEntry | None, offsets: Sequence[AdoptedOffset]
    ) -> Generator[None, None, ErrorCode]:
        """Whether the group has no members and exactly these offsets. Nothing changes it meanwhile."""
        if kept is None:
            return ErrorCode.OFFSET_OUT_OF_RANGE if offsets else ErrorCode.NONE
        error = kept.group.validate_delete_group()
        if error is not ErrorCode.NONE:
            return error
        same = kept.offsets.count == len(offsets)
        kept.group.begin_deletion()
        try:
            for start in range(0, len(offsets) if same else 0, COMPARED_PER_STEP):
                same = same and all(
                    _is_there(kept, each) for each in offsets[start : start + COMPARED_PER_STEP]
                )
                if start + COMPARED_PER_STEP < len(offsets):
                    yield
        finally:
            if self._manager.is_served(kept):
                kept.group.end_deletion()
        if not self._is_ours(shard):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE if same else ErrorCode.OFFSET_OUT_OF_RANGE

    # --- records ---

    def _write(
        self, shard: Shard, kept: GroupEntry, reading: AdoptionReading
    ) -> Generator[None, None, ErrorCode]:
        """Append the offsets of a group that is still hidden, and its mark.

        NOT_COORDINATOR where the partition was lost, and STALE where a topic was deleted: what was written is void.
        """
        offsets = reading.offsets
        error = self._may_store(shard, reading)
        if error is not ErrorCode.NONE:
            return error
        adopted = self._mark(shard, kept.group_id, ADOPTED)
        if len(offsets) <= AT_ONCE:
            try:
                self._append(shard, kept, [adopted, *self._records(kept.group_id, offsets)])
            except RecordTooLarge:
                pass  # they are long, and message.max.bytes is small
            else:
                return ErrorCode.NONE
        shard.void[kept.group_id] = kept
        self._append(shard, kept, [self._mark(shard, kept.group_id, UNDER_WAY)])
        for start in range(0, len(offsets), PER_STEP):
            some = self._records(kept.group_id, offsets[start : start + PER_STEP])
            append_in_parts(shard, kept, some)
            yield
            error = self._may_store(shard, reading)
            if error is not ErrorCode.NONE:
                return error
        self._append(shard, kept, [adopted])
        shard.void.pop(kept.group_id)
        return ErrorCode.NONE

    def _clear(self, shard: Shard, group_id: GroupId) -> Generator[None, None, bool]:
        """Delete what is void of a group; False where the partition was lost meanwhile."""
        kept = shard.void.get(group_id)
        if kept is None:
            return True
        while kept.offsets.count:
            if not self._is_ours(shard):
                return False
            records: list[MarkRecord] = [
                OffsetCommitRecord(group_id, topic, partition, None)
                for topic, partition, _ in islice(kept.offsets.all(), PER_STEP)
            ]
            append_in_parts(shard, kept, records)
            yield
        if not self._is_ours(shard):
            return False
        if kept.group.generation_id:
            self._append(shard, kept, [GroupMetadataRecord(group_id, None)])
        shard.void.pop(group_id)
        return True

    def _append(self, shard: Shard, kept: GroupEntry | None, records: Iterable[MarkRecord]) -> None:
        """Append all or none, in one batch, and apply: to the book, and to a hidden group."""
        shard.append_hidden(kept, list(records))

    def _records(self, group_id: GroupId, offsets: Sequence[AdoptedOffset]) -> list[MarkRecord]:
        return [
            OffsetCommitRecord(group_id, each.topic, each.partition, self._value(each)) for each in offsets
        ]

    def _value(self, offset: AdoptedOffset) -> OffsetAndMetadata:
        now_ms = self._manager.clock.wall_ms()
        return OffsetAndMetadata(
            names.Offset(offset.offset), offset.leader_epoch, offset.metadata, now_ms, None
        )

    def _mark(self, shard: Shard, group_id: GroupId, mark: int | None) -> OffsetCommitRecord:
        return shard.mark_record(group_id, mark, self._manager.clock.wall_ms())

    # --- where ---

    def _shard(self, group_id: GroupId) -> Shard | ErrorCode:
        return ErrorCode.INVALID_GROUP_ID if is_book(group_id) else self._manager.shard_for(group_id)

    def _is_ours(self, shard: Shard) -> bool:
        return self._manager.owned_partitions.get(shard.partition) is shard

    def _may_store(self, shard: Shard, reading: AdoptionReading) -> ErrorCode:
        """NONE while the partition is ours, and no topic was deleted since the cluster began to be read."""
        if not self._is_ours(shard):
            return ErrorCode.NOT_COORDINATOR
        return STALE if reading.asked_ms < shard.readings_from_ms else ErrorCode.NONE

    def _wait(self, waiting: ReplyDependencies, shard: Shard, group_id: GroupId) -> None:
        waiting.wait_for(shard.book.ticket)
        kept = shard.groups.get(group_id)
        waiting.wait_for(shard.absence_ticket if kept is None else later(kept.ticket, shard.book.ticket))


def append_in_parts(shard: Shard, kept: GroupEntry | None, records: Sequence[MarkRecord]) -> None:
    """Append records of the book, or of a hidden group, that need not stay in one batch. Raises RecordTooLarge."""
    try:
        shard.append_hidden(kept, records)
    except RecordTooLarge:
        if len(records) == 1:
            raise
        middle = len(records) // 2
        append_in_parts(shard, kept, records[:middle])
        append_in_parts(shard, kept, records[middle:])


def _is_there(kept: GroupEntry, offset: AdoptedOffset) -> bool:
    found = kept.offsets.of(offset.topic).get(offset.partition)
    return found is not None and (found.offset, found.leader_epoch, found.metadata) == offset[2:]
