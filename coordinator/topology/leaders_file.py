# SPDX-License-Identifier: Apache-2.0
"""`leaders.json`: the last leader of each partition, and the highest epoch that a leader was given.

    {"version": 1, "partitions": [[3, 1], [1, 2], ...]}

Here partition 0 was last given to node 1, under epoch 3; -1 is no node. Epochs may be higher than any that was
used, and are never used again. To change this format, raise VERSION and keep reading every older one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from coordinator.topology.view import NO_NODE, Leader
from protocol.newtypes import LeaderEpoch, Partition
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import OFFSETS_TOPIC
from storage.errors import StorageError, is_unreadable, storage_error
from storage.partition.epochs import find_lowest_usable_leader_epoch

FILE_NAME: Final = "leaders.json"
VERSION: Final = 1
SINGLE_NODE_EPOCH: Final = LeaderEpoch(0)
"""The epoch that a node uses in a new directory, if there never were several nodes."""


class CorruptLeaders(StorageError):
    """The file is no leaders file; it stays unchanged for an operator to inspect."""


class _LeadersFile(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    partitions: list[tuple[LeaderEpoch, int]]


def read(fs: FileSystem, data_dir: Path) -> list[Leader] | None:
    """Return the stored leaders, None if there is no file. Blocks. Raises CorruptLeaders and StorageError."""
    path = data_dir / FILE_NAME
    try:
        data = read_file(fs, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(path, error, "reading who leads what") from error
    try:
        found = msgspec.json.decode(data, type=_LeadersFile)
    except msgspec.DecodeError as error:
        raise CorruptLeaders(path, f"{error}; it keeps leader epochs from being used twice") from None
    if found.version != VERSION:
        raise CorruptLeaders(path, f"its version is {found.version}, but this build reads version {VERSION}")
    return [Leader(node, epoch) for epoch, node in found.partitions]


def write(fs: FileSystem, data_dir: Path, leaders: Sequence[Leader]) -> None:
    """Store the leaders of all partitions durably. Blocks. Raises StorageError."""
    path = data_dir / FILE_NAME
    content = _LeadersFile(VERSION, [(leader.epoch, leader.node_id) for leader in leaders])
    try:
        atomic_write(fs, path, msgspec.json.encode(content) + b"\n")
    except OSError as error:
        raise storage_error(path, error, "noting who leads what") from error


def read_partition_leaders(fs: FileSystem, data_dir: Path, count: int) -> list[Leader]:
    """Return the stored leader of each of `count` partitions, with no epoch below that of the log. Blocks.

    Raises CorruptLeaders and StorageError.
    """
    found = list(read(fs, data_dir) or ())[:count]
    found += [Leader(NO_NODE, SINGLE_NODE_EPOCH)] * (count - len(found))
    epochs = _epochs_of_the_log(fs, data_dir, count)
    return [Leader(each.node_id, max(each.epoch, epoch)) for each, epoch in zip(found, epochs, strict=True)]


def start_single_node_leadership(
    fs: FileSystem, data_dir: Path, node_id: int, count: int
) -> list[LeaderEpoch]:
    """Make a single node the leader of all partitions, and return its epochs. Blocks. Raises StorageError.

    If leaders were stored before, for several nodes, each epoch is raised by one and stored. Otherwise nothing is
    stored, and an epoch is the same at each start unless a Kafka broker has written to the partition meanwhile.
    """
    if read(fs, data_dir) is None:
        return _epochs_of_the_log(fs, data_dir, count)
    leaders = [
        Leader(node_id, LeaderEpoch(each.epoch + 1)) for each in read_partition_leaders(fs, data_dir, count)
    ]
    write(fs, data_dir, leaders)
    return [leader.epoch for leader in leaders]


def _epochs_of_the_log(fs: FileSystem, data_dir: Path, count: int) -> list[LeaderEpoch]:
    """Return `find_lowest_usable_leader_epoch` of each partition; the lowest epoch if the disk cannot read one."""
    epochs = [SINGLE_NODE_EPOCH] * count
    for partition in range(count):
        try:
            epochs[partition] = find_lowest_usable_leader_epoch(
                fs, data_dir, (OFFSETS_TOPIC, Partition(partition))
            )
        except OSError as error:
            if not is_unreadable(error):
                raise storage_error(data_dir, error, "reading the epochs of the log") from error
    return epochs
