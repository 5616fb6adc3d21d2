# SPDX-License-Identifier: Apache-2.0
"""Handles the files of a data directory that several nodes share, for their supervisor.

The supervisor decides which node has which partition; nothing here does.

Each node writes its own journal, and opens only the partitions that it has (`LogManager.open_in_shared_directory`).
Only this module writes the files of the whole directory: the lock, the recovery points, the clean mark.

A partition moves from a live node to the next by `release` at the first, `save_release_position` here and `adopt` at
the next. Once the process of a dead node has ended, `replay_and_remove_node_journal` writes the batches of its journal
to the segments; only then may another node adopt its partitions. So an adopted partition is always complete in its
segments, and a journal counts only while its node is alive or its replay is due.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import (
    SegmentPosition,
    TopicPartition,
    merge_node_offset_files,
    write_offsets,
    write_positions,
)
from storage.disk.filesystem import FileSystem
from storage.disk.layout import (
    CLEANER_OFFSET_FILE,
    POSITION_FILE,
    RECOVERY_POINT_FILE,
    journal_dir,
    journal_dirs,
    journal_list_path,
    partition_dir,
)
from storage.disk.lock import DirectoryLock
from storage.errors import CorruptLog, storage_error
from storage.journal.journal_registry import (
    consume_clean_mark,
    find_journal_directories,
    mark_clean_stop,
    read_journals_in_use,
    remove_gone_nodes_journals,
    write_registry_file,
)
from storage.partition.log import PartitionLog
from storage.recovery.log_recovery import DiscardedRange, log_end_position, recover_log
from storage.recovery.recovery import (
    PartitionRecoveryInputs,
    RecoveryAssumptions,
    find_or_generate_topic_id,
    recover,
    store_broker_end_offsets,
)
from storage.settings import LogSettings


class JournalReplayResult(msgspec.Struct, frozen=True):
    """The result of writing journals into the segments: partitions that cannot be used, and the ranges left out."""

    failed: dict[Partition, CorruptLog]
    cuts: Sequence[DiscardedRange]


class SharedDirectoryFiles:
    """A locked, shared data directory. All methods block and raise StorageError; for one thread at a time."""

    def __init__(self, fs: FileSystem, data_dir: Path, settings: LogSettings, lock: DirectoryLock) -> None:
        self.data_dir = data_dir
        self.settings = settings
        self.topic_id = b""
        self.failed: dict[Partition, CorruptLog] = {}
        """The partitions that no node may adopt: their logs, or their batches in journals, are damaged."""
        self.unread: dict[Partition, PartitionRecoveryInputs] = {}
        """The failed partitions that the disk could not read at the opening: `retry_partition_recovery` tries again."""
        self._fs = fs
        self._lock = lock
        self._points: dict[TopicPartition, Offset] = {}
        self._positions: dict[TopicPartition, SegmentPosition] = {}

    @classmethod
    def open(
        cls, data_dir: Path, settings: LogSettings, fs: FileSystem
    ) -> tuple["SharedDirectoryFiles", JournalReplayResult]:
        """Lock the directory (made if missing), and write the journals that nodes have left in it into the segments.

        Raises DirectoryLocked, CorruptLog if a journal is damaged, and StorageError.
        """
        lock = DirectoryLock.create_directory_and_acquire(fs, data_dir)
        shared = cls(fs, data_dir, settings, lock)
        try:
            shared.topic_id = find_or_generate_topic_id(fs, data_dir, settings.topic)
            as_left = consume_clean_mark(fs, data_dir)
            # The directory of a lone node counts even if it is gone; its list also shows who used the directory last.
            directories = dict.fromkeys(
                [journal_dir(data_dir, None), *find_journal_directories(fs, data_dir)]
            )
            given = RecoveryAssumptions(as_left=as_left, at_start=True)
            settled = shared._settle(list(directories), None, given)
            shared._note_use()
        except BaseException as error:
            lock.release()
            if isinstance(error, OSError):
                raise storage_error(data_dir, error, "opening") from error
            raise
        return shared, settled

    def lock_descriptors(self) -> tuple[int, ...]:
        """Return the lock's descriptors, for the nodes to inherit: the directory stays locked while one lives."""
        return self._lock.filenos()

    def get_partition_recovery_point(self, partition: Partition) -> tuple[Offset, SegmentPosition | None]:
        """Return a partition's recovery point and its position: the arguments of `LogManager.adopt`."""
        key = (self.settings.topic, partition)
        return self._points.get(key, Offset(0)), self._positions.get(key)

    def save_release_position(self, partition: Partition, position: SegmentPosition | None) -> None:
        """Note that a node has released a partition, which ends at `position`. Durable on return."""
        if position is None:
            return
        key = (self.settings.topic, partition)
        self._points[key] = position.offset
        self._positions[key] = position
        self._write()

    def replay_and_remove_node_journal(
        self, node_id: int, partitions: Collection[Partition]
    ) -> JournalReplayResult:
        """Write the batches in a gone node's journal into the segments of the partitions that it had.

        Durable on return, and the journal is removed. Raises CorruptLog if the journal is damaged: then nothing
        has changed, and no node may adopt these partitions.
        """
        directory = journal_dir(self.data_dir, node_id)
        try:
            return self._settle([directory], partitions, RecoveryAssumptions())
        except OSError as error:
            raise storage_error(directory, error, "settling a journal") from error

    def retry_partition_recovery(self, partition: Partition) -> JournalReplayResult:
        """Try again to read a partition of `unread`; if that succeeds any node may adopt it. Durable on return.

        Raises CorruptLog if it turns out to be damaged, and StorageError if it still cannot be read.
        """
        by = self.unread[partition]
        log = PartitionLog(
            self._fs,
            partition_dir(self.data_dir, self.settings.topic, partition),
            partition,
            self.settings,
            self.topic_id,
        )
        try:
            cuts = recover_log(self._fs, log, by.point, by.hint, by.entries, as_left=by.as_left)
            log.write_derived_files(seal=True)
            log.fsync()
            if not by.as_left:
                ends = {(self.settings.topic, partition): log.end_offset}
                store_broker_end_offsets(self._fs, self.data_dir, ends)
            log.store_segment_list()
        except CorruptLog as error:
            del self.unread[partition]
            self.failed[partition] = error
            raise
        except OSError as error:
            raise storage_error(error.filename or log.directory, error, "reading") from error
        finally:
            log.close_files()
        self._points[self.settings.topic, partition] = log.end_offset
        position = log_end_position(log)
        if position is not None:
            self._positions[self.settings.topic, partition] = position
        self._write()
        del self.failed[partition], self.unread[partition]
        return JournalReplayResult({}, cuts)

    def _note_use(self) -> None:
        """Write an empty list of journals if none is in use, so that from now on all writers are known."""
        directory = journal_dir(self.data_dir, None)
        note = read_journals_in_use(self._fs, journal_list_path(directory))
        if note is None or note.closed is not None:
            write_registry_file(self._fs, directory, {})

    def _settle(
        self,
        directories: Sequence[Path],
        partitions: Collection[Partition] | None,
        given: RecoveryAssumptions,
    ) -> JournalReplayResult:
        fs, topic = self._fs, self.settings.topic
        found = recover(
            fs,
            self.data_dir,
            self.settings,
            self.topic_id,
            journal_dirs=directories,
            partitions=partitions,
            given=given,
        )
        try:
            found.make_durable(topic, at_start=given.at_start, include_indexes=True)
            found.note_broker_writes(fs, self.data_dir, topic, at_start=given.at_start)
            for log in found.logs.values():
                position = log_end_position(log)
                found.recovery_points[topic, log.partition] = log.end_offset
                if position is not None:
                    found.positions[topic, log.partition] = position
        finally:
            found.close_logs()
        self._points = found.recovery_points
        self._positions = {key: found.positions[key] for key in found.positions if key in self._points}
        self._write()
        for log in found.logs.values():
            log.store_segment_list()
        # Only now: until here the notes in a node's own directory were the newest.
        self.failed |= found.failed
        self.unread |= found.unread
        merge_node_offset_files(fs, self.data_dir, directories, CLEANER_OFFSET_FILE)
        remove_gone_nodes_journals(fs, directories, found.find_journals_of_partitions(self.failed))
        return JournalReplayResult(found.failed, found.cuts)

    def _write(self) -> None:
        try:
            write_offsets(self._fs, self.data_dir / RECOVERY_POINT_FILE, self._points)
            write_positions(self._fs, self.data_dir / POSITION_FILE, self._positions)
        except OSError as error:
            raise storage_error(self.data_dir, error, "noting recovery points") from error

    def close(self, *, clean: bool) -> None:
        """Unlock the directory, and mark a clean stop if `clean` and if no partition failed and no journal is left.

        With `clean` every node has released all its partitions, and the journals of dead nodes have been replayed.
        """
        try:
            if clean and not self.failed and not journal_dirs(self._fs.listdir(self.data_dir), self.data_dir):
                mark_clean_stop(self._fs, self.data_dir, journal_dir(self.data_dir, None))
        except OSError as error:
            raise storage_error(self.data_dir, error, "closing") from error
        finally:
            self._lock.release()
