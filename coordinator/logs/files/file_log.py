# SPDX-License-Identifier: Apache-2.0
"""The log port over files: one node's part of a data directory, with its journal (`storage.log_manager`).

A flush is one frame in the journal for all partitions, so a failed flush fails all records in it, and all that have
gathered meanwhile. Appends are refused until the journal can be written again; the repair retries that. Afterwards
all claims are invalid: the data read before the repair may differ from the data that the repair has found.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from coordinator.logs.files.committer import Committer, FileLogWriter
from coordinator.logs.files.file_errors import translate_to_log_error
from coordinator.logs.group_log import (
    LogChunk,
    LogDamaged,
    LogError,
    LogFenced,
    LogUnavailable,
    LogWriter,
    wait_for_ticket_end,
)
from coordinator.runtime.clock import Clock
from coordinator.runtime.io_thread import BlockingCallThread
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from protocol.errors import ErrorCode
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import SegmentPosition
from storage.errors import CorruptBatch, CorruptRecord, StorageError
from storage.log_manager import LogManager

log = get_logger("log")

T = TypeVar("T")

RETRY_S: Final = 1.0
"""The pause between two attempts to repair the journal, in seconds."""


class FileLog:
    """The GroupLog over files: the partitions of a LogManager, for the event loop.

    The disk is read in the io thread; appends go through the committer.
    """

    def __init__(
        self,
        log_manager: LogManager,
        committer: Committer,
        io: BlockingCallThread,
        clock: Clock,
        stats: Stats,
        read_bytes_max: int,
    ) -> None:
        self.files = log_manager
        self.committer = committer
        self.read_bytes_max = read_bytes_max
        self.repairs = 0
        """The number of repairs so far; claims from before the last repair are invalid."""
        self.retry_s = RETRY_S
        self.on_failed: Callable[[Sequence[LogWriter], LogError], None] = lambda _writers, _error: None
        self._io = io
        self._clock = clock
        self._stats = stats
        self._writers: dict[Partition, FileLogWriter] = {}
        self._epochs: dict[Partition, LeaderEpoch] = {}
        self._ends_on_disk: dict[Partition, tuple[Offset, SegmentPosition | None]] = {}
        self._tasks = Tasks()
        self._repair: asyncio.Task[None] | None = None
        self._closed = False
        self._incidents = Incidents(log, clock.mono_ms)
        committer.on_failed = self._flush_failed

    # --- the port ---

    @property
    def is_idle(self) -> bool:
        """True if no append is pending."""
        return self.committer.is_idle

    async def claim(self, partition: Partition, leader_epoch: LeaderEpoch) -> "ClaimedFilePartition":
        """Claim a partition, under exactly the epoch that is passed."""
        self._check_open()
        if leader_epoch < self._epochs.get(partition, -1):
            raise LogFenced("a newer epoch has been claimed", {"partition": partition})
        self._epochs[partition] = leader_epoch
        await self._end_writer(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self.files.is_shared:
            await self.run_in_io_thread(partial(self.files.adopt, partition, *self._ends_on_disk[partition]))
        if partition in self.files.failed_partitions:
            await self.run_in_io_thread(partial(self.files.retry_unread_partition, partition))
        self._check_usable(partition)
        try:
            return ClaimedFilePartition(self, partition, leader_epoch)
        except StorageError as error:
            raise translate_to_log_error(error) from error

    async def repair_log_or_wait(self, partition: Partition) -> None:
        """Return once the journal can be written."""
        self._check_open()
        self.repair_if_refusing()
        if self._repair is not None:
            await asyncio.shield(self._repair)

    def accept_partition(
        self, partition: Partition, recovery_point: Offset, position: SegmentPosition | None
    ) -> None:
        """Note up to where a partition is on disk; the next claim opens it there."""
        self._ends_on_disk[partition] = recovery_point, position

    async def release(self, partition: Partition) -> SegmentPosition | None:
        """Stop leading a partition; in a directory that several nodes share, close it, so that it may be given away.

        Returns the position at which it ends on disk; None if it has no log or has failed, or in an unshared directory.
        """
        await self._end_writer(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if not self.files.is_shared:
            return None
        try:
            return await self.run_in_io_thread(partial(self.files.release, partition))
        finally:
            self.repair_if_refusing()

    async def close(self) -> None:
        """Settle all appends, move them into the segments, and unlock the directory."""
        if self._closed:
            return
        self._closed = True
        for partition in list(self._writers):
            await self._end_writer(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        if self._repair is not None:
            self._repair.cancel()
        try:
            await self.run_in_io_thread(self.files.close)
        finally:
            self.committer.close()

    # --- appending ---

    def new_writer(
        self, partition: Partition, leader_epoch: LeaderEpoch, end_offset: Offset
    ) -> FileLogWriter:
        """Return a writer for a claimed partition, which must still end at `end_offset`, as when it was claimed.

        Raises LogUnavailable if it does not, and StorageError.
        """
        if end_offset != self.files.end_offset(partition):
            raise LogUnavailable("the log does not end where it ended", {"partition": partition})
        writer = self._writers[partition] = self.committer.new_writer(partition, end_offset, leader_epoch)
        return writer

    async def _end_writer(self, partition: Partition, error: ErrorCode) -> None:
        writer = self._writers.get(partition)
        if writer is not None:
            writer.refuse_further_appends(error)
            await wait_for_ticket_end(writer.newest)
            if self._writers.get(partition) is writer:
                del self._writers[partition]

    def _flush_failed(self, writers: list[FileLogWriter], error: LogError) -> None:
        fields = error.fields(partitions=[writer.partition for writer in writers])
        if self._repair is None:
            log.error("a flush failed", **fields)
        else:  # during a repair the log refuses appends
            log.debug("a flush was refused", **fields)
        self.repair_if_refusing()
        self._lost(writers, error)

    def _lost(self, writers: Sequence[FileLogWriter], error: LogError) -> None:
        """Report the writers that have lost records, except those that were ended before."""
        lost = [writer for writer in writers if self._writers.get(writer.partition) is writer]
        for writer in lost:
            del self._writers[writer.partition]
        if lost:
            self.on_failed(lost, error)

    # --- reading ---

    def check_claim(self, partition: Partition, repairs: int) -> None:
        """Raise LogUnavailable if a claim is invalid: the log has failed since, or was repaired."""
        self._check_usable(partition)
        if repairs != self.repairs:
            raise LogUnavailable("the log was repaired meanwhile", {"partition": partition})

    def _check_usable(self, partition: Partition) -> None:
        self._check_open()
        if self.files.append_failure is not None:
            raise LogUnavailable(self.files.append_failure.reason, {"partition": partition})
        if self._repair is not None:  # the files may be whole again, but the task has yet to run
            raise LogUnavailable("the log is being repaired", {"partition": partition})

    def _check_open(self) -> None:
        if self._closed:
            raise LogError("the log is closed")

    async def run_in_io_thread(self, call: Callable[[], T]) -> T:
        """Run a call on the files in the io thread. Raises LogError and its subclasses."""
        try:
            return await self._io.run_blocking(call)
        except StorageError as error:
            raise translate_to_log_error(error) from error

    # --- repairing ---

    def repair_if_refusing(self) -> None:
        """Begin to make the log writable again if it refuses appends, unless a repair is under way."""
        if self.files.append_failure is not None and self._repair is None and not self._closed:
            self._stats.log_refusing_since_ms = self._stats.log_refusing_since_ms or self._clock.wall_ms()
            self._incidents.begin_without_logging(self)  # the failure was logged where it was seen
            self._repair = self._tasks.start(self._repair_log(), "repair of the journal")

    async def _repair_log(self) -> None:
        while True:
            try:
                await self._io.run_blocking(self.files.recover_all_after_failure)
                break
            except StorageError as error:
                self._incidents.log_repeated_failure(
                    self, "the journal is still not writable", reason=str(error)
                )
            except Exception:
                log.exception("the repair of the journal failed")
            await asyncio.sleep(self.retry_s)
        self.repairs += 1
        self._repair = None
        self._stats.log_refusing_since_ms = 0
        self._incidents.end_incident(self, "the journal is writable again")
        lost = [writer for writer in self._writers.values() if not self._is_in_step(writer)]
        if lost:
            why = LogUnavailable("what was accepted, and never synced, was lost")
            log.error("the log has lost records", partitions=[writer.partition for writer in lost])
            self.committer.fail_writers_with_lost_records(lost, why)
            self._lost(lost, why)

    def _is_in_step(self, writer: FileLogWriter) -> bool:
        """Return whether the repair has found all records that a writer has appended.

        An append that is on its way to the repaired log succeeds only if the log ends where the writer expects.
        """
        if self.committer.is_flushing_records_of(writer):
            return True
        try:
            return writer.next_offset == self.files.end_offset(writer.partition)
        except StorageError:
            return False


class ClaimedFilePartition:
    """The Claim over files: a partition as it was when claimed."""

    def __init__(self, file_log: FileLog, partition: Partition, leader_epoch: LeaderEpoch) -> None:
        files = file_log.files
        self._log = file_log
        self._repairs = file_log.repairs
        self._start_offset = files.get_or_create_log(partition).start_offset
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = files.end_offset(partition)
        self.approximate_bytes = files.get_or_create_log(partition).size_bytes

    async def read(self) -> AsyncIterator[LogChunk]:
        """Read the whole log, in chunks of about `read_bytes_max`."""
        files, size_max = self._log.files, self._log.read_bytes_max
        offset = self._start_offset
        while offset < self.end_offset:
            data, next_offset = await self._log.run_in_io_thread(
                partial(files.read, self.partition, offset, size_max)
            )
            self._log.check_claim(self.partition, self._repairs)
            yield LogChunk(data, offset, next_offset)
            offset = next_offset

    async def make_located_damage_error(
        self, piece: LogChunk, error: CorruptBatch | CorruptRecord
    ) -> LogDamaged:
        """Return the error with its file, and for a corrupt batch the byte where it begins."""
        files = self._log.files
        path, position = await self._log.run_in_io_thread(
            partial(files.locate_batch, self.partition, piece.offset)
        )
        if isinstance(error, CorruptRecord):
            return LogDamaged(error.reason, {"file": str(path)}, str(path))
        position += error.position
        where = f"{path} at byte {position}"
        return LogDamaged(error.reason, {"file": str(path), "position": position}, where)

    def open_writer(self) -> FileLogWriter:
        """Return a writer that begins at the end of the log."""
        self._log.check_claim(self.partition, self._repairs)
        try:
            return self._log.new_writer(self.partition, self.leader_epoch, self.end_offset)
        except StorageError as error:
            raise translate_to_log_error(error) from error
