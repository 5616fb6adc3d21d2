# SPDX-License-Identifier: Apache-2.0
"""The data directory of a node: constant facts that all parts of `LogManager` share."""

from pathlib import Path

from protocol.newtypes import Partition
from storage.disk.filesystem import FileSystem
from storage.disk.layout import journal_dir, partition_dir
from storage.journal.journal_registry import JournalRegistry
from storage.partition.log import PartitionLog
from storage.settings import LogSettings


class NodeDataDirectory:
    """The data directory of one node: `node_id` is None for a node that has it for itself."""

    __slots__ = ("data_dir", "fs", "in_use", "is_shared", "journal_dir", "settings", "topic_id")

    def __init__(
        self, fs: FileSystem, data_dir: Path, settings: LogSettings, topic_id: bytes, node_id: int | None
    ) -> None:
        self.fs = fs
        self.data_dir = data_dir
        self.settings = settings
        self.topic_id = topic_id
        self.is_shared = node_id is not None
        self.journal_dir = journal_dir(data_dir, node_id)
        self.in_use = JournalRegistry(fs, self.journal_dir)

    @property
    def recovery_point_directory(self) -> Path:
        """The directory of the recovery points: nodes that share a directory must not write the same file."""
        return self.journal_dir if self.is_shared else self.data_dir

    def make_unloaded_log(self, partition: Partition) -> PartitionLog:
        """Return a partition's log, not loaded."""
        directory = partition_dir(self.data_dir, self.settings.topic, partition)
        return PartitionLog(self.fs, directory, partition, self.settings, self.topic_id)
