# SPDX-License-Identifier: Apache-2.0
"""The handler of Fetch v4-v18: a long poll that never finds data, except in `__consumer_offsets`.

`offsets_topic_fetch` reads that topic.

v5: log start offset. v7: sessions (KIP-227). v9: leader epoch (KIP-320). v11: rack. v12: flexible, diverging epochs.
v13: topic ids (KIP-516). v15: replica state (KIP-903). v16: the current leader (KIP-951). v17: directory id
(KIP-853). v18: high watermark (KIP-1166).

No session is ever opened: the session id 0 in every response makes clients name all partitions each time.

Kafka returns OFFSET_OUT_OF_RANGE for any offset but 0 of an empty partition. Consumers then jump to its end and, with
auto commit on, overwrite the committed offset. Here committed offsets count the work of the clients that commit them,
not records of this node; so a fetch may start at any offset, which is then the end of the partition.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from coordinator.api.context import PARKED, InSteps, ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.fetch_partition_results import (
    FetchableTopicResponse,
    PartitionData,
    make_empty_result,
    make_error_result,
)
from coordinator.api.offsets_topic_fetch import FetchPartition, LogFetch
from coordinator.api.partition_checks import (
    NO_EPOCH,
    READ_COMMITTED,
    can_answer_for,
    find_existence_or_epoch_error,
)
from coordinator.api.slices import cast_as_list, iterate_with_none_at_pauses, respond_in_slices
from coordinator.api.topic_lookup import find_topic, topic_id_to_bytes
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.node import Node
from coordinator.telemetry.logs import get_logger
from protocol.apis import ApiKey, VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FetchRequest, FetchResponse, build_schema
from protocol.newtypes import Partition

log = get_logger("api")

FetchTopic = FetchRequest.FetchTopic

TOPIC_IDS_FROM: Final = 13
REPLICA_STATE_FROM: Final = 15
TOP_ERROR_FROM: Final = 7

WAIT_MS_MAX: Final = 30_000
"""The longest wait of a poll, even if the client asks for more."""

SESSION_STARTS: Final = 0
SESSIONLESS: Final = -1
CONSUMER: Final = -1  # the replica id of a client that is no broker


def handle(node: Node, request: FetchRequest, ctx: RequestContext) -> FetchResponse | ParkedSentinel:
    """Answer after the wait that the client permits, or at once if there is an error."""
    version = ctx.api_version
    if request.session_epoch not in (SESSION_STARTS, SESSIONLESS):
        return _refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, version)
    if _names_log(node, request, version):
        errors: set[ErrorCode] = set()
        for topic in _topics(node, request, version, errors):
            for _ in topic.partitions:
                pass
        return _fetch_log(node, request, ctx, errors)
    response, may_wait = _answer(node, request, version)
    if not may_wait or request.max_wait_ms <= 0 or request.min_bytes <= 0:
        return response
    if node.stats.apis[ApiKey.FETCH].handled - node.stats.log_fetches == 1:
        # Logged once in a node's life, because the members of every group poll.
        log.info(
            "a client fetches, and gets nothing: topics hold no records here",
            client_id=ctx.client_id,
            client_host=ctx.client_host,
            help="fetch from the Kafka cluster that holds the data; groups and offsets are served",
        )
    # The response is made again then, because a topic may have been deleted meanwhile.
    return _wait(node, request, ctx, lambda: ctx.answer_parked_request(_answer(node, request, version)[0]))


def handle_in_steps(node: Node, request: FetchRequest, ctx: RequestContext) -> InSteps[FetchResponse]:
    """Answer a poll for many partitions, in steps."""
    version = ctx.api_version
    if request.session_epoch not in (SESSION_STARTS, SESSIONLESS):
        return _refused(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, version)
    errors: set[ErrorCode] = set()
    for wanted in request.topics:
        for partition in iterate_with_none_at_pauses(_partitions(node, request, wanted, version, errors)):
            if partition is None:
                yield
        yield
    if _names_log(node, request, version):
        return _fetch_log(node, request, ctx, errors)

    def answer() -> ParkedSentinel:
        topics = _topics(node, request, version, set())
        return respond_in_slices(node, ctx, FetchResponse(version=version, responses=cast_as_list(topics)))

    if errors != {ErrorCode.NONE} or request.max_wait_ms <= 0 or request.min_bytes <= 0:
        return answer()
    return _wait(node, request, ctx, answer)


def _wait(
    node: Node, request: FetchRequest, ctx: RequestContext, answer: Callable[[], object]
) -> ParkedSentinel:
    """Call `answer` after the wait that the client permits, unless the client disconnects before."""

    def due(_argument: object) -> None:
        answer()

    timer = node.timers.call_after(min(request.max_wait_ms, WAIT_MS_MAX), due)
    ctx.on_abandoned = timer.cancel
    return PARKED


def _names_log(node: Node, request: FetchRequest, version: int) -> bool:
    """Return whether the request names a partition of `__consumer_offsets`, the one topic with records here."""
    return any(wanted.partitions and _is_log(node, wanted, version) for wanted in request.topics)


def _is_log(node: Node, wanted: FetchTopic, version: int) -> bool:
    topic = _find(node, wanted, version)
    return isinstance(topic, Topic) and topic.name == OFFSETS_TOPIC


def _fetch_log(
    node: Node, request: FetchRequest, ctx: RequestContext, errors: set[ErrorCode]
) -> ParkedSentinel:
    """Answer with records of the log; at once if there is an error."""
    version = ctx.api_version
    topic = node.catalogue.get(OFFSETS_TOPIC)
    assert topic is not None, "it was found a moment ago, and is never deleted"
    rows = {
        Partition(row.partition): row
        for wanted in request.topics
        if _is_log(node, wanted, version)
        for row in wanted.partitions
    }
    fetch = LogFetch(
        node,
        request,
        ctx,
        topic,
        rows,
        refuse=partial(_error, node, topic, is_follower=_replica_id(request, version) >= 0),
        topics=partial(_topics, node, request, version, set()),
    )
    may_wait = errors == {ErrorCode.NONE} and request.min_bytes > 0
    return fetch.start(min(request.max_wait_ms, WAIT_MS_MAX) if may_wait else 0)


def error_response(request: FetchRequest, error: ErrorCode, version: int) -> FetchResponse:
    """Return the response with a top-level error or, below v7, which has none, with the error for every partition."""
    if version >= TOP_ERROR_FROM:
        return _refused(error, version)
    responses = [
        FetchableTopicResponse(
            version=version,
            topic=topic.topic,
            partitions=[
                make_error_result(partition.partition, error, version) for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return FetchResponse(version=version, responses=responses)


def _answer(node: Node, request: FetchRequest, version: int) -> tuple[FetchResponse, bool]:
    """Return the response, and whether it may wait: it has a partition, and no error."""
    errors: set[ErrorCode] = set()
    responses = []
    for response in _topics(node, request, version, errors):
        response.partitions = list(response.partitions)
        responses.append(response)
    return FetchResponse(version=version, responses=responses), errors == {ErrorCode.NONE}


def _topics(
    node: Node,
    request: FetchRequest,
    version: int,
    errors: set[ErrorCode],
    from_log: Iterator[PartitionData | None] | None = None,
) -> Iterator[FetchableTopicResponse]:
    """Yield the responses by topic, with their partitions still to be made; add the partitions' errors to `errors`.

    `from_log` are the results for the topic that has records, even if the request names it several times.
    """
    for wanted in request.topics:
        if not wanted.partitions:
            continue
        partitions: Iterator[PartitionData | None] = _partitions(node, request, wanted, version, errors)
        if from_log is not None and _is_log(node, wanted, version):
            partitions, from_log = from_log, iter(())
        yield FetchableTopicResponse(
            version=version,
            topic=wanted.topic,
            topic_id=wanted.topic_id,
            partitions=cast_as_list(partitions),
        )


def _partitions(
    node: Node, request: FetchRequest, wanted: FetchTopic, version: int, errors: set[ErrorCode]
) -> Iterator[PartitionData]:
    is_follower = _replica_id(request, version) >= 0
    committed = request.isolation_level == READ_COMMITTED
    topic = _find(node, wanted, version)
    for partition in wanted.partitions:
        error = _error(node, topic, partition, is_follower=is_follower)
        errors.add(error)
        if error is ErrorCode.NONE:
            index, offset = partition.partition, partition.fetch_offset
            yield make_empty_result(index, offset, version, committed=committed)
        else:
            yield make_error_result(partition.partition, error, version)


def _replica_id(request: FetchRequest, version: int) -> int:
    if version < REPLICA_STATE_FROM:
        return request.replica_id
    state = request.replica_state
    if state is None:  # consumers leave it out
        return CONSUMER
    return state.replica_id


def _find(node: Node, wanted: FetchTopic, version: int) -> Topic | ErrorCode:
    by_id = version >= TOPIC_IDS_FROM
    return find_topic(node.catalogue, wanted.topic, topic_id_to_bytes(wanted.topic_id) if by_id else None)


def _error(
    node: Node, topic: Topic | ErrorCode, partition: FetchPartition, *, is_follower: bool
) -> ErrorCode:
    if isinstance(topic, ErrorCode):
        return topic
    # In Fetch, unlike ListOffsets, Kafka treats any negative epoch as none (FetchRequest.optionalEpoch).
    epoch = max(partition.current_leader_epoch, NO_EPOCH)
    error = find_existence_or_epoch_error(node.cluster, topic, partition.partition, epoch)
    if error is ErrorCode.NONE and is_follower:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER  # no broker replicates from here
    if error is ErrorCode.NONE and not can_answer_for(node, topic, partition.partition):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if error is ErrorCode.NONE and partition.fetch_offset < 0:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    return error


def _refused(error: ErrorCode, version: int) -> FetchResponse:
    return FetchResponse(version=version, error_code=error, responses=[])


API: Final = Api(
    build_schema(FetchRequest, FetchResponse),
    versions=VersionRange(4, 18),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=False,
    handle_in_steps=handle_in_steps,
    error_parts=("responses", "partitions"),
)
