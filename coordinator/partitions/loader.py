# SPDX-License-Identifier: Apache-2.0
"""Bringing a partition's groups back from its log, in slices that leave the event loop to others."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from coordinator.partitions.shard import Shard
from coordinator.runtime.clock import Clock
from coordinator.runtime.io_thread import Thread
from coordinator.runtime.slices import Slices
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from storage.errors import CorruptBatch, CorruptLog, CorruptRecord
from storage.format.batch import iter_batches
from storage.format.loader import RecordLoader
from storage.format.records import UnknownRecord
from storage.format.transactions import LogReplay
from storage.log_manager import LogManager

log = get_logger("loader")

SIDE_BY_SIDE: Final = 4
"""So many partitions load at a time: enough that reading never makes the others wait; the first ones serve early."""


class LoadProgress(msgspec.Struct):
    """How far the load of one partition has come."""

    partition: int
    began_ms: int
    end_offset: int
    size_bytes: int
    """Of the whole log."""
    offset: int = 0
    records: int = 0
    bytes_read: int = 0

    def shown(self, now_ms: int) -> dict[str, int]:
        """What an operator wants to know of it."""
        return {
            "records": self.records,
            "bytes_read": self.bytes_read,
            "size_bytes": self.size_bytes,
            "milliseconds": now_ms - self.began_ms,
        }


class Loader:
    """Loads partitions side by side; the disk is read in the io thread, the records are applied on the loop."""

    def __init__(
        self, log_manager: LogManager, io: Thread, clock: Clock, stats: Stats, read_bytes_max: int
    ) -> None:
        self._log = log_manager
        self._io = io
        self._clock = clock
        self._stats = stats
        self._read_bytes_max = read_bytes_max
        self._records = RecordLoader()
        self._places = asyncio.Semaphore(SIDE_BY_SIDE)
        self._slices = Slices(clock.nanos)
        self._slice = asyncio.Lock()  # the loop turns between two slices, whosever they are
        self.progress: dict[int, LoadProgress] = {}

    async def load(
        self,
        shard: Shard,
        prepare_groups: Callable[[Shard], Iterator[None]],
        still_wanted: Callable[[], bool],
    ) -> int:
        """Apply the whole log of a partition to `shard`, then take all steps of `prepare_groups(shard)`.

        Returns the offset at which the next record goes. Stops early, with what it has, once `still_wanted()` is
        false. Raises StorageError when the log cannot be read, and CorruptLog, with file and position, when it is
        damaged or a record in it makes no sense.
        """
        async with self._places:
            return await self._load(shard, prepare_groups, still_wanted)

    async def _load(
        self,
        shard: Shard,
        prepare_groups: Callable[[Shard], Iterator[None]],
        still_wanted: Callable[[], bool],
    ) -> int:
        partition = shard.partition
        end_offset = self._log.end_offset(partition)
        size_bytes = self._log.log(partition).size_bytes
        progress = LoadProgress(partition, self._clock.mono_ms(), end_offset, size_bytes)
        self.progress[partition] = progress
        replay = LogReplay(self._records)
        try:
            offset = self._log.log(partition).start_offset
            while offset < end_offset and still_wanted():
                data, next_offset = await self._read(partition, offset)
                progress.bytes_read += len(data)
                try:
                    await self._in_slices(self._apply(shard, data, replay, progress), still_wanted)
                except (CorruptBatch, CorruptRecord) as error:
                    raise await self._damage(partition, offset, error) from error
                progress.offset = offset = next_offset
            await self._in_slices(prepare_groups(shard), still_wanted)
        finally:
            del self.progress[partition]
        if still_wanted():
            self._tell_open(partition, replay)
        took_ms = self._clock.mono_ms() - progress.began_ms
        self._stats.partition_loads += 1
        self._stats.partition_load_ms_max = max(self._stats.partition_load_ms_max, took_ms)
        self._stats.records_loaded += progress.records
        if progress.records:
            log.info(
                "loaded partition",
                partition=partition,
                records=progress.records,
                groups=len(shard.groups),
                milliseconds=took_ms,
            )
        return end_offset

    def _tell_open(self, partition: int, replay: LogReplay) -> None:
        """Transactions end at the coordinator that began them: what they hold is left out here, but not in silence."""
        found = replay.open
        if not found.transactions:
            return
        self._stats.open_transactions += found.transactions
        log.warning(
            "offsets of open transactions are not shown",
            partition=partition,
            transactions=found.transactions,
            offsets=found.offsets,
        )

    async def _damage(self, partition: int, offset: int, error: CorruptBatch | CorruptRecord) -> CorruptLog:
        """Where the damage is; what was read began with the batch that holds `offset`."""
        path, position = await self._io.run(lambda: self._log.locate(partition, offset))
        if isinstance(error, CorruptRecord):
            return CorruptLog(path, error.reason)
        return CorruptLog(path, error.reason, position=position + error.position)

    async def _read(self, partition: int, offset: int) -> tuple[bytes, int]:
        return await self._io.run(lambda: self._log.read(partition, offset, self._read_bytes_max))

    def _apply(self, shard: Shard, data: bytes, replay: LogReplay, progress: LoadProgress) -> Iterator[None]:
        """Apply one batch at each step."""
        for batch in iter_batches(data, check=True):
            for record in replay.replay(batch):
                if isinstance(record, UnknownRecord):
                    self._stats.unknown_records += 1
                shard.apply(record)
            progress.records += batch.count
            yield

    async def _in_slices(self, steps: Iterator[None], still_wanted: Callable[[], bool]) -> None:
        """Take all steps, as many in one turn of the event loop as fit into a slice."""
        more = True
        while more and still_wanted():
            async with self._slice:
                more = self._slices.take(steps)
                # Still holding the lock, so that nobody else's slice is in the same turn.
                await asyncio.sleep(0)
