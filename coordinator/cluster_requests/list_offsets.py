# SPDX-License-Identifier: Apache-2.0
"""The request for offsets of partitions at their start, end or a time: ListOffsets v4-v8, sent to their leader."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.cluster_requests.model import TopicPartition
from coordinator.cluster_requests.request import ClusterRequest, make_request
from protocol.apis import ApiKey

if TYPE_CHECKING:
    from protocol.kafka_python_messages import ListOffsetsResponse

START: Final = -2
END: Final = -1


class FoundOffset(NamedTuple):
    """The offset of a partition, -1 if there is none, or Kafka's error code."""

    offset: int
    error_code: int


def list_offsets(
    places: Iterable[TopicPartition], timestamp: int, *, read_committed: bool = False
) -> ClusterRequest[dict[TopicPartition, FoundOffset]]:
    """Ask for the offset of each partition at START, at END or at a time in ms.

    With `read_committed` the end is the last stable offset.
    """
    from protocol.kafka_python_messages import ListOffsetsRequest

    kind = ListOffsetsRequest.ListOffsetsTopic
    topics: dict[str, ListOffsetsRequest.ListOffsetsTopic] = {}
    for place in places:
        topic = topics.setdefault(place.topic, kind(name=place.topic, partitions=[]))
        topic.partitions.append(
            kind.ListOffsetsPartition(
                partition_index=place.partition, current_leader_epoch=-1, timestamp=timestamp
            )
        )
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=int(read_committed), topics=list(topics.values())
    )
    return make_request(ApiKey.LIST_OFFSETS, request, _read)


def _read(response: "ListOffsetsResponse") -> dict[TopicPartition, FoundOffset]:
    return {
        TopicPartition(topic.name, part.partition_index): FoundOffset(part.offset, part.error_code)
        for topic in response.topics
        for part in topic.partitions
    }
