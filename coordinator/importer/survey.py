# SPDX-License-Identifier: Apache-2.0
"""Reading a broker's partitions: how many groups and offsets there are, and which topics they name."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from coordinator.groups.offsets.expiry import is_no_group
from coordinator.importer.source import CannotImport
from coordinator.partitions.offline import read_shard
from coordinator.partitions.shard import Shard
from protocol.names import Partition
from protocol.placement import partition_for
from storage.disk.filesystem import FileSystem
from storage.errors import storage_error
from storage.format.loader import RecordLoader
from storage.recovery.check import Damage, check_partition


class Survey(msgspec.Struct):
    """What is there to be taken over. `topics` are those that offsets name, with the partitions they need."""

    groups: int = 0
    offsets: int = 0
    records: int = 0
    unknown_records: int = 0
    open_transactions: int = 0
    open_offsets: int = 0
    topics: dict[str, int] = {}
    damaged: dict[Partition, list[Damage]] = {}
    unsettled: dict[Partition, list[Damage]] = {}


def take(fs: FileSystem, offsets: Mapping[Partition, Path], num_partitions: int) -> Survey:
    """Read partitions, one after the other; changes nothing. Raises CannotImport and StorageError.

    `offsets` has the log directory of each, `num_partitions` is how many the topic has in all. Behind damage it goes
    on, so that one sees what a repair would leave.
    """
    survey = Survey()
    loader = RecordLoader()
    for partition, log_dir in sorted(offsets.items()):
        try:
            checked = check_partition(fs, log_dir, partition)
            found = read_shard(fs, checked, loader)
        except OSError as error:
            raise storage_error(log_dir, error, "reading") from error
        if checked.damages:
            survey.damaged[partition] = checked.damages
        if checked.unsettled:
            survey.unsettled[partition] = checked.unsettled
        survey.records += checked.records
        survey.unknown_records += found.unknown_records
        survey.open_transactions += found.open.transactions
        survey.open_offsets += found.open.offsets
        _count(found.shard, num_partitions, survey)
    return survey


def _count(shard: Shard, num_partitions: int, survey: Survey) -> None:
    for kept in shard.groups.values():
        if is_no_group(kept.group, kept.offsets):
            continue
        home = partition_for(kept.group_id, num_partitions)
        if home != shard.partition:
            raise CannotImport(
                f"group '{kept.group_id}' is in partition {shard.partition}, and with {num_partitions} "
                f"partitions it would be in {home}: these are not all partitions, or their number was changed"
            )
        survey.groups += 1
        survey.offsets += kept.offsets.count
        for topic, partitions in kept.offsets.by_topic.items():
            survey.topics[topic] = max(survey.topics.get(topic, 0), max(partitions, default=-1) + 1)
