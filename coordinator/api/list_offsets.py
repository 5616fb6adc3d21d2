# SPDX-License-Identifier: Apache-2.0
"""The handler of ListOffsets v1-v11: `__consumer_offsets` from its log, all other topics from their end groups.

v2: isolation level, throttle time. v4: leader epoch (KIP-320). v6: flexible. v7: the largest timestamp (KIP-734).
v8: the earliest local offset (KIP-405). v9: the latest tiered offset (KIP-1005). v10: timeout (KIP-1075).
v11: the earliest offset that waits for upload (KIP-1023).

The partitions hold no data. They start at offset 0, and end at the offset that their end group has committed
(`committed_end_offsets.py`). Without such an offset the end is unknown, and two kinds of clients ask for it:

- Consumers without a committed offset want an offset to start at, and get the start. They name the leader epoch that
  they know, or use a version that cannot name it.
- Tools treat the end as the largest offset that a group may be set to, and compute its lag from the end. A number would
  make them write offsets that the user did not want. They get the value of the setting `end.unknown`; by default -1,
  which is no offset: Kafka's tools refuse to set a group to it, while `kafka-consumer-groups.sh --describe`, which
  stops at an error, goes on.

A look-up by time succeeds only for times after the commit of the end, because the partition has nothing later.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator.api.context import PARKED, InSteps, ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.end_offsets_from_end_groups import NO_END, Known, find_ends_and_respond
from coordinator.api.partition_checks import (
    NO_EPOCH,
    READ_COMMITTED,
    can_answer_for,
    find_existence_or_epoch_error,
)
from coordinator.api.slices import cast_as_list
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.node import CommittedEndOffset, Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ListOffsetsRequest, ListOffsetsResponse, build_schema
from protocol.newtypes import Offset, Partition
from storage.partition.reader import NO_TIMESTAMP, OffsetQuery, OffsetSpec, TimestampAndOffset
from storage.partition.reader import NOWHERE as NOT_IN_LOG

ListOffsetsPartition = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
ListOffsetsTopicResponse = ListOffsetsResponse.ListOffsetsTopicResponse
ListOffsetsPartitionResponse = ListOffsetsTopicResponse.ListOffsetsPartitionResponse

START: Final = Offset(0)
NOWHERE: Final = Offset(-1)
END: Final = -1  # as timestamp
LEADER_EPOCH_FROM: Final = 4
OFFSET_NOT_AVAILABLE_FROM: Final = 5
UNKNOWN_ENDS: Final[Mapping[str, Offset | ErrorCode]] = {
    "-1": NOWHERE,
    "0": START,
    "error": ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
}
"""The result that each value of `end.unknown` gives to clients other than consumers."""


class NamedOffset(NamedTuple):
    """A place in a partition that a negative timestamp names.

    `since` is its first version, `is_there` is True if an empty partition has the place, and `in_log` is the place in
    a log, or None if no log has it.
    """

    since: int
    is_there: bool
    in_log: OffsetSpec | None = None


PLACES: Final[Mapping[int, NamedOffset]] = {
    END: NamedOffset(1, is_there=True, in_log=OffsetSpec.END),
    -2: NamedOffset(1, is_there=True, in_log=OffsetSpec.START),
    -3: NamedOffset(7, is_there=False, in_log=OffsetSpec.NEWEST),
    -4: NamedOffset(
        8, is_there=True, in_log=OffsetSpec.START
    ),  # of the data that is not only in tiered storage
    -5: NamedOffset(9, is_there=False),  # the end of tiered storage
    -6: NamedOffset(11, is_there=False),  # the start of the data that waits for tiered storage
}

IN_LOG_TIME: Final = NamedOffset(1, is_there=False, in_log=OffsetSpec.TIME)

Asked = dict[str, list[ListOffsetsPartition]]
"""The partitions that the request names, by topic."""

Found = Offset | ErrorCode
"""An offset, or the error because of which it is unknown."""
InLog = Mapping[int, TimestampAndOffset | ErrorCode]
"""The offsets found in the log, or errors, by partition."""


def handle(node: Node, request: ListOffsetsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Return the start or end offset of each partition."""
    asked = _merged(request)
    if OFFSETS_TOPIC in asked:
        return _look_into_log(node, request, ctx, asked)
    return _respond(node, ctx, asked, _at_end(asked))


def handle_in_steps(
    node: Node, request: ListOffsetsRequest, ctx: RequestContext
) -> InSteps[ListOffsetsResponse]:
    """Return the start or end offset of each of many partitions, in steps."""
    asked = _merged(request)
    yield
    if OFFSETS_TOPIC in asked:
        return _look_into_log(node, request, ctx, asked)
    at_end = _at_end(asked)
    yield
    return _respond(node, ctx, asked, at_end)


def _look_into_log(
    node: Node, request: ListOffsetsRequest, ctx: RequestContext, asked: Asked
) -> ParkedSentinel:
    """Find the wanted offsets in the log, then answer."""
    topic = node.catalogue.get(OFFSETS_TOPIC)
    assert topic is not None, "the node's own topic is always there"
    found: dict[int, TimestampAndOffset | ErrorCode] = {}
    sought: list[OffsetQuery] = []
    for row in asked[OFFSETS_TOPIC]:
        one = _sought(node, topic, row, request, ctx.api_version)
        if isinstance(one, OffsetQuery):
            sought.append(one)
        else:
            found[row.partition_index] = one

    def done(offsets: list[TimestampAndOffset | ErrorCode]) -> None:
        found.update(zip((each.partition for each in sought), offsets, strict=True))
        _respond(node, ctx, asked, _at_end(asked), found)

    node.reads.find_offsets_with_callback(sought, done)
    return PARKED


def _sought(
    node: Node, topic: Topic, row: ListOffsetsPartition, request: ListOffsetsRequest, version: int
) -> OffsetQuery | TimestampAndOffset | ErrorCode:
    """Return the query of the log, or the result if none is necessary."""
    named = PLACES.get(row.timestamp) if row.timestamp < 0 else IN_LOG_TIME
    if named is None or version < named.since:
        return ErrorCode.UNSUPPORTED_VERSION
    error = find_existence_or_epoch_error(node.cluster, topic, row.partition_index, row.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return error
    if not can_answer_for(node, topic, row.partition_index):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if named.in_log is None:
        return NOT_IN_LOG
    return OffsetQuery(
        partition=Partition(row.partition_index),
        spec=named.in_log,
        timestamp=row.timestamp,
        committed=request.isolation_level == READ_COMMITTED,
        leader_epoch=node.cluster.leader(topic, row.partition_index).epoch,
    )


def _at_end(asked: Asked) -> dict[str, set[int]]:
    """Return the partitions whose end is wanted, by topic."""
    return {
        name: {row.partition_index for row in rows if _depends_on_end(row.timestamp)}
        for name, rows in asked.items()
        if name != OFFSETS_TOPIC
    }


def _respond(
    node: Node, ctx: RequestContext, asked: Asked, at_end: dict[str, set[int]], in_log: InLog | None = None
) -> ParkedSentinel:
    def respond(known: Known) -> ListOffsetsResponse:
        topics = (
            _topic_in_log(rows, in_log, ctx.api_version)
            if in_log is not None and name == OFFSETS_TOPIC
            else _topic(node, name, rows, ctx, known.get(name, NO_END))
            for name, rows in asked.items()
        )
        return ListOffsetsResponse(version=ctx.api_version, topics=cast_as_list(topics))

    wanted = {name: indexes for name, indexes in at_end.items() if indexes and name in node.catalogue}
    return find_ends_and_respond(node, ctx, wanted, respond)


def error_response(request: ListOffsetsRequest, error: ErrorCode, version: int) -> ListOffsetsResponse:
    """Return the response with one error for every partition."""
    topics = [
        ListOffsetsTopicResponse(
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
    """Return the partitions by topic, merged if the request names a topic several times."""
    merged: Asked = {}
    for topic in request.topics:
        if topic.partitions:
            merged.setdefault(topic.name, []).extend(topic.partitions)
    return merged


def _depends_on_end(timestamp: int) -> bool:
    return timestamp == END or timestamp >= 0


def _topic(
    node: Node,
    name: str,
    rows: list[ListOffsetsPartition],
    ctx: RequestContext,
    ends: Mapping[int, CommittedEndOffset] | None,
) -> ListOffsetsTopicResponse:
    topic = node.catalogue.get(name)
    version = ctx.api_version
    times = Counter(row.partition_index for row in rows)

    def answer(index: int, row: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        found = ErrorCode.INVALID_REQUEST if times[index] > 1 else _find(node, topic, row, ctx, ends)
        if isinstance(found, ErrorCode):
            return _refusal(index, found, version)
        assert topic is not None, f"an offset of {name}, which is not there"
        epoch = NO_EPOCH if found == NOWHERE else node.cluster.leader(topic, index).epoch
        return _answer(index, TimestampAndOffset(NO_TIMESTAMP, found, epoch), version)

    answers = (answer(index, row) for index, row in {row.partition_index: row for row in rows}.items())
    return ListOffsetsTopicResponse(version=version, name=name, partitions=cast_as_list(answers))


def _topic_in_log(rows: list[ListOffsetsPartition], in_log: InLog, version: int) -> ListOffsetsTopicResponse:
    times = Counter(row.partition_index for row in rows)

    def answer(index: int) -> ListOffsetsPartitionResponse:
        found = ErrorCode.INVALID_REQUEST if times[index] > 1 else in_log[index]
        if isinstance(found, ErrorCode):
            return _refusal(index, found, version)
        return _answer(index, found, version)

    answers = (answer(index) for index in times)
    return ListOffsetsTopicResponse(version=version, name=OFFSETS_TOPIC, partitions=cast_as_list(answers))


def _find(
    node: Node,
    topic: Topic | None,
    row: ListOffsetsPartition,
    ctx: RequestContext,
    ends: Mapping[int, CommittedEndOffset] | None,
) -> Found:
    timestamp = row.timestamp
    place = PLACES.get(timestamp)
    if timestamp < 0 and (place is None or ctx.api_version < place.since):
        return ErrorCode.UNSUPPORTED_VERSION
    error = find_existence_or_epoch_error(node.cluster, topic, row.partition_index, row.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return error
    if not _depends_on_end(timestamp):
        return START if place is not None and place.is_there else NOWHERE
    if ends is None:
        # Kafka returns these two errors for a new leader, and clients retry.
        early = ctx.api_version < OFFSET_NOT_AVAILABLE_FROM
        return ErrorCode.LEADER_NOT_AVAILABLE if early else ErrorCode.OFFSET_NOT_AVAILABLE
    end = ends.get(row.partition_index)
    if end is None:
        return _unknown_end(row, ctx.api_version, UNKNOWN_ENDS[node.settings.end_unknown])
    if timestamp == END:
        return end.offset
    return NOWHERE if timestamp > end.committed_ms else ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


def _unknown_end(row: ListOffsetsPartition, version: int, default_end: Found) -> Found:
    """Return the start to consumers, which name a leader epoch or use a version without one; to tools the setting."""
    is_consumer = version < LEADER_EPOCH_FROM or row.current_leader_epoch != NO_EPOCH
    end = START if is_consumer else default_end
    return NOWHERE if end == START and row.timestamp != END else end


def _answer(index: int, found: TimestampAndOffset, version: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        version=version,
        partition_index=index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _refusal(index: int, error: ErrorCode, version: int) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        version=version,
        partition_index=index,
        error_code=error,
        timestamp=NO_TIMESTAMP,
        offset=NOWHERE,
        leader_epoch=NO_EPOCH,
    )


API: Final = Api(
    build_schema(ListOffsetsRequest, ListOffsetsResponse),
    versions=VersionRange(1, 11),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=False,
    handle_in_steps=handle_in_steps,
    error_parts=("topics", "partitions"),
)
