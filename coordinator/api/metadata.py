# SPDX-License-Identifier: Apache-2.0
"""The handler of Metadata v0-v13.

v0: the empty list means all topics; from v1 on null does, and the controller is named. v2: cluster id. v3: throttle
time. v4: the client may forbid auto creation. v5: offline replicas, always none. v7: leader epoch.
v8: authorized operations (KIP-430), those of the cluster until v10. v9: flexible. v10: topic ids in the response.
v12: topics by id (KIP-516). v13: a top-level error (KIP-1102).

Two differences from Kafka, which creates a topic in the background and returns UNKNOWN_TOPIC_OR_PARTITION until it
exists: here the response waits for the new topic and contains it, and a topic that cannot be created has the reason.
"""

import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from coordinator.api.context import InSteps, ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import (
    ITEMS_PER_SLICE,
    cast_as_list,
    iterate_with_none_at_pauses,
    respond_in_slices,
)
from coordinator.api.topic_changes import change_and_answer
from coordinator.authorization.authorizer import authorized_operations
from coordinator.authorization.permissions import CLUSTER_NAME, ResourceType
from coordinator.catalogue.names import INTERNAL_TOPICS, invalid_reason
from coordinator.catalogue.steps import Steps, iterate_in_steps
from coordinator.catalogue.topic import Refusal, Topic
from coordinator.catalogue.topics import MutableTopics
from coordinator.node import Node
from coordinator.topology.view import NO_NODE, Leader
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import MetadataRequest, MetadataResponse, build_schema

MetadataRequestTopic = MetadataRequest.MetadataRequestTopic
MetadataResponseTopic = MetadataResponse.MetadataResponseTopic
MetadataResponsePartition = MetadataResponseTopic.MetadataResponsePartition

NULL_IS_ALL_FROM: Final = 1
OPERATIONS_FROM: Final = 8
CLUSTER_OPERATIONS_UP_TO: Final = 10
BY_ID_FROM: Final = 12


Asked = tuple[bool, dict[uuid.UUID, None], dict[str, None]]
"""True if the version allows every topic of the request, then the ids and the names, each once."""


def handle(node: Node, request: MetadataRequest, ctx: RequestContext) -> ParkedSentinel:
    """Return the cluster's nodes and the wanted topics; create missing topics if settings and request allow it."""
    version = ctx.api_version
    wanted = request.topics
    if wanted is None or (version < NULL_IS_ALL_FROM and not wanted):
        topics = (_known(node, request, topic, version) for topic in node.catalogue)
        return respond_in_slices(node, ctx, _response(node, request, topics, version))
    return _answer(node, request, ctx, *_all_at_once(_asked(wanted, version)))


def handle_in_steps(node: Node, request: MetadataRequest, ctx: RequestContext) -> InSteps[MetadataResponse]:
    """Answer a request that names many topics, in steps."""
    if not request.topics:
        return handle(node, request, ctx)
    are_possible, ids, names = yield from _asked(request.topics, ctx.api_version)
    return _answer(node, request, ctx, are_possible, ids, names)


def _asked(wanted: Iterable[MetadataRequestTopic], version: int) -> Generator[None, None, Asked]:
    are_possible = True
    ids: dict[uuid.UUID, None] = {}
    names: dict[str, None] = {}
    for topic in iterate_with_none_at_pauses(wanted):
        if topic is None:
            yield
            continue
        are_possible = are_possible and _is_possible(topic.name, topic.topic_id, version)
        if topic.topic_id is not None:
            ids[topic.topic_id] = None
        if topic.name is not None:
            names[topic.name] = None
    return are_possible, ids, names


def _all_at_once(steps: Generator[None, None, Asked]) -> Asked:
    try:
        while True:
            next(steps)
    except StopIteration as done:
        asked: Asked = done.value
        return asked


def _answer(
    node: Node,
    request: MetadataRequest,
    ctx: RequestContext,
    are_possible: bool,
    ids: Iterable[uuid.UUID],
    names: Iterable[str],
) -> ParkedSentinel:
    version = ctx.api_version
    if not are_possible:
        return respond_in_slices(node, ctx, _refused(request, ErrorCode.INVALID_REQUEST, version))
    if ids:  # with ids, names are ignored
        return respond_in_slices(
            node, ctx, _response(node, request, _by_id(node, request, ids, version), version)
        )
    creatable = _creatable(node, request, names)
    if not creatable:
        known = _by_name(node, request, names, {}, version)
        return respond_in_slices(node, ctx, _response(node, request, known, version))

    def edit(catalogue: MutableTopics) -> Steps[dict[str, Refusal]]:
        return _create(node, catalogue, creatable)

    def respond(refused: Mapping[str, Refusal]) -> MetadataResponse:
        return _response(node, request, _by_name(node, request, names, refused, version), version)

    def refuse(_error: ErrorCode) -> MetadataResponse:
        return respond({})  # the topics do not exist, so the client retries

    return change_and_answer(node, ctx, edit, respond, refuse)


def _may_create(request: MetadataRequest) -> bool:
    return bool(request.topics) and request.allow_auto_topic_creation is not False


def error_response(request: MetadataRequest, error: ErrorCode, version: int) -> MetadataResponse:
    """Return the response with one error for every topic, and from v13 on also at the top level."""
    response = _refused(request, error, version)
    response.topics = list(response.topics)
    return response


def _refused(request: MetadataRequest, error: ErrorCode, version: int) -> MetadataResponse:
    topics = (
        MetadataResponseTopic(
            version=version, error_code=error, name=topic.name or "", topic_id=topic.topic_id, partitions=[]
        )
        for topic in request.topics or ()
    )
    return MetadataResponse(version=version, brokers=[], topics=cast_as_list(topics), error_code=error)


def _is_possible(name: str | None, topic_id: uuid.UUID | None, version: int) -> bool:
    """Return whether a version allows a topic; v10 and v11 have ids, and null names, but refuse them (KAFKA-12701)."""
    if version < BY_ID_FROM:
        return name is not None and topic_id is None
    return name is not None or topic_id is not None


def _creatable(node: Node, request: MetadataRequest, names: Iterable[str]) -> list[str]:
    if not (node.settings.auto_create_topics_enable and request.allow_auto_topic_creation):
        return []
    return [name for name in names if name not in node.catalogue]


def _create(node: Node, catalogue: MutableTopics, names: Iterable[str]) -> Steps[dict[str, Refusal]]:
    """Create the topics still missing, as many as one request may; clients retry for the others."""
    partitions = node.settings.num_partitions
    budget = catalogue.limits.partitions_per_request
    refused: dict[str, Refusal] = {}
    for name in iterate_in_steps(names):
        if name is None:
            yield
            continue
        if name in catalogue:  # another request has created it
            continue
        result = catalogue.add_topic(name, partitions, topic_id=node.catalogue_store.new_topic_id())
        if isinstance(result, Refusal):
            refused[name] = result
            continue
        budget -= partitions
        if budget < partitions:
            break
    return refused


def _by_name(
    node: Node, request: MetadataRequest, names: Iterable[str], refused: Mapping[str, Refusal], version: int
) -> Iterator[MetadataResponseTopic | None]:
    """Yield the topics that exist and, after them, those that do not, as Kafka does."""
    missing = []
    for name in names:
        topic = node.catalogue.get(name)
        if topic is not None:
            yield _known(node, request, topic, version)
        else:
            missing.append(name)
            yield None
    for name in missing:
        refusal = refused.get(name)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if invalid_reason(name):
            error = ErrorCode.INVALID_TOPIC_EXCEPTION
        elif refusal is not None and refusal.error is not ErrorCode.INVALID_REQUEST:
            error = refusal.error
        yield MetadataResponseTopic(
            version=version,
            error_code=error,
            name=name,
            is_internal=name in INTERNAL_TOPICS,
            partitions=[],
            authorized_operations=_topic_operations(node, request, name, version),
        )


def _by_id(
    node: Node, request: MetadataRequest, ids: Iterable[uuid.UUID], version: int
) -> Iterator[MetadataResponseTopic | None]:
    """Yield the unknown ids and, after them, the topics."""
    known = []
    for topic_id in ids:
        topic = node.catalogue.by_id(topic_id.bytes)
        if topic is not None:
            known.append(topic)
            yield None
            continue
        yield MetadataResponseTopic(
            version=version,
            error_code=ErrorCode.UNKNOWN_TOPIC_ID,
            name=None,
            topic_id=topic_id,
            partitions=[],
        )
    for topic in known:
        yield _known(node, request, topic, version)


def _known(node: Node, request: MetadataRequest, topic: Topic, version: int) -> MetadataResponseTopic:
    partitions = (
        _partition(index, node.cluster.leader(topic, index), version) for index in range(topic.partitions)
    )
    return MetadataResponseTopic(
        version=version,
        name=topic.name,
        topic_id=topic.uuid,
        is_internal=topic.is_internal,
        partitions=list(partitions) if topic.partitions <= ITEMS_PER_SLICE else cast_as_list(partitions),
        authorized_operations=_topic_operations(node, request, topic.name, version),
    )


@lru_cache(maxsize=10_000)
def _partition(index: int, leader: Leader, version: int) -> MetadataResponsePartition:
    """Return a partition; cached for all topics, because making partitions is most of the work of a response."""
    replicas = [leader.node_id] if leader.node_id != NO_NODE else []
    return MetadataResponsePartition(
        version=version,
        error_code=ErrorCode.NONE if replicas else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        replica_nodes=replicas,
        isr_nodes=replicas,
        offline_replicas=[],
    )


def _topic_operations(node: Node, request: MetadataRequest, name: str, version: int) -> set[int]:
    asked = version >= OPERATIONS_FROM and request.include_topic_authorized_operations
    return authorized_operations(node.authorizer, ResourceType.TOPIC, name, asked=asked)


def _response(
    node: Node, request: MetadataRequest, topics: Iterator[MetadataResponseTopic | None], version: int
) -> MetadataResponse:
    asked = (
        OPERATIONS_FROM <= version <= CLUSTER_OPERATIONS_UP_TO
        and request.include_cluster_authorized_operations
    )
    brokers = [
        MetadataResponse.MetadataResponseBroker(
            version=version, node_id=broker.node_id, host=broker.host, port=broker.port
        )
        for broker in node.cluster.brokers
    ]
    return MetadataResponse(
        version=version,
        brokers=brokers,
        cluster_id=node.cluster_id,
        controller_id=node.cluster.controller_id,
        topics=cast_as_list(topics),
        authorized_operations=authorized_operations(
            node.authorizer, ResourceType.CLUSTER, CLUSTER_NAME, asked=asked
        ),
    )


API: Final = Api(
    build_schema(MetadataRequest, MetadataResponse),
    versions=VersionRange(0, 13),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=_may_create,
    handle_in_steps=handle_in_steps,
    error_parts=("topics",),
    counts_top_error=False,  # MetadataResponse.errorCounts
)
