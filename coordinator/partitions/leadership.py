# SPDX-License-Identifier: Apache-2.0
"""Gains and loses partitions of `__consumer_offsets`, and reloads them after the log has failed."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from coordinator.logs.group_log import (
    GroupLog,
    LogDamaged,
    LogError,
    LogFenced,
    LogUnavailable,
    LogWriter,
    wait_for_ticket_end,
)
from coordinator.partitions.loader import Loader
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.misplaced_group_texts import DIRECTORY_IN_WRONG_PLACE, PUT_IN_PLACE
from coordinator.partitions.shard import Shard
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from protocol.newtypes import LeaderEpoch, Partition
from protocol.placement import find_swapped_directories

log = get_logger("leadership")

SERVED_WITHIN_MS: Final = 3_000
"""The time within which a loaded partition must be served, or it is loaded again: its members' sessions, which may be
as short as 6 s, run meanwhile."""
RETRY_S: Final = 1.0
"""The pause before the next load of a partition whose log cannot be used, in seconds."""


class Leadership:
    """The partitions that this node leads, with their epochs; loads those that it gains.

    `failed_partitions` holds the partitions that could not be loaded, with the reason; the others are served.
    """

    def __init__(
        self,
        manager: GroupMetadataManager,
        loader: Loader,
        group_log: GroupLog,
        stats: Stats,
    ) -> None:
        self.manager = manager
        self.loader = loader
        self._log = group_log
        self.stats = stats
        self._incidents = Incidents(log, manager.clock.mono_ms)
        self._tasks = Tasks()
        self._loads: dict[Partition, asyncio.Task[None]] = {}
        self.epochs: dict[Partition, LeaderEpoch] = {}
        """The epoch under which this node leads, or has led, each partition: the order's, or a newer one of the log."""
        self._ordered_epochs: dict[Partition, LeaderEpoch] = {}
        self.failed_partitions: dict[Partition, str] = {}
        self.damaged: set[Partition] = set()
        """The failed partitions that are not loaded again, because damage stays."""
        self._is_start = True
        self.retry_s = RETRY_S
        self.on_loaded: Callable[[Partition, LeaderEpoch, str | None], None] = (
            lambda _partition, _epoch, _failure: None
        )
        """Called with a partition, the epoch of the order, and None or the reason why it could not be loaded."""
        self.on_epoch_assigned: Callable[[Partition, LeaderEpoch], None] = lambda _partition, _epoch: None
        """Called with a partition and the epoch that the log has assigned, if that is newer than the one known."""
        self.topics_gone: Callable[[Partition], Awaitable[None]] = _at_once
        """Returns once this node takes no more commits to the deleted topics that a partition is given with."""
        self.note_dropped: Callable[[Partition], Awaitable[None]] = _at_once
        """Returns once it is stored that a partition, about to be served, holds no offsets in deleted topics."""

    def become_leader(
        self, partition: Partition, leader_epoch: LeaderEpoch, deleted_topics: frozenset[str] = frozenset()
    ) -> None:
        """Lead a partition and load it in the background. An epoch that is not newer than the last is ignored.

        Its offsets in `deleted_topics`, which no leader has dropped, are deleted before it is served.
        """
        if leader_epoch <= self._ordered_epochs.get(partition, -1):
            return
        self._note_order(partition, leader_epoch)
        self._drop(partition)
        self.manager.begin_load(partition)
        self.manager.deleted.note(partition, deleted_topics)
        self._start_load(partition)

    def resign(self, partition: Partition, leader_epoch: LeaderEpoch) -> None:
        """Lose a partition to another leader, also in the middle of its load."""
        if leader_epoch < self._ordered_epochs.get(partition, -1):
            return
        self._note_order(partition, leader_epoch)
        self._drop(partition)
        self.manager.deleted.forget_partition(partition)

    def reload_after_lost_appends(self, writers: Iterable[LogWriter], error: LogError) -> None:
        """Drop the partitions whose appends were lost, and reload them from the log unless another node leads them.

        Skips partitions that were lost to another leader since, or gained again: their writers are out of use.
        """
        manager = self.manager
        partitions = [writer.partition for writer in writers if manager.is_written_by(writer)]
        for partition in partitions:
            self._drop(partition)
            if isinstance(error, LogFenced):
                log.error("another node leads this partition", **error.fields(partition=partition))
                manager.deleted.forget_partition(partition)
                continue
            manager.begin_load(partition)
            manager.note_load_waits_for_log(partition)
            self._start_load(partition)

    @property
    def has_loaded_all_partitions(self) -> bool:
        """True if every partition that this node leads is loaded."""
        return not self.manager.loading_partitions and not self.failed_partitions

    @property
    def is_mostly_ready(self) -> bool:
        """True if more than half of the partitions that this node leads are served, once its start is over.

        The start is over once every partition was loaded, or failed to load. A node that leads nothing is ready.
        """
        served = len(self.manager.owned_partitions)
        led = served + len(self.manager.loading_partitions) + len(self.failed_partitions)
        return self.has_loaded_all_partitions or (not self._is_start and 2 * served > led)

    async def cancel_all_loads(self) -> None:
        """End the loads of all partitions."""
        await self._tasks.close()

    def _note_order(self, partition: Partition, leader_epoch: LeaderEpoch) -> None:
        self._ordered_epochs[partition] = leader_epoch
        self.epochs[partition] = max(leader_epoch, self.epochs.get(partition, leader_epoch))

    def _drop(self, partition: Partition) -> None:
        self.failed_partitions.pop(partition, None)
        self.damaged.discard(partition)
        task = self._loads.pop(partition, None)
        if task is not None:
            task.cancel()
        self.manager.remove_groups_for_partition(partition)

    def _start_load(self, partition: Partition) -> None:
        self._loads[partition] = self._tasks.start(
            self._load(partition), f"load of partition {partition}", partial(self._load_raised, partition)
        )

    def _load_raised(self, partition: Partition, error: BaseException) -> None:
        """Mark the partition as failed after an exception that `_load` does not handle; it is not loaded again."""
        self.manager.remove_groups_for_partition(partition)
        self.failed_partitions[partition] = repr(error)
        self.damaged.add(partition)
        self.on_loaded(partition, self._ordered_epochs[partition], repr(error))

    async def _load(self, partition: Partition) -> None:
        while await self._load_once(partition):
            pass

    async def _load_once(self, partition: Partition) -> bool:
        """Try to load a partition; return whether to try again now."""
        manager = self.manager
        shard = manager.loading_partitions[partition]
        try:
            if partition in manager.waiting_partitions:
                await self._log.repair_log_or_wait(partition)
                manager.waiting_partitions.discard(partition)
            writer = await self._read(shard)
            if writer is not None and await self._drop_deleted(shard, writer):
                self._serve(shard, writer)
        except LogUnavailable:
            # Nothing is wrong with this partition: it is loaded once the log can be used again.
            if not self._is_wanted(shard):
                return False
            manager.load_anew(partition)
            manager.note_load_waits_for_log(partition)
            return True
        except (LogError, ValueError) as error:
            return await self._load_failed(shard, error)
        except Exception as error:
            log.exception("loading a partition failed in an unexpected way", partition=partition)
            return await self._load_failed(shard, LogError(str(error) or repr(error)))
        return False

    async def _drop_deleted(self, shard: Shard, writer: LogWriter) -> bool:
        """Drop the offsets in deleted topics durably; return whether the partition is still to be served.

        Raises LogUnavailable if they could not be dropped, or so late that sessions may be over.
        """
        manager, partition = self.manager, shard.partition
        began_ms = manager.clock.mono_ms()

        def drop() -> Awaitable[None]:
            steps = manager.drop_deleted_topic_offsets(shard, writer)
            return self.loader.take_steps_in_slices(steps, lambda: self._is_wanted(shard))

        await self.topics_gone(partition)
        await drop()
        is_noted = False
        while self._is_wanted(shard):
            ticket = manager.deleted.find_undurable_ticket(partition)
            if ticket is not None:
                await wait_for_ticket_end(ticket)
                if ticket.error is not None:
                    raise LogUnavailable(
                        "offsets of deleted topics were not dropped", {"partition": partition}
                    )
            elif manager.deleted.has_undropped_offsets(partition):  # more topics were deleted meanwhile
                await drop()
                is_noted = False
            elif not is_noted:
                # Else, after a start, commits to a re-created topic would be taken for commits to the old one.
                await self.note_dropped(partition)
                is_noted = True
            elif manager.clock.mono_ms() - began_ms > SERVED_WITHIN_MS:
                raise LogUnavailable("sessions began before it could be served", {"partition": partition})
            else:
                return True
        return False

    def _serve(self, shard: Shard, writer: LogWriter) -> None:
        partition = shard.partition
        self.manager.finish_load(shard, writer)
        self._incidents.end_incident(partition, "a partition can be loaded again", partition=partition)
        self._loads.pop(partition, None)
        self.on_loaded(partition, self._ordered_epochs[partition], None)
        if not self._is_start:
            self._report_misplaced(partition)
        self._end_start()

    def _report_misplaced(self, *partitions: Partition) -> None:
        """Log the groups of newly served partitions that belong to other partitions; they are served, as in Kafka."""
        misplaced = self.manager.misplaced_placements
        wrong = find_swapped_directories(misplaced)
        for each in misplaced:
            if each.partition not in partitions:
                continue
            fields = {"partition": each.partition, "groups": each.misplaced_group_count, "names": each.names}
            if each.partition in wrong:
                log.error(
                    DIRECTORY_IN_WRONG_PLACE, belongs_to=wrong[each.partition], todo=PUT_IN_PLACE, **fields
                )
            else:
                log.warning("groups are in a partition where no client looks for them", **fields)

    async def _read(self, shard: Shard) -> LogWriter | None:
        """Claim and load a partition, and return its writer; None if it is no longer wanted. Raises LogError."""
        partition = shard.partition
        claim = await self._log.claim(partition, self.epochs[partition])
        if claim.leader_epoch > self.epochs[partition]:
            self.epochs[partition] = claim.leader_epoch
            self.on_epoch_assigned(partition, claim.leader_epoch)
        if self._is_wanted(shard):
            await self.loader.load(
                shard, claim, self.manager.prepare_groups_in_steps, lambda: self._is_wanted(shard)
            )
        return claim.open_writer() if self._is_wanted(shard) else None

    def _is_wanted(self, shard: Shard) -> bool:
        return self.manager.loading_partitions.get(shard.partition) is shard

    async def _load_failed(self, shard: Shard, error: LogError | ValueError) -> bool:
        """Record that a partition cannot be loaded; return whether to try again, as the log may be readable by now."""
        manager, partition = self.manager, shard.partition
        self.stats.partition_load_failures += 1
        described = error if isinstance(error, LogError) else LogError(str(error))
        self._incidents.log_repeated_failure(
            partition, "cannot load partition", **described.fields(partition=partition)
        )
        if not self._is_wanted(shard):
            return False
        # Its clients get NOT_COORDINATOR, as in Kafka if a load fails.
        manager.remove_groups_for_partition(partition)
        manager.unreadable_partitions[partition] = shard
        self.failed_partitions[partition] = str(error)
        self.on_loaded(partition, self._ordered_epochs[partition], str(error))
        self._end_start()
        if not isinstance(error, LogError) or isinstance(error, LogDamaged | LogFenced):
            self.damaged.add(partition)
            return False
        await asyncio.sleep(self.retry_s)
        del self.failed_partitions[partition]
        manager.begin_load(partition)
        return True

    def _end_start(self) -> None:
        """End the start once the last of the first loads has ended, successfully or not."""
        if self.manager.loading_partitions or not self._is_start:
            return
        # What was loaded lives long: the garbage collector need not walk a million offsets again and again.
        # Only once: each time would keep the garbage of that moment for good.
        self._is_start = False
        gc.freeze()
        self._report_misplaced(*self.manager.owned_partitions)


async def _at_once(_: Partition) -> None:
    """Return at once, with nothing to wait for."""
