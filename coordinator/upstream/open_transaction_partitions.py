# SPDX-License-Identifier: Apache-2.0
"""The partitions for which an open transaction may hold the first offset of a group.

Asked for all offsets of a group, a broker leaves out a partition for which none was committed yet, though an open
transaction may hold one. Asked for the partition by name, it returns UNSTABLE_OFFSET_COMMIT. So all partitions of the
cluster are named, unless it has no transactions at all.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.topic_diff import ABSENT
from coordinator.upstream.topics import UpstreamTopicsReader

TRANSACTIONS: Final = "__transaction_state"
"""The topic that brokers create when the first transactional producer comes."""
PARTITIONS_PER_QUESTION: Final = 2_000
"""The most partitions in one request: the response is decoded in some milliseconds."""
SEEN_S: Final = 5.0
"""How long the list of topics is reused before the cluster is asked again, in seconds."""

Named = Mapping[str, Sequence[int]]
"""Partitions by topic."""


class OpenTransactionPartitionLister:
    """All partitions of the cluster, in portions."""

    def __init__(self, cluster: UpstreamCluster) -> None:
        """Read the topics of `cluster`."""
        self._topics = UpstreamTopicsReader(cluster)
        self._looking = asyncio.Lock()
        self._seen_s: float | None = None
        self._partitions: dict[str, int] = {}

    async def fetch_partition_portions(self) -> Iterator[Named]:
        """Return the partitions in portions, one for each request; none if the cluster has no transactions.

        Raises UpstreamError.
        """
        async with self._looking:
            now_s = asyncio.get_running_loop().time()
            if self._seen_s is None or now_s - self._seen_s > SEEN_S:
                self._partitions = await self._look()
                self._seen_s = now_s
        return split_into_portions(self._partitions)

    async def _look(self) -> dict[str, int]:
        found = await self._topics.fetch_topics_by_name([TRANSACTIONS])
        if found[TRANSACTIONS] is ABSENT:
            return {}
        return {
            name: topic.partitions for name, topic in (await self._topics.fetch_all_topics()).topics.items()
        }


def split_into_portions(
    partitions: Mapping[str, int], size: int = PARTITIONS_PER_QUESTION
) -> Iterator[Named]:
    """Yield the partitions by topic, up to `size` at a time."""
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
