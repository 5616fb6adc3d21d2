# SPDX-License-Identifier: Apache-2.0
"""The handler of Produce v3-v13, which is offered, and refused.

v5: log start offset. v8: messages (KIP-467). v9: flexible. v10: the current leader (KIP-951). v13: topic ids (KIP-516).

Topics hold no records here. The api is offered because librdkafka treats a server without Produce v3 as older than
Kafka 0.8.1: it sends the server no Fetch, and retries in a loop that takes a whole core.
"""

from collections.abc import Iterable
from typing import Final

from coordinator.api.context import SILENT, ParkedSentinel, RequestContext, Silent
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list, respond_in_slices
from coordinator.api.topic_lookup import find_topic, topic_id_to_bytes
from coordinator.catalogue.topic import Topic
from coordinator.node import Node
from coordinator.telemetry.logs import get_logger
from protocol.apis import VersionRange
from protocol.bounds import BLOBS
from protocol.errors import ErrorCode, ProtocolError
from protocol.kafka_python_messages import ProduceRequest, ProduceResponse, build_schema

log = get_logger("api")

TopicProduceData = ProduceRequest.TopicProduceData
TopicProduceResponse = ProduceResponse.TopicProduceResponse
PartitionProduceResponse = TopicProduceResponse.PartitionProduceResponse

TOPIC_IDS_FROM: Final = 13
OFFERED_FROM: Final = 0
"""The first version offered. As in Kafka v0-v2 are not served: librdkafka needs them to compress (KAFKA-18659)."""

NO_ACKS: Final = 0
ACKS: Final = frozenset({-1, NO_ACKS, 1})
UNKNOWN: Final = -1
WHY: Final = (
    "Groupkeeper coordinates groups and keeps no records: produce to the Kafka cluster that holds the data."
)


def handle(node: Node, request: ProduceRequest, ctx: RequestContext) -> ParkedSentinel | Silent:
    """Refuse every partition with POLICY_VIOLATION, after which clients do not retry.

    Raises ProtocolError for acks=0: the client waits for no response, so Kafka closes the connection on an error
    (KafkaApis.handleProduceRequest). A request without partitions has no error.
    """
    if request.acks == NO_ACKS:
        if not any(topic.partition_data for topic in request.topic_data):
            return SILENT
        raise ProtocolError(f"it produces without waiting for an answer: {WHY}")
    if ctx.claim_first_api_use():
        log.warning(
            "a client produces, and no records are kept here",
            client_id=ctx.client_id,
            client_host=ctx.client_host,
            help="produce to the Kafka cluster that holds the data",
        )
    version = ctx.api_version
    responses = (_refused(node, request, wanted, version) for wanted in request.topic_data)
    return respond_in_slices(
        node, ctx, ProduceResponse(version=version, responses=cast_as_list(responses), node_endpoints=[])
    )


def _refused(
    node: Node, request: ProduceRequest, wanted: TopicProduceData, version: int
) -> TopicProduceResponse:
    by_id = version >= TOPIC_IDS_FROM
    topic = find_topic(node.catalogue, wanted.name, topic_id_to_bytes(wanted.topic_id) if by_id else None)
    partitions = (
        _refusal(partition.index, _error(topic, partition.index, request.acks), version)
        for partition in wanted.partition_data
    )
    return _topic(wanted, partitions, version)


def error_response(request: ProduceRequest, error: ErrorCode, version: int) -> ProduceResponse:
    """Return the response with one error for every partition."""
    responses = [
        _topic(
            topic, [_refusal(partition.index, error, version) for partition in topic.partition_data], version
        )
        for topic in request.topic_data
    ]
    return ProduceResponse(version=version, responses=responses, node_endpoints=[])


def _error(topic: Topic | ErrorCode, index: int, acks: int) -> ErrorCode:
    if isinstance(topic, ErrorCode):
        return topic
    if not topic.has_partition(index):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.POLICY_VIOLATION if acks in ACKS else ErrorCode.INVALID_REQUIRED_ACKS


def _topic(
    wanted: TopicProduceData, partitions: Iterable[PartitionProduceResponse], version: int
) -> TopicProduceResponse:
    return TopicProduceResponse(
        version=version,
        name=wanted.name,
        topic_id=wanted.topic_id,
        partition_responses=cast_as_list(partitions),
    )


def _refusal(index: int, error: ErrorCode, version: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        version=version,
        index=index,
        error_code=error,
        base_offset=UNKNOWN,
        log_append_time_ms=UNKNOWN,
        log_start_offset=UNKNOWN,
        record_errors=[],
        error_message=WHY if error is ErrorCode.POLICY_VIOLATION else None,
    )


API: Final = Api(
    build_schema(ProduceRequest, ProduceResponse),
    versions=VersionRange(3, 13),
    handle=handle,
    error_response=error_response,
    frame=BLOBS,
    changes=False,
    offered_from=OFFERED_FROM,
    error_parts=("responses", "partition_responses"),
)
