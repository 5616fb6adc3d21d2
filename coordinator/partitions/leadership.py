# SPDX-License-Identifier: Apache-2.0
"""Gaining and losing partitions of `__consumer_offsets`, and getting them back after the log has failed."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final

from coordinator.partitions.committer import Committer, PartitionWriter
from coordinator.partitions.loader import Loader
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.io_thread import Thread
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from storage.errors import CorruptLog, StorageError, StorageFailed, log_fields
from storage.log_manager import LogManager

log = get_logger("leadership")

RETRY_S: Final = 1.0
"""How long a partition whose log cannot be used is left alone before the next try."""


class Leadership:
    """Which partitions this node leads, and under which epoch; loads those that it gains.

    `failed_partitions` holds what could not be loaded, with the reason; the other partitions serve on.
    """

    def __init__(
        self,
        manager: GroupMetadataManager,
        loader: Loader,
        committer: Committer,
        log_manager: LogManager,
        io: Thread,
        stats: Stats,
    ) -> None:
        self._manager = manager
        self._loader = loader
        self._committer = committer
        self._log = log_manager
        self._io = io
        self._stats = stats
        self._loads: dict[int, asyncio.Task[None]] = {}
        self.epochs: dict[int, int] = {}
        self.failed_partitions: dict[int, str] = {}
        self._repair: asyncio.Task[None] | None = None
        self._is_start = True
        self.retry_s = RETRY_S
        self.prepare: Callable[[int], Awaitable[None]] | None = None
        """What must be done before a partition's log can be read; can be done twice, and raises StorageError."""
        self.on_loaded: Callable[[int, int, str | None], None] = lambda _partition, _epoch, _failure: None
        """Called with a partition, its epoch, and None or why it could not be loaded."""

    def become_leader(
        self, partition: int, leader_epoch: int, deleted_topics: frozenset[str] = frozenset()
    ) -> None:
        """Lead a partition and load it in the background. An epoch that is not newer than the last is ignored.

        What it holds of `deleted_topics`, which went while nobody led it, goes when it is loaded.
        """
        if leader_epoch <= self.epochs.get(partition, -1):
            return
        self.epochs[partition] = leader_epoch
        self._drop(partition)
        self._start_load(partition)
        self._manager.loading_partitions[partition].deleted_topics |= deleted_topics

    def resign(self, partition: int, leader_epoch: int) -> None:
        """Lose a partition to another leader, also in the middle of its load."""
        if leader_epoch < self.epochs.get(partition, -1):
            return
        self.epochs[partition] = leader_epoch
        self._drop(partition)

    def failed(self, writers: Iterable[PartitionWriter], error: BaseException) -> None:
        """A flush failed: these partitions are void in memory and come back from what the log really holds.

        Not those that were lost since, or gained anew: their writers are not in use any more.
        """
        owned = self._manager.owned_partitions
        partitions = [
            w.partition for w in writers if w.partition in owned and owned[w.partition].appender is w
        ]
        log.error("a flush failed", partitions=partitions, reason=str(error))
        for partition in partitions:
            self._drop(partition)
            self._manager.reload(partition, self._committer.durable)
            self._manager.wait_for_log(partition)
        self.start_repair()

    def start_repair(self) -> None:
        """See to it that the log can be written again, unless that is being done."""
        if self._repair is None or self._repair.done():
            self._stats.log_refusing_since_ms = (
                self._stats.log_refusing_since_ms or self._manager.clock.wall_ms()
            )
            self._repair = asyncio.get_running_loop().create_task(self._repair_and_reload())

    @property
    def ready(self) -> bool:
        """Whether every partition that this node leads is loaded."""
        return not self._manager.loading_partitions and not self.failed_partitions

    @property
    def mostly_ready(self) -> bool:
        """Whether more than half of what this node leads is served, once its start is over.

        The start is over when every partition was loaded, or has failed to. A node that leads nothing is ready.
        """
        served = len(self._manager.owned_partitions)
        led = served + len(self._manager.loading_partitions) + len(self.failed_partitions)
        return self.ready or (not self._is_start and 2 * served > led)

    async def close(self) -> None:
        """End all loads."""
        tasks = [*self._loads.values(), *([self._repair] if self._repair else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _drop(self, partition: int) -> None:
        self.failed_partitions.pop(partition, None)
        task = self._loads.pop(partition, None)
        if task is not None:
            task.cancel()
        self._manager.remove_groups_for_partition(partition)

    def _start_load(self, partition: int) -> None:
        self._manager.begin_load(partition)
        task = asyncio.get_running_loop().create_task(self._load(partition))
        self._loads[partition] = task

    async def _load(self, partition: int) -> None:
        while await self._load_failed_for_now(partition):
            await asyncio.sleep(self.retry_s)
            del self.failed_partitions[partition]
            self._manager.begin_load(partition)

    async def _load_failed_for_now(self, partition: int) -> bool:
        """Load a partition; whether the disk could not be read, so that another try may help."""
        manager = self._manager
        shard = manager.loading_partitions[partition]

        def still_wanted() -> bool:
            return manager.loading_partitions.get(partition) is shard

        try:
            # What was appended under an earlier epoch belongs to what is loaded.
            await self._committer.drained()
            if still_wanted() and self.prepare is not None:
                await self.prepare(partition)
            if still_wanted() and partition in self._log.failed_partitions:
                await self._io.run(partial(self._log.reopen, partition))
            if still_wanted():
                await self._loader.load(shard, manager.prepare_groups, still_wanted)
        except StorageFailed:
            # Nothing is wrong with this partition: it is loaded again once the log has been repaired.
            if still_wanted():
                self._loads.pop(partition, None)
                manager.wait_for_log(partition)
                self.start_repair()
            return False
        except (StorageError, ValueError) as error:
            self._stats.partition_load_failures += 1
            log.error("cannot load partition", partition=partition, **log_fields(error))
            if not still_wanted():
                return False
            # Its clients hear NOT_COORDINATOR, as in Kafka when a load fails.
            manager.remove_groups_for_partition(partition)
            manager.unreadable_partitions[partition] = shard
            self.failed_partitions[partition] = str(error)
            self.on_loaded(partition, self.epochs[partition], str(error))
            self._end_start()
            # What is damaged stays so.
            return isinstance(error, StorageError) and not isinstance(error, CorruptLog)
        if not still_wanted():
            return False
        writer = self._committer.writer(partition, self._log.end_offset(partition), self.epochs[partition])
        manager.finish_load(shard, writer)
        self._loads.pop(partition, None)
        self.on_loaded(partition, self.epochs[partition], None)
        self._end_start()
        return False

    def _end_start(self) -> None:
        """The last of the first loads has ended, well or not."""
        if self._manager.loading_partitions or not self._is_start:
            return
        # What was loaded lives long: the garbage collector need not walk a million offsets again and again.
        # Only once: each time would keep the garbage of that moment for good.
        self._is_start = False
        gc.freeze()

    async def _repair_and_reload(self) -> None:
        """Until the journal can be written again nothing is acknowledged; then every lost partition is loaded."""
        while True:
            try:
                await self._io.run(self._log.repair)
                break
            except StorageError as error:
                log.error("the journal is still not writable", reason=str(error))
                await asyncio.sleep(self.retry_s)
        self._stats.log_refusing_since_ms = 0
        for partition in self._out_of_step():
            self._drop(partition)
            self._manager.begin_load(partition)
        for partition, shard in list(self._manager.loading_partitions.items()):
            if partition not in self._loads:
                self._manager.remove_groups_for_partition(partition)
                self._start_load(partition)
                # Topics may have gone while it waited.
                self._manager.loading_partitions[partition].deleted_topics |= shard.deleted_topics
        log.info("the journal is writable again")

    def _out_of_step(self) -> list[int]:
        """Partitions of which memory holds what the repair did not find: it was accepted, but never synced."""
        return [
            partition
            for partition, shard in self._manager.owned_partitions.items()
            if partition in self._log.failed_partitions
            or (
                isinstance(shard.appender, PartitionWriter)
                and shard.appender.next_offset != self._log.end_offset(partition)
            )
        ]
