# SPDX-License-Identifier: Apache-2.0
"""The ends of partitions that groups of this node declare, for the lag in metrics, which need not be exact."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol

from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topic_configs import end_offsets_group_id
from coordinator.config import Settings
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry
from coordinator.runtime.slices import Slices
from storage.format.records import OffsetAndMetadata

OFFSETS_PER_STEP = 1_000


class EndOffset(Protocol):
    """The end of a partition."""

    @property
    def offset(self) -> int:
        """The offset behind the last record."""


Ends = Mapping[str, Mapping[int, EndOffset]]
"""The known ends, by topic and partition."""
DeclaredEnds = Mapping[str, Mapping[int, OffsetAndMetadata]]
"""The offsets of each topic's end group, by topic and partition; a view that follows later commits."""


async def declared_ends(
    manager: GroupMetadataManager, topics: Collection[Topic], settings: Settings
) -> DeclaredEnds:
    """Return the ends of all topics whose end groups this node leads, found in slices."""
    ends: dict[str, Mapping[int, OffsetAndMetadata]] = {}
    slices = Slices(manager.clock.nanos)
    for topic in topics:
        group_id = end_offsets_group_id(topic, settings)
        kept = manager.find(group_id) if group_id else None
        if kept is not None:
            ends[topic.name] = kept.offsets.get_topic_offsets(topic.name)
        if slices.is_over:
            await slices.yield_to_event_loop()
    return ends


async def sum_group_lag(kept: GroupEntry, ends: Ends, slices: Slices) -> int | None:
    """Return how far a group is behind these ends in all; None if it has no partition with a known end.

    Partitions without an end, or beyond it, count 0.
    """
    lag = None
    known = [topic for topic in kept.offsets.by_topic if ends.get(topic)] if ends else []
    for topic, step in split_offsets_into_steps(kept, known):
        for partition, committed in step:
            end = ends[topic].get(partition)
            if end is not None:
                lag = (lag or 0) + max(0, end.offset - committed.offset)
        if slices.is_over:
            await slices.yield_to_event_loop()
    return lag


def split_offsets_into_steps(
    kept: GroupEntry, topics: Iterable[str]
) -> Iterator[tuple[str, list[tuple[int, OffsetAndMetadata]]]]:
    """Yield a group's offsets in these topics by partition, OFFSETS_PER_STEP at once; they may change meanwhile."""
    for topic in topics:
        offsets = list(kept.offsets.get_topic_offsets(topic).items())
        for start in range(0, len(offsets), OFFSETS_PER_STEP):
            yield topic, offsets[start : start + OFFSETS_PER_STEP]
