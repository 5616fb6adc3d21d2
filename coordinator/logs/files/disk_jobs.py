# SPDX-License-Identifier: Apache-2.0
"""The periodic jobs of the io thread: write-behind, checkpoints, and the syncs of `log.flush = interval`."""

from contextlib import suppress

from coordinator.logs.files.file_log import FileLog
from coordinator.runtime.clock import Clock
from coordinator.runtime.io_thread import BlockingCallQueue
from coordinator.runtime.periodic_jobs import End
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from storage.disk.filesystem import Space
from storage.errors import LogNotWritable

log = get_logger("node")


class DiskJobs:
    """The disk jobs for the scheduler; a job after which the log refuses appends begins its repair."""

    def __init__(
        self,
        file_log: FileLog,
        io: BlockingCallQueue,
        clock: Clock,
        checkpoint_bytes: int,
    ) -> None:
        self._log = file_log.files
        self._repair_if_refusing = file_log.repair_if_refusing
        self._io = io
        self._checkpoint_bytes = checkpoint_bytes
        self._incidents = Incidents(log, clock.mono_ms)
        self.space: Space | None = None
        """The room on the disk when it was last read; None if it never could be."""
        self._look_for_space()

    def write_behind(self, on_end: End) -> None:
        """Write the waiting records into the segments, or take a checkpoint if the journal has grown large."""
        if self._log.journal_bytes > self._checkpoint_bytes:
            self.checkpoint(on_end)
        else:
            self._io.submit_with_callback(
                self._write_segments, lambda result: on_end(self._failed("segments", result))
            )

    def _look_for_space(self) -> None:
        with suppress(OSError):  # which other jobs will report
            self.space = self._log.file_system.space(self._log.data_dir)

    def _write_segments(self) -> int:
        self._look_for_space()
        # If nothing waits for the disk, nothing else would show that the files are gone.
        if self._log.append_failure is None:
            self._log.check_journals_present()
        return self._log.write_behind() if self._log.pending_segment_bytes else 0

    def checkpoint(self, end: End) -> None:
        """Sync the segments, and begin a new journal."""
        if not self._log.journal_bytes:
            end(False)
            return
        self._io.submit_with_callback(
            self._log.checkpoint_journal, lambda result: end(self._failed("checkpoint", result))
        )

    def sync(self, end: End) -> None:
        """Sync the journal to disk."""
        self._io.submit_with_callback(self._log.sync, lambda result: end(self._failed("sync", result)))

    def _failed(self, what: str, result: object) -> bool:
        """Return whether a job failed, and have the log repaired if it must be."""
        if not isinstance(result, BaseException):
            self._incidents.end_incident(what, "writing to disk succeeds again", what=what)
            return False
        # Nothing is lost: the journal holds what the segments lack, and the next try comes by the clock.
        if not isinstance(result, LogNotWritable):  # else an earlier failure is in the log already
            self._incidents.log_repeated_failure(
                what, "writing to disk failed", what=what, reason=str(result)
            )
        # If a sync failed, appends are refused until the repair, and there may be none for a while.
        self._repair_if_refusing()
        return True
