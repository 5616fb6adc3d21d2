# SPDX-License-Identifier: Apache-2.0
"""All logs of a node behind one door: durable through the journal, on disk in Kafka's segments.

An append is one frame in the journal. Its batches wait in memory until `write_behind` puts them into
their segments, many at a time; `checkpoint` syncs the segments, and then the journal is needed no more.

Three locks, always taken in this order: `_io_lock` for everything that touches segments, `_sync_lock`
for journals that may go away, `_journal_lock` for the journal that is written and for the queues. An
append takes only the last one, and nobody syncs under it but an append that asks for that.
"""

import uuid
from collections.abc import Sequence
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Final

from storage.errors import CorruptLog, StorageError, StorageFailed, storage_error
from storage.filesystem import FileSystem, RealFileSystem, atomic_write, read_file
from storage.journal import Entry, Journal, retire
from storage.layout import (
    CLEAN_SHUTDOWN_FILE,
    JOURNAL_DIR,
    PARTITION_METADATA_FILE,
    SPARE_JOURNAL,
    parse_journal,
    partition_dir,
)
from storage.lock import DirectoryLock
from storage.log import PartitionLog, batch_offsets
from storage.pending import PendingBatches
from storage.properties import decode_uuid
from storage.recovery import Cut, note_recovery_points, partitions_on_disk, recover
from storage.settings import LogSettings

__all__ = ["Cut", "LogManager", "LogSettings"]

_LAST_OFFSET_DELTA: Final = Struct(">i")
_CLEAN_SHUTDOWN: Final = b'{"version":0,"brokerEpoch":-1}'


class LogManager:
    """Appends to, and reads from, all partitions of one data directory. Made by `open`; safe for threads."""

    def __init__(
        self, fs: FileSystem, data_dir: Path, settings: LogSettings, lock: DirectoryLock, topic_id: bytes
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
        self._io_lock = Lock()
        self._sync_lock = Lock()
        self._journal_lock = Lock()
        self._failed: StorageError | None = None
        self._closed = False
        self._logs: dict[int, PartitionLog] = {}
        self._ends: dict[int, int] = {}
        self._pending = PendingBatches()
        self._points: dict[tuple[str, int], int] = {}
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
            manager = cls(fs, data_dir, settings, lock, _topic_id(fs, data_dir, settings.topic))
            fs.remove(data_dir / CLEAN_SHUTDOWN_FILE)
            manager._recover(None)
        except BaseException as error:
            lock.release()
            if isinstance(error, OSError):
                raise storage_error(data_dir, error, "opening") from error
            raise
        return manager

    def _recover(self, last_flush: int | None) -> None:
        """Read everything from disk, make it durable in the segments, and start a new journal.

        All locks are held, or nobody else knows this manager yet.
        """
        fs, data_dir = self._fs, self.data_dir
        found = recover(fs, data_dir, self.settings, self._topic_id, last_flush=last_flush)
        try:
            for log in found.logs.values():
                if log.dirty:
                    log.fsync()
            points = note_recovery_points(
                fs, data_dir, found.recovery_points, found.logs.values(), self.settings.topic
            )
            journal_dir = data_dir / JOURNAL_DIR
            fs.mkdir(journal_dir)
            fs.fsync_dir(data_dir)
            journal = Journal.create(
                fs,
                journal_dir,
                found.journals[-1].number + 1 if found.journals else 1,
                step_bytes=self.settings.journal_step_bytes,
                void_from=found.last_flush + 1,
            )
            kept = found.journals_to_keep
            for old in found.journals:
                if old.path not in kept:
                    retire(fs, old.path, spare_bytes_max=self.settings.journal_spare_bytes_max)
            fs.fsync_dir(journal_dir)
        except BaseException:
            for log in found.logs.values():
                log.close()
            raise
        self._journal, self._retired, self._kept = journal, [], kept
        self._logs, self._points = found.logs, points
        self._ends = {partition: log.end_offset for partition, log in found.logs.items()}
        self._pending = PendingBatches()
        self._flush = self._synced_flush = found.last_flush
        self.failed_partitions, self.cuts = found.failed, tuple(found.cuts)

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
        recovers it. Does nothing the second time.
        """
        if self._closed:
            return
        try:
            self.checkpoint()
            with self._io_lock, self._sync_lock, self._journal_lock:
                self._closed = True
                self._journal.close()
                self._leave_clean()
        except OSError as error:
            raise storage_error(self.data_dir, error, "closing") from error
        finally:
            self._closed = True
            self._close_files()
            self._lock.release()

    def _leave_clean(self) -> None:
        fs = self._fs
        journal_dir = self.data_dir / JOURNAL_DIR
        for name in fs.listdir(journal_dir):
            path = journal_dir / name
            if name == SPARE_JOURNAL or (parse_journal(name) is not None and path not in self._kept):
                fs.remove(path)
        if fs.listdir(journal_dir):
            return
        # A Kafka broker refuses a data directory with a directory in it that is no partition.
        fs.rmdir(journal_dir)
        fs.fsync_dir(self.data_dir)
        if not self.failed_partitions:
            atomic_write(fs, self.data_dir / CLEAN_SHUTDOWN_FILE, _CLEAN_SHUTDOWN)

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
        """The partitions that have a directory or something to write into one, sorted."""
        try:
            found = partitions_on_disk(self._fs, self.data_dir, self.settings.topic)
        except OSError as error:
            raise storage_error(self.data_dir, error, "listing") from error
        return sorted({*found, *self._ends})

    def end_offset(self, partition: int) -> int:
        """The base offset of the partition's next batch. Takes no lock, and so never waits for a disk.

        Raises CorruptLog for a failed partition.
        """
        end = self._ends.get(partition)
        if end is None:
            if partition in self.failed_partitions:
                raise self.failed_partitions[partition]
            return 0
        return end

    def log(self, partition: int) -> PartitionLog:
        """The log of a partition, in which queued batches are not yet; a new one is written at first append.

        Valid until `repair`. Raises CorruptLog for a failed partition.
        """
        if partition in self.failed_partitions:
            raise self.failed_partitions[partition]
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
        for a failed partition; StorageFull, StorageError when writing fails: then StorageFailed for
        every later append, until `repair`.
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
            self.data_dir / JOURNAL_DIR,
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
                try:
                    log.fsync()
                except OSError as error:
                    # Pages of a failed sync may be lost and still look clean: only the journal helps now.
                    raise self._fail(log.directory, error, "syncing") from error
        self._points = note_recovery_points(
            self._fs, self.data_dir, self._points, self._logs.values(), self.settings.topic
        )

    def _remove_retired(self, flush: int) -> None:
        with self._sync_lock:
            with self._journal_lock:
                retired, self._retired = self._retired, []
                self._synced_flush = max(self._synced_flush, flush)
            for journal in retired:
                journal.close()
                retire(self._fs, journal.path, spare_bytes_max=self.settings.journal_spare_bytes_max)
            self._fs.fsync_dir(self.data_dir / JOURNAL_DIR)

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


def _topic_id(fs: FileSystem, data_dir: Path, topic: str) -> bytes:
    """The topic's id, as the first partition on disk says; a new one if there is none."""
    for partition in partitions_on_disk(fs, data_dir, topic):
        path = partition_dir(data_dir, topic, partition) / PARTITION_METADATA_FILE
        try:
            lines = read_file(fs, path).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            continue
        for line in lines:
            if line.startswith("topic_id:"):
                try:
                    return decode_uuid(line.partition(":")[2].strip())
                except ValueError:
                    break
    return uuid.uuid4().bytes
