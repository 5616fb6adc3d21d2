# SPDX-License-Identifier: Apache-2.0
"""ListOffsets v1-v11.

v2: isolation level, throttle time. v4: leader epoch (KIP-320). v6: flexible. v7: the largest timestamp (KIP-734).
v8: the earliest local offset (KIP-405). v9: the latest tiered offset (KIP-1005). v10: timeout (KIP-1075).
v11: the earliest offset that waits for upload (KIP-1023).

The partitions hold no data. They start at offset 0, and end where the group says that makes their work (`ends.py`).
Where nobody says that, the end is unknown, and two kinds of clients ask for it:

- Consumers without a committed offset want a place to start at, and get the start.
- Tools take the end for the largest offset that a group may be set to, and for what its lag counts from. A number
  would make them write what nobody asked for. So they get UNSUPPORTED_FOR_MESSAGE_FORMAT, Kafka's word for an offset
  that cannot be found, which they report. Those in Java get -1, which is no offset: whatever would set a group to it
  is an error there, while `kafka-consumer-groups.sh --describe`, which gives up at an error, goes on.

A look-up by time is true only behind the end: nothing was made after the end was committed.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from coordinator.api.context import Parked, RequestContext, Work
from coordinator.api.ends import NO_END, Known, with_ends
from coordinator.api.partitions import NO_EPOCH, partition_error
from coordinator.catalogue.topic import Topic
from coordinator.node import End, Node
from protocol.errors import ErrorCode
from protocol.messages import ListOffsetsRequest, ListOffsetsResponse

START: Final = 0
NOWHERE: Final = -1
NO_TIMESTAMP: Final = -1
END: Final = -1  # as timestamp
LEADER_EPOCH_FROM: Final = 4
OFFSET_NOT_AVAILABLE_FROM: Final = 5

JAVA: Final = "apache-kafka-java"
NAMES_NO_EPOCH: Final = frozenset({"kafka-python", "kgo", "sarama"})
"""Clients, as ApiVersions names them, whose consumers look for a start without telling the leader epoch. Their tools
cannot be told from them: what they get as well is in docs/offsets.md."""


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

Asked = dict[str, list[Any]]
"""What is asked of the partitions of each topic."""

Found = int | ErrorCode
"""An offset, or why there is none to tell."""


def handle(node: Node, request: ListOffsetsRequest, ctx: RequestContext) -> Parked:
    """Tell where each partition starts or ends."""
    asked = _merged(request)
    return _respond(node, ctx, asked, _at_end(asked))


def handle_in_steps(node: Node, request: ListOffsetsRequest, ctx: RequestContext) -> Work:
    """Tell where each of many partitions starts or ends."""
    asked = _merged(request)
    yield
    at_end = _at_end(asked)
    yield
    return _respond(node, ctx, asked, at_end)


def _at_end(asked: Asked) -> dict[str, set[int]]:
    """The partitions whose end is wanted."""
    return {
        name: {row.partition_index for row in rows if _depends_on_end(row.timestamp)}
        for name, rows in asked.items()
    }


def _respond(node: Node, ctx: RequestContext, asked: Asked, at_end: dict[str, set[int]]) -> Parked:
    def respond(known: Known) -> ListOffsetsResponse:
        topics = (_topic(node, name, rows, ctx, known.get(name, NO_END)) for name, rows in asked.items())
        return ListOffsetsResponse(version=ctx.api_version, topics=topics)

    wanted = {name: indexes for name, indexes in at_end.items() if indexes and name in node.catalogue}
    return with_ends(node, ctx, wanted, respond)


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


def _merged(request: ListOffsetsRequest) -> Asked:
    """What is asked of each topic, however often the request names it."""
    merged: dict[str, list[Any]] = {}
    for topic in request.topics:
        if topic.partitions:
            merged.setdefault(topic.name, []).extend(topic.partitions)
    return merged


def _depends_on_end(timestamp: int) -> bool:
    return timestamp == END or timestamp >= 0


def _topic(
    node: Node, name: str, rows: list[Any], ctx: RequestContext, ends: Mapping[int, End] | None
) -> ListOffsetsResponse.ListOffsetsTopicResponse:
    topic = node.catalogue.get(name)
    version = ctx.api_version
    times = Counter(row.partition_index for row in rows)

    def answer(index: int, row: Any) -> Any:
        found = ErrorCode.INVALID_REQUEST if times[index] > 1 else _find(node, topic, row, ctx, ends)
        if isinstance(found, ErrorCode):
            return _refusal(index, found, version)
        assert topic is not None, f"an offset of {name}, which is not there"
        return _answer(index, found, node.cluster.leader(topic, index).epoch, version)

    answers = (answer(index, row) for index, row in {row.partition_index: row for row in rows}.items())
    return ListOffsetsResponse.ListOffsetsTopicResponse(version=version, name=name, partitions=answers)


def _find(
    node: Node, topic: Topic | None, row: Any, ctx: RequestContext, ends: Mapping[int, End] | None
) -> Found:
    timestamp = row.timestamp
    place = PLACES.get(timestamp)
    if timestamp < 0 and (place is None or ctx.api_version < place.since):
        return ErrorCode.UNSUPPORTED_VERSION
    error = partition_error(node.cluster, topic, row.partition_index, row.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return error
    if not _depends_on_end(timestamp):
        return START if place is not None and place.is_there else NOWHERE
    if ends is None:
        # These two say what they say of a new leader in Kafka, and clients ask again.
        early = ctx.api_version < OFFSET_NOT_AVAILABLE_FROM
        return ErrorCode.LEADER_NOT_AVAILABLE if early else ErrorCode.OFFSET_NOT_AVAILABLE
    end = ends.get(row.partition_index)
    if end is None:
        return _without_end(row, ctx)
    if timestamp == END:
        return end.offset
    return NOWHERE if timestamp > end.committed_ms else ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def _without_end(row: Any, ctx: RequestContext) -> Found:
    if _is_consumer(row, ctx):
        return START if row.timestamp == END else NOWHERE
    return NOWHERE if ctx.sink.client_software == JAVA else ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def _is_consumer(row: Any, ctx: RequestContext) -> bool:
    """Whether a consumer asks. It tells the leader epoch that it knows; Kafka's tools never do.

    Below v4 nobody can tell it: those who speak no newer version are consumers (aiokafka, KafkaJS).
    """
    return (
        ctx.api_version < LEADER_EPOCH_FROM
        or row.current_leader_epoch != NO_EPOCH
        or ctx.sink.client_software in NAMES_NO_EPOCH
    )


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
