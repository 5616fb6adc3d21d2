# SPDX-License-Identifier: Apache-2.0
"""The end offsets of the cluster's partitions, requested from the partitions' leaders, many at once."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from coordinator.cluster_requests.model import TopicPartition
from coordinator.cluster_requests.topics import END, list_offsets
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.errors import Unreachable
from protocol.errors import ErrorCode

PARTITIONS_PER_QUESTION: Final = 2_000
NO_LEADER: Final = -1
_MOVED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class UpstreamEnds:
    """Requests end offsets; remembers each partition's leader, and finds it again if it has moved."""

    def __init__(self, cluster: UpstreamCluster) -> None:
        """Request the ends of partitions of `cluster`."""
        self._cluster = cluster
        self._leaders: dict[TopicPartition, int] = {}

    async def fetch_end_offsets(
        self, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions: the high watermark, or with `read_committed` the last stable offset.

        A partition is left out if its leader does not respond now, if it does not exist, or if the node's user may not
        describe it. Raises UpstreamError if no broker at all responds.
        """
        wanted = set(partitions)
        unknown = wanted - self._leaders.keys()
        if unknown:
            await self._find_leaders(unknown)
        found, moved = await self._ask_leaders(wanted, read_committed)
        if moved:
            await self._find_leaders(moved)
            again, _ = await self._ask_leaders(moved, read_committed)
            found |= again
        return found

    async def _find_leaders(self, partitions: Collection[TopicPartition]) -> None:
        from protocol.kafka_python_messages import topics_by_name

        for place in partitions:
            self._leaders.pop(place, None)
        topics = sorted({place.topic for place in partitions})
        for start in range(0, len(topics), 500):
            response = await self._cluster.fetch_metadata(topics[start : start + 500])
            for name, topic in topics_by_name(response).items():
                for part in topic.partitions:
                    self._leaders[TopicPartition(name, part.partition_index)] = part.leader_id

    async def _ask_leaders(
        self, partitions: Iterable[TopicPartition], read_committed: bool
    ) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
        """Return the ends, and the partitions whose leader has moved or does not respond."""
        by_leader: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for place in sorted(partitions):
            by_leader[self._leaders.get(place, NO_LEADER)].append(place)
        moved = set(by_leader.pop(NO_LEADER, ()))
        answers = await asyncio.gather(
            *(self._ask_leader(leader, places, read_committed) for leader, places in by_leader.items())
        )
        found: dict[TopicPartition, int] = {}
        for ends, elsewhere in answers:
            found |= ends
            moved |= elsewhere
        return found, moved

    async def _ask_leader(
        self, leader: int, places: Sequence[TopicPartition], read_committed: bool
    ) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
        found: dict[TopicPartition, int] = {}
        moved: set[TopicPartition] = set()
        for start in range(0, len(places), PARTITIONS_PER_QUESTION):
            part = places[start : start + PARTITIONS_PER_QUESTION]
            try:
                answers = await self._cluster.send_and_read(
                    list_offsets(part, END, read_committed=read_committed), node_id=leader
                )
            except Unreachable:
                return found, moved | set(places[start:])
            for place, answer in answers.items():
                if answer.error_code == ErrorCode.NONE and answer.offset >= 0:
                    found[place] = answer.offset
                elif answer.error_code in _MOVED:
                    moved.add(place)
        return found, moved
