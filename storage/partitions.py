# SPDX-License-Identifier: Apache-2.0
"""The partitions of a node: their logs, their log end offsets, and which of them cannot be used."""

from collections.abc import Sequence

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import TopicPartition
from storage.errors import CorruptLog, NotOwned
from storage.format.batch_format import next_offset_of
from storage.journal.journal import Entry
from storage.journal.node_data_directory import NodeDataDirectory
from storage.partition.log import PartitionLog
from storage.recovery.opening import OpenedPartitions
from storage.recovery.recovery import PartitionRecoveryInputs


class Partitions:
    """The partitions of a node. Has no locks: `LogManager` decides which of its own are held for a call."""

    __slots__ = ("_directory", "_ends", "_logs", "failed", "owned", "points", "unread")

    def __init__(self, directory: NodeDataDirectory) -> None:
        self.owned: set[Partition] | None = set() if directory.is_shared else None
        """The partitions that were adopted and not released; None if the node has all partitions."""
        self.failed: dict[Partition, CorruptLog] = {}
        """The partitions that cannot be read, and why."""
        self.unread: dict[Partition, PartitionRecoveryInputs] = {}
        """The failed partitions that the disk could not read, and the facts needed to try again."""
        self.points: dict[TopicPartition, Offset] = {}
        """The recovery point of each partition: the offset up to which it is durable in its segments."""
        self._directory = directory
        self._logs: dict[Partition, PartitionLog] = {}
        self._ends: dict[Partition, Offset] = {}

    def replace_all(self, opened: OpenedPartitions) -> None:
        """Take over the logs that were read from disk again; no other thread uses the partitions meanwhile."""
        self._logs, self.points = opened.logs, opened.points
        self._ends = {partition: log.end_offset for partition, log in opened.logs.items()}
        self.unread = opened.unread
        elsewhere = () if self.owned is None else self.failed.keys() - self.owned
        self.failed = {p: self.failed[p] for p in elsewhere} | opened.failed

    def logs(self) -> Sequence[PartitionLog]:
        """Return the logs of the partitions that were written to or read from."""
        return list(self._logs.values())

    def is_current_log(self, log: PartitionLog) -> bool:
        """Return whether this is the log now in use, and not one from before the partition was opened again."""
        return self._logs.get(log.partition) is log

    def size_bytes(self, partition: Partition) -> int:
        """Return the bytes of a partition's segments; 0 if it was not written to or read from yet."""
        log = self._logs.get(partition)
        return 0 if log is None else log.size_bytes

    def recovery_point(self, partition: Partition) -> Offset:
        """Return the offset up to which a partition is durable in its segments."""
        return self.points.get((self._directory.settings.topic, partition), Offset(0))

    def end_offset(self, partition: Partition) -> Offset:
        """Return the base offset of the next batch. Raises CorruptLog and NotOwned."""
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

    def get_or_create_log(self, partition: Partition) -> PartitionLog:
        """Return a partition's log, made at its first use. Raises CorruptLog and NotOwned."""
        self._check_usable(partition)
        log = self._logs.get(partition)
        if log is None:
            log = self._logs.setdefault(partition, self._directory.make_unloaded_log(partition))
        return log

    def compute_end_offsets_after(self, entries: Sequence[Entry]) -> dict[Partition, Offset]:
        """Return the new log end offsets after `entries`. Raises ValueError if one does not start at the end."""
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

    def set_end_offsets(self, ends: dict[Partition, Offset]) -> None:
        """Set the log end offsets after an accepted append."""
        self._ends.update(ends)

    def add(self, log: PartitionLog) -> None:
        """Add the log of a partition that this node has adopted, and that is on disk up to its end."""
        assert self.owned is not None, "this node has the whole directory"
        self.owned.add(log.partition)
        self._take(log)

    def restore_partition(self, log: PartitionLog) -> None:
        """Use a failed partition again that could be read after all, and is on disk up to its end."""
        del self.failed[log.partition]
        del self.unread[log.partition]
        self._take(log)

    def _take(self, log: PartitionLog) -> None:
        self.points[self._directory.settings.topic, log.partition] = log.end_offset
        self._logs[log.partition] = log
        self._ends[log.partition] = log.end_offset

    def remove_released_partition(self, partition: Partition) -> None:
        """Remove a partition that this node has released."""
        assert self.owned is not None, "this node has the whole directory"
        self.owned.discard(partition)
        self._ends.pop(partition, None)
        self._logs.pop(partition, None)
        self.points.pop((self._directory.settings.topic, partition), None)
