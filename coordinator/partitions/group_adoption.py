# SPDX-License-Identifier: Apache-2.0
"""Takes groups over from the Kafka cluster behind a gateway, and gives them back.

The mark in the ledger (`migration.ledger`), one record, decides whose offsets count: the cluster's up to the append of
ADOPTED, and again from the append of UNDER_WAY on. Few offsets are appended together with their mark. For more of them
the mark is UNDER_WAY first, and the offsets written then belong to a *hidden* group, which clients cannot see until the
mark is ADOPTED, even after a crash; a hidden group is cleared before anything else is done with the group.

A reading of the cluster counts only while no mark of the partition was taken away since: an adopter that has slept
while its group came, committed, and went back has read offsets that are older than the cluster's. The reading counts
for a moment only, as clients at the cluster go on unknown to us; and only while no topic is deleted, as the offsets in
a deleted topic are dropped only from the groups that are here by then.

A group that is about to be given back is *closed*, in memory: clients can read it, and must retry requests that would
change it. Its mover closes it before writing to the cluster, and it opens by itself if the mover does not come back,
or the partition moves. So `remove_group_if_unchanged` still checks for members, and compares the offsets.

A group that neither this node nor the cluster has gets no mark, or a client that asks for endless ids would fill the
log: it is *confirmed absent* for a moment, in memory. Its mark BEGUN is appended with its first record, and removed
some time after the group (`Adoptions.expire_marks_in_steps`).
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from itertools import islice
from typing import Final

from coordinator.cluster_requests.model import Offsets, TopicPartition, TransferredOffset
from coordinator.groups.limits import refuse_group_over_limit, refuse_offsets_over_limit
from coordinator.groups.offsets.expiry_and_deletion import is_unstored_blank_group
from coordinator.migration.ledger import is_ledger
from coordinator.migration.model import CHANGED, STALE, ClusterReading, Mark, Ownership
from coordinator.partitions.append_errors import get_unmapped_append_error_code
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry, Shard, append_in_parts
from coordinator.telemetry.logs import get_logger
from coordinator.tickets import ReplyDependencies
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, Offset
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

MARKS_PER_STEP: Final = 50

Steps = Generator[None, None, Ownership]


class Adoptions:
    """Takes groups over and gives them back; a reply waits until the state that was found or changed is durable."""

    def __init__(self, manager: GroupMetadataManager) -> None:
        self._manager = manager
        self.on_given_back: Callable[[GroupId], None] = lambda _group_id: None
        """Called with a group that is the cluster's again, or will be once durable, unless a crash prevents that."""

    def find_ownership(self, waiting: ReplyDependencies, group_id: GroupId) -> Ownership:
        """Return whether a group was taken over, or is confirmed absent."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return Ownership(shard)
        ledger, now_ms = shard.ledger, self._manager.clock.mono_ms()
        waiting.add_ticket(ledger.ticket)
        return Ownership(
            is_adopted=ledger.is_ours(group_id),
            is_confirmed_absent=ledger.is_confirmed_absent(group_id, now_ms)
            or _is_about_to_begin(shard, group_id),
            epoch=ledger.removal_count,
            asked_ms=now_ms,
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
        if has_something or shard.ledger.is_ours(group_id):
            return True
        if discard_readings:
            shard.ledger.readings_from_ms = self._manager.clock.mono_ms() + 1
        return False

    def _is_new(self, reading: ClusterReading) -> bool:
        """Return whether a reading is so recent that hardly any client can have joined at the cluster and committed."""
        return 0 <= self._manager.clock.mono_ms() - reading.asked_ms <= READING_MS

    def adopt(self, waiting: ReplyDependencies, group_id: GroupId, reading: ClusterReading) -> Steps:
        """Take a group over as the cluster has it, in steps, unless it was taken over before.

        A group that has anything here keeps that, and gets its mark. A group that neither this node nor the cluster
        has gets none.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return Ownership(shard)
        ledger = shard.ledger
        if ledger.is_ours(group_id):
            waiting.add_ticket(ledger.ticket)
            return Ownership(is_adopted=True)
        if group_id in ledger.migrating:
            return Ownership(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if reading.epoch != ledger.removal_count or not self._is_new(reading):
            return Ownership(STALE)
        if self._may_store(shard, reading) is STALE:
            return Ownership(STALE)
        ledger.migrating.add(group_id)
        try:
            adopted = yield from self._adopt(shard, group_id, reading)
        except RecordTooLarge as error:
            log.error("a group cannot be taken over", group=group_id, reason=str(error))
            adopted = Ownership(get_unmapped_append_error_code(error))
        finally:
            ledger.migrating.discard(group_id)
        self._wait(waiting, shard, group_id)
        return adopted

    def _adopt(self, shard: Shard, group_id: GroupId, reading: ClusterReading) -> Steps:
        env = self._manager.env
        error = refuse_group_over_limit(env.config.limits, env.usage, group_id)
        if error is ErrorCode.NONE:
            error = refuse_offsets_over_limit(env.config.limits, env.usage, len(reading.offsets) + 1)
        if error is not ErrorCode.NONE:
            return Ownership(error)
        if reading.is_unknown and self._note_absent(shard, group_id):
            return Ownership(is_confirmed_absent=True)
        shard.ledger.confirmed_absent.pop(group_id, None)
        kept = shard.groups.get(group_id)
        if kept is not None and is_unstored_blank_group(kept.group, kept.offsets):
            shard.remove(kept)  # a client began to join, and never did: the group has nothing to keep
        if not (yield from self._clear(shard, group_id)):
            return Ownership(ErrorCode.NOT_COORDINATOR)
        if group_id in shard.groups:
            mark = Mark.BEGUN if reading.is_unknown else Mark.ADOPTED
            shard.append_and_apply_to_ledger([self._mark(shard, group_id, mark)])
            log.info("a group keeps what it has here", group=group_id)
            return Ownership(is_adopted=True)
        kept = shard.make_uncached_group(group_id)
        error = yield from self._write(shard, kept, reading)
        if error is not ErrorCode.NONE:
            return Ownership(error)
        if kept.offsets.count:
            shard.add_or_get_existing(kept)
        return Ownership(is_adopted=True, taken=kept.offsets.count)

    def _note_absent(self, shard: Shard, group_id: GroupId) -> bool:
        """Note a confirmed absent group; return False if this node has, or was to have, something of the group."""
        ledger = shard.ledger
        has_records = group_id in shard.groups and group_id not in ledger.confirmed_absent
        if has_records or ledger.get_mark(group_id) is not None:
            return False
        now_ms = self._manager.clock.mono_ms()
        ledger.note_confirmed_absent(group_id, now_ms + CONFIRMED_ABSENT_MS, now_ms)
        return True

    def check_give_back(self, waiting: ReplyDependencies, group_id: GroupId, *, close: bool) -> ErrorCode:
        """Return NONE if a group could be given back now, and close it for CLOSED_MS if `close`; else the error.

        NON_EMPTY_GROUP if it has members, and GROUP_ID_NOT_FOUND if this node has nothing of the group.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        error = self._may_go(waiting, shard, group_id)
        if close and error is ErrorCode.NONE:
            self._close(shard, group_id)
        return error

    def reopen(self, group_id: GroupId) -> ErrorCode:
        """Let clients change a group again; a group that was not closed does not change."""
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        shard.ledger.closed.pop(group_id, None)
        return ErrorCode.NONE

    def _close(self, shard: Shard, group_id: GroupId) -> None:
        now_ms = self._manager.clock.mono_ms()
        shard.ledger.close_group(group_id, now_ms + CLOSED_MS, now_ms)

    def _may_go(self, waiting: ReplyDependencies, shard: Shard, group_id: GroupId) -> ErrorCode:
        self._wait(waiting, shard, group_id)
        kept = shard.groups.get(group_id)
        if group_id in shard.ledger.migrating or (kept is not None and kept.group.is_dead):
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # it is being moved, or deleted, in steps
        if kept is not None:
            return kept.group.validate_delete_group()
        return ErrorCode.NONE if shard.ledger.is_ours(group_id) else ErrorCode.GROUP_ID_NOT_FOUND

    def remove_group_if_unchanged(
        self, waiting: ReplyDependencies, group_id: GroupId, offsets: Offsets
    ) -> Generator[None, None, ErrorCode]:
        """Remove a group and its mark, if its offsets are still `offsets`, which the cluster has.

        NON_EMPTY_GROUP if it has members, CHANGED if the offsets differ, and GROUP_ID_NOT_FOUND if this
        node has nothing of the group.
        """
        shard = self._shard(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        ledger = shard.ledger
        if group_id in ledger.migrating:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        if ledger.is_closed(group_id, self._manager.clock.mono_ms()):
            self._close(shard, group_id)
        ledger.migrating.add(group_id)
        try:
            error = yield from self._give_back(shard, group_id, offsets)
        finally:
            ledger.migrating.discard(group_id)
        self._wait(waiting, shard, group_id)
        return error

    def _give_back(
        self, shard: Shard, group_id: GroupId, offsets: Offsets
    ) -> Generator[None, None, ErrorCode]:
        kept, ledger = shard.groups.get(group_id), shard.ledger
        if kept is not None or ledger.is_ours(group_id):
            error = yield from self._compare(shard, kept, offsets)
            if error is not ErrorCode.NONE:
                return error
            count = ledger.make_removal_count(self._manager.clock.wall_ms())
            shard.append_and_apply_to_ledger([self._mark(shard, group_id, Mark.UNDER_WAY), count])
            ledger.closed.pop(group_id, None)
            if kept is not None:
                shard.hide_group_until_deleted(kept)
        elif ledger.get_mark(group_id) is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if not (yield from self._clear(shard, group_id)):
            return ErrorCode.NOT_COORDINATOR
        shard.append_and_apply_to_ledger([self._mark(shard, group_id, None)])
        self.on_given_back(group_id)
        return ErrorCode.NONE

    def _compare(
        self, shard: Shard, kept: GroupEntry | None, offsets: Offsets
    ) -> Generator[None, None, ErrorCode]:
        """Return NONE if the group has no members and exactly these offsets; nothing changes it meanwhile."""
        if kept is None:
            return CHANGED if offsets else ErrorCode.NONE
        error = kept.group.validate_delete_group()
        if error is not ErrorCode.NONE:
            return error
        same = kept.offsets.count == len(offsets)
        kept.group.suspend_as_dead()
        try:
            for number, (place, offset) in enumerate(offsets.items() if same else (), 1):
                same = same and _is_there(kept, place, offset)
                if number % COMPARED_PER_STEP == 0:
                    yield
        finally:
            if self._manager.is_group_still_served(kept):
                kept.group.resume_as_empty()
        if not self._is_ours(shard):
            return ErrorCode.NOT_COORDINATOR
        return ErrorCode.NONE if same else CHANGED

    # --- records ---

    def _write(
        self, shard: Shard, kept: GroupEntry, reading: ClusterReading
    ) -> Generator[None, None, ErrorCode]:
        """Append the offsets of a group that is still hidden, and its mark.

        NOT_COORDINATOR if the partition was lost, and STALE if a topic was deleted: the group stays hidden.
        """
        error = self._may_store(shard, reading)
        if error is not ErrorCode.NONE:
            return error
        adopted = self._mark(shard, kept.group_id, Mark.ADOPTED)
        if len(reading.offsets) <= AT_ONCE:
            records = self._records(kept.group_id, reading.offsets)
            try:
                shard.append_and_apply_to_ledger([adopted, *records], kept)
            except RecordTooLarge:
                pass  # they are long, and message.max.bytes is small
            else:
                return ErrorCode.NONE
        append = partial(shard.append_and_apply_to_ledger, kept=kept)
        shard.hidden[kept.group_id] = kept
        shard.append_and_apply_to_ledger([self._mark(shard, kept.group_id, Mark.UNDER_WAY)], kept)
        records = self._records(kept.group_id, reading.offsets)
        while some := list(islice(records, PER_STEP)):
            append_in_parts(append, some)
            yield
            error = self._may_store(shard, reading)
            if error is not ErrorCode.NONE:
                return error
        shard.append_and_apply_to_ledger([adopted], kept)
        shard.hidden.pop(kept.group_id)
        return ErrorCode.NONE

    def _clear(self, shard: Shard, group_id: GroupId) -> Generator[None, None, bool]:
        """Delete the records of a hidden group; return False if the partition was lost meanwhile."""
        kept = shard.hidden.get(group_id)
        if kept is None:
            return True
        append = partial(shard.append_and_apply_to_ledger, kept=kept)
        while kept.offsets.count:
            if not self._is_ours(shard):
                return False
            records = [
                OffsetCommitRecord(group_id, topic, partition, None)
                for topic, partition, _ in islice(kept.offsets.all(), PER_STEP)
            ]
            append_in_parts(append, records)
            yield
        if not self._is_ours(shard):
            return False
        if kept.group.generation_id:
            shard.append_and_apply_to_ledger([GroupMetadataRecord(group_id, None)], kept)
        shard.hidden.pop(group_id)
        return True

    def _records(self, group_id: GroupId, offsets: Offsets) -> Iterator[OffsetCommitRecord]:
        now_ms = self._manager.clock.wall_ms()
        for place, offset in offsets.items():
            value = OffsetAndMetadata(
                Offset(offset.offset), offset.leader_epoch, offset.metadata, now_ms, None
            )
            yield OffsetCommitRecord(group_id, place.topic, place.partition, value)

    def _mark(self, shard: Shard, group_id: GroupId, mark: Mark | None) -> OffsetCommitRecord:
        return shard.ledger.make_mark(group_id, mark, self._manager.clock.wall_ms())

    # --- groups that began here, and are gone ---

    def expire_marks_in_steps(self, now_wall_ms: int) -> Iterator[int]:
        """Remove marks of groups that have been gone for as long as offsets are kept (`MigrationLedger.find_expired`).

        Each step yields the number of removed marks. Raises RecordTooLarge.
        """
        until_wall_ms = now_wall_ms - self._manager.env.config.offsets_retention_ms
        for shard in list(self._manager.owned_partitions.values()):
            groups = map(GroupId, list(shard.ledger.marks.by_topic))
            while not shard.is_lost and (some := list(islice(groups, MARKS_PER_STEP))):
                expired = shard.ledger.find_expired(some, until_wall_ms)
                if expired:
                    removals = [shard.ledger.make_mark(group, None, now_wall_ms) for group in expired]
                    count = shard.ledger.make_removal_count(now_wall_ms)
                    append_in_parts(shard.append_and_apply_to_ledger, [count, *removals])
                for group in expired:
                    self.on_given_back(group)
                yield len(expired)

    # --- partitions ---

    def _shard(self, group_id: GroupId) -> Shard | ErrorCode:
        return (
            ErrorCode.INVALID_GROUP_ID if is_ledger(group_id) else self._manager.find_shard_or_error(group_id)
        )

    def _is_ours(self, shard: Shard) -> bool:
        return self._manager.owned_partitions.get(shard.partition) is shard

    def _may_store(self, shard: Shard, reading: ClusterReading) -> ErrorCode:
        """Return NONE if the partition is ours and no topic was deleted since the reading began."""
        if not self._is_ours(shard):
            return ErrorCode.NOT_COORDINATOR
        return STALE if reading.asked_ms < shard.ledger.readings_from_ms else ErrorCode.NONE

    def _wait(self, waiting: ReplyDependencies, shard: Shard, group_id: GroupId) -> None:
        waiting.add_ticket(shard.ledger.ticket)
        kept = shard.groups.get(group_id)
        waiting.add_ticket(shard.absence_ticket if kept is None else kept.ticket)


def _is_about_to_begin(shard: Shard, group_id: GroupId) -> bool:
    """Return whether clients are joining a group that was confirmed absent when they came.

    A group that has no members any more, and was never stored, has not begun: it may have begun at the cluster.
    """
    kept = shard.groups.get(group_id)
    return (
        group_id in shard.ledger.confirmed_absent and kept is not None and kept.group.has_members_or_pending
    )


def _is_there(kept: GroupEntry, place: TopicPartition, offset: TransferredOffset) -> bool:
    found = kept.offsets.get_topic_offsets(place.topic).get(place.partition)
    return found is not None and (found.offset, found.leader_epoch, found.metadata) == offset
