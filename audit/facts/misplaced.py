# SPDX-License-Identifier: Apache-2.0
"""Groups in other partitions than those to which they belong, and the cause for the log as a whole."""

import enum
from collections.abc import Sequence

from pyspark.sql import DataFrame

from audit.facts.log_facts import Facts
from audit.schema import MISPLACED, local_table
from protocol.newtypes import GroupId, Partition
from protocol.placement import (
    GroupPlacementTally,
    find_swapped_directories,
    infer_earlier_partition_count,
)


class MisplacementCause(enum.StrEnum):
    """The causes for which groups are in another partition than the one to which they belong."""

    DIRECTORY = "directory"
    """All groups belong to one other partition, whose directory this seems to be."""
    GROWN = "grown"
    """The topic has got more partitions since the groups were placed."""
    GROUPS = "groups"
    """Any other cause of misplaced groups."""


def list_partitions_with_misplaced_groups(facts: Facts) -> DataFrame | None:
    """Return a row of MISPLACED for each partition with misplaced groups, or None.

    None means that the fold has seen no misplaced group, or that the number of partitions is unknown.
    """
    seen = facts.sightings.where("check = 'wrong_partition'").orderBy("partition", "file").collect()
    count = facts.inventory.infer_partition_count(facts.options.num_partitions)
    if not seen or count is None:
        return None
    first = {row.partition: row for row in reversed(seen)}
    placements = [each for each in _placements(facts, list(first), count) if each.elsewhere]
    wrong, earlier = find_swapped_directories(placements), infer_earlier_partition_count(placements)
    rows = []
    for each in placements:
        kind, message = _meaning(each, wrong.get(each.partition), earlier)
        place = first[each.partition]
        rows.append(
            (kind.value, each.partition, place.file, place.position, message, each.misplaced_group_count)
        )
    return local_table(facts.spark, MISPLACED, rows)


def _placements(facts: Facts, partitions: Sequence[int], count: int) -> Sequence[GroupPlacementTally]:
    placements = {partition: GroupPlacementTally(Partition(partition), count) for partition in partitions}
    names = (
        facts.offsets.select("partition", "group").union(facts.groups.select("partition", "group")).distinct()
    )
    for row in names.where(names.partition.isin(*partitions)).orderBy("partition", "group").toLocalIterator():
        placements[row.partition].add_group(GroupId(row.group))
    return list(placements.values())


def _meaning(
    placement: GroupPlacementTally, home: Partition | None, earlier: int | None
) -> tuple[MisplacementCause, str]:
    names = ", ".join(map(repr, placement.names))
    if home is not None:
        return (
            MisplacementCause.DIRECTORY,
            f"all groups belong to partition {home}, whose directory this seems to be: {names}",
        )
    if earlier is not None:
        return MisplacementCause.GROWN, f"these groups were placed by {earlier} partitions: {names}"
    return MisplacementCause.GROUPS, f"these groups belong to other partitions: {names}"
