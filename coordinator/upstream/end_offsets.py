# SPDX-License-Identifier: Apache-2.0
"""The end offsets of the cluster's partitions, requested from the partitions' leaders, many at once."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from coordinator.upstream.adoption import TopicPartition
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.cluster_request_types import UpstreamRequest
from coordinator.upstream.errors import Unreachable
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from protocol.kafka_python_messages import ListOffsetsResponse

    AnsweredEnd = ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse

PARTITIONS_PER_QUESTION: Final = 2_000
LATEST: Final = -1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
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
        isolation = READ_COMMITTED if read_committed else READ_UNCOMMITTED
        answers = await asyncio.gather(
            *(self._ask_leader(leader, places, isolation) for leader, places in by_leader.items())
        )
        found: dict[TopicPartition, int] = {}
        for ends, elsewhere in answers:
            found |= ends
            moved |= elsewhere
        return found, moved

    async def _ask_leader(
        self, leader: int, places: Sequence[TopicPartition], isolation: int
    ) -> tuple[dict[TopicPartition, int], set[TopicPartition]]:
        found: dict[TopicPartition, int] = {}
        moved: set[TopicPartition] = set()
        for start in range(0, len(places), PARTITIONS_PER_QUESTION):
            part = places[start : start + PARTITIONS_PER_QUESTION]
            try:
                response = await self._cluster.send_and_decode(_question(part, isolation), node_id=leader)
            except Unreachable:
                return found, moved | set(places[start:])
            for place, answer in _answers(response):
                if answer.error_code == ErrorCode.NONE and answer.offset >= 0:
                    found[place] = answer.offset
                elif answer.error_code in _MOVED:
                    moved.add(place)
        return found, moved


def _question(places: Sequence[TopicPartition], isolation: int) -> UpstreamRequest:
    from protocol.kafka_python_messages import ListOffsetsRequest

    kind = ListOffsetsRequest.ListOffsetsTopic
    by_topic: defaultdict[str, list[ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition]] = defaultdict(
        list
    )
    for place in places:
        by_topic[place.topic].append(
            kind.ListOffsetsPartition(
                partition_index=place.partition, current_leader_epoch=-1, timestamp=LATEST
            )
        )
    topics = [kind(name=name, partitions=parts) for name, parts in by_topic.items()]
    return UpstreamRequest.from_fixed_message(
        ApiKey.LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics)
    )


def _answers(
    response: "ListOffsetsResponse",
) -> "Iterable[tuple[TopicPartition, AnsweredEnd]]":
    for topic in response.topics:
        for part in topic.partitions:
            yield TopicPartition(topic.name, part.partition_index), part
