# SPDX-License-Identifier: Apache-2.0
"""The ends of partitions that end groups declare, for the lag in metrics and lists, which need not be exact."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topic_configs import end_offsets_group_id
from coordinator.config import Settings
from coordinator.lag.lag_book import FoundEnds, PartitionEnd
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


Partitions = Mapping[str, Collection[int]]
"""The numbers of partitions, by topic."""
Ends = Mapping[str, Mapping[int, EndOffset]]
"""The known ends, by topic and partition."""


Elsewhere = Callable[[Collection[Topic], Partitions | None], Awaitable[Ends]]
"""Finds the ends of topics whose end groups other nodes lead, in some partitions or, for None, in all."""


class DeclaredPartitionEnds:
    """The ends that end groups have committed: those of this node's groups and, with `elsewhere`, of other nodes'."""

    def __init__(
        self,
        manager: GroupMetadataManager,
        settings: Settings,
        get_catalogue: Callable[[], Catalogue],
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._manager = manager
        self._settings = settings
        self._get_catalogue = get_catalogue
        self._elsewhere = elsewhere

    async def find(self, partitions: Partitions) -> dict[str, dict[int, int]]:
        """Return the known ends of some partitions, by topic."""
        ends = await self._find_declared(partitions)
        return {
            topic: {part: known[part].offset for part in partitions[topic] if part in known}
            for topic, known in ends.items()
        }

    async def find_lags(
        self, partitions: Partitions | None
    ) -> Callable[[GroupEntry, Slices], Awaitable[int | None]]:
        """Return the function for the lag of groups that have offsets in these partitions; None means all."""
        ends = await self._find_declared(partitions)
        return lambda kept, slices: sum_group_lag(kept, ends, slices)

    async def find_for_lag(self) -> FoundEnds:
        """Return the ends of all partitions, which have no open transactions."""
        slices = Slices(self._manager.clock.nanos)
        ends: FoundEnds = {}
        for topic, partitions in (await self._find_declared(None)).items():
            known = ends[topic] = {}
            for number, (partition, end) in enumerate(list(partitions.items())):
                known[partition] = PartitionEnd(end.offset, end.offset)
                if number % OFFSETS_PER_STEP == 0 and slices.is_over:
                    await slices.yield_to_event_loop()
            if slices.is_over:
                await slices.yield_to_event_loop()
        return ends

    async def _find_declared(self, partitions: Partitions | None) -> Ends:
        """Return the ends of at least these partitions, found in slices; None means all."""
        catalogue, ends = self._get_catalogue(), dict[str, Mapping[int, EndOffset]]()
        if partitions is None:
            topics: Collection[Topic] = catalogue.snapshot_topics()
        else:
            found = map(catalogue.topics_by_name.get, partitions)
            topics = [topic for topic in found if topic is not None]
        slices = Slices(self._manager.clock.nanos)
        for topic in topics:
            group_id = end_offsets_group_id(topic, self._settings)
            kept = self._manager.find(group_id) if group_id else None
            if kept is not None:
                ends[topic.name] = kept.offsets.get_topic_offsets(topic.name)
            if slices.is_over:
                await slices.yield_to_event_loop()
        if self._elsewhere is not None:
            ends |= await self._elsewhere(topics, partitions)
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
