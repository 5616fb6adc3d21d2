# SPDX-License-Identifier: Apache-2.0
"""GroupMetadataManager: the partitioned cache of all groups that this node coordinates."""

from collections.abc import Callable, Generator, Iterator
from logging import DEBUG
from typing import Final, cast

from coordinator.groups.classic.member import NEVER
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.kinds import KINDS
from coordinator.groups.offsets import expiry_and_deletion
from coordinator.groups.outcome import Outcome, Reply
from coordinator.logs.group_log import LogWriter
from coordinator.migration.ledger import ledger_group_id
from coordinator.partitions.append_errors import get_client_error_code, get_unmapped_append_error_code
from coordinator.partitions.deleted_topics import DeletedTopics
from coordinator.partitions.shard import GroupEntry, Shard, append_in_parts
from coordinator.partitions.unloading import PartitionUnloader
from coordinator.runtime.clock import Clock
from coordinator.runtime.timers import DeadlineScheduler
from coordinator.telemetry.frequent_rebalances import FrequentRebalances
from coordinator.telemetry.logs import get_logger, suppress_if_flooded
from coordinator.telemetry.recent_rebalances import RecentRebalances
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DurabilityTicket
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, Partition
from protocol.placement import GroupPlacementTally, partition_for
from storage.errors import RecordTooLarge
from storage.format.batch_builder import BATCH_BYTES_MAX
from storage.format.offset_record import TOMBSTONE_BYTES_MIN, count_committed_offsets
from storage.format.records import TopicOffsetCommits

LOGGER: Final = "groups"
log = get_logger(LOGGER)

OFFSETS_PER_STEP: Final = 1_000
"""The number of offsets of one group that one step checks for expiry."""

LOADING_DELAY_MS: Final = 100
"""The delay of a deadline that comes while its partition is still loading, in milliseconds."""


class GroupMetadataManager:
    """The owned and the loading partitions of a node, and their groups.

    A partition is in `loading_partitions` from the moment this node leads it until its log has been applied, and
    in `owned_partitions` from then until it is lost. Everything runs on the event loop. Replies of outcomes are
    passed to `deliver`, with the ticket that they have to wait for.
    """

    def __init__(
        self,
        env: GroupEnvironment,
        clock: Clock,
        timers: DeadlineScheduler,
        stats: Stats,
        *,
        num_partitions: int,
        deliver: Callable[[Reply, DurabilityTicket], None],
        needs_marks: bool = False,
        batch_bytes_max: int = BATCH_BYTES_MAX,
    ) -> None:
        """`needs_marks`: a group that is absent here may be at a cluster, until the ledger of its partition has it.

        `batch_bytes_max` is the size of the largest batch that the log takes.
        """
        self.env = env
        self.clock = clock
        self.stats = stats
        self.num_partitions = num_partitions
        self.needs_marks = needs_marks
        self._batch_bytes_max = batch_bytes_max
        self.owned_partitions: dict[Partition, Shard] = {}
        self.loading_partitions: dict[Partition, Shard] = {}
        self.waiting_partitions: set[Partition] = set()
        """The loading partitions that cannot be read before the log takes appends again."""
        self.unreadable_partitions: dict[Partition, Shard] = {}
        """The partitions that this node leads but could not load; without their groups."""
        self.deleted = DeletedTopics(self.carry_out_outcome, stats)
        self.unloading = PartitionUnloader(timers, clock, deliver)
        self.recent_rebalances = RecentRebalances()
        self.frequent_rebalances = FrequentRebalances()
        self._timers = timers
        self._wake_one: Callable[[GroupEntry], None] = self._wake  # bound once, and not for each deadline
        self._log = log.bind()  # not looked up for each event of a group
        self._logs_debug = self._log.is_enabled_for(DEBUG)
        self._deliver = deliver
        self.offsets_per_step = OFFSETS_PER_STEP
        self.kinds = KINDS
        """The kinds of groups that partitions can hold, from their next load on."""

    # --- finding a group ---

    def partition_for(self, group_id: GroupId) -> Partition:
        """Return the partition that holds a group (GroupMetadataManager.partitionFor)."""
        return partition_for(group_id, self.num_partitions)

    def find_shard_or_error(self, group_id: GroupId) -> Shard | ErrorCode:
        """Return the shard of a group, or the error if this node does not serve it now."""
        partition = partition_for(group_id, self.num_partitions)
        shard = self.owned_partitions.get(partition)
        if shard is not None:
            return shard
        if partition in self.loading_partitions and partition not in self.waiting_partitions:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def find(self, group_id: GroupId) -> GroupEntry | None:
        """Return a group of an owned partition; None if it does not exist or its partition is not owned."""
        shard = self.owned_partitions.get(self.partition_for(group_id))
        return None if shard is None else shard.groups.get(group_id)

    def is_group_still_served(self, kept: GroupEntry) -> bool:
        """Return whether a group that was found earlier is still the one of its id in an owned partition.

        Groups of a lost partition stay in memory for some turns: nothing may be read from them or written any more.
        """
        shard = kept.shard
        return self.owned_partitions.get(shard.partition) is shard and shard.groups.get(kept.group_id) is kept

    def current_groups(self) -> Iterator[GroupEntry]:
        """Yield all groups of all owned partitions."""
        for shard in self.owned_partitions.values():
            yield from shard.groups.values()

    @property
    def misplaced_placements(self) -> list[GroupPlacementTally]:
        """The owned partitions that were loaded with groups of other partitions, and still have some."""
        found = []
        for shard in self.owned_partitions.values():
            placement = shard.placement
            if placement is not None and any(name in shard.groups for name in placement.names):
                found.append(placement)
        return found

    # --- gaining and losing partitions ---

    def begin_load(self, partition: Partition) -> Shard:
        """Begin to lead a partition: requests for it get COORDINATOR_LOAD_IN_PROGRESS until it is loaded."""
        assert partition not in self.owned_partitions, f"partition {partition} is owned already"
        ledger_id = ledger_group_id(partition, self.num_partitions)
        shard = self.loading_partitions[partition] = Shard(partition, self.env.usage, ledger_id, self.kinds)
        shard.ledger.readings_from_ms = self.clock.mono_ms()
        self.unreadable_partitions.pop(partition, None)
        return shard

    def note_load_waits_for_log(self, partition: Partition) -> None:
        """Note that the load of a partition waits until the log has been repaired.

        Until then its clients get NOT_COORDINATOR, as in Kafka if the partition's log directory has failed.
        """
        self.waiting_partitions.add(partition)

    def prepare_groups_in_steps(self, shard: Shard) -> Iterator[None]:
        """Make the groups of a shard ready to serve, one at each step, once the log has been applied to it."""
        shard.flag_other_protocol_groups()
        yield from shard.hide_groups_in_steps()
        placement = shard.placement = GroupPlacementTally(shard.partition, self.num_partitions)
        for kept in list(shard.groups.values()):
            if expiry_and_deletion.is_unstored_blank_group(kept.group, kept.offsets):
                shard.remove(kept)
            else:
                placement.add_group(kept.group_id)
                self.start_member_sessions(kept)
            yield

    def drop_deleted_topic_offsets(self, shard: Shard, appender: LogWriter) -> Iterator[None]:
        """Drop the offsets in deleted topics of a loaded partition, in steps, before it serves any client.

        So no commit to a new topic of such a name is dropped. Every earlier append to the partition has ended:
        tombstones that were lost are written again.
        """
        shard.appender = appender
        self.deleted.requeue_lost_drops(shard.partition)
        yield from self.deleted.drop_offsets_in_steps(shard)

    def finish_load(self, shard: Shard, appender: LogWriter) -> None:
        """Serve a partition whose groups are ready."""
        del self.loading_partitions[shard.partition]
        shard.appender = appender
        self.owned_partitions[shard.partition] = shard

    def start_member_sessions(self, kept: GroupEntry) -> None:
        """Give the members of a group that was loaded from the log a full session from now."""
        self.carry_out_outcome(kept, kept.group.on_loaded(self.env, self.clock.now()))

    def remove_groups_for_partition(self, partition: Partition) -> None:
        """Unload a lost partition: its groups leave memory, Dead, and requests that wait get NOT_COORDINATOR.

        A partition that is loading is dropped as well. Many groups take several turns of the loop; until then
        they do not change, as their shard is lost.
        """
        self.waiting_partitions.discard(partition)
        self.unreadable_partitions.pop(partition, None)
        for shard in (
            self.loading_partitions.pop(partition, None),
            self.owned_partitions.pop(partition, None),
        ):
            if shard is not None:
                shard.is_lost = True
                shard.appender = None
                self.unloading.add(shard)
        self.unloading.begin()

    # --- running steps ---

    def carry_out_outcome(self, kept: GroupEntry, outcome: Outcome) -> None:
        """Carry out a decision: append, apply, arm the deadline, and deliver the replies with their ticket.

        Raises RecordTooLarge if the records do not fit, and no reply can report that.
        """
        if outcome.records and not self._append(kept, outcome):
            return
        wakeup_ms = kept.group.wakeup_ms
        if wakeup_ms < kept.armed_ms:
            kept.armed_ms = wakeup_ms
            self._timers.call_at(wakeup_ms, self._wake_one, kept)
        ticket = kept.ticket
        for reply in outcome.replies:
            self._deliver(reply, ticket)
        for event in outcome.events:
            if not event.notable:
                if self._logs_debug:
                    self._log.debug(event.name, **event.fields)
            elif not suppress_if_flooded(LOGGER, event.name):
                self._log.info(event.name, **event.fields)
            if event.cause is not None:
                self.stats.rebalances[event.cause] += 1
                kept.rebalances += 1
                self.frequent_rebalances.add(kept.group_id, self.clock.mono_ms())
        ended = outcome.ended_rebalance
        if ended is not None:
            self.stats.count_finished_rebalance(ended)
            self.recent_rebalances.add(kept.group_id, ended)

    def append_and_apply_commits(self, kept: GroupEntry, commits: list[TopicOffsetCommits]) -> None:
        """Append and apply the offsets that a group has committed: the hot path, which must do nothing else.

        Raises RecordTooLarge before anything has changed.
        """
        shard = kept.shard
        if shard.ledger.confirmed_absent:
            shard.append_and_apply_mark(shard.ledger.make_first_mark(kept.group_id, self.clock.wall_ms()))
        shard.append_and_apply_offsets(kept, commits)
        if not kept.is_kept:
            shard.add_or_get_existing(kept)  # a simple group begins with its first commit
        count = count_committed_offsets(commits)
        kept.commits += count
        self.stats.offset_commits += count

    def _append(self, kept: GroupEntry, outcome: Outcome) -> bool:
        records = outcome.records
        try:
            ledger = kept.shard.ledger
            if ledger.confirmed_absent:
                kept.shard.append_and_apply_mark(ledger.make_first_mark(kept.group_id, self.clock.wall_ms()))
            if outcome.independent:
                append_in_parts(kept.shard.append_and_apply, records)
            else:
                kept.shard.append_and_apply(records)
        except RecordTooLarge as error:
            if not outcome.replies and not outcome.starts_over:
                raise
            code = get_client_error_code(get_unmapped_append_error_code(error))
            log.warning(
                "group metadata cannot be stored", group=kept.group_id, error=code.name, reason=str(error)
            )
            self.carry_out_outcome(
                kept, kept.group.replace_refused_outcome(self.env, outcome, code, self.clock.now())
            )
            return False
        return True

    def _wake(self, kept: GroupEntry) -> None:
        if kept.armed_ms > self._timers.deadline_cutoff_ms:
            return  # an earlier deadline took over and armed another one
        if kept.group.is_dead or kept.shard.is_lost:
            kept.armed_ms = NEVER  # a deletion in steps that is broken off arms it again
            return
        if kept.shard.partition in self.loading_partitions:
            # A short session has ended before the whole partition was ready: nothing can be written yet.
            self._timers.call_at(self.clock.mono_ms() + LOADING_DELAY_MS, self._wake_one, kept)
            return
        kept.armed_ms = NEVER
        self.carry_out_outcome(
            kept, kept.group.expire_due_deadlines(self.env, self.clock.now(), self._timers.deadline_cutoff_ms)
        )

    # --- deleting and expiring ---

    def delete_group(self, group_id: GroupId) -> ErrorCode:
        """Delete a group and its offsets; return the error code."""
        shard = self.find_shard_or_error(group_id)
        if isinstance(shard, ErrorCode):
            return shard
        kept = shard.groups.get(group_id)
        if kept is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        outcome = expiry_and_deletion.plan_group_deletion(kept.group, kept.offsets)
        if outcome.answer is ErrorCode.NONE:
            offsets = kept.offsets.count
            self.carry_out_outcome(kept, outcome)
            self.stats.offset_deletions += offsets
            self._remove(kept)
        return cast(ErrorCode, outcome.answer)

    def delete_group_in_steps(self, group_id: GroupId, count: int) -> Generator[None, None, ErrorCode]:
        """Delete a group as `delete_group` does: at once, or in steps if no batch holds all of its tombstones.

        A step deletes `count` of its offsets, until one batch may hold the rest. Meanwhile the group is Dead: clients
        that join or commit must try again, so that a group whose deletion is refused has lost nothing. If the steps
        are not taken to the end, the group stays, without the offsets that were deleted.
        """
        kept = self.find(group_id)
        if kept is not None and kept.group.validate_delete_group() is ErrorCode.NONE:
            try:
                while not self._may_fit(kept) and self.is_group_still_served(kept):
                    kept.group.suspend_as_dead()
                    self.carry_out_outcome(
                        kept, expiry_and_deletion.plan_first_offsets_deletion(kept.group, kept.offsets, count)
                    )
                    self.stats.offset_deletions += count
                    yield
            finally:
                if self.is_group_still_served(kept):
                    kept.group.resume_as_empty()
                    self.carry_out_outcome(kept, Outcome())
        return self.delete_group(group_id)

    def _may_fit(self, kept: GroupEntry) -> bool:
        """Return whether one batch may hold the tombstones of all offsets of a group."""
        each_bytes = TOMBSTONE_BYTES_MIN + len(kept.group_id)
        return kept.offsets.count * each_bytes <= self._batch_bytes_max

    def expire_offsets_in_steps(self, kept: GroupEntry, now_wall_ms: int) -> Iterator[int]:
        """Delete the expired offsets of a group in steps, between which requests may change the group.

        A group that has nothing left becomes Dead and leaves the cache (cleanupGroupMetadata).
        Each step checks `offsets_per_step` offsets at most, and yields the number of expired ones; a group has one
        step at least. Raises RecordTooLarge.
        """
        retention_ms, at_once = self.env.config.offsets_retention_ms, self.offsets_per_step
        group, offsets = kept.group, kept.offsets
        if not offsets.count:
            self._remove_if_finished(kept)
            yield 0
        for topic in list(offsets.by_topic):
            partitions = list(offsets.get_topic_offsets(topic))
            for start in range(0, len(partitions), at_once):
                if group.is_dead or kept.shard.is_lost:
                    return
                some = offsets.select_offsets(topic, partitions[start : start + at_once])
                outcome = expiry_and_deletion.plan_offset_expiry(group, now_wall_ms, retention_ms, some)
                self.carry_out_outcome(kept, outcome)
                expired = len(outcome.records)
                self.stats.offset_expirations += expired
                self._remove_if_finished(kept)
                yield expired

    def _remove_if_finished(self, kept: GroupEntry) -> None:
        group = kept.group
        if expiry_and_deletion.has_nothing_left(group, kept.offsets, 0):
            self.carry_out_outcome(kept, expiry_and_deletion.plan_group_metadata_deletion(group))
            log.info("group transitioned to Dead", group=kept.group_id, generation=group.generation_id)
            self._remove(kept)
            self.stats.groups_expired += 1

    def _remove(self, kept: GroupEntry) -> None:
        shard = kept.shard
        shard.remove(kept)
        self.recent_rebalances.forget(kept.group_id)
        try:
            shard.append_and_apply_mark(shard.ledger.renew_mark(kept.group_id, self.clock.wall_ms()))
        except RecordTooLarge as error:  # message.max.bytes was larger when it was written first
            log.error("the mark of a group stays as it is", group=kept.group_id, reason=str(error))

    def delete_offsets_of_topics(self, topics: frozenset[str]) -> Iterator[DurabilityTicket | None]:
        """Delete the offsets in deleted topics, in steps (GroupCoordinatorShard.onPartitionsDeleted).

        Yields after each step, and at the end the tickets of the tombstones that are not durable yet. Topics of these
        names must not be created before the last step, or commits to them would be deleted, too. If a partition is
        still loading, or cannot be read now, its offsets are deleted before it is served.
        """
        for partition in (*self.owned_partitions, *self.loading_partitions, *self.unreadable_partitions):
            self.deleted.note(partition, topics)
        for shard in self.owned_partitions.values():
            # Groups that are being taken over are hidden from these steps, or come later, and are to be read again.
            shard.ledger.readings_from_ms = self.clock.mono_ms() + 1
        try:
            for shard in list(self.owned_partitions.values()):
                yield from self.deleted.drop_offsets_in_steps(shard)
        finally:
            for partition in self.owned_partitions:  # if an error has ended the steps, offsets stay
                self.deleted.forget_undropped_topics(partition)
        yield from self.deleted.find_pending_tickets()

    def list_partitions_free_of_deleted_topics(self) -> list[Partition]:
        """Return the owned partitions that hold no offsets in deleted topics, even after a crash."""
        undropped = self.deleted.undropped_partitions
        return [partition for partition in self.owned_partitions if partition not in undropped]

    def is_written_by(self, writer: LogWriter) -> bool:
        """Return whether this is the writer of an owned partition, or of one that is about to be owned."""
        partition = writer.partition
        shard = self.owned_partitions.get(partition) or self.loading_partitions.get(partition)
        return shard is not None and shard.appender is writer

    def load_anew(self, partition: Partition) -> None:
        """Drop a partition from memory, and begin its load again."""
        self.remove_groups_for_partition(partition)
        self.begin_load(partition)
