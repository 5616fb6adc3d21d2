# SPDX-License-Identifier: Apache-2.0
"""Reads a partition's groups from its files alone, for commands that run without a node; changes nothing."""

from typing import NamedTuple

from coordinator.groups.offsets.expiry import is_nonexistent_group
from coordinator.partitions.shard import Shard
from protocol.placement import Placement
from storage.disk.filesystem import FileSystem
from storage.format.loader import RecordDecoder
from storage.format.records import UnknownRecord
from storage.format.transactions import LogReplay, OpenTransactions
from storage.recovery.check import CheckedPartition, whole_batches


class OfflineShard(NamedTuple):
    """The groups that a load would give, and the records that it would leave out."""

    shard: Shard
    unknown_records: int
    open: OpenTransactions


def read_shard(fs: FileSystem, checked: CheckedPartition, loader: RecordDecoder) -> OfflineShard:
    """Apply all whole batches from the log's start on, also those after damage. Raises OSError."""
    shard = Shard(checked.partition)
    replay = LogReplay(loader)
    unknown = 0
    for batch in whole_batches(fs, checked):
        for record in replay.replay(batch):
            unknown += isinstance(record, UnknownRecord)
            shard.apply(record)
    shard.flag_other_protocol_groups()
    for _ in shard.extract_markers_group():
        pass
    return OfflineShard(shard, unknown, replay.open_transaction_counts)


def find_placement(shard: Shard, num_partitions: int) -> Placement:
    """Return the partitions, out of `num_partitions`, to which the groups of a partition belong."""
    placement = Placement(shard.partition, num_partitions)
    for kept in shard.groups.values():
        if not is_nonexistent_group(kept.group, kept.offsets):
            placement.add(kept.group_id)
    return placement
