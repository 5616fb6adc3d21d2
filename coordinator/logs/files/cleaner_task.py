# SPDX-License-Identifier: Apache-2.0
"""The task that looks every `log.cleaner.backoff.ms` for a log that needs compaction.

It waits in a thread of its own for the process that does the work, so that neither the event loop nor a
checkpoint waits for it.
"""

from coordinator.config import Settings
from coordinator.config.settings import RATE_MAX
from coordinator.logs.files.file_log import FileLog
from coordinator.runtime.clock import Clock
from coordinator.runtime.io_thread import BlockingCallThread
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from storage.cleaner.log_cleaner import CleaningFailed, CompletedCleaning, LogCleaner
from storage.cleaner.plan import CleanerSettings

log = get_logger("cleaner")


def cleaner_settings(settings: Settings) -> CleanerSettings:
    """Return the settings of a node that concern compaction."""
    rate = settings.log_cleaner_io_max_bytes_per_second
    return CleanerSettings(
        min_cleanable_dirty_ratio=settings.min_cleanable_dirty_ratio,
        delete_retention_ms=settings.delete_retention_ms,
        min_compaction_lag_ms=settings.min_compaction_lag_ms,
        max_compaction_lag_ms=settings.max_compaction_lag_ms,
        dedupe_buffer_bytes=settings.log_cleaner_dedupe_buffer_size,
        io_bytes_per_second=None if rate == RATE_MAX else rate,
    )


class CleanerTask:
    """Compacts one log after the other until none needs it; begins the repair of the log if it must be repaired."""

    def __init__(
        self,
        cleaner: LogCleaner,
        thread: BlockingCallThread,
        file_log: FileLog,
        clock: Clock,
        stats: Stats,
    ) -> None:
        self._file_log = file_log
        self._cleaner = cleaner
        self._clock = clock
        self._stats = stats
        self._thread = thread
        self._incidents = Incidents(log, clock.mono_ms)
        self._busy = False
        self._began_ms = 0
        self._closed = False

    def start_cleaning_if_idle(self) -> None:
        """Look for a log to compact, unless a run is under way."""
        if not self._busy and not self._closed:
            self._busy = True
            self._stats.cleaner_last_run_ms = self._clock.wall_ms()
            self._began_ms = self._clock.mono_ms()
            self._thread.submit_with_callback(self._cleaner.clean_dirtiest, self._done)

    def close(self) -> None:
        """Stop the run that is under way, and wait until it has ended."""
        self._closed = True
        self._cleaner.stop()
        self._thread.close()

    def _done(self, result: CompletedCleaning | BaseException | None) -> None:
        self._busy = False
        if self._closed:
            return
        stats = self._stats
        stats.dirty_ratio_max = self._cleaner.max_dirty_ratio
        stats.uncleanable_partitions = len(self._cleaner.uncleanable)
        if isinstance(result, BaseException):
            stats.cleaning_failures += 1
            if isinstance(result, CleaningFailed):
                log.error("a log cannot be compacted", reason=str(result))
            else:  # it is tried again
                self._incidents.log_repeated_failure(self, "compaction failed", reason=str(result))
            self._file_log.repair_if_refusing()
        elif result is not None:
            self._incidents.end_incident(self, "compaction succeeds again")
            stats.cleanings += 1
            stats.cleaned_bytes_freed += result.bytes_before - result.bytes_after
            stats.last_cleaned_ms = self._clock.wall_ms()
            log.info(
                "compacted partition",
                partition=result.partition,
                up_to=result.end_offset,
                bytes_before=result.bytes_before,
                bytes_after=result.bytes_after,
                records_before=result.records_before,
                records_after=result.records_after,
                milliseconds=self._clock.mono_ms() - self._began_ms,
            )
            # There may be another one, or another round of this one.
            self.start_cleaning_if_idle()
