# SPDX-License-Identifier: Apache-2.0
"""Loads a partition's groups from its log, in slices between which the event loop does other work."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from coordinator.logs.group_log import Claim
from coordinator.partitions.shard import Shard
from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from protocol.newtypes import Offset, Partition
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import iter_batches
from storage.format.record_decoder import RecordDecoder
from storage.format.records import UnknownRecord
from storage.format.transaction_replay import LogReplay

log = get_logger("loader")

SIDE_BY_SIDE: Final = 4
"""The number of partitions that load at a time: enough that none waits for reads; the first ones serve early."""


class LoadProgress(msgspec.Struct):
    """The progress of the load of one partition."""

    partition: Partition
    began_ms: int
    end_offset: Offset
    size_bytes: int
    """The size of the whole log."""
    offset: Offset = Offset(0)
    records: int = 0
    bytes_read: int = 0

    def get_progress_fields(self, now_ms: int) -> dict[str, int]:
        """Return the progress as operators see it."""
        return {
            "records": self.records,
            "bytes_read": self.bytes_read,
            "size_bytes": self.size_bytes,
            "milliseconds": now_ms - self.began_ms,
        }


class Loader:
    """Loads several partitions at a time, and applies their records on the event loop."""

    def __init__(self, clock: Clock, stats: Stats) -> None:
        self._clock = clock
        self._stats = stats
        self._records = RecordDecoder()
        self._places = asyncio.Semaphore(SIDE_BY_SIDE)
        self._slices = Slices(clock.nanos)
        self._slice = asyncio.Lock()  # the loop turns between two slices of any loads
        self.progress: dict[Partition, LoadProgress] = {}

    async def load(
        self,
        shard: Shard,
        claim: Claim,
        prepare_groups: Callable[[Shard], Iterator[None]],
        still_wanted: Callable[[], bool],
    ) -> None:
        """Apply all records of a claimed partition to `shard`, then take all steps of `prepare_groups(shard)`.

        Stops early, with a partial load, once `still_wanted()` is false. Raises LogError if the log cannot be read,
        and LogDamaged, with the place, if it is damaged or a record in it makes no sense.
        """
        async with self._places:
            await self._load(shard, claim, prepare_groups, still_wanted)

    async def _load(
        self,
        shard: Shard,
        claim: Claim,
        prepare_groups: Callable[[Shard], Iterator[None]],
        still_wanted: Callable[[], bool],
    ) -> None:
        partition = shard.partition
        progress = LoadProgress(partition, self._clock.mono_ms(), claim.end_offset, claim.approximate_bytes)
        self.progress[partition] = progress
        replay = LogReplay(self._records)
        try:
            async for piece in claim.read():
                progress.bytes_read += len(piece.data)
                try:
                    await self.take_steps_in_slices(
                        self._apply(shard, piece.data, replay, progress), still_wanted
                    )
                except (CorruptBatch, CorruptRecord) as error:
                    raise await claim.make_located_damage_error(piece, error) from error
                progress.offset = piece.next_offset
                if not still_wanted():
                    break
            await self.take_steps_in_slices(prepare_groups(shard), still_wanted)
        finally:
            del self.progress[partition]
        if still_wanted():
            self._log_open(partition, replay)
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

    def _log_open(self, partition: Partition, replay: LogReplay) -> None:
        """Log the offsets of open transactions: they are left out, as transactions end at their own coordinator."""
        found = replay.open_transaction_counts
        if not found.transactions:
            return
        self._stats.open_transactions += found.transactions
        log.warning(
            "offsets of open transactions are not shown",
            partition=partition,
            transactions=found.transactions,
            offsets=found.offsets,
        )

    def _apply(self, shard: Shard, data: bytes, replay: LogReplay, progress: LoadProgress) -> Iterator[None]:
        """Apply one batch at each step."""
        for batch in iter_batches(data, check=True):
            for record in replay.replay(batch):
                if isinstance(record, UnknownRecord):
                    self._stats.unknown_records += 1
                shard.apply(record)
            progress.records += batch.count
            yield

    async def take_steps_in_slices(self, steps: Iterator[None], still_wanted: Callable[[], bool]) -> None:
        """Take all steps, as many in one turn of the event loop as fit into a slice."""
        more = True
        while more and still_wanted():
            async with self._slice:
                more = self._slices.run_for_one_slice(steps)
                # Still holding the lock, so that no other slice is in the same turn.
                await asyncio.sleep(0)
