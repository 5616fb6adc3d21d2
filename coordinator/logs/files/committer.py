# SPDX-License-Identifier: Apache-2.0
"""Gathers decided records into batches, flushes these to a log in files, and ends their tickets.

The records of one turn of the event loop gather in one batch per partition. A flush writes all of them to the
journal at once; at most one is under way while the next gathers, so the slower the disk, the larger the flushes.

All records of one partition in a flush share one ticket, which ends with the flush.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Protocol

from coordinator.logs.files.file_errors import translate_to_log_error
from coordinator.logs.group_log import LogError
from coordinator.runtime.clock import Clock
from coordinator.runtime.io_thread import ClosableCallQueue
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DURABLE, DurabilityTicket, end_tickets
from protocol.errors import ErrorCode
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.format.batch import BatchBuilder
from storage.format.batch_format import base_offset_of
from storage.format.records import Record, TopicOffsetCommits
from storage.journal.journal import Entry

log = get_logger("committer")


class FlushMode(enum.Enum):
    """The point at which an append counts as durable (`log.flush`)."""

    ALWAYS = "always"  # on disk
    INTERVAL = "interval"  # in the page cache; synced every log.flush.interval.ms
    OS = "os"  # in the page cache; synced by the operating system, as in Kafka


class CallsSoon(Protocol):
    """The part of an event loop that a committer needs."""

    def call_soon(self, callback: Callable[[], object]) -> object:
        """Call `callback` in the loop's next turn."""


class Log(Protocol):
    """The log that a flush is written to: a part of LogManager."""

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        """Accept `(partition, base offset, batch)`, all or none; with `sync` they are on disk on return."""


class FileLogWriter:
    """The LogWriter over files: takes the records of one partition that this node leads, until it is ended."""

    __slots__ = (
        "_committer",
        "builder",
        "ended",
        "leader_epoch",
        "newest",
        "next_offset",
        "partition",
        "ticket",
    )

    def __init__(
        self,
        committer: "Committer",
        partition: Partition,
        next_offset: Offset,
        leader_epoch: LeaderEpoch,
        builder: BatchBuilder,
    ) -> None:
        self._committer = committer
        self.partition = partition
        self.next_offset = next_offset
        self.leader_epoch = leader_epoch
        self.builder = builder
        self.ticket: DurabilityTicket | None = None
        """The ticket of the records that gather for the next flush; None if none have gathered."""
        self.newest: DurabilityTicket = DURABLE
        """The ticket that was returned last."""
        self.ended: ErrorCode | None = None
        """The reason why no more appends are taken; None before the end."""

    def append(self, records: Sequence[Record]) -> DurabilityTicket:
        """Append records, all or none. Raises RecordTooLarge, and appends nothing, if no batch holds all of them."""
        if self.ended is not None:
            return self._refuse(self.ended)
        self.builder.append_in_one_batch(records)
        ticket = self.ticket
        return self._begin() if ticket is None else ticket

    def append_offsets(self, commits: list[TopicOffsetCommits]) -> DurabilityTicket:
        """Append the offsets of one commit, all or none. Raises RecordTooLarge if no single batch holds them."""
        if self.ended is not None:
            return self._refuse(self.ended)
        self.builder.append_offsets(commits)
        ticket = self.ticket
        return self._begin() if ticket is None else ticket

    def refuse_further_appends(self, error: ErrorCode) -> None:
        """Take no more appends; those taken before still complete."""
        self.ended = self.ended or error

    def _begin(self) -> DurabilityTicket:
        ticket = DurabilityTicket(self.partition, self.newest.number + 1)
        self.ticket = self.newest = ticket
        self._committer.enqueue_writer(self)
        return ticket

    def _refuse(self, error: ErrorCode) -> DurabilityTicket:
        return DurabilityTicket(self.partition, self.newest.number + 1, error)


class Committer:
    """Flushes the records that the writers have gathered.

    If a flush has failed, its tickets end first; then `on_failed(writers, error)` is called with all writers whose
    records are lost. These writers take no more appends.
    """

    def __init__(
        self,
        loop: CallsSoon,
        log: Log,
        flush_thread: ClosableCallQueue,
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
        self._flush_thread = flush_thread
        self._clock = clock
        self._nanos = clock.nanos
        self._stats = stats
        self._synced = mode is FlushMode.ALWAYS
        self._batch_bytes_max = batch_bytes_max
        self._offset_value_version = offset_value_version
        self._compression = compression
        self._dirty: list[FileLogWriter] = []
        self._scheduled = False
        self._under_way: list[FileLogWriter] = []
        self._tickets: list[DurabilityTicket] = []
        self._began_ns = 0
        self._began_wall_ms = 0
        self.on_failed: Callable[[list[FileLogWriter], LogError], None] = lambda _writers, _error: None

    def new_writer(
        self, partition: Partition, next_offset: Offset, leader_epoch: LeaderEpoch
    ) -> FileLogWriter:
        """Return a writer for a partition whose log ends at `next_offset`."""
        return FileLogWriter(self, partition, next_offset, leader_epoch, self._new_builder())

    def _new_builder(self) -> BatchBuilder:
        return BatchBuilder(self._batch_bytes_max, self._offset_value_version, self._compression)

    @property
    def is_idle(self) -> bool:
        """True if all appends are durable (or have failed)."""
        return not self._dirty and not self._under_way

    def close(self) -> None:
        """End the flush thread; there are no more appends."""
        self._flush_thread.close()

    def is_flushing_records_of(self, writer: FileLogWriter) -> bool:
        """Return whether a flush of this writer's records has begun and not ended."""
        return writer in self._under_way

    def enqueue_writer(self, writer: FileLogWriter) -> None:
        """Add a writer, which has got its first record since the last flush, to the next flush."""
        self._dirty.append(writer)
        if not self._under_way:
            self._flush_soon()

    def fail_writers_with_lost_records(self, writers: Sequence[FileLogWriter], error: LogError) -> None:
        """Make writers that lost records refuse further appends, and fail their tickets; without `on_failed`."""
        tickets = [writer.ticket for writer in writers if writer.ticket is not None]
        self._dirty = [writer for writer in self._dirty if writer not in writers]
        self._end(writers, tickets, error)

    def _flush_soon(self) -> None:
        if self._dirty and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = False
        if not self._dirty or self._under_way:
            return
        writers, self._dirty = self._dirty, []
        self._began_ns = self._nanos()
        self._began_wall_ms = self._clock.wall_ms()
        entries = self._entries(writers)
        if not entries:  # no batch could be built, or there was nothing to put in one
            if self._under_way:
                self._done(None)
            else:
                self._flush_soon()
        elif self._synced:
            self._flush_thread.submit_with_callback(lambda: self._log.append(entries, sync=True), self._done)
        else:
            # A write to the page cache takes microseconds; a trip to the thread and back would cost more than it.
            result: BaseException | None = None
            try:
                self._log.append(entries, sync=False)
            except Exception as error:  # noqa: BLE001 - whatever it is, nothing of this flush may be acknowledged
                result = error
            self._done(result)

    def _entries(self, writers: list[FileLogWriter]) -> list[Entry]:
        """Return the batches of the gathered records, now under way; records that fail to build a batch are lost."""
        entries: list[Entry] = []
        for writer in writers:
            builder, ticket = writer.builder, writer.ticket
            assert ticket is not None, f"partition {writer.partition} has gathered nothing"
            try:
                batches = builder.build(writer.next_offset, writer.leader_epoch, self._began_wall_ms)
            except Exception as error:
                log.exception("record batches cannot be built", partition=writer.partition)
                self._lose([writer], [ticket], translate_to_log_error(error))
                continue
            if len(batches) == 1:
                entries.append(Entry(writer.partition, writer.next_offset, batches[0]))
            else:
                entries += [Entry(writer.partition, base_offset_of(batch), batch) for batch in batches]
            writer.next_offset = Offset(writer.next_offset + builder.count)
            writer.builder = self._new_builder()
            writer.ticket = None
            self._under_way.append(writer)
            self._tickets.append(ticket)
        return entries

    def _done(self, result: BaseException | None) -> None:
        writers, self._under_way = self._under_way, []
        tickets, self._tickets = self._tickets, []
        if isinstance(result, BaseException):
            self._fail(writers, tickets, translate_to_log_error(result))
            return
        self._stats.count_flush(self._nanos() - self._began_ns, self._began_wall_ms)
        _settle(tickets)
        self._flush_soon()

    def _fail(self, writers: list[FileLogWriter], tickets: list[DurabilityTicket], error: LogError) -> None:
        """Fail all waiting records: those that gathered meanwhile were decided on a state that is lost."""
        lost = list(dict.fromkeys([*writers, *self._dirty]))
        tickets += [writer.ticket for writer in self._dirty if writer.ticket is not None]
        self._dirty = []
        self._lose(lost, tickets, error)

    def _lose(self, writers: list[FileLogWriter], tickets: list[DurabilityTicket], error: LogError) -> None:
        self._stats.flush_failures += 1
        self._end(writers, tickets, error)
        self.on_failed(writers, error)

    def _end(
        self, writers: Sequence[FileLogWriter], tickets: list[DurabilityTicket], error: LogError
    ) -> None:
        for writer in writers:
            writer.refuse_further_appends(error.code)
            writer.ticket = None
            writer.builder = self._new_builder()
        _settle(tickets, error.code)


def _settle(tickets: Sequence[DurabilityTicket], error: ErrorCode | None = None) -> None:
    """End tickets; log a waiter that fails, so that the flushes go on."""
    try:
        end_tickets(tickets, error)
    except Exception:
        log.exception("handling the end of a flush failed")
