# SPDX-License-Identifier: Apache-2.0
"""The files under test as a log: a data directory on a disk that waits and fails when a test wants it to."""

import asyncio
from pathlib import Path

from coordinator.logs.files.committer import Committer, FlushMode
from coordinator.logs.files.file_log import ClaimedFilePartition, FileLog
from coordinator.logs.group_log import GroupLog
from coordinator.runtime.clock import SystemClock
from coordinator.runtime.io_thread import IoThread
from coordinator.telemetry.stats import Stats
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import SegmentPosition
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import partition_dir
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.shared_directory import SharedDirectoryFiles
from storage.settings import LogSettings
from tests.log_contract.subject import BATCH_BYTES_MAX, Subject
from tests.partitions.disk import SYNCS, Disk
from tests.partitions.running import eventually

SETTINGS = LogSettings(journal_step_bytes=16_384)
READ_BYTES_MAX = 500
"""So little that what is read comes in several pieces."""
ANY_JOURNAL = "/journal"


class FileSubject(Subject):
    """A node that has a directory for itself."""

    fails_apart = False
    mode = FlushMode.ALWAYS
    kind: type[FileLog] = FileLog

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._disk = Disk()
        self._threads: list[IoThread] = []
        super().__init__()

    def open(self) -> GroupLog:
        """Open the directory."""
        return self._file_log(LogManager.open(self._data_dir, SETTINGS, self._disk))

    def _file_log(self, manager: LogManager) -> FileLog:
        loop = asyncio.get_running_loop()
        io, flush = IoThread(loop, "io"), IoThread(loop, "flush")
        self._threads += [io, flush]
        clock, stats = SystemClock(), Stats()
        committer = Committer(
            loop,
            manager,
            flush,
            clock,
            stats,
            self.mode,
            batch_bytes_max=BATCH_BYTES_MAX,
            offset_value_version=3,
            compression=0,
        )
        file_log = self.kind(manager, committer, io, clock, stats, READ_BYTES_MAX)
        file_log.retry_s = 0.01
        return file_log

    async def close(self) -> None:
        """Let everything end that still runs."""
        self._disk.let_go()
        self._disk.heal()
        await super().close()
        for thread in self._threads:
            thread.close()

    async def successor(self, *partitions: Partition) -> GroupLog:
        """The node that opens the directory once the first one has closed it."""
        return await self.restart()

    def hold(self, partition: Partition) -> None:
        """Let the journal's writes wait."""
        self._disk.hold_back(SYNCS, ANY_JOURNAL)

    async def until_held(self, partition: Partition) -> None:
        """Wait for a write to the journal."""
        await eventually(lambda: self._disk.waiting, "a flush to reach the disk")

    def let_go(self, partition: Partition) -> None:
        """Let the journal be written."""
        self._disk.let_go()

    def fail_next(self, partition: Partition, *, kept: bool) -> None:
        """Let one write to the journal fail."""
        self._disk.fail(SYNCS, where=ANY_JOURNAL, times=1, after=kept)

    def break_down(self, partition: Partition) -> None:
        """Let all writes to journals fail."""
        self._disk.fail(SYNCS, where=ANY_JOURNAL)

    def mend(self, partition: Partition) -> None:
        """Let nothing fail."""
        self._disk.heal()

    async def plant(self, partition: Partition, batch: bytes) -> None:
        """Append to the partition's log as the committer does."""
        assert isinstance(self.log, FileLog)
        base_offset = int.from_bytes(batch[:8], "big")
        await self.log.run_in_io_thread(
            lambda: self._files.append([Entry(partition, Offset(base_offset), batch)], sync=True)
        )

    @property
    def _files(self) -> LogManager:
        assert isinstance(self.log, FileLog)
        return self.log.files

    def damage(self, partition: Partition) -> None:
        """Change a byte of the first batch in the partition's segment."""
        segment = partition_dir(self._data_dir, SETTINGS.topic, partition) / f"{0:020}.log"
        data = bytearray(segment.read_bytes())
        data[80] ^= 0xFF
        segment.write_bytes(data)

    async def restart(self) -> GroupLog:
        """Close the directory and open it again."""
        await self.log.close()
        self.log = self.watched(self.open())
        return self.log


class ShareLog(FileLog):
    """A node's part of a directory; where a partition ends is noted when the node gives it away."""

    shared: SharedDirectoryFiles

    async def claim(self, partition: Partition, leader_epoch: LeaderEpoch) -> ClaimedFilePartition:
        """Claim a partition where it ends on disk, as a worker does by its supervisor's order."""
        self.accept_partition(partition, *self.shared.get_partition_recovery_point(partition))
        return await super().claim(partition, leader_epoch)

    async def adopt(self, partition: Partition) -> None:
        """Open a partition for this node."""
        await self.run_in_io_thread(
            lambda: self.files.adopt(partition, *self.shared.get_partition_recovery_point(partition))
        )

    async def release(self, partition: Partition) -> SegmentPosition | None:
        """Close a partition, and note where it ends, as a supervisor does."""
        position = await super().release(partition)
        self.shared.save_release_position(partition, position)
        return position


class ShareSubject(FileSubject):
    """Nodes that share a directory, one after the other and side by side."""

    kind = ShareLog

    def __init__(self, data_dir: Path) -> None:
        self._directory, _ = SharedDirectoryFiles.open(data_dir, SETTINGS, RealFileSystem())
        self._nodes = 0
        super().__init__(data_dir)

    def open(self) -> GroupLog:
        """Start a node."""
        self._nodes += 1
        topic_id = self._directory.topic_id
        file_log = self._file_log(
            LogManager.open_in_shared_directory(self._data_dir, SETTINGS, topic_id, self._nodes, self._disk)
        )
        assert isinstance(file_log, ShareLog)
        file_log.shared = self._directory
        return file_log

    async def close(self) -> None:
        """End the nodes, and unlock the directory."""
        await super().close()
        self._directory.close(clean=False)

    async def successor(self, *partitions: Partition) -> GroupLog:
        """A second node beside the first."""
        return self.watched(self.open())

    async def plant(self, partition: Partition, batch: bytes) -> None:
        """Append as a node that has the partition."""
        assert isinstance(self.log, ShareLog)
        await self.log.adopt(partition)
        await super().plant(partition, batch)

    async def restart(self) -> GroupLog:
        """End the node, settle what it has left, and start another one."""
        await self.log.close()
        self._directory.replay_and_remove_node_journal(
            self._nodes, [Partition(number) for number in range(5)]
        )
        self.log = self.watched(self.open())
        return self.log
