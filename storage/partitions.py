# SPDX-License-Identifier: Apache-2.0
"""The partitions that a node has: their logs, their ends, and which of them cannot be used."""

from collections.abc import Sequence

from protocol.names import Offset, Partition
from storage.disk.checkpoint_file import TopicPartition
from storage.errors import CorruptLog, NotOwned
from storage.format.batch_format import next_offset_of
from storage.journal.journal import Entry
from storage.journal.log_directory import LogDirectory
from storage.partition.log import PartitionLog
from storage.recovery.opening import OpenedPartitions
from storage.recovery.recovery import RecoveryFacts


class Partitions:
    """No locks of its own: `LogManager` says what is done under which."""

    __slots__ = ("_directory", "_ends", "_logs", "failed", "owned", "points", "unread")

    def __init__(self, directory: LogDirectory) -> None:
        self.owned: set[Partition] | None = set() if directory.is_shared else None
        """Those that were adopted and not released; None where the node has all that there are."""
        self.failed: dict[Partition, CorruptLog] = {}
        """Those that cannot be read, and why."""
        self.unread: dict[Partition, RecoveryFacts] = {}
        """Of these the ones that the disk could not read, and what is needed to try again."""
        self.points: dict[TopicPartition, Offset] = {}
        """Up to where each is on disk for good."""
        self._directory = directory
        self._logs: dict[Partition, PartitionLog] = {}
        self._ends: dict[Partition, Offset] = {}

    def replace_all(self, opened: OpenedPartitions) -> None:
        """Everything was read from disk anew; no other thread uses this meanwhile."""
        self._logs, self.points = opened.logs, opened.points
        self._ends = {partition: log.end_offset for partition, log in opened.logs.items()}
        self.unread = opened.unread
        elsewhere = () if self.owned is None else self.failed.keys() - self.owned
        self.failed = {p: self.failed[p] for p in elsewhere} | opened.failed

    def logs(self) -> Sequence[PartitionLog]:
        """Of those that anything was written to or read from."""
        return list(self._logs.values())

    def uses(self, log: PartitionLog) -> bool:
        """Whether this is a partition's log as it is used now, and not as it was before it was opened again."""
        return self._logs.get(log.partition) is log

    def recovery_point(self, partition: Partition) -> Offset:
        """Up to which offset a partition is on disk for good."""
        return self.points.get((self._directory.settings.topic, partition), Offset(0))

    def end_offset(self, partition: Partition) -> Offset:
        """The base offset of the next batch. Raises CorruptLog and NotOwned."""
        end = self._ends.get(partition)
        if end is None:
            self._check_usable(partition)
            return Offset(0)
        return end

    def _check_usable(self, partition: Partition) -> None:
        if partition in self.failed:
            raise self.failed[partition]
        if self.owned is not None and partition not in self.owned:
            raise NotOwned(self._directory.data_dir, partition)

    def log(self, partition: Partition) -> PartitionLog:
        """A partition's log, made at its first use. Raises CorruptLog and NotOwned."""
        self._check_usable(partition)
        log = self._logs.get(partition)
        if log is None:
            log = self._logs.setdefault(partition, self._directory.new_log(partition))
        return log

    def new_ends(self, entries: Sequence[Entry]) -> dict[Partition, Offset]:
        """Where the partitions of `entries` will end. Raises ValueError for one that doesn't start at the end."""
        ends: dict[Partition, Offset] = {}
        for entry in entries:
            partition = entry.partition
            end = ends.get(partition)
            if end is None:
                end = self.end_offset(partition)
            if entry.base_offset != end:
                begins = f"base offset {entry.base_offset}"
                raise ValueError(f"partition {partition}: {begins}, the log ends at {end}")
            ends[partition] = next_offset_of(entry.batch)
        return ends

    def move_ends(self, ends: dict[Partition, Offset]) -> None:
        """What ends there was accepted."""
        self._ends.update(ends)

    def add(self, log: PartitionLog) -> None:
        """A share has adopted a partition, which is on disk up to its end."""
        assert self.owned is not None, "this node has the whole directory"
        self.owned.add(log.partition)
        self._take(log)

    def recovered(self, log: PartitionLog) -> None:
        """A partition that could not be read is there after all, on disk up to its end."""
        del self.failed[log.partition]
        del self.unread[log.partition]
        self._take(log)

    def _take(self, log: PartitionLog) -> None:
        self.points[self._directory.settings.topic, log.partition] = log.end_offset
        self._logs[log.partition] = log
        self._ends[log.partition] = log.end_offset

    def remove(self, partition: Partition) -> None:
        """A share has released a partition."""
        assert self.owned is not None, "this node has the whole directory"
        self.owned.discard(partition)
        self._ends.pop(partition, None)
        self._logs.pop(partition, None)
        self.points.pop((self._directory.settings.topic, partition), None)
