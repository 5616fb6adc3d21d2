# SPDX-License-Identifier: Apache-2.0
"""ListOffsets v1-v11.

v2: isolation level, throttle time. v4: leader epoch (KIP-320). v6: flexible. v7: the largest timestamp (KIP-734).
v8: the earliest local offset (KIP-405). v9: the latest tiered offset (KIP-1005). v10: timeout (KIP-1075).
v11: the earliest offset that waits for upload (KIP-1023).

The partitions hold no data: they start and end at offset 0, and no timestamp is found in them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from coordinator.api.context import RequestContext
from coordinator.api.partitions import LEADER_EPOCH, NO_EPOCH, partition_error
from coordinator.catalogue.topic import Topic
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.messages import ListOffsetsRequest, ListOffsetsResponse

START_AND_END: Final = 0
NOWHERE: Final = -1
NO_TIMESTAMP: Final = -1


class Place(NamedTuple):
    """A negative timestamp names a place in a partition: since which version, and whether an empty one has it."""

    since: int
    is_there: bool


PLACES: Final[Mapping[int, Place]] = {
    -1: Place(1, is_there=True),  # the end
    -2: Place(1, is_there=True),  # the start
    -3: Place(7, is_there=False),  # the record with the largest timestamp
    -4: Place(8, is_there=True),  # the start of what is not only in tiered storage
    -5: Place(9, is_there=False),  # the end of tiered storage
    -6: Place(11, is_there=False),  # the start of what waits for tiered storage
}


def handle(node: Node, request: ListOffsetsRequest, ctx: RequestContext) -> ListOffsetsResponse:
    """Tell the offset 0 for the start and the end of each partition."""
    version = ctx.api_version
    return ListOffsetsResponse(
        version=version,
        topics=[_topic(node.catalogue.get(each.name), each, version) for each in request.topics],
    )


def error_response(request: ListOffsetsRequest, error: ErrorCode, version: int) -> ListOffsetsResponse:
    """The same error for every partition."""
    topics = [
        ListOffsetsResponse.ListOffsetsTopicResponse(
            version=version,
            name=topic.name,
            partitions=[
                _refusal(partition.partition_index, error, version) for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(version=version, topics=topics)


def _topic(topic: Topic | None, wanted: Any, version: int) -> ListOffsetsResponse.ListOffsetsTopicResponse:
    times = Counter(partition.partition_index for partition in wanted.partitions)
    answers = {}
    for partition in wanted.partitions:
        index = partition.partition_index
        error = ErrorCode.INVALID_REQUEST if times[index] > 1 else _error(topic, partition, version)
        if error is ErrorCode.NONE:
            answers[index] = _offset(partition, version)
        else:
            answers[index] = _refusal(index, error, version)
    return ListOffsetsResponse.ListOffsetsTopicResponse(
        version=version, name=wanted.name, partitions=list(answers.values())
    )


def _error(topic: Topic | None, partition: Any, version: int) -> ErrorCode:
    place = PLACES.get(partition.timestamp)
    if partition.timestamp < 0 and (place is None or version < place.since):
        return ErrorCode.UNSUPPORTED_VERSION
    return partition_error(topic, partition.partition_index, partition.current_leader_epoch)


def _offset(
    partition: Any, version: int
) -> ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse:
    place = PLACES.get(partition.timestamp)
    found = place is not None and place.is_there
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        version=version,
        partition_index=partition.partition_index,
        timestamp=NO_TIMESTAMP,
        offset=START_AND_END if found else NOWHERE,
        leader_epoch=LEADER_EPOCH if found else NO_EPOCH,
    )


def _refusal(
    index: int, error: ErrorCode, version: int
) -> ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse:
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        version=version,
        partition_index=index,
        error_code=error,
        timestamp=NO_TIMESTAMP,
        offset=NOWHERE,
        leader_epoch=NO_EPOCH,
    )
