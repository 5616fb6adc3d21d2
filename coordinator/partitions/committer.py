# SPDX-License-Identifier: Apache-2.0
"""From decided records to a durable log: gathering, flushing, and telling who may hear of it.

The records of one turn of the event loop gather in one batch per partition. A flush takes all of them to the
journal at once; at most one is under way while the next gathers, so the slower the disk, the larger the flushes.

Flushes are numbered. `gathering` is the number of the one that takes records now, `durable` that of the newest
one that is on disk. A reply carries the number of the flush that it depends on and leaves when that is durable.
"""

import asyncio
import enum
from collections.abc import Callable, Sequence
from typing import Protocol

from coordinator.runtime.clock import Clock
from coordinator.runtime.io_thread import Submitter
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from storage.format.batch import BatchBuilder
from storage.format.batch_format import base_offset_of
from storage.format.records import OffsetCommits, Record

log = get_logger("committer")


class FlushMode(enum.Enum):
    """When an append counts as durable (`log.flush`)."""

    ALWAYS = "always"  # on disk
    INTERVAL = "interval"  # in the page cache; synced every log.flush.interval.ms
    OS = "os"  # in the page cache; synced when the system likes, as Kafka does


class Loop(Protocol):
    """The part of an event loop that a committer needs."""

    def call_soon(self, callback: Callable[[], object]) -> object:
        """Call `callback` in the loop's next turn."""

    def create_future(self) -> asyncio.Future[None]:
        """A future of this loop."""


class Log(Protocol):
    """Where a flush goes: the door of storage."""

    def append(self, entries: Sequence[tuple[int, int, bytes]], *, sync: bool) -> None:
        """Accept `(partition, base offset, batch)`, all or none; with `sync` they are on disk on return."""


class PartitionWriter:
    """Takes the records of one partition that this node leads."""

    __slots__ = ("_committer", "builder", "leader_epoch", "next_offset", "partition", "queued")

    def __init__(
        self,
        committer: "Committer",
        partition: int,
        next_offset: int,
        leader_epoch: int,
        builder: BatchBuilder,
    ) -> None:
        self._committer = committer
        self.partition = partition
        self.next_offset = next_offset
        self.leader_epoch = leader_epoch
        self.builder = builder
        self.queued = False

    def append(self, records: Sequence[Record]) -> int:
        """Take records, all or none; returns the number of the flush that they will be durable with.

        Raises RecordTooLarge, and takes nothing, when they cannot fit in one batch.
        """
        self.builder.append(records)
        return self._enqueue()

    def append_offsets(self, commits: Sequence[OffsetCommits]) -> int:
        """The same for the offsets of one commit."""
        self.builder.append_offsets(commits)
        return self._enqueue()

    def _enqueue(self) -> int:
        if not self.queued:
            self.queued = True
            self._committer.enqueue(self)
        return self._committer.gathering


class Committer:
    """Flushes what the writers gathered.

    `on_flushed()` is called when `durable` has grown; `on_failed(writers, error)` when a flush failed: the writers
    are all those whose records are lost, and every reply that still waits must be given `error`.
    """

    def __init__(
        self,
        loop: Loop,
        log: Log,
        io: Submitter,
        clock: Clock,
        stats: Stats,
        mode: FlushMode,
        *,
        batch_bytes_max: int,
        offset_value_version: int,
        compression: int,
    ) -> None:
        self._loop = loop
        self._log = log
        self._io = io
        self._clock = clock
        self._nanos = clock.nanos
        self._stats = stats
        self._synced = mode is FlushMode.ALWAYS
        self._batch_bytes_max = batch_bytes_max
        self._offset_value_version = offset_value_version
        self._compression = compression
        self._dirty: list[PartitionWriter] = []
        self._scheduled = False
        self._under_way: list[PartitionWriter] = []
        self._drained: list[tuple[int, asyncio.Future[None]]] = []
        self._began_ns = 0
        self._began_wall_ms = 0
        self.durable = 0
        self.gathering = 1
        self.on_flushed: Callable[[], None] = lambda: None
        self.on_failed: Callable[[list[PartitionWriter], BaseException], None] = lambda _writers, _error: None

    def writer(self, partition: int, next_offset: int, leader_epoch: int) -> PartitionWriter:
        """A writer for a partition whose log ends at `next_offset`."""
        return PartitionWriter(self, partition, next_offset, leader_epoch, self._new_builder())

    def _new_builder(self) -> BatchBuilder:
        return BatchBuilder(self._batch_bytes_max, self._offset_value_version, self._compression)

    @property
    def idle(self) -> bool:
        """Whether everything that was appended is durable (or has failed)."""
        return not self._dirty and not self._under_way

    async def drained(self) -> None:
        """Return once everything that was appended before the call is durable, or has failed."""
        if not self.idle:
            future = self._loop.create_future()
            self._drained.append((self.gathering if self._dirty else self.gathering - 1, future))
            await future

    def enqueue(self, writer: PartitionWriter) -> None:
        """A writer has got its first record since the last flush."""
        self._dirty.append(writer)
        if not self._scheduled and not self._under_way:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if not self._dirty or self._under_way:
            return
        writers, self._dirty = self._dirty, []
        self._under_way = writers
        self.gathering += 1
        self._began_ns = self._nanos()
        try:
            entries = self._entries(writers)
        except Exception as error:
            log.exception("batches cannot be built")
            self._done(error)
            return
        if self._synced:
            self._io.submit(lambda: self._log.append(entries, sync=True), self._done)
            return
        # A write to the page cache takes microseconds; a trip to the thread and back would cost more than it.
        result: BaseException | None = None
        try:
            self._log.append(entries, sync=False)
        except Exception as error:  # noqa: BLE001 - whatever it is, nothing of this flush may be acknowledged
            result = error
        self._done(result)

    def _entries(self, writers: list[PartitionWriter]) -> list[tuple[int, int, bytes]]:
        timestamp_ms = self._began_wall_ms = self._clock.wall_ms()
        entries: list[tuple[int, int, bytes]] = []
        for writer in writers:
            builder = writer.builder
            batches = builder.build(writer.next_offset, writer.leader_epoch, timestamp_ms)
            entries += [(writer.partition, base_offset_of(batch), batch) for batch in batches]
            writer.next_offset += builder.count
            writer.builder = self._new_builder()
            writer.queued = False
        return entries

    def _done(self, result: BaseException | None) -> None:
        writers, self._under_way = self._under_way, []
        if isinstance(result, BaseException):
            self._fail(writers, result)
            return
        self.durable = self.gathering - 1
        self._stats.flushed(self._nanos() - self._began_ns, self._began_wall_ms)
        self.on_flushed()
        if self._drained:
            self._tell_drained()
        if self._dirty and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _fail(self, writers: list[PartitionWriter], error: BaseException) -> None:
        """Nothing that waits can be kept: what gathered meanwhile was decided on a state that is void now."""
        lost = list(dict.fromkeys([*writers, *self._dirty]))
        self._dirty = []
        for writer in lost:
            writer.queued = False
            writer.builder = self._new_builder()
        self._stats.flush_failures += 1
        self.on_failed(lost, error)
        self.durable = self.gathering
        self.gathering += 1
        self._tell_drained()

    def _tell_drained(self) -> None:
        waiting, self._drained = self._drained, []
        for flush, future in waiting:
            if flush > self.durable:
                self._drained.append((flush, future))
            elif not future.done():
                future.set_result(None)
