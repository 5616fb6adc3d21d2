# SPDX-License-Identifier: Apache-2.0
"""ListOffsets v1-v11.

v2: isolation level, throttle time. v4: leader epoch (KIP-320). v6: flexible. v7: the largest timestamp (KIP-734).
v8: the earliest local offset (KIP-405). v9: the latest tiered offset (KIP-1005). v10: timeout (KIP-1075).
v11: the earliest offset that waits for upload (KIP-1023).

The partitions hold no data: they start at offset 0, and no timestamp is found in them. As their end counts the
furthest offset that any group has committed. Tools take the end for the largest offset that a group can be reset
to, and show how far a group is behind it; with an end of 0 nobody could be reset to anything else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from coordinator.api.context import PARKED, Parked, RequestContext
from coordinator.api.partitions import NO_EPOCH, partition_error
from coordinator.catalogue.topic import Topic
from coordinator.manager import GroupMetadataManager
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.messages import ListOffsetsRequest, ListOffsetsResponse

START: Final = 0
NOWHERE: Final = -1
NO_TIMESTAMP: Final = -1
END: Final = -1  # as timestamp
OFFSET_NOT_AVAILABLE_FROM: Final = 5


class Place(NamedTuple):
    """A negative timestamp names a place in a partition: since which version, and whether an empty one has it."""

    since: int
    is_there: bool


PLACES: Final[Mapping[int, Place]] = {
    END: Place(1, is_there=True),
    -2: Place(1, is_there=True),  # the start
    -3: Place(7, is_there=False),  # the record with the largest timestamp
    -4: Place(8, is_there=True),  # the start of what is not only in tiered storage
    -5: Place(9, is_there=False),  # the end of tiered storage
    -6: Place(11, is_there=False),  # the start of what waits for tiered storage
}


Elsewhere = dict[str, dict[int, int] | None]
"""By topic, how far the groups of other nodes have come; None where that cannot be told now."""


def handle(node: Node, request: ListOffsetsRequest, ctx: RequestContext) -> ListOffsetsResponse | Parked:
    """Tell where each partition starts or ends."""
    questions = _questions(node, request)
    if node.ends is None or not questions:
        return _response(node, request, ctx, {})
    elsewhere: Elsewhere = {}

    def told(topic: str, ends: dict[int, int] | None) -> None:
        elsewhere[topic] = ends
        if len(elsewhere) == len(questions):
            ctx.complete(_response(node, request, ctx, elsewhere))

    for topic, indexes in questions.items():
        node.ends.ask(topic, indexes, partial(told, topic))
    return PARKED


def _questions(node: Node, request: ListOffsetsRequest) -> dict[str, list[int]]:
    """The partitions of which the end is wanted, by topic."""
    questions: dict[str, list[int]] = {}
    for wanted in request.topics:
        at_end = [each.partition_index for each in wanted.partitions if each.timestamp == END]
        if at_end and wanted.name in node.catalogue:
            questions.setdefault(wanted.name, []).extend(at_end)
    return questions


def _response(
    node: Node, request: ListOffsetsRequest, ctx: RequestContext, elsewhere: Elsewhere
) -> ListOffsetsResponse:
    topics = [_topic(node, wanted, ctx, elsewhere) for wanted in request.topics if wanted.partitions]
    return ListOffsetsResponse(version=ctx.api_version, topics=topics)


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


def _topic(node: Node, wanted: Any, ctx: RequestContext, elsewhere: Elsewhere) -> Any:
    topic = node.catalogue.get(wanted.name)
    others = elsewhere.get(wanted.name, {})
    epochs: dict[int, int] = {}
    times = Counter(partition.partition_index for partition in wanted.partitions)
    answers: dict[int, Any] = {}
    at_end: list[int] = []
    for partition in wanted.partitions:
        index = partition.partition_index
        error = (
            ErrorCode.INVALID_REQUEST
            if times[index] > 1
            else _error(node, topic, partition, ctx.api_version, others_told=others is not None)
        )
        if topic is not None and error is ErrorCode.NONE:
            epochs[index] = node.cluster.leader(topic, index).epoch
        if error is not ErrorCode.NONE:
            answers[index] = _refusal(index, error, ctx.api_version)
        elif partition.timestamp == END:
            at_end.append(index)
            answers[index] = None  # keeps its place
        else:
            place = PLACES.get(partition.timestamp)
            found = place is not None and place.is_there
            answers[index] = _answer(index, START if found else NOWHERE, epochs[index], ctx.api_version)
    for index, offset in _ends(node, wanted.name, at_end, ctx).items():
        furthest = max(offset, (others or {}).get(index, START))
        answers[index] = _answer(index, furthest, epochs[index], ctx.api_version)
    return ListOffsetsResponse.ListOffsetsTopicResponse(
        version=ctx.api_version, name=wanted.name, partitions=list(answers.values())
    )


def _error(node: Node, topic: Topic | None, partition: Any, version: int, *, others_told: bool) -> ErrorCode:
    place = PLACES.get(partition.timestamp)
    if partition.timestamp < 0 and (place is None or version < place.since):
        return ErrorCode.UNSUPPORTED_VERSION
    error = partition_error(node.cluster, topic, partition.partition_index, partition.current_leader_epoch)
    moves = bool(node.manager.loading_partitions) or not others_told
    if error is ErrorCode.NONE and partition.timestamp == END and moves:
        # The end would move as groups come from the log. These two say what they say of a new leader in Kafka.
        early = version < OFFSET_NOT_AVAILABLE_FROM
        return ErrorCode.LEADER_NOT_AVAILABLE if early else ErrorCode.OFFSET_NOT_AVAILABLE
    return error


def _ends(node: Node, topic: str, indexes: Sequence[int], ctx: RequestContext) -> dict[int, int]:
    """The furthest offset that a group has committed in each of these partitions."""
    if not indexes:
        return {}
    ends, flush = furthest_offsets(node.manager, topic, indexes)
    ctx.wait_for(flush)
    return ends


def furthest_offsets(
    manager: GroupMetadataManager, topic: str, indexes: Sequence[int]
) -> tuple[dict[int, int], int]:
    """The furthest offset that a group of this node has committed in each partition, and the flush to wait for."""
    ends = dict.fromkeys(indexes, START)
    flush = 0
    for group in manager.current_groups():
        committed = group.offsets.get(topic)
        if committed is None:
            continue
        flush = max(flush, group.flush)
        for index in indexes:
            entry = committed.get(index)
            if entry is not None and entry.offset > ends[index]:
                ends[index] = entry.offset
    return ends, flush


def _answer(index: int, offset: int, leader_epoch: int, version: int) -> Any:
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        version=version,
        partition_index=index,
        timestamp=NO_TIMESTAMP,
        offset=offset,
        leader_epoch=NO_EPOCH if offset == NOWHERE else leader_epoch,
    )


def _refusal(index: int, error: ErrorCode, version: int) -> Any:
    return ListOffsetsResponse.ListOffsetsTopicResponse.ListOffsetsPartitionResponse(
        version=version,
        partition_index=index,
        error_code=error,
        timestamp=NO_TIMESTAMP,
        offset=NOWHERE,
        leader_epoch=NO_EPOCH,
    )
