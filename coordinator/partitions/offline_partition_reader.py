# SPDX-License-Identifier: Apache-2.0
"""Reads a partition's groups from its files alone, for commands that run without a node; changes nothing."""

from typing import NamedTuple

from coordinator.groups.offsets.expiry_and_deletion import is_unstored_blank_group
from coordinator.partitions.shard import Shard
from protocol.placement import GroupPlacementTally
from storage.disk.filesystem import FileSystem
from storage.format.record_decoder import RecordDecoder
from storage.format.records import UnknownRecord
from storage.format.transaction_replay import LogReplay, OpenTransactionCounts
from storage.recovery.full_check import CheckedPartition, iter_all_whole_batches


class OfflineLoadResult(NamedTuple):
    """The groups that a load would give, and the records that it would leave out."""

    shard: Shard
    unknown_records: int
    open: OpenTransactionCounts


def read_shard(fs: FileSystem, checked: CheckedPartition, loader: RecordDecoder) -> OfflineLoadResult:
    """Load a partition from all its whole batches, also those after damage, and return it. Raises OSError."""
    shard = Shard(checked.partition)
    replay = LogReplay(loader)
    unknown = 0
    for batch in iter_all_whole_batches(fs, checked):
        for record in replay.replay(batch):
            unknown += isinstance(record, UnknownRecord)
            shard.apply(record)
    shard.flag_other_protocol_groups()
    for _ in shard.hide_groups_in_steps():
        pass
    return OfflineLoadResult(shard, unknown, replay.open_transaction_counts)


def tally_group_placement(shard: Shard, num_partitions: int) -> GroupPlacementTally:
    """Return the partitions, out of `num_partitions`, to which the groups of a partition belong."""
    placement = GroupPlacementTally(shard.partition, num_partitions)
    for kept in shard.groups.values():
        if not is_unstored_blank_group(kept.group, kept.offsets):
            placement.add_group(kept.group_id)
    return placement
