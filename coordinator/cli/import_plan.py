# SPDX-License-Identifier: Apache-2.0
"""Plans how to bring topics and offsets of one cluster to another, from the contents of both; pure."""

from collections.abc import Iterable, Mapping

import msgspec

from coordinator.cli.cluster.model import CommittedOffset
from coordinator.cli.groups.changes import CurrentGroup
from coordinator.cluster_requests.model import TopicPartition


class ImportPlan(msgspec.Struct, frozen=True):
    """The changes to make at the target, and the things that are left out."""

    create: dict[str, int]
    """The topics to create, with their number of partitions."""
    grow: dict[str, int]
    """The topics to give more partitions, with the number that they have then."""
    larger: list[str]
    """The topics that have more partitions at the target, and keep them."""
    offsets: dict[str, list[CommittedOffset]]
    """The offsets to commit, by group."""
    same: int
    """The number of offsets that the target already has."""
    homeless: dict[str, list[TopicPartition]]
    """By group, partitions that the target will not have, since their topics were deleted or left out."""
    has_members: list[str]
    """The groups that have members at the target, which then takes no offsets for them."""
    differs: dict[str, list[TopicPartition]]
    """By group, the partitions whose offset at the target differs, and is not to be overwritten."""


def plan_cluster_import(
    source_topics: Mapping[str, int],
    target_topics: Mapping[str, int],
    source: Mapping[str, Iterable[CommittedOffset]],
    target: Mapping[str, CurrentGroup],
    *,
    overwrite: bool,
) -> ImportPlan:
    """Plan to create and grow topics at the target, and to give its groups the offsets that they do not have yet.

    A group of which an offset differs at the target is left out as a whole, unless it is to be overwritten.
    """
    counts = {name: max(count, target_topics.get(name, 0)) for name, count in source_topics.items()}
    places = {**target_topics, **counts}
    plan = ImportPlan(
        create={name: count for name, count in source_topics.items() if name not in target_topics},
        grow={name: count for name, count in source_topics.items() if 0 < target_topics.get(name, 0) < count},
        larger=[name for name, count in source_topics.items() if target_topics.get(name, 0) > count],
        offsets={},
        same=sum(_is_there(row, target[group]) for group, rows in source.items() for row in rows),
        homeless={},
        has_members=[],
        differs={},
    )
    for group, rows in source.items():
        _plan_group(plan, group, list(rows), target[group], places, overwrite)
    return plan


def _plan_group(
    plan: ImportPlan,
    group: str,
    rows: list[CommittedOffset],
    there: CurrentGroup,
    places: Mapping[str, int],
    overwrite: bool,
) -> None:
    homeless = [row.place for row in rows if row.partition >= places.get(row.topic, 0)]
    if homeless:
        plan.homeless[group] = homeless
    missing = [row for row in rows if row.place not in homeless and not _is_there(row, there)]
    differs = [row.place for row in missing if row.place in there.committed]
    if not missing:
        return
    if there.has_members:
        plan.has_members.append(group)
    elif differs and not overwrite:
        plan.differs[group] = differs
    else:
        # a leader epoch is of the cluster that it was read from
        plan.offsets[group] = [msgspec.structs.replace(row, leader_epoch=-1) for row in missing]


def _is_there(row: CommittedOffset, there: CurrentGroup) -> bool:
    found = there.committed.get(row.place)
    return found is not None and (found.offset, found.metadata) == (row.offset, row.metadata)
