# SPDX-License-Identifier: Apache-2.0
"""The upkeep of a log in files: write-behind, checkpoints, syncs and compaction, and its state for operators."""

from collections.abc import Sequence
from typing import Final

from coordinator.logs.files.cleaner_task import CleanerTask, cleaner_settings
from coordinator.logs.files.disk_jobs import DiskJobs
from coordinator.logs.files.file_log import FileLog
from coordinator.logs.node_log import LogJob, PartitionLogSize
from coordinator.node_runtime import NodeRuntime
from coordinator.runtime.periodic_jobs import End
from protocol.newtypes import Partition
from storage.cleaner.log_cleaner import LogCleaner
from storage.disk.filesystem import Space
from storage.errors import StorageError

WRITE_BEHIND_INTERVAL_MS: Final = 500


class FileLogUpkeep:
    """The LogUpkeep of a FileLog."""

    def __init__(self, file_log: FileLog, runtime: NodeRuntime) -> None:
        settings, machine = runtime.settings, runtime.machine
        self._files = file_log.files
        self._settings = settings
        self._loop = runtime.loop
        self.disk_jobs = DiskJobs(file_log, runtime.io, machine.clock, settings.journal_checkpoint_bytes)
        self.cleaner = CleanerTask(
            LogCleaner(file_log.files, cleaner_settings(settings), machine.compact, machine.clock.wall_ms),
            machine.thread(runtime.loop, "groupkeeper-cleaner"),
            file_log,
            machine.clock,
            runtime.stats,
        )

    @property
    def space(self) -> Space | None:
        """The space on the disk when it was last read."""
        return self.disk_jobs.space

    @property
    def journal_bytes(self) -> int:
        """The bytes in the journals that no checkpoint has made superfluous yet."""
        return self._files.journal_bytes

    @property
    def refusal_reason(self) -> str | None:
        """The error after which the log must be repaired; None if it takes appends."""
        failure = self._files.append_failure
        return None if failure is None else str(failure)

    def list_jobs(self) -> Sequence[LogJob]:
        """Return the jobs that the settings ask for."""
        settings, jobs = self._settings, self.disk_jobs
        found = [
            LogJob("write_behind", WRITE_BEHIND_INTERVAL_MS, jobs.write_behind),
            LogJob("checkpoint", settings.journal_checkpoint_interval_ms, jobs.checkpoint),
        ]
        if settings.log_cleaner_enable:
            found.append(LogJob("compact", settings.log_cleaner_backoff_ms, self._start_cleaning))
        if settings.log_flush == "interval":
            found.append(LogJob("sync", settings.log_flush_interval_ms, jobs.sync))
        return found

    def _start_cleaning(self, on_end: End) -> None:
        self.cleaner.start_cleaning_if_idle()
        on_end(False)

    def find_log_size(self, partition: Partition) -> PartitionLogSize | None:
        """Return the size of a partition's segments, and its log end offset; None if it cannot be read."""
        try:
            end_offset = self._files.end_offset(partition)
        except StorageError:
            return None
        return PartitionLogSize(self._files.size_bytes(partition), end_offset)

    async def stop_jobs(self) -> None:
        """Stop the cleaning that is under way, and wait until it has ended."""
        await self._loop.run_in_executor(None, self.cleaner.close)
