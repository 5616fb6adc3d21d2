# SPDX-License-Identifier: Apache-2.0
"""The logs of a node behind one interface: durable through the journal, on disk in Kafka's segments.

An append is one frame in the journal (`journals`). Its batches wait in memory until `write_behind` writes them
into their segments, many at a time; `checkpoint_journal` syncs the segments, and then the journal is no longer needed
(`segment_write_behind`). `opening` and `recovery` read all this again after a stop or a failure.

There are three locks, always taken in this order: `_io_lock` for everything that touches segments; the journals'
`sync_lock` for the journals that may be removed; their `lock` for the journal being written, the log end offsets
and the queues. An append takes only the last one, and only an append that asks for a sync syncs under it.

Usually a manager has a directory for itself. Several managers can also share one (`open_in_shared_directory`): each
has a journal of its own and works only on the partitions that it has adopted and not released. The supervisor then
holds the directory's lock, ensures that no two managers adopt the same partition, and replays the journal of a
node that has stopped: `storage.recovery.shared_directory`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple, TypeVar

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import SegmentPosition
from storage.disk.filesystem import FileSystem
from storage.disk.layout import CLEAN_SHUTDOWN_FILE, parse_journal, partition_dir
from storage.disk.lock import DirectoryLock
from storage.errors import CorruptLog, LogNotWritable, StorageError, storage_error
from storage.health import Health
from storage.journal.journal import Entry
from storage.journal.journal_registry import consume_clean_mark
from storage.journal.journals import Journals
from storage.journal.node_data_directory import NodeDataDirectory
from storage.partition.log import PartitionLog
from storage.partition.rolled_segments import RolledSegments, select_rolled_segments
from storage.partition.swap import remove_unswapped_files
from storage.partitions import Partitions
from storage.recovery.log_recovery import DiscardedRange, log_end_position
from storage.recovery.opening import (
    open_handed_over_partition,
    recover_logs_and_begin_journal,
    recover_skipped_partition,
    remove_journals_at_stop,
)
from storage.recovery.recovery import RecoveryAssumptions, find_or_generate_topic_id
from storage.segment_write_behind import JournalToSegmentsWriter
from storage.settings import LogSettings

__all__ = ["DiscardedRange", "LogManager", "LogSettings", "recover_directory"]

T = TypeVar("T")


class DirectoryRecovery(NamedTuple):
    """The ranges that a recovery left out, and the partitions that cannot be used, with the reason."""

    cuts: tuple[DiscardedRange, ...]
    failed: Mapping[Partition, CorruptLog]


_START: Final = Offset(0)


class LogManager:
    """Appends to, and reads from, all partitions of one data directory. Made by `open`; safe for threads."""

    def __init__(self, directory: NodeDataDirectory, lock: DirectoryLock | None = None) -> None:
        self.cuts: tuple[DiscardedRange, ...] = ()
        """The ranges that recovery had to leave out, when opening or repairing."""
        self._directory = directory
        self._lock = lock
        self._io_lock = Lock()
        self._health = Health(directory.data_dir)
        self._partitions = Partitions(directory)
        self._journals = Journals(directory, self._health)
        self._writer = JournalToSegmentsWriter(directory, self._health, self._journals, self._partitions)
        self._kept: Collection[Path] = ()

    # -------------------------------------------------------------- life

    @classmethod
    def open(cls, data_dir: Path, settings: LogSettings, fs: FileSystem) -> "LogManager":
        """Lock the directory (made if missing), recover what it holds, and start a new journal.

        Raises DirectoryLocked, CorruptLog if a journal is damaged, and StorageError. Partitions that are
        damaged, or that the disk cannot read, do not raise: see `failed_partitions`.
        """
        lock = DirectoryLock.create_directory_and_acquire(fs, data_dir)
        try:
            topic_id = find_or_generate_topic_id(fs, data_dir, settings.topic)
            manager = cls(NodeDataDirectory(fs, data_dir, settings, topic_id, None), lock)
            clean = fs.exists(data_dir / CLEAN_SHUTDOWN_FILE)
            as_left = consume_clean_mark(fs, data_dir)
            manager._recover(RecoveryAssumptions(clean=clean, as_left=as_left, at_start=True))
        except BaseException as error:
            lock.release()
            if isinstance(error, OSError):
                raise storage_error(data_dir, error, "opening") from error
            raise
        return manager

    @classmethod
    def open_in_shared_directory(
        cls,
        data_dir: Path,
        settings: LogSettings,
        topic_id: bytes,
        node_id: int,
        fs: FileSystem,
    ) -> "LogManager":
        """Start a journal for one of several nodes in a directory that another process has locked.

        The node works on no partition yet: see `adopt`. The journals of its last run must have been replayed.
        Raises CorruptLog for a damaged journal, and StorageError.
        """
        manager = cls(NodeDataDirectory(fs, data_dir, settings, topic_id, node_id))
        journals = manager._directory.journal_dir
        try:
            # Settling has kept these journals for the repair of a partition.
            manager._kept = {journals / name for name in fs.listdir(journals) if parse_journal(name)}
            manager._recover(RecoveryAssumptions())
        except OSError as error:
            raise storage_error(data_dir, error, "opening") from error
        return manager

    def _recover(self, given: RecoveryAssumptions) -> None:
        """Recover the logs from disk. All locks are held, or no other thread knows this manager yet."""
        owned = self._partitions.owned
        opened = recover_logs_and_begin_journal(
            self._directory, owned, () if owned is None else self._kept, given
        )
        self._partitions.replace_all(opened)
        self._journals.switch_to_journal(opened.journal, opened.last_flush, opened.kept_here)
        self._writer.clear_queue()
        self._kept = opened.kept
        self.cuts = opened.cuts

    def recover_all_after_failure(self) -> None:
        """Recover from disk after a failure, without the frame that failed.

        On return every frame that was accepted before is in the segments, and on disk; earlier results of
        `log` are not valid any more, and offsets may be lower than before in modes that accept without
        syncing. Raises StorageError, and CorruptLog, and can then be tried again.
        """
        with self._io_lock, self._journals.sync_lock, self._journals.lock:
            health = self._health
            health.check_open()
            health.failed = health.failed or LogNotWritable(self.data_dir, "a repair did not finish")
            try:
                self._close_files()
                # We know which journals must exist, and need not trust what is left of the directory.
                in_use = self._directory.in_use.journals
                self._recover(RecoveryAssumptions(last_flush=self._journals.flush, in_use=in_use))
            except OSError as error:
                raise storage_error(self.data_dir, error, "repairing") from error
            health.failed = None

    def close(self) -> None:
        """Write everything into the segments, sync them, and unlock; a Kafka broker can then open them.

        Raises StorageError if that fails; the directory is unlocked all the same, and the next `open`
        recovers it. Does nothing the second time. In a shared
        directory the journal is left to `SharedDirectoryFiles.replay_and_remove_node_journal`.
        """
        if self._health.closed:
            return
        try:
            with ExitStack() as stack:  # a failed step does not prevent the others
                if self._lock is not None:
                    stack.callback(self._lock.release)
                stack.callback(self._close_files)
                self._leave_clean()
        except OSError as error:
            raise storage_error(self.data_dir, error, "closing") from error

    def _leave_clean(self) -> None:
        try:
            self.checkpoint_journal()
        finally:
            self._health.closed = True
        with self._io_lock, self._journals.sync_lock, self._journals.lock:
            self._journals.close()
            for log in self._partitions.logs():
                log.write_derived_files(seal=True)
            if not self._directory.is_shared:
                failed = bool(self._partitions.failed)
                remove_journals_at_stop(self._directory, self._kept if failed else (), mark=not failed)

    def _close_files(self) -> None:
        with ExitStack() as stack:
            stack.callback(self._journals.close)
            for log in self._partitions.logs():
                stack.callback(log.close_files)

    # -------------------------------------------------------------- state

    @property
    def data_dir(self) -> Path:
        """The directory with the logs."""
        return self._directory.data_dir

    @property
    def settings(self) -> LogSettings:
        """The settings that were given to `open`."""
        return self._directory.settings

    @property
    def file_system(self) -> FileSystem:
        """The file system that holds all files."""
        return self._directory.fs

    @property
    def recovery_point_directory(self) -> Path:
        """The directory of the recovery points: nodes that share a directory must not write the same file."""
        return self._directory.recovery_point_directory

    @property
    def is_shared(self) -> bool:
        """True if other nodes work in the same directory."""
        return self._directory.is_shared

    @property
    def failed_partitions(self) -> Mapping[Partition, CorruptLog]:
        """The partitions that cannot be read, and why. They are left unchanged, and the others serve."""
        return self._partitions.failed

    @property
    def append_failure(self) -> StorageError | None:
        """The reason why appends are refused until `recover_all_after_failure`, or None."""
        return self._health.failed

    @property
    def journal_bytes(self) -> int:
        """The bytes in the journals that no checkpoint has made superfluous yet."""
        return self._journals.size_bytes

    @property
    def pending_segment_bytes(self) -> int:
        """The bytes that wait in memory for their segments."""
        return self._writer.pending_segment_bytes

    def end_offset(self, partition: Partition) -> Offset:
        """Return the base offset of the partition's next batch. Takes no lock, and so never waits for a disk.

        Raises CorruptLog for a failed partition, NotOwned for one of another node.
        """
        return self._partitions.end_offset(partition)

    def size_bytes(self, partition: Partition) -> int:
        """Return the bytes of a partition's segments, without what is only in the journal yet. Takes no lock."""
        return self._partitions.size_bytes(partition)

    def get_or_create_log(self, partition: Partition) -> PartitionLog:
        """Return a partition's log, still without queued batches; a new log is written at its first append.

        Valid until `recover_all_after_failure`. Raises CorruptLog for a failed partition, NotOwned for one of another
        node.
        """
        return self._partitions.get_or_create_log(partition)

    def retry_unread_partition(self, partition: Partition) -> None:
        """Try again to read a partition that the disk could not read at the start; ignore any other.

        Raises CorruptLog if it turns out to be damaged, and StorageError if it still cannot be read.
        """
        with self._io_lock:
            self._health.check()
            partitions, directory = self._partitions, self._directory
            by = partitions.unread.get(partition)
            if by is None:
                return
            try:
                log, cuts = recover_skipped_partition(directory, partition, by)
            except CorruptLog as error:
                del partitions.unread[partition]
                partitions.failed[partition] = error
                raise
            except OSError as error:
                where = error.filename or partition_dir(self.data_dir, self.settings.topic, partition)
                raise storage_error(where, error, "reading") from error
            with self._journals.lock:
                partitions.restore_partition(log)
            self.cuts += tuple(cuts)

    # -------------------------------------------------------------- writing

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        """Append batches, each at its partition's `end_offset`.

        With `sync` they are on disk on return, else in the page cache, where they survive a crash of the
        process. Either all are accepted or none. Raises ValueError for a wrong offset; CorruptLog
        for a failed partition, NotOwned for one of another node; StorageFull, StorageError if writing
        fails: then LogNotWritable for every later append, until `recover_all_after_failure`.
        """
        if not entries:
            return
        self._health.check()
        with self._journals.lock:
            self._health.check()
            ends = self._partitions.compute_end_offsets_after(entries)
            self._journals.append(entries, sync=sync)
            self._partitions.set_end_offsets(ends)
            self._writer.queue_batches(entries)

    def sync(self) -> None:
        """Make everything durable that was accepted before the call; appends go on meanwhile.

        Raises StorageError; then appends fail until `recover_all_after_failure`.
        """
        self._journals.sync()

    def check_journals_present(self) -> None:
        """Check that the journals are still where a start would search for them.

        Raises LogNotWritable, and StorageError if they are not; then appends fail until `recover_all_after_failure`.
        """
        self._journals.check_files_present()

    def write_behind(self, max_bytes: int | None = None) -> int:
        """Write queued batches into their segments, in the page cache; at least `max_bytes`, if that many wait.

        Returns the number of bytes written. Raises StorageFull and StorageError; unwritten batches
        stay in the queue, safe in the journal, and can be tried again.
        """
        with self._io_lock:
            self._health.check()
            return self._writer.write_queued_batches(max_bytes)

    def checkpoint_journal(self) -> None:
        """Write everything accepted so far into the segments, sync them, and remove older journals.

        Appends go on meanwhile, into a new journal. Raises StorageFull and StorageError. After a failed
        sync appends fail until `recover_all_after_failure`; after another error, such as a full disk, they go on.
        """
        with self._io_lock:
            self._health.check()
            self._writer.checkpoint_journal()

    # -------------------------------------------------------------- cleaning

    def find_rolled_segments(self) -> list[RolledSegments]:
        """Return each partition's segments that are not written to any more and that are durable."""
        with self._io_lock:
            self._health.check()
            logs = [(self._partitions.recovery_point(log.partition), log) for log in self._partitions.logs()]
            return [
                rolled for point, log in logs if (rolled := select_rolled_segments(log, point)) is not None
            ]

    def replace_segments(self, rolled: RolledSegments, replaced_base_offsets: Sequence[Offset]) -> bool:
        """Replace segments by the cleaned segment made from them; durable on return.

        Returns False, and does nothing, if the log is not this node's any more or was opened again since.
        Raises StorageError; then appends fail until `recover_all_after_failure`.
        """
        with self._io_lock:
            self._health.check()
            if not self.is_log_current(rolled):
                return False
            try:
                rolled.log.replace_with_cleaned_segment(replaced_base_offsets)
            except OSError as error:
                raise self._health.record_failure(
                    rolled.log.directory, error, "swapping in a cleaned segment"
                ) from error
            return True

    def remove_abandoned_cleaning(self, rolled: RolledSegments) -> None:
        """Remove the files of a cleaning that was given up, if the log is still this node's."""
        with self._io_lock:
            if self.is_log_current(rolled):
                try:
                    remove_unswapped_files(self.file_system, rolled.log.directory, rolled.base_offsets)
                except OSError as error:
                    raise storage_error(rolled.log.directory, error, "giving up a cleaning") from error

    def is_log_current(self, rolled: RolledSegments) -> bool:
        """Return whether the log is still in use: not replaced by a repair, released, or closed."""
        return not self._health.closed and self._partitions.is_current_log(rolled.log)

    # -------------------------------------------------------------- a share's partitions

    def adopt(
        self, partition: Partition, recovery_point: Offset = _START, position: SegmentPosition | None = None
    ) -> None:
        """Open a partition that no other node works on; it is on disk up to `recovery_point`, at `position`.

        Its last node has released it, or that node's journal was replayed: the files derived from its segments
        are whole, too.
        Does nothing for a partition that this node has. Raises CorruptLog, and lists the partition in
        `failed_partitions`; and StorageError, which leaves the partition alone and can be tried again.
        """
        partitions = self._partitions
        assert partitions.owned is not None, "this manager has the whole directory"
        with self._io_lock:
            self._health.check()
            if partition in partitions.owned:
                return
            try:
                log, cuts = open_handed_over_partition(self._directory, partition, recovery_point, position)
            except CorruptLog as error:
                partitions.failed[partition] = error
                raise
            except OSError as error:
                where = partition_dir(self.data_dir, self.settings.topic, partition)
                raise storage_error(where, error, "adopting a partition") from error
            self.cuts += tuple(cuts)
            with self._journals.lock:
                partitions.add(log)

    def release(self, partition: Partition) -> SegmentPosition | None:
        """Write a partition's accepted batches into its segments, sync them, and give the partition up.

        It takes no more appends. Returns where it ends on disk, for the node that adopts it; None if it
        has no log, or if it was failed. Raises StorageError; then it is still this node's.
        """
        partitions = self._partitions
        assert partitions.owned is not None, "this manager has the whole directory"
        with self._io_lock:
            if partitions.failed.pop(partition, None) is not None or partition not in partitions.owned:
                partitions.owned.discard(partition)
                return None
            self._health.check()
            self._writer.write_partition_queue(partition)
            log = partitions.get_or_create_log(partition)
            try:
                log.write_derived_files(seal=True)
            except OSError as error:
                raise storage_error(log.directory, error, "releasing a partition") from error
            self._writer.sync(log)
            with self._journals.lock:
                partitions.remove_released_partition(partition)
            log.close_files()
            return log_end_position(log)

    # -------------------------------------------------------------- reading

    def read(self, partition: Partition, start_offset: Offset, max_bytes: int) -> tuple[bytes, Offset]:
        """Return whole batches of a partition and the offset to read from next; see `PartitionLog.read`.

        Its queue is written first, so everything accepted is found. Raises CorruptLog, LogNotWritable, and
        StorageError.
        """
        with self._io_lock:
            self._health.check()
            self._writer.write_partition_queue(partition)
            return self.get_or_create_log(partition).read(start_offset, max_bytes)

    def run_read_on_log(
        self, partition: Partition, read: Callable[[PartitionLog], T], *, write_behind_first: bool
    ) -> T:
        """Return the result of `read` for a partition's log; `read` must not change the log, and nothing else does.

        With `write_behind_first` the log holds everything accepted, else only what was written before. Raises what
        `read` does, CorruptLog and NotOwned for a partition that cannot be read here, LogNotWritable and StorageError.
        """
        with self._io_lock:
            self._health.check()
            if write_behind_first:
                self._writer.write_partition_queue(partition)
            try:
                return read(self.get_or_create_log(partition))
            except OSError as error:
                raise storage_error(error.filename or self.data_dir, error, "reading") from error

    def locate_batch(self, partition: Partition, offset: Offset) -> tuple[Path, int]:
        """Return the file and the byte at which a batch starts. Raises CorruptLog and StorageError."""
        with self._io_lock:
            try:
                return self.get_or_create_log(partition).locate(offset)
            except OSError as error:
                raise storage_error(self.data_dir, error, "reading") from error


def recover_directory(data_dir: Path, settings: LogSettings, fs: FileSystem) -> DirectoryRecovery:
    """Recover a directory that no node uses, and leave it as a clean stop does. Raises as `LogManager.open` does."""
    manager = LogManager.open(data_dir, settings, fs)
    recovered = DirectoryRecovery(manager.cuts, dict(manager.failed_partitions))
    manager.close()
    return recovered
