# SPDX-License-Identifier: Apache-2.0
"""A node's journals: the one being written, and older ones that no checkpoint has made superfluous yet."""

from collections.abc import Sequence
from threading import Lock

from storage.health import Health
from storage.journal.journal import Entry, Journal, remove_or_recycle
from storage.journal.node_data_directory import NodeDataDirectory


class Journals:
    """Numbers the flushes, and knows up to which flush all are on disk.

    Two locks, taken in this order: `sync_lock` for journals that may be removed, `lock` for the one being
    written. A caller that takes `lock` for a part of an append must not sync under it.
    """

    __slots__ = (
        "_current",
        "_directory",
        "_health",
        "_kept",
        "_retired",
        "_synced_flush",
        "flush",
        "lock",
        "sync_lock",
    )

    def __init__(self, directory: NodeDataDirectory, health: Health) -> None:
        self.lock = Lock()
        self.sync_lock = Lock()
        self.flush = 0
        """The newest flush that was accepted."""
        self._directory = directory
        self._health = health
        self._synced_flush = 0
        self._current: Journal
        self._retired: list[Journal] = []
        self._kept: dict[int, bytes] = {}

    def switch_to_journal(
        self, journal: Journal, flush: int, salts_of_kept_journals: dict[int, bytes]
    ) -> None:
        """Continue in a new journal, with everything up to `flush` on disk; both locks are held.

        `salts_of_kept_journals` has the salts, by number, of older journals that must stay.
        """
        self._current, self._retired, self._kept = journal, [], salts_of_kept_journals
        self.flush = self._synced_flush = flush

    def _in_use(self) -> dict[int, bytes]:
        journals = (*self._retired, self._current)
        return self._kept | {journal.number: journal.salt for journal in journals}

    def check_files_present(self) -> None:
        """Raise StorageError if a journal was removed; then the log has failed. Raises LogNotWritable."""
        with self.lock:
            self._health.check()
            for journal in (*self._retired, self._current):
                try:
                    journal.check_file_present()
                except OSError as error:
                    raise self._health.record_failure(
                        journal.path, error, "looking for the journal"
                    ) from error

    @property
    def size_bytes(self) -> int:
        """The bytes in the journals that no checkpoint has made superfluous yet."""
        return self._current.size_bytes + sum(journal.size_bytes for journal in self._retired)

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        """Append a flush, with `sync` durably; `lock` is held.

        Raises StorageError; then the log has failed.
        """
        flush, journal = self.flush + 1, self._current
        # A durable write covers only its own bytes, so it is used only if all earlier frames are on disk.
        all_synced = self._synced_flush == self.flush
        try:
            journal.append(flush, self._synced_flush, entries, durable=sync and all_synced)
            if sync and not all_synced:
                for unsynced in (*self._retired, journal):
                    unsynced.sync()
        except OSError as error:
            raise self._health.record_failure(journal.path, error, "appending") from error
        self.flush = flush
        if sync:
            self._synced_flush = flush

    def sync(self) -> None:
        """Make everything durable that was accepted before the call; appends go on meanwhile.

        Raises LogNotWritable, and StorageError; then the log has failed.
        """
        with self.sync_lock:
            with self.lock:
                self._health.check()
                flush = self.flush
                journals = [*self._retired, self._current]
            for journal in journals:
                if journal.unsynced:
                    try:
                        journal.sync()
                    except OSError as error:
                        raise self._health.record_failure(journal.path, error, "syncing") from error
            with self.lock:
                self._synced_flush = max(self._synced_flush, flush)

    def rotate_and_get_last_flush(self) -> int:
        """Continue appends in a new journal; return the last flush of the old one. Raises OSError."""
        with self.lock:
            # If the last checkpoint failed after its rotation, the new journal may still be empty.
            if not self._current.size_bytes:
                return self.flush
        directory = self._directory
        journal = Journal.create(
            directory.fs,
            directory.journal_dir,
            self._current.number + 1,
            step_bytes=directory.settings.journal_step_bytes,
        )
        try:
            # Before the new journal accepts a flush.
            directory.in_use.write_journals_in_use(self._in_use() | {journal.number: journal.salt})
        except BaseException:
            journal.close()
            raise
        with self.lock:
            self._retired.append(self._current)
            self._current = journal
            return self.flush

    def remove_all_retired(self, flush: int) -> None:
        """Remove older journals, because the segments hold everything up to `flush` on disk. Raises OSError."""
        fs, settings = self._directory.fs, self._directory.settings
        with self.sync_lock:
            with self.lock:
                retired, self._retired = self._retired, []
                self._synced_flush = max(self._synced_flush, flush)
            # Before any journal is removed, so that a start misses none.
            self._directory.in_use.write_journals_in_use(self._in_use())
            for journal in retired:
                journal.close()
                remove_or_recycle(fs, journal.path, spare_bytes_max=settings.journal_spare_bytes_max)
            fs.fsync_dir(self._directory.journal_dir)

    def close(self) -> None:
        """Close the files of all journals."""
        for journal in (*self._retired, self._current):
            journal.close()
