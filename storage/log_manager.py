# SPDX-License-Identifier: Apache-2.0
"""All logs of a node behind one door: durable through the journal, on disk in Kafka's segments.

An append is one frame in the journal. Its batches wait in memory until `write_behind` puts them into
their segments, many at a time; `checkpoint` syncs the segments, and then the journal is needed no more.

Three locks, always taken in this order: `_io_lock` for everything that touches segments, `_sync_lock`
for journals that may go away, `_journal_lock` for the journal that is written and for the queues. An
append takes only the last one, and nobody syncs under it but an append that asks for that.

Usually a manager has a directory for itself. Several can also share one (`open_share`): each has a journal
of its own and works only on the partitions that it has adopted and not released. Somebody else holds the
directory's lock then, sees to it that no two adopt the same partition, and settles the journal of a node that
has stopped: `storage.shared`.
"""

from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Final

from storage.checkpoint_file import Position, TopicPartition, gather_offsets
from storage.errors import CorruptLog, NotOwned, StorageError, StorageFailed, storage_error
from storage.filesystem import FileSystem, RealFileSystem, atomic_write
from storage.journal import Entry, Journal, clear_journals, retire
from storage.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEAN_SHUTDOWN_MARK,
    CLEANER_OFFSET_FILE,
    SPARE_JOURNAL,
    journal_dir,
    journal_dirs,
    parse_journal,
    partition_dir,
)
from storage.lock import DirectoryLock
from storage.log import PartitionLog, batch_offsets
from storage.pending import PendingBatches
from storage.recovery import (
    Cut,
    note_recovery_points,
    partitions_on_disk,
    position_of,
    recover,
    recover_log,
    topic_id_on_disk,
)
from storage.rolled import RolledLog, rolled_log
from storage.settings import LogSettings
from storage.swap import remove_cleaned

__all__ = ["Cut", "LogManager", "LogSettings"]

_LAST_OFFSET_DELTA: Final = Struct(">i")


class LogManager:
    """Appends to, and reads from, all partitions of one data directory. Made by `open`; safe for threads."""

    def __init__(
        self,
        fs: FileSystem,
        data_dir: Path,
        settings: LogSettings,
        topic_id: bytes,
        *,
        lock: DirectoryLock | None = None,
        node_id: int | None = None,
    ) -> None:
        self.data_dir = data_dir
        self.settings = settings
        self.failed_partitions: dict[int, CorruptLog] = {}
        """Partitions that cannot be read, and why. They are left as they are, and the others serve."""
        self.cuts: tuple[Cut, ...] = ()
        """What recovery had to leave out, when opening or repairing."""
        self._fs = fs
        self._lock = lock
        self._topic_id = topic_id
        self._journal_dir = journal_dir(data_dir, node_id)
        self._owned: set[int] | None = None if node_id is None else set()
        self._io_lock = Lock()
        self._sync_lock = Lock()
        self._journal_lock = Lock()
        self._failed: StorageError | None = None
        self._closed = False
        self._logs: dict[int, PartitionLog] = {}
        self._ends: dict[int, int] = {}
        self._pending = PendingBatches()
        self._points: dict[TopicPartition, int] = {}
        self._journal: Journal
        self._retired: list[Journal] = []
        self._kept: set[Path] = set()
        self._flush = 0
        self._synced_flush = 0

    # -------------------------------------------------------------- life

    @classmethod
    def open(cls, data_dir: Path, settings: LogSettings, fs: FileSystem | None = None) -> "LogManager":
        """Lock the directory (made if missing), recover what it holds, and start a new journal.

        Raises DirectoryLocked, CorruptLog when a journal is damaged, and StorageError. Damaged partitions
        do not raise: see `failed_partitions`.
        """
        fs = RealFileSystem() if fs is None else fs
        try:
            fs.mkdir(data_dir)
            lock = DirectoryLock.acquire(fs, data_dir)
        except OSError as error:
            raise storage_error(data_dir, error, "locking") from error
        try:
            manager = cls(fs, data_dir, settings, topic_id_on_disk(fs, data_dir, settings.topic), lock=lock)
            clean = fs.exists(data_dir / CLEAN_SHUTDOWN_FILE)
            fs.remove(data_dir / CLEAN_SHUTDOWN_FILE)
            manager._recover(None, clean=clean)
        except BaseException as error:
            lock.release()
            if isinstance(error, OSError):
                raise storage_error(data_dir, error, "opening") from error
            raise
        return manager

    @classmethod
    def open_share(
        cls,
        data_dir: Path,
        settings: LogSettings,
        topic_id: bytes,
        node_id: int,
        fs: FileSystem | None = None,
    ) -> "LogManager":
        """Start a journal for one of several nodes in a directory that somebody else has locked.

        The node works on no partition yet: see `adopt`. What its last life left must have been settled.
        Raises CorruptLog for a damaged journal, and StorageError.
        """
        fs = RealFileSystem() if fs is None else fs
        manager = cls(fs, data_dir, settings, topic_id, node_id=node_id)
        directory = manager._journal_dir
        try:
            # Who settled them kept these for somebody who mends a partition.
            manager._kept = {directory / name for name in fs.listdir(directory) if parse_journal(name)}
            manager._recover(None)
        except OSError as error:
            raise storage_error(data_dir, error, "opening") from error
        return manager

    def _recover(self, last_flush: int | None, *, clean: bool = False) -> None:
        """Read everything from disk, make it durable in the segments, and start a new journal.

        All locks are held, or nobody else knows this manager yet.
        """
        fs, data_dir = self._fs, self.data_dir
        others: list[Path] = []
        if self._owned is None:  # there may have been several nodes here, the last time
            others = journal_dirs(fs.listdir(data_dir), data_dir)
            others = [each for each in others if each != self._journal_dir]
        found = recover(
            fs,
            data_dir,
            self.settings,
            self._topic_id,
            last_flush=last_flush,
            journal_dirs=(self._journal_dir, *others),
            partitions=self._owned,
            clean=clean,
        )
        try:
            for log in found.logs.values():
                if log.dirty:
                    log.fsync()
            fs.mkdir(self._journal_dir)
            fs.fsync_dir(data_dir)
            known = found.recovery_points
            if self._owned is not None:
                known = {key: known[key] for key in known if key[1] in self._owned}
            points = note_recovery_points(fs, self.notes_dir, known, found.logs.values(), self.settings.topic)
            journal = Journal.create(
                fs,
                self._journal_dir,
                found.journals[-1].number + 1 if found.journals else 1,
                step_bytes=self.settings.journal_step_bytes,
                void_from=found.last_flush + 1,
            )
            kept = found.journals_of(found.failed) | (self._kept if self._owned is not None else set())
            for old in found.journals:
                if old.path not in kept:
                    retire(fs, old.path, spare_bytes_max=self.settings.journal_spare_bytes_max)
            fs.fsync_dir(self._journal_dir)
            gather_offsets(fs, data_dir, others, CLEANER_OFFSET_FILE)
            clear_journals(fs, others, kept)
        except BaseException:
            for log in found.logs.values():
                log.close()
            raise
        self._journal, self._retired, self._kept = journal, [], kept
        self._logs, self._points = found.logs, points
        self._ends = {partition: log.end_offset for partition, log in found.logs.items()}
        self._pending = PendingBatches()
        self._flush = self._synced_flush = found.last_flush
        elsewhere = () if self._owned is None else self.failed_partitions.keys() - self._owned
        self.failed_partitions = {p: self.failed_partitions[p] for p in elsewhere} | found.failed
        self.cuts = tuple(found.cuts)

    @property
    def file_system(self) -> FileSystem:
        """Through which all files are reached."""
        return self._fs

    @property
    def notes_dir(self) -> Path:
        """Where recovery points are noted: nodes that share a directory must not write the same file."""
        return self.data_dir if self._owned is None else self._journal_dir

    def repair(self) -> None:
        """After a failure: start again from what is on disk, without the frame that failed.

        Every frame that was accepted before is in the segments, and on disk, when this returns; logs got
        from `log` before are not valid any more, and offsets may be lower than they were in modes that
        accept without syncing. Raises StorageError, and CorruptLog, and can then be tried again.
        """
        with self._io_lock, self._sync_lock, self._journal_lock:
            self._check_open()
            self._close_files()
            self._failed = self._failed or StorageFailed(self.data_dir, "a repair did not finish")
            try:
                self._recover(self._flush)
            except OSError as error:
                raise storage_error(self.data_dir, error, "repairing") from error
            self._failed = None

    def close(self) -> None:
        """Bring everything into the segments, sync them, and unlock; a Kafka broker can then open them.

        Raises StorageError when that fails; the directory is unlocked all the same, and the next `open`
        recovers it. Does nothing the second time. A share leaves its journal to `SharedDirectory.settle`.
        """
        if self._closed:
            return
        try:
            self.checkpoint()
            with self._io_lock, self._sync_lock, self._journal_lock:
                self._closed = True
                self._journal.close()
                for log in self._logs.values():
                    log.write_indexes(seal=True)
                if self._owned is None:
                    self._leave_clean()
        except OSError as error:
            raise storage_error(self.data_dir, error, "closing") from error
        finally:
            self._closed = True
            self._close_files()
            if self._lock is not None:
                self._lock.release()

    def _leave_clean(self) -> None:
        fs, directory = self._fs, self._journal_dir
        for name in fs.listdir(directory):
            path = directory / name
            if name == SPARE_JOURNAL or (parse_journal(name) is not None and path not in self._kept):
                fs.remove(path)
        if fs.listdir(directory):
            return
        # A Kafka broker refuses a data directory with a directory in it that is no partition.
        fs.rmdir(directory)
        fs.fsync_dir(self.data_dir)
        if not self.failed_partitions:
            atomic_write(fs, self.data_dir / CLEAN_SHUTDOWN_FILE, CLEAN_SHUTDOWN_MARK)

    def _close_files(self) -> None:
        for log in self._logs.values():
            log.close()
        for journal in (*self._retired, self._journal):
            journal.close()

    # -------------------------------------------------------------- state

    @property
    def failed(self) -> StorageError | None:
        """Why appends are refused until `repair`, or None."""
        return self._failed

    @property
    def journal_bytes(self) -> int:
        """What the journals hold that no checkpoint has made superfluous yet."""
        return self._journal.size_bytes + sum(journal.size_bytes for journal in self._retired)

    @property
    def pending_bytes(self) -> int:
        """What waits in memory for its segments."""
        return self._pending.size_bytes

    def _check_open(self) -> None:
        if self._closed:
            raise StorageFailed(self.data_dir, "the log is closed")

    def _check(self) -> None:
        self._check_open()
        if self._failed is not None:
            raise StorageFailed(self.data_dir, f"an earlier write failed ({self._failed})")

    def _fail(self, path: Path, error: OSError, doing: str) -> StorageError:
        self._failed = storage_error(path, error, doing)
        return self._failed

    def partitions_on_disk(self) -> list[int]:
        """The partitions that have a directory or something to write into one, sorted; of a share, its own."""
        if self._owned is not None:
            return sorted(self._owned)
        try:
            found = partitions_on_disk(self._fs, self.data_dir, self.settings.topic)
        except OSError as error:
            raise storage_error(self.data_dir, error, "listing") from error
        return sorted({*found, *self._ends})

    def end_offset(self, partition: int) -> int:
        """The base offset of the partition's next batch. Takes no lock, and so never waits for a disk.

        Raises CorruptLog for a failed partition, NotOwned for one of another node.
        """
        end = self._ends.get(partition)
        if end is None:
            self._check_usable(partition)
            return 0
        return end

    def _check_usable(self, partition: int) -> None:
        if partition in self.failed_partitions:
            raise self.failed_partitions[partition]
        if self._owned is not None and partition not in self._owned:
            raise NotOwned(self.data_dir, partition)

    def log(self, partition: int) -> PartitionLog:
        """The log of a partition, in which queued batches are not yet; a new one is written at first append.

        Valid until `repair`. Raises CorruptLog for a failed partition, NotOwned for one of another node.
        """
        self._check_usable(partition)
        log = self._logs.get(partition)
        if log is None:
            settings = self.settings
            directory = partition_dir(self.data_dir, settings.topic, partition)
            log = PartitionLog(self._fs, directory, partition, settings, self._topic_id)
            log = self._logs.setdefault(partition, log)
        return log

    # -------------------------------------------------------------- writing

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        """Accept batches: `(partition, base offset, batch)`, each at its partition's `end_offset`.

        With `sync` they are on disk on return, else in the page cache, where a crash of the process does
        not reach them. Either all are accepted or none. Raises ValueError for a wrong offset; CorruptLog
        for a failed partition, NotOwned for one of another node; StorageFull, StorageError when writing
        fails: then StorageFailed for every later append, until `repair`.
        """
        if not entries:
            return
        self._check()
        with self._journal_lock:
            self._check()
            ends = self._new_ends(entries)
            flush = self._flush + 1
            journal = self._journal
            # A durable write covers its own bytes only: frames before it that are not on disk go first.
            all_synced = self._synced_flush == self._flush
            try:
                journal.append(flush, self._synced_flush, entries, durable=sync and all_synced)
                if sync and not all_synced:
                    for unsynced in (*self._retired, journal):
                        unsynced.sync()
            except OSError as error:
                raise self._fail(journal.path, error, "appending") from error
            self._flush = flush
            if sync:
                self._synced_flush = flush
            self._ends.update(ends)
            self._pending.add(entries)

    def _new_ends(self, entries: Sequence[Entry]) -> dict[int, int]:
        ends: dict[int, int] = {}
        for partition, base_offset, batch in entries:
            end = ends.get(partition)
            if end is None:
                end = self.end_offset(partition)
            if base_offset != end:
                raise ValueError(f"partition {partition}: base offset {base_offset}, the log ends at {end}")
            ends[partition] = base_offset + int(_LAST_OFFSET_DELTA.unpack_from(batch, 23)[0]) + 1
        return ends

    def sync(self) -> None:
        """Make everything durable that was accepted before the call; appends go on meanwhile.

        Raises StorageError; then appends fail until `repair`.
        """
        with self._sync_lock:
            with self._journal_lock:
                self._check()
                flush = self._flush
                journals = [*self._retired, self._journal]
            for journal in journals:
                if journal.unsynced:
                    try:
                        journal.sync()
                    except OSError as error:
                        raise self._fail(journal.path, error, "syncing") from error
            with self._journal_lock:
                self._synced_flush = max(self._synced_flush, flush)

    def write_behind(self, max_bytes: int | None = None) -> int:
        """Put queued batches into their segments, in the page cache; at least `max_bytes`, if so many wait.

        Returns how many bytes were written. Raises StorageFull and StorageError; what was not written
        stays in the queue, safe in the journal, and can be tried again.
        """
        with self._io_lock:
            self._check()
            return self._write_behind(max_bytes)

    def _write_behind(self, max_bytes: int | None) -> int:
        written = 0
        while max_bytes is None or written < max_bytes:
            partition = self._pending.oldest()
            if partition is None:
                break
            written += self._drain(partition)
        return written

    def _drain(self, partition: int) -> int:
        """Write a partition's queue; `_io_lock` is held, so nobody reads what is in neither place."""
        with self._journal_lock:
            batches = self._pending.take(partition)
        log = self.log(partition)
        try:
            log.append_all(batches)
        finally:
            end = log.end_offset
            count = sum(batch_offsets(batch)[1] <= end for batch in batches)
            with self._journal_lock:
                size = self._pending.written(partition, batches, count)
        return size

    def checkpoint(self) -> None:
        """Bring everything accepted so far into the segments and sync them; older journals go.

        Appends go on meanwhile, into a new journal. Raises StorageFull and StorageError. After a failed
        sync appends fail until `repair`; after another error, such as a full disk, they go on.
        """
        with self._io_lock:
            self._check()
            # Read without the lock: an append that comes now belongs to the next checkpoint.
            if not self.journal_bytes:
                return
            try:
                flush = self._rotate()
                self._write_behind(None)
                for log in self._logs.values():
                    log.write_indexes()
                self._sync_segments()
                self._remove_retired(flush)
            except OSError as error:
                raise storage_error(self.data_dir, error, "a checkpoint") from error

    def _rotate(self) -> int:
        """Let appends go on in a new journal; returns the last flush of the old one."""
        with self._journal_lock:
            # Where the last checkpoint failed after this, nothing may have come since.
            if not self._journal.size_bytes:
                return self._flush
        journal = Journal.create(
            self._fs,
            self._journal_dir,
            self._journal.number + 1,
            step_bytes=self.settings.journal_step_bytes,
        )
        with self._journal_lock:
            self._retired.append(self._journal)
            self._journal = journal
            return self._flush

    def _sync_segments(self) -> None:
        for log in self._logs.values():
            if log.dirty:
                self._fsync(log)
        self._points = note_recovery_points(
            self._fs, self.notes_dir, self._points, self._logs.values(), self.settings.topic
        )

    def _fsync(self, log: PartitionLog) -> None:
        try:
            log.fsync()
        except OSError as error:
            # Pages of a failed sync may be lost and still look clean: only the journal helps now.
            raise self._fail(log.directory, error, "syncing") from error

    def _remove_retired(self, flush: int) -> None:
        with self._sync_lock:
            with self._journal_lock:
                retired, self._retired = self._retired, []
                self._synced_flush = max(self._synced_flush, flush)
            for journal in retired:
                journal.close()
                retire(self._fs, journal.path, spare_bytes_max=self.settings.journal_spare_bytes_max)
            self._fs.fsync_dir(self._journal_dir)

    # -------------------------------------------------------------- cleaning

    def rolled_logs(self) -> list[RolledLog]:
        """Of each partition the segments that nobody writes to any more and that are on disk for good."""
        with self._io_lock:
            self._check()
            logs = [(self._points.get((self.settings.topic, p), 0), log) for p, log in self._logs.items()]
            return [rolled for point, log in logs if (rolled := rolled_log(log, point)) is not None]

    def replace_segments(self, rolled: RolledLog, base_offsets: Sequence[int]) -> bool:
        """Put a cleaned segment in the place of those it was made from; durable on return.

        False, and nothing is done, where the log is not this node's any more or was opened again since. Raises
        StorageError; then appends fail until `repair`.
        """
        with self._io_lock:
            self._check()
            if not self.has(rolled):
                return False
            try:
                rolled.log.replace(base_offsets)
            except OSError as error:
                raise self._fail(rolled.log.directory, error, "swapping in a cleaned segment") from error
            return True

    def remove_cleaned(self, rolled: RolledLog) -> None:
        """Remove the files of a cleaning that was given up, if the log is still this node's."""
        with self._io_lock:
            if self.has(rolled):
                try:
                    remove_cleaned(self._fs, rolled.log.directory, rolled.base_offsets)
                except OSError as error:
                    raise storage_error(rolled.log.directory, error, "giving up a cleaning") from error

    def has(self, rolled: RolledLog) -> bool:
        """Whether this is a log as it is used now, and not as it was before a repair, a release or the end."""
        return not self._closed and self._logs.get(rolled.partition) is rolled.log

    # -------------------------------------------------------------- a share's partitions

    def adopt(self, partition: int, recovery_point: int = 0, position: Position | None = None) -> None:
        """Open a partition that nobody else works on; it is on disk up to `recovery_point`, at `position`.

        Whoever had it last has released it, or was settled: what is derived from its segments is whole, too.
        Does nothing for one that this node has. Raises CorruptLog, and lists it in `failed_partitions`; and
        StorageError, which leaves the partition alone and can be tried again.
        """
        assert self._owned is not None, "this manager has the whole directory"
        with self._io_lock:
            self._check()
            if partition in self._owned:
                return
            directory = partition_dir(self.data_dir, self.settings.topic, partition)
            log = PartitionLog(self._fs, directory, partition, self.settings, self._topic_id)
            try:
                self.cuts += tuple(recover_log(self._fs, log, recovery_point, position, clean=True))
                if log.dirty:
                    log.fsync()
            except CorruptLog as error:
                self.failed_partitions[partition] = error
                raise
            except OSError as error:
                log.close()
                raise storage_error(directory, error, "adopting a partition") from error
            with self._journal_lock:
                self._owned.add(partition)
                self._points[self.settings.topic, partition] = log.end_offset
                self._logs[partition] = log
                self._ends[partition] = log.end_offset

    def release(self, partition: int) -> Position | None:
        """Bring all that was accepted of a partition into its segments, synced, and have it no longer.

        Nobody may append to it any more. Returns where it ends on disk, for whoever adopts it; None when
        there is nothing of it, or when it was failed. Raises StorageError; then it is still this node's.
        """
        assert self._owned is not None, "this manager has the whole directory"
        with self._io_lock:
            if self.failed_partitions.pop(partition, None) is not None or partition not in self._owned:
                self._owned.discard(partition)
                return None
            self._check()
            if partition in self._pending:
                self._drain(partition)
            log = self.log(partition)
            try:
                log.write_indexes(seal=True)
            except OSError as error:
                raise storage_error(log.directory, error, "releasing a partition") from error
            if log.dirty:
                self._fsync(log)
            with self._journal_lock:
                self._owned.discard(partition)
                self._ends.pop(partition, None)
                self._logs.pop(partition, None)
                self._points.pop((self.settings.topic, partition), None)
            log.close()
            return position_of(log)

    # -------------------------------------------------------------- reading

    def read(self, partition: int, start_offset: int, max_bytes: int) -> tuple[bytes, int]:
        """Whole batches of a partition and the offset to read from next; see `PartitionLog.read`.

        Its queue is written first, so everything accepted is there. Raises CorruptLog, StorageFailed, and
        StorageError.
        """
        with self._io_lock:
            self._check()
            if partition in self._pending:
                self._drain(partition)
            return self.log(partition).read(start_offset, max_bytes)

    def locate(self, partition: int, offset: int) -> tuple[Path, int]:
        """The file and the byte at which a batch that was read starts. Raises CorruptLog and StorageError."""
        with self._io_lock:
            try:
                return self.log(partition).locate(offset)
            except OSError as error:
                raise storage_error(self.data_dir, error, "reading") from error
