# SPDX-License-Identifier: Apache-2.0
"""Takes groups over from the Kafka cluster behind a gateway, and gives them back.

The mark in the book (`ownership_markers`), one record, decides whose offsets count: the cluster's up to the append of
ADOPTED, and again from the append of UNDER_WAY on. Few offsets are appended together with their mark. For more of them
the mark is UNDER_WAY first, and the offsets written then belong to a *hidden* group, which clients cannot see until the
mark is ADOPTED, even after a crash; a hidden group is cleared before anything else is done with the group.

A reading of the cluster counts only while no mark of the partition was taken away since (`ownership_markers`): an
adopter that has slept while its group came, committed, and went back has read offsets that are older than the
cluster's. The reading counts for a moment only, as clients at the cluster go on unknown to us; and only while no topic
is deleted, as the offsets in a deleted topic are dropped only from the groups that are here by then.

A group that is about to be given back is *closed*, in memory: clients can read it, and must retry requests that would
change it. Its mover closes it before writing to the cluster, and it opens by itself if the mover does not come back,
or the partition moves. So `remove_group_if_unchanged` still checks for members, and compares the offsets.

A group that neither this node nor the cluster has gets no mark, or a client that asks for endless ids would fill the
log: it is *confirmed absent* for a moment, in memory. Its mark BEGUN is appended with its first record, and removed
some time after the group (`ownership_mark_expiry`).
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from coordinator.groups.limits import refuse_group_over_limit, refuse_offsets_over_limit
from coordinator.groups.offsets.expiry_and_deletion import is_unstored_blank_group
from coordinator.partitions.append_errors import get_unmapped_append_error_code
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.ownership_markers import ADOPTED, BEGUN, OURS, UNDER_WAY, is_markers_group
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.telemetry.logs import get_logger
from coordinator.tickets import ReplyDependencies, find_later_ticket
from protocol import newtypes
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from storage.errors import RecordTooLarge
from storage.format.records import GroupMetadataRecord, OffsetAndMetadata, OffsetCommitRecord

log = get_logger("adoption")

AT_ONCE: Final = 500
"""The maximum number of offsets that are appended together with their mark."""
PER_STEP: Final = 50
"""The number of offsets in one step, if there are more than AT_ONCE: some 500 microseconds."""
COMPARED_PER_STEP: Final = 500
READING_MS: Final = 30_000
"""The time for which a reading of the cluster counts; an adopter that takes longer, or sleeps, must read again."""
CLOSED_MS: Final = 30_000
"""The time for which a group stays closed after its mover's last request: the mover may have died."""
CONFIRMED_ABSENT_MS: Final = 10_000
"""The time for which the cluster is not queried again for a group that it does not have."""

MarkRecord = OffsetCommitRecord | GroupMetadataRecord


class AdoptedOffset(NamedTuple):
    """One committed offset, as the cluster has it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class AdoptionReading(NamedTuple):
    """The offsets of a group as read from the cluster."""

    offsets: Sequence[AdoptedOffset]
    epoch: int
    """The value of `AdoptionOutcome.epoch` before the reading."""
    asked_ms: int
    """The time of that value, in milliseconds of the clock of the node that returned it."""
    is_unknown: bool = False
    """True if the cluster does not have the group, which has no offsets then."""


class AdoptionOutcome(NamedTuple):
    """The result of an adoption; `error` is STALE if the reading of the cluster may be too old by now."""

    error: ErrorCode
    is_adopted: bool = False
    is_newly_adopted: bool = False
    """True if the adoption took the group over, with `taken` offsets of the cluster."""
    taken: int = 0
    """The number of the cluster's offsets that are here now."""
    is_confirmed_absent: bool = False
    """True if neither this node nor the cluster has the group: it may be read, and begin, for a moment."""
    epoch: int = 0
    """The number of times that marks of this partition were taken away."""
    asked_ms: int = 0
    """The time of this result, in milliseconds of a clock that does not go back."""


STALE: Final = ErrorCode.FENCED_LEADER_EPOCH


Steps = Generator[None, None, AdoptionOutcome]


class Adoptions:
    """Takes groups over and gives them back; a reply waits until the state that was found or changed is durable."""

    def __init__(self, manager: GroupMetadataManager) -> None:
        self._manager = manager
        self.on_given_back: Callable[[GroupId], None] = lambda _group_id: None
        """Called with a group that is the cluster's again, or will be once durable, unless a crash prevents that."""

    def find_adoption_state(self, waiting: ReplyDependencies, group_id: GroupId) -> AdoptionOutcome:
        """Return whether a group was taken over, or is confirmed absent."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return AdoptionOutcome(shard)
        waiting.add_ticket(shard.book.ticket)
        return AdoptionOutcome(
            ErrorCode.NONE,
            shard.get_mark(group_id) in OURS,
            is_confirmed_absent=shard.is_confirmed_absent_everywhere(group_id, self._manager.clock.mono_ms()),
            epoch=shard.ownership_mark_removal_count,
            asked_ms=self._manager.clock.mono_ms(),
        )

    def should_answer_group_here(
        self, waiting: ReplyDependencies, group_id: GroupId, *, discard_readings: bool
    ) -> bool:
        """Return whether requests for a group belong to this node: the group is here, or the response is an error.

        A group is here if it was taken over, has something stored here, or has a member here. If it is not, and
        something of the group was deleted at the cluster, `discard_readings` keeps earlier readings of the cluster
        from being stored.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return True
        kept = shard.groups.get(group_id)
        has_something = kept is not None and not is_unstored_blank_group(kept.group, kept.offsets)
        self._wait(waiting, shard, group_id)
        if has_something or shard.get_mark(group_id) in OURS:
            return True
        if discard_readings:
            shard.readings_from_ms = self._manager.clock.mono_ms() + 1
        return False

    def _is_new(self, reading: AdoptionReading) -> bool:
        """Return whether a reading is so recent that hardly any client can have joined at the cluster and committed."""
        return 0 <= self._manager.clock.mono_ms() - reading.asked_ms <= READING_MS

    def adopt(self, waiting: ReplyDependencies, group_id: GroupId, reading: AdoptionReading) -> Steps:
        """Take a group over as the cluster has it, in steps, unless it was taken over before.

        A group that has anything here keeps that, and gets its mark. A group that neither this node nor the cluster
        has gets none.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return AdoptionOutcome(shard)
        if shard.get_mark(group_id) in OURS:
            waiting.add_ticket(shard.book.ticket)
            return AdoptionOutcome(ErrorCode.NONE, is_adopted=True)
        if group_id in shard.migrating:
            return AdoptionOutcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if reading.epoch != shard.ownership_mark_removal_count or not self._is_new(reading):
            return AdoptionOutcome(STALE)
        if self._may_store(shard, reading) is STALE:
            return AdoptionOutcome(STALE)
        shard.migrating.add(group_id)
        try:
            adopted = yield from self._adopt(shard, group_id, reading)
        except RecordTooLarge as error:
            log.error("a group cannot be taken over", group=group_id, reason=str(error))
            adopted = AdoptionOutcome(get_unmapped_append_error_code(error))
        finally:
            shard.migrating.discard(group_id)
        self._wait(waiting, shard, group_id)
        return adopted

    def _adopt(self, shard: Shard, group_id: GroupId, reading: AdoptionReading) -> Steps:
        env = self._manager.env
        error = refuse_group_over_limit(env.config.limits, env.usage, group_id)
        if error is ErrorCode.NONE:
            error = refuse_offsets_over_limit(env.config.limits, env.usage, len(reading.offsets) + 1)
        if error is not ErrorCode.NONE:
            return AdoptionOutcome(error)
        if reading.is_unknown and self._end_confirmed_absence(shard, group_id):
            return AdoptionOutcome(ErrorCode.NONE, is_confirmed_absent=True)
        shard.confirmed_absent.pop(group_id, None)
        kept = shard.groups.get(group_id)
        if kept is not None and is_unstored_blank_group(kept.group, kept.offsets):
            shard.remove(kept)  # a client began to join, and never did: the group has nothing to keep
        if not (yield from self._clear(shard, group_id)):
            return AdoptionOutcome(ErrorCode.NOT_COORDINATOR)
        if group_id in shard.groups:
            mark = BEGUN if reading.is_unknown else ADOPTED
            self._append(shard, None, [self._mark(shard, group_id, mark)])
            log.info("a group keeps what it has here", group=group_id)
            return AdoptionOutcome(ErrorCode.NONE, is_adopted=True)
        kept = shard.make_uncached_group(group_id)
        error = yield from self._write(shard, kept, reading)
        if error is not ErrorCode.NONE:
            return AdoptionOutcome(error)
        if kept.offsets.count:
            shard.add_or_get_existing(kept)
        return AdoptionOutcome(
            ErrorCode.NONE, is_adopted=True, is_newly_adopted=True, taken=kept.offsets.count
        )

    def _end_confirmed_absence(self, shard: Shard, group_id: GroupId) -> bool:
        """Note a confirmed absent group; return False if this node has, or was to have, something of the group."""
        has_records = group_id in shard.groups and group_id not in shard.confirmed_absent
        if has_records or shard.get_mark(group_id) is not None:
            return False
        now_ms = self._manager.clock.mono_ms()
        shard.note_confirmed_absent(group_id, now_ms + CONFIRMED_ABSENT_MS, now_ms)
        return True

    def check_give_back(self, waiting: ReplyDependencies, group_id: GroupId) -> ErrorCode:
        """Return NONE if a group could be given back now, else the error.

        NON_EMPTY_GROUP if it has members, and GROUP_ID_NOT_FOUND if this node has nothing of the group.
        """
        shard = self._shard(group_id)
        return shard if isinstance(shard, ErrorCode) else self._may_go(waiting, shard, group_id)

    def close_for_give_back(self, waiting: ReplyDependencies, group_id: GroupId) -> ErrorCode:
        """Close a group for CLOSED_MS if it could be given back now; return NONE, or the error of `check_give_back`."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        error = self._may_go(waiting, shard, group_id)
        if error is ErrorCode.NONE:
            self._close(shard, group_id)
        return error

    def reopen(self, group_id: GroupId) -> ErrorCode:
        """Let clients change a group again; a group that was not closed does not change."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        shard.closed.pop(group_id, None)
        return ErrorCode.NONE

    def _close(self, shard: Shard, group_id: GroupId) -> None:
        now_ms = self._manager.clock.mono_ms()
        shard.close_group(group_id, now_ms + CLOSED_MS, now_ms)

    def _may_go(self, waiting: ReplyDependencies, shard: Shard, group_id: GroupId) -> ErrorCode:
        self._wait(waiting, shard, group_id)
        kept = shard.groups.get(group_id)
        if group_id in shard.migrating or (kept is not None and kept.group.is_dead):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # it is being moved, or deleted, in steps
        if kept is not None:
            return kept.group.validate_delete_group()
        return ErrorCode.NONE if shard.get_mark(group_id) in OURS else ErrorCode.GROUP_ID_NOT_FOUND

    def remove_group_if_unchanged(
        self, waiting: ReplyDependencies, group_id: GroupId, offsets: Sequence[AdoptedOffset]
    ) -> Generator[None, None, ErrorCode]:
        """Remove a group and its mark, if its offsets are still `offsets`, which the cluster has.

        NON_EMPTY_GROUP if it has members, OFFSET_OUT_OF_RANGE if the offsets differ, and GROUP_ID_NOT_FOUND if this
        node has nothing of the group.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        if group_id in shard.migrating:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if shard.is_group_closed(group_id, self._manager.clock.mono_ms()):
            self._close(shard, group_id)
        shard.migrating.add(group_id)
        try:
            error = yield from self._give_back(shard, group_id, offsets)
        finally:
            shard.migrating.discard(group_id)
        self._wait(waiting, shard, group_id)
        return error

    def _give_back(
        self, shard: Shard, group_id: GroupId, offsets: Sequence[AdoptedOffset]
    ) -> Generator[None, None, ErrorCode]:
        kept = shard.groups.get(group_id)
        if kept is not None or shard.get_mark(group_id) in OURS:
            error = yield from self._compare(shard, kept, offsets)
            if error is not ErrorCode.NONE:
                return error
            count = shard.make_mark_removal_count_record(self._manager.clock.wall_ms())
            self._append(shard, None, [self._mark(shard, group_id, UNDER_WAY), count])
            shard.confirmed_absent.pop(group_id, None)
            shard.closed.pop(group_id, None)
            if kept is not None:
                shard.hide_group_until_deleted(kept)
        elif shard.get_mark(group_id) is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if not (yield from self._clear(shard, group_id)):
            return ErrorCode.NOT_COORDINATOR
        self._append(shard, None, [self._mark(shard, group_id, None)])
        self.on_given_back(group_id)
        return ErrorCode.NONE

    def _compare(
        self, shard: Shard, kept: GroupEntry | None, offsets: Sequence[AdoptedOffset]
    ) -> Generator[None, None, ErrorCode]:
        """Return NONE if the group has no members and exactly these offsets; nothing changes it meanwhile."""
        if kept is None:
            return ErrorCode.OFFSET_OUT_OF_RANGE if offsets else ErrorCode.NONE
        error = kept.group.validate_delete_group()
        if error is not ErrorCode.NONE:
            return error
        same = kept.offsets.count == len(offsets)
        kept.group.suspend_as_dead()
        try:
            for start in range(0, len(offsets) if same else 0, COMPARED_PER_STEP):
                same = same and all(
                    _is_there(kept, each) for each in offsets[start : start + COMPARED_PER_STEP]
                )
                if start + COMPARED_PER_STEP < len(offsets):
                    yield
        finally:
            if self._manager.is_group_still_served(kept):
                kept.group.resume_as_empty()
        if not self._is_ours(shard):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE if same else ErrorCode.OFFSET_OUT_OF_RANGE

    # --- records ---

    def _write(
        self, shard: Shard, kept: GroupEntry, reading: AdoptionReading
    ) -> Generator[None, None, ErrorCode]:
        """Append the offsets of a group that is still hidden, and its mark.

        NOT_COORDINATOR if the partition was lost, and STALE if a topic was deleted: the group stays hidden.
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
        shard.hidden[kept.group_id] = kept
        self._append(shard, kept, [self._mark(shard, kept.group_id, UNDER_WAY)])
        for start in range(0, len(offsets), PER_STEP):
            some = self._records(kept.group_id, offsets[start : start + PER_STEP])
            append_in_parts(shard, kept, some)
            yield
            error = self._may_store(shard, reading)
            if error is not ErrorCode.NONE:
                return error
        self._append(shard, kept, [adopted])
        shard.hidden.pop(kept.group_id)
        return ErrorCode.NONE

    def _clear(self, shard: Shard, group_id: GroupId) -> Generator[None, None, bool]:
        """Delete the records of a hidden group; return False if the partition was lost meanwhile."""
        kept = shard.hidden.get(group_id)
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
        shard.hidden.pop(group_id)
        return True

    def _append(self, shard: Shard, kept: GroupEntry | None, records: Iterable[MarkRecord]) -> None:
        """Append records, all or none, in one batch, and apply them to the book and to a hidden group."""
        shard.append_and_apply_hidden_records(kept, list(records))

    def _records(self, group_id: GroupId, offsets: Sequence[AdoptedOffset]) -> list[MarkRecord]:
        return [
            OffsetCommitRecord(group_id, each.topic, each.partition, self._value(each)) for each in offsets
        ]

    def _value(self, offset: AdoptedOffset) -> OffsetAndMetadata:
        now_ms = self._manager.clock.wall_ms()
        return OffsetAndMetadata(
            newtypes.Offset(offset.offset), offset.leader_epoch, offset.metadata, now_ms, None
        )

    def _mark(self, shard: Shard, group_id: GroupId, mark: int | None) -> OffsetCommitRecord:
        return shard.make_ownership_mark_record(group_id, mark, self._manager.clock.wall_ms())

    # --- partitions ---

    def _shard(self, group_id: GroupId) -> Shard | ErrorCode:
        return (
            ErrorCode.INVALID_GROUP_ID
            if is_markers_group(group_id)
            else self._manager.find_shard_or_error(group_id)
        )

    def _is_ours(self, shard: Shard) -> bool:
        return self._manager.owned_partitions.get(shard.partition) is shard

    def _may_store(self, shard: Shard, reading: AdoptionReading) -> ErrorCode:
        """Return NONE if the partition is ours and no topic was deleted since the reading began."""
        if not self._is_ours(shard):
            return ErrorCode.NOT_COORDINATOR
        return STALE if reading.asked_ms < shard.readings_from_ms else ErrorCode.NONE

    def _wait(self, waiting: ReplyDependencies, shard: Shard, group_id: GroupId) -> None:
        waiting.add_ticket(shard.book.ticket)
        kept = shard.groups.get(group_id)
        waiting.add_ticket(
            shard.absence_ticket if kept is None else find_later_ticket(kept.ticket, shard.book.ticket)
        )


def append_in_parts(shard: Shard, kept: GroupEntry | None, records: Sequence[MarkRecord]) -> None:
    """Append records of the book, or of a hidden group, that need not stay in one batch. Raises RecordTooLarge."""
    try:
        shard.append_and_apply_hidden_records(kept, records)
    except RecordTooLarge:
        if len(records) == 1:
            raise
        middle = len(records) // 2
        append_in_parts(shard, kept, records[:middle])
        append_in_parts(shard, kept, records[middle:])


def _is_there(kept: GroupEntry, offset: AdoptedOffset) -> bool:
    found = kept.offsets.get_topic_offsets(offset.topic).get(offset.partition)
    return found is not None and (found.offset, found.leader_epoch, found.metadata) == offset[2:]
