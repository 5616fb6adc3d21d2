# SPDX-License-Identifier: Apache-2.0
"""The contents of a stopped broker's log directories."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from coordinator.catalogue.names import CLUSTER_METADATA_TOPIC, INTERNAL_TOPICS, invalid_reason
from protocol.newtypes import Partition
from storage.disk.filesystem import FileSystem, read_file
from storage.disk.layout import (
    CLEAN_SHUTDOWN_FILE,
    LOCK_FILE,
    META_FILE,
    OFFSETS_TOPIC,
    PARTITION_METADATA_FILE,
    parse_partition_dir,
)
from storage.disk.properties import decode_uuid, parse_properties
from storage.errors import DirectoryLocked, StorageError, storage_error

TOPICS_NOT_TAKEN: Final = INTERNAL_TOPICS | {CLUSTER_METADATA_TOPIC}


class CannotImport(Exception):
    """The import cannot be made; the message is one line for the user."""


class DirectoryTopic(msgspec.Struct):
    """A topic as its directories show it: `partitions` is the highest number found, plus one; `id` may be unknown."""

    partitions: int
    id: bytes | None = None


class BrokerDirectories(msgspec.Struct):
    """The log directory of each of a broker's offsets partitions, by number, and its other topics."""

    log_dirs: list[Path]
    offsets: dict[Partition, Path]
    topics: dict[str, DirectoryTopic]
    cluster_id: str | None
    unclean: list[Path]

    @property
    def num_partitions(self) -> int:
        """The number of partitions of `__consumer_offsets`."""
        return len(self.offsets)


def lock_log_dirs(fs: FileSystem, log_dirs: Sequence[Path], until: ExitStack) -> None:
    """Keep brokers out of these directories until the stack is closed. Raises CannotImport if a broker runs on one.

    Only existing lock files are locked, and nothing is written.
    """
    for log_dir in log_dirs:
        try:
            file = fs.open(log_dir / LOCK_FILE)
        except OSError:
            continue  # no broker was ever here; or nothing can write here, neither we nor it
        until.callback(file.close)
        if not file.try_lock():
            raise CannotImport(f"{DirectoryLocked(log_dir, None)}: stop the broker first")


def read_broker_directories(fs: FileSystem, log_dirs: Sequence[Path]) -> BrokerDirectories:
    """Return the contents of all log directories of a broker.

    Raises CannotImport if they do not hold all groups of one broker, and StorageError.
    """
    source = BrokerDirectories(list(log_dirs), {}, {}, None, [])
    try:
        for log_dir in log_dirs:
            if not log_dir.is_dir():
                raise CannotImport(f"{log_dir}: there is no such directory")
            if not fs.exists(log_dir / CLEAN_SHUTDOWN_FILE):
                source.unclean.append(log_dir)
            _note_cluster(fs, log_dir, source)
            for name in fs.listdir(log_dir):
                _note_partition(fs, log_dir / name, source)
    except OSError as error:
        raise storage_error(log_dir, error, "reading a log directory") from error
    _check_complete(source)
    return source


def _note_cluster(fs: FileSystem, log_dir: Path, source: BrokerDirectories) -> None:
    path = log_dir / META_FILE
    if not fs.exists(path):
        return
    cluster_id = parse_properties(read_file(fs, path).decode("utf-8", "replace")).get("cluster.id")
    if source.cluster_id is not None and cluster_id not in (None, source.cluster_id):
        raise CannotImport(f"{path}: it belongs to cluster {cluster_id}, and others to {source.cluster_id}")
    source.cluster_id = cluster_id or source.cluster_id


def _note_partition(fs: FileSystem, path: Path, source: BrokerDirectories) -> None:
    topic = path.name.rpartition("-")[0]
    partition = parse_partition_dir(path.name, topic)
    if partition is None or not path.is_dir():
        return  # also what a broker is about to delete, or to move: "topic-0.<id>-delete"
    if topic == OFFSETS_TOPIC:
        if partition in source.offsets:
            both = f"{source.offsets[partition]} and {path.parent}"
            raise CannotImport(
                f"partition {partition} is in both {both}: give the log directories of one broker, "
                "the one that was stopped last"
            )
        source.offsets[partition] = path.parent
    elif topic not in TOPICS_NOT_TAKEN and invalid_reason(topic) is None:
        found = source.topics.setdefault(topic, DirectoryTopic(0))
        found.partitions = max(found.partitions, partition + 1)
        found.id = found.id or _topic_id(fs, path / PARTITION_METADATA_FILE)


def _topic_id(fs: FileSystem, path: Path) -> bytes | None:
    try:
        lines = read_file(fs, path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None  # from before Kafka 2.8
    text = next((line.partition(":")[2].strip() for line in lines if line.startswith("topic_id:")), "")
    try:
        return decode_uuid(text)
    except ValueError:
        raise StorageError(path, f"'{text}' is no topic id") from None


def _check_complete(source: BrokerDirectories) -> None:
    if not source.offsets:
        where = ", ".join(map(str, source.log_dirs))
        raise CannotImport(f"{where}: there is no partition of {OFFSETS_TOPIC}: no group was ever here")
    count = max(source.offsets) + 1
    missing = [partition for partition in range(count) if partition not in source.offsets]
    if missing:
        raise CannotImport(
            f"of {OFFSETS_TOPIC} there are partitions up to {count - 1}, but not {_some(missing)}: "
            "give all log directories of the broker; where no broker has all partitions, of brokers that have"
        )


def _some(numbers: Sequence[int]) -> str:
    text = ", ".join(map(str, numbers[:5]))
    return text if len(numbers) <= 5 else f"{text} and {len(numbers) - 5} more"
