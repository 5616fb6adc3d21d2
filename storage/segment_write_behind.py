# SPDX-License-Identifier: Apache-2.0
"""Writes accepted batches into the segments: write-behind and checkpoints."""

from collections.abc import Sequence

from protocol.newtypes import Partition
from storage.errors import storage_error
from storage.format.batch_format import next_offset_of
from storage.health import Health
from storage.journal.journal import Entry
from storage.journal.journals import Journals
from storage.journal.node_data_directory import NodeDataDirectory
from storage.journal.pending_segment_batches import PendingBatches
from storage.partition.log import PartitionLog
from storage.partitions import Partitions
from storage.recovery.recovery import write_recovery_points


class JournalToSegmentsWriter:
    """Queues the batches that are safe in the journal, and writes them into the segments.

    Callers hold the lock on segments, except in `queue_batches`.
    """

    __slots__ = ("_directory", "_health", "_journals", "_partitions", "_pending")

    def __init__(
        self, directory: NodeDataDirectory, health: Health, journals: Journals, partitions: Partitions
    ) -> None:
        self._directory = directory
        self._health = health
        self._journals = journals
        self._partitions = partitions
        self._pending = PendingBatches()

    @property
    def pending_segment_bytes(self) -> int:
        """The bytes that wait for their segments."""
        return self._pending.size_bytes

    def queue_batches(self, entries: Sequence[Entry]) -> None:
        """Queue batches that are in the journal; the caller holds its lock."""
        self._pending.add(entries)

    def clear_queue(self) -> None:
        """Empty the queue, because recovery has read it from the journal into the segments."""
        self._pending = PendingBatches()

    def write_queued_batches(self, max_bytes: int | None) -> int:
        """Write queues into their segments until `max_bytes` or more are written (None: all); return the bytes written.

        Raises StorageFull and StorageError; unwritten batches stay queued.
        """
        written = 0
        while max_bytes is None or written < max_bytes:
            with self._journals.lock:
                partition = self._pending.longest_waiting_partition()
            if partition is None:
                break
            written += self._drain(partition)
        return written

    def write_partition_queue(self, partition: Partition) -> None:
        """Write a partition's queue into its segments. Raises StorageFull and StorageError."""
        if partition in self._pending:
            self._drain(partition)

    def _drain(self, partition: Partition) -> int:
        """Write a partition's queue; nothing reads it meanwhile, because its batches are in neither place."""
        with self._journals.lock:
            batches = self._pending.take_all_batches(partition)
        log = self._partitions.get_or_create_log(partition)
        try:
            log.append_all(batches)
            self._check_there(log, all_segments=False)
        finally:
            end = log.end_offset
            all_written = bool(batches) and next_offset_of(batches[-1]) <= end
            count = len(batches) if all_written else sum(next_offset_of(batch) <= end for batch in batches)
            with self._journals.lock:
                size = self._pending.finish_segment_write(partition, batches, count)
        return size

    def checkpoint_journal(self) -> None:
        """Write everything accepted so far into the segments, sync them, and remove older journals.

        Raises StorageFull and StorageError.
        """
        # Read without the lock: an append that comes now belongs to the next checkpoint.
        if not self._journals.size_bytes:
            return
        try:
            flush = self._journals.rotate_and_get_last_flush()
            self.write_queued_batches(None)
            for log in self._partitions.logs():
                self._check_there(log, all_segments=True)
                log.write_derived_files()
            self._sync_all()
            self._journals.remove_all_retired(flush)
        except OSError as error:
            raise storage_error(self._directory.data_dir, error, "a checkpoint") from error

    def _sync_all(self) -> None:
        logs, directory = self._partitions.logs(), self._directory
        for log in logs:
            self.sync(log)
        self._partitions.points = write_recovery_points(
            directory.fs,
            directory.recovery_point_directory,
            self._partitions.points,
            logs,
            directory.settings.topic,
        )
        for log in logs:
            log.store_segment_list()

    def _check_there(self, log: PartitionLog, *, all_segments: bool) -> None:
        """Raise StorageError if segments were removed: their batches would be lost with the journal."""
        try:
            log.check_segments_present(all_segments=all_segments)
        except OSError as error:
            raise self._health.record_failure(log.directory, error, "looking for the segments") from error

    def sync(self, log: PartitionLog) -> None:
        """Make durable what was written into a log. Raises StorageError; then the log has failed."""
        if not log.needs_fsync:
            return
        try:
            log.fsync()
        except OSError as error:
            # Pages of a failed sync may be lost and still look clean: only the journal helps now.
            raise self._health.record_failure(log.directory, error, "syncing") from error
