# SPDX-License-Identifier: Apache-2.0
"""Where partitions end, as groups of this node have said it: for the lag in metrics, which need not be exact."""

from collections.abc import Collection, Mapping

from coordinator.catalogue.configs import end_group
from coordinator.catalogue.topic import Topic
from coordinator.config import Settings
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry
from coordinator.runtime.slices import Slices
from storage.format.records import OffsetAndMetadata

OFFSETS_PER_STEP = 1_000

DeclaredEnds = Mapping[str, Mapping[int, OffsetAndMetadata]]
"""By topic and partition, what the topic's end group has committed, now and whatever comes."""


async def declared_ends(
    manager: GroupMetadataManager, topics: Collection[Topic], settings: Settings
) -> DeclaredEnds:
    """The ends of all topics whose end groups this node leads, found in slices."""
    ends: dict[str, Mapping[int, OffsetAndMetadata]] = {}
    slices = Slices(manager.clock.nanos)
    for topic in topics:
        group_id = end_group(topic, settings)
        kept = manager.find(group_id) if group_id else None
        if kept is not None:
            ends[topic.name] = kept.offsets.of(topic.name)
        if slices.over:
            await slices.give_way()
    return ends


async def lag_of(kept: GroupEntry, ends: DeclaredEnds, slices: Slices) -> int:
    """How far a group is behind these ends in all; partitions without one, or beyond theirs, count nothing."""
    lag = 0
    for topic in list(kept.offsets.by_topic) if ends else ():
        known = ends.get(topic)
        if not known:
            continue
        rows = list(kept.offsets.of(topic).items())
        for start in range(0, len(rows), OFFSETS_PER_STEP):
            for partition, committed in rows[start : start + OFFSETS_PER_STEP]:
                end = known.get(partition)
                lag += max(0, end.offset - committed.offset) if end is not None else 0
            if slices.over:
                await slices.give_way()
    return lag
