# SPDX-License-Identifier: Apache-2.0
"""Chooses the dirtiest log, has it cleaned, and swaps the result in (Kafka's LogCleaner).

The cleaner notes the offset up to which each log was cleaned in `cleaner-offset-checkpoint`, the file that a
broker's cleaner uses too, so that either continues where the other has stopped.
"""

import contextlib
from collections.abc import Callable

import msgspec

from protocol.newtypes import Offset, Partition
from storage.cleaner.child import ChildRunner
from storage.cleaner.partition_cleaning import CleaningAborted, CleaningJob, CleaningResult, OffsetMapTooSmall
from storage.cleaner.plan import Candidate, CleanerSettings, find_cleanable_part, make_cleaning_job
from storage.disk.checkpoint_file import TopicPartition, read_highest_offsets, write_offsets
from storage.disk.layout import CLEANER_OFFSET_FILE, journal_dirs
from storage.errors import CorruptLog, StorageError, storage_error
from storage.log_manager import LogManager

Runner = Callable[[CleaningJob], CleaningResult]


class CompletedCleaning(msgspec.Struct, frozen=True):
    """The result of one cleaning."""

    partition: Partition
    end_offset: Offset
    bytes_before: int
    bytes_after: int
    records_before: int
    records_after: int


class CleaningFailed(StorageError):
    """A log could not be cleaned; it is unchanged, and not tried again before the node starts again."""

    def __init__(self, partition: Partition, reason: str) -> None:
        super().__init__(f"partition {partition}", reason)
        self.partition = partition


class LogCleaner:
    """Cleans the logs of a manager, one at a time. Except for `stop`, one thread at a time may use it."""

    def __init__(
        self,
        manager: LogManager,
        settings: CleanerSettings,
        run: Runner | None,
        now_ms: Callable[[], int],
    ) -> None:
        self.max_dirty_ratio = 0.0
        """The dirty ratio of the dirtiest log, at the last check."""
        self.uncleanable: dict[Partition, str] = {}
        """Partitions whose cleaning failed, and why."""
        self._manager = manager
        self._settings = settings
        self._child = ChildRunner()
        self._run = run or self._child
        self._now_ms = now_ms
        self._fs = manager.file_system
        self._noted: dict[TopicPartition, Offset] | None = None
        # The logs that an open transaction keeps from being cleaned: the bound of the last attempt.
        self._stuck: dict[Partition, int] = {}

    def stop(self) -> None:
        """Abort the cleaning under way; from any thread."""
        self._child.stop()

    def clean_dirtiest(self) -> CompletedCleaning | None:
        """Clean the log that needs it most; return None if none does.

        Raises CleaningFailed for a log that cannot be cleaned, and other StorageErrors, after which the cleaning
        can be tried again.
        """
        try:
            found = self._dirtiest()
            return None if found is None else self._clean(found)
        except OSError as error:
            raise storage_error(self._manager.data_dir, error, "cleaning") from error

    def _dirtiest(self) -> Candidate | None:
        """Return the log to clean next, or None (LogCleanerManager.grabFilthiestCompactedLog)."""
        now_ms, settings = self._now_ms(), self._settings
        found = [
            find_cleanable_part(rolled, self._offset(rolled.partition), settings, now_ms)
            for rolled in self._manager.find_rolled_segments()
            if rolled.partition not in self.uncleanable and self._stuck.get(rolled.partition) != rolled.bound
        ]
        self.max_dirty_ratio = max((each.dirty_ratio for each in found), default=0.0)
        due = [
            each
            for each in found
            if each.dirty_bytes and (each.is_due or each.dirty_ratio > settings.min_cleanable_dirty_ratio)
        ]
        return max(due, key=lambda each: each.dirty_ratio, default=None)

    def _clean(self, found: Candidate) -> CompletedCleaning | None:
        manager, rolled = self._manager, found.rolled
        manager.remove_abandoned_cleaning(rolled)
        try:
            result = self._work(found)
            # In order, each on disk before the next: a tombstone may go only after the records that it removes.
            for cleaned in result.segments:
                if not manager.replace_segments(rolled, cleaned.base_offsets):
                    return None
        except CleaningAborted:
            return None
        finally:
            # Files that were not swapped in must not fill the disk.
            with contextlib.suppress(StorageError):
                manager.remove_abandoned_cleaning(rolled)
        if not result.segments:
            self._stuck[rolled.partition] = rolled.bound
            return None
        self._note(rolled.partition, result.end_offset)
        return CompletedCleaning(
            rolled.partition,
            result.end_offset,
            sum(cleaned.bytes_before for cleaned in result.segments),
            sum(cleaned.bytes_after for cleaned in result.segments),
            sum(cleaned.records_before for cleaned in result.segments),
            sum(cleaned.records_after for cleaned in result.segments),
        )

    def _work(self, found: Candidate) -> CleaningResult:
        settings = self._manager.settings
        try:
            return self._run(
                make_cleaning_job(
                    found,
                    self._settings,
                    self._now_ms(),
                    segment_bytes=settings.segment_bytes,
                    index_interval_bytes=settings.index_interval_bytes,
                )
            )
        except (CorruptLog, OffsetMapTooSmall) as error:
            partition = found.rolled.partition
            self.uncleanable[partition] = str(error)
            raise CleaningFailed(partition, str(error)) from error

    # --- up to where each log was cleaned ---

    def _offset(self, partition: Partition) -> Offset | None:
        key = (self._manager.settings.topic, partition)
        if self._noted is None or key not in self._noted:
            self._noted = self._read()
        return self._noted.setdefault(key, Offset(-1))

    def _read(self) -> dict[TopicPartition, Offset]:
        """Return the highest offsets noted by us, by a broker, or by other nodes that had a partition."""
        data_dir = self._manager.data_dir
        directories = (data_dir, *journal_dirs(self._fs.listdir(data_dir), data_dir))
        return read_highest_offsets(self._fs, directories, CLEANER_OFFSET_FILE) | (self._noted or {})

    def _note(self, partition: Partition, offset: Offset) -> None:
        assert self._noted is not None
        self._noted[self._manager.settings.topic, partition] = offset
        known = {key: each for key, each in self._noted.items() if each >= 0}
        write_offsets(self._fs, self._manager.recovery_point_directory / CLEANER_OFFSET_FILE, known)
