# SPDX-License-Identifier: Apache-2.0
"""Reads a broker's partitions: the number of groups and offsets, and the topics that they name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from coordinator.groups.offsets.expiry_and_deletion import is_unstored_blank_group
from coordinator.importer.broker_directories import CannotImport
from coordinator.partitions.offline_partition_reader import read_shard, tally_group_placement
from coordinator.partitions.shard import Shard
from protocol.newtypes import Partition
from protocol.placement import GroupPlacementTally, infer_later_partition_count
from storage.disk.filesystem import FileSystem
from storage.errors import storage_error
from storage.format.record_decoder import RecordDecoder
from storage.recovery.full_check import Damage, check_partition


class Survey(msgspec.Struct):
    """The contents of a broker's partitions. `topics` are those that offsets name, with the partitions they need.

    `placements` has an entry for each partition: where its groups belong.
    """

    groups: int = 0
    offsets: int = 0
    records: int = 0
    unknown_records: int = 0
    open_transactions: int = 0
    open_offsets: int = 0
    topics: dict[str, int] = {}
    placements: list[GroupPlacementTally] = []
    damaged: dict[Partition, list[Damage]] = {}
    unsettled: dict[Partition, list[Damage]] = {}


def survey_partitions(
    fs: FileSystem,
    offsets: Mapping[Partition, Path],
    num_partitions: int,
    *,
    track: Callable[[Sequence[Partition]], Iterable[Partition]] = iter,
) -> Survey:
    """Read partitions, one after the other; changes nothing. Raises StorageError.

    `offsets` has the log directory of each, `num_partitions` is the topic's number of them. Reading goes on behind
    damage, so that the survey shows what a repair would leave. `track` passes the partitions on, and may show the
    progress.
    """
    survey = Survey()
    loader = RecordDecoder()
    for partition in track(sorted(offsets)):
        log_dir = offsets[partition]
        try:
            checked = check_partition(fs, log_dir, partition)
            found = read_shard(fs, checked, loader)
        except OSError as error:
            raise storage_error(log_dir, error, "reading") from error
        if checked.damages:
            survey.damaged[partition] = checked.damages
        if checked.unsettled:
            survey.unsettled[partition] = checked.unsettled
        survey.records += checked.whole_record_count
        survey.unknown_records += found.unknown_records
        survey.open_transactions += found.open.transactions
        survey.open_offsets += found.open.offsets
        survey.placements.append(tally_group_placement(found.shard, num_partitions))
        _count(found.shard, survey)
    return survey


def _count(shard: Shard, survey: Survey) -> None:
    for kept in shard.groups.values():
        if is_unstored_blank_group(kept.group, kept.offsets):
            continue
        survey.groups += 1
        survey.offsets += kept.offsets.count
        for topic, partitions in kept.offsets.by_topic.items():
            survey.topics[topic] = max(survey.topics.get(topic, 0), max(partitions, default=-1) + 1)


def refuse_missing_partitions(survey: Survey) -> None:
    """Raise CannotImport if a larger number of partitions than were found explains where the groups are."""
    count = infer_later_partition_count(survey.placements)
    if count is not None:
        there = len(survey.placements)
        raise CannotImport(
            f"with {count} partitions each group would be where it is, and there are only {there}: "
            f"give all log directories of the broker; if it had no more partitions, add --partitions {there}"
        )
