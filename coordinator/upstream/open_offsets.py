# SPDX-License-Identifier: Apache-2.0
"""Which partitions' offsets a transaction under way may still bring, in groups that have committed none there before.

Asked for all offsets of a group, a broker says nothing of a partition for which none was committed yet, though there
may be one in a transaction that is still open. Asked for the partition by name, it says UNSTABLE_OFFSET_COMMIT. So all
partitions are named that the cluster has, unless it has no transactions at all.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.topic_diff import ABSENT
from coordinator.upstream.topics import UpstreamTopics

TRANSACTIONS: Final = "__transaction_state"
"""Brokers make this topic when the first transactional producer comes."""
PARTITIONS_PER_QUESTION: Final = 2_000
"""An answer about so many is decoded in some milliseconds."""
SEEN_S: Final = 5.0
"""For so long the cluster is not asked again which topics it has."""

Named = Mapping[str, Sequence[int]]
"""Partitions by topic."""


class AllPartitions:
    """All partitions of the cluster, in portions."""

    def __init__(self, cluster: UpstreamCluster, now_s: Callable[[], float] | None = None) -> None:
        """`now_s` is the clock of the event loop, unless there is another."""
        self._topics = UpstreamTopics(cluster)
        self._now_s = now_s or (lambda: asyncio.get_running_loop().time())
        self._looking = asyncio.Lock()
        self._seen_s: float | None = None
        self._partitions: dict[str, int] = {}

    async def portions(self) -> Iterator[Named]:
        """Portions that are asked about one after the other; none where there are no transactions.

        Raises UpstreamError.
        """
        async with self._looking:
            if self._seen_s is None or self._now_s() - self._seen_s > SEEN_S:
                self._partitions = await self._look()
                self._seen_s = self._now_s()
        return in_portions(self._partitions)

    async def _look(self) -> dict[str, int]:
        found = await self._topics.by_name([TRANSACTIONS])
        if found[TRANSACTIONS] is ABSENT:
            return {}
        return {name: topic.partitions for name, topic in (await self._topics.look()).topics.items()}


def in_portions(partitions: Mapping[str, int], size: int = PARTITIONS_PER_QUESTION) -> Iterator[Named]:
    """Partitions by topic, so many at a time."""
    portion: dict[str, Sequence[int]] = {}
    room = size
    for name, count in partitions.items():
        first = 0
        while first < count:
            last = min(count, first + room)
            portion[name] = range(first, last)
            room -= last - first
            first = last
            if not room:
                yield portion
                portion, room = {}, size
    if portion:
        yield portion
