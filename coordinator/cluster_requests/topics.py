# SPDX-License-Identifier: Apache-2.0
"""Requests about topics: Metadata v10-v12, and ListOffsets v4-v8, which is sent to the leader of the partitions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator.cluster_requests.model import TopicPartition
from coordinator.cluster_requests.request import ClusterRequest, make_plain_request, make_request
from protocol.apis import ApiKey

if TYPE_CHECKING:
    from protocol.kafka_python_messages import ListOffsetsResponse, MetadataResponse

START: Final = -2
END: Final = -1


def metadata(topics: Iterable[str] | None) -> "ClusterRequest[MetadataResponse]":
    """Ask any broker for all brokers and for these topics, or all topics for None; creates no topic."""
    from protocol.kafka_python_messages import MetadataRequest

    kind = MetadataRequest.MetadataRequestTopic
    named = None if topics is None else [kind(name=topic) for topic in topics]
    return make_plain_request(ApiKey.METADATA, MetadataRequest(topics=named, allow_auto_topic_creation=False))


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
