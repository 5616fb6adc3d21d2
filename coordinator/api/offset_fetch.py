# SPDX-License-Identifier: Apache-2.0
"""The handler of OffsetFetch v1-v10.

v2: null for all topics, a top-level error. v3: throttle time. v5: leader epoch (KIP-320). v6: flexible.
v7: require_stable (KIP-447). v8: several groups. v9: member id and epoch (KIP-848). v10: topic ids (KIP-848).
"""

from typing import Final

from coordinator.api.context import InSteps, ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.offset_fetch_long import answer_in_slices, bound_answer_bytes, count_whole_group_offsets
from coordinator.api.topic_lookup import request_unknown_topics_search
from coordinator.groups.offsets.commits import (
    INVALID_OFFSET,
    fetch_partition,
    fetch_partition_v7,
    fetch_rows,
)
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup, GroupEntry
from protocol.apis import ApiKey, VersionRange
from protocol.bounds import LISTS_AT_ONCE
from protocol.errors import ErrorCode
from protocol.hot.offset_fetch import (
    SCHEMA,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from storage.format.records import OffsetAndMetadata

GROUPS_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10
TOP_ERROR_FROM: Final = 2
NO_TOPIC_ID: Final = bytes(16)


MANY_OFFSETS: Final = 500
"""The number of offsets above which a response with all offsets of a group is made in slices."""


def handle(
    node: Node, request: OffsetFetchRequest, ctx: RequestContext
) -> OffsetFetchResponse | ParkedSentinel:
    """Return committed offsets: -1 for partitions without one, and for groups that do not exist."""
    if ctx.api_version >= GROUPS_FROM:
        for wanted in request.groups:
            if wanted.topics is None:
                if count_whole_group_offsets(node, request) > MANY_OFFSETS:
                    return answer_in_slices(node, request, ctx)
                break
        return OffsetFetchResponse(groups=[_group(node, wanted, ctx) for wanted in request.groups])
    kept = node.group_access.look_up_group(ctx, request.group_id)
    if not isinstance(kept, (GroupEntry, AbsentGroup)):
        if ctx.api_version < TOP_ERROR_FROM:
            node.stats.count_error(
                ApiKey.OFFSET_FETCH, kept
            )  # later versions count it as the top-level error
        return error_response(request, kept, ctx.api_version)
    offsets = {} if isinstance(kept, AbsentGroup) else kept.offsets.by_topic
    node.stats.offset_fetches += 1
    if request.topics is None:
        if not isinstance(kept, AbsentGroup) and kept.offsets.count > MANY_OFFSETS:
            node.stats.offset_fetches -= 1  # `answer_in_slices` counts it
            return answer_in_slices(node, request, ctx)
        topics = [_topic_v7(name, partitions, list(partitions)) for name, partitions in offsets.items()]
    else:
        asked = request.topics
        request_unknown_topics_search(node, asked, by_id=False)
        topics = [
            _topic_v7(topic.name, offsets.get(topic.name, {}), topic.partition_indexes) for topic in asked
        ]
    return OffsetFetchResponse(topics=topics)


def _topic_v7(
    name: str, partitions: dict[int, OffsetAndMetadata], indexes: list[int]
) -> OffsetFetchResponseTopic:
    rows = fetch_rows(partitions, indexes)
    if rows is not None:
        return OffsetFetchResponseTopic(name, partition_rows=rows)
    return OffsetFetchResponseTopic(name, [fetch_partition_v7(partitions, index) for index in indexes])


def handle_in_steps(
    node: Node, request: OffsetFetchRequest, ctx: RequestContext
) -> InSteps[OffsetFetchResponse]:
    """Answer a long request in slices, or at once if the one group of a version below v8 has an error."""
    if ctx.api_version < GROUPS_FROM and isinstance(
        node.group_access.look_up_group(ctx, request.group_id), ErrorCode
    ):
        return handle(node, request, ctx)
    yield
    return answer_in_slices(node, request, ctx)


def _group(node: Node, wanted: OffsetFetchRequestGroup, ctx: RequestContext) -> OffsetFetchResponseGroup:
    kept = node.group_access.look_up_group(ctx, wanted.group_id)
    if not isinstance(kept, (GroupEntry, AbsentGroup)):
        node.stats.count_error(ApiKey.OFFSET_FETCH, kept)
        return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=kept)
    node.stats.offset_fetches += 1
    offsets = {} if isinstance(kept, AbsentGroup) else kept.offsets.by_topic
    by_id = ctx.api_version >= TOPIC_IDS_FROM
    if wanted.topics is None:
        topics = []
        for name, partitions in offsets.items():
            topic_id = _id_of(node, name) if by_id else NO_TOPIC_ID
            if topic_id is None:
                continue  # a deleted topic has no id to name it by
            topics.append(_committed(name, topic_id, partitions, list(partitions)))
    else:
        asked = wanted.topics
        request_unknown_topics_search(node, asked, by_id=by_id)
        topics = [_topic(node, topic, offsets, by_id=by_id) for topic in asked]
        if by_id:
            # KafkaApis appends unknown topics to the coordinator's results.
            topics.sort(key=lambda topic: node.catalogue.by_id(topic.topic_id) is None)
    return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)


def _id_of(node: Node, name: str) -> bytes | None:
    topic = node.catalogue.get(name)
    return None if topic is None else topic.id


def _topic(
    node: Node,
    topic: OffsetFetchRequestTopics,
    offsets: dict[str, dict[int, OffsetAndMetadata]],
    *,
    by_id: bool,
) -> OffsetFetchResponseTopics:
    name = topic.name
    if by_id:
        known = node.catalogue.by_id(topic.topic_id)
        if known is None:
            for _ in topic.partition_indexes:
                node.stats.count_error(ApiKey.OFFSET_FETCH, ErrorCode.UNKNOWN_TOPIC_ID)
            return make_unknown_id_result(topic)
        name = known.name
    return _committed(topic.name, topic.topic_id, offsets.get(name, {}), topic.partition_indexes)


def _committed(
    name: str, topic_id: bytes, partitions: dict[int, OffsetAndMetadata], indexes: list[int]
) -> OffsetFetchResponseTopics:
    rows = fetch_rows(partitions, indexes)
    if rows is not None:
        return OffsetFetchResponseTopics(name, topic_id, partition_rows=rows)
    return OffsetFetchResponseTopics(
        name, topic_id, [fetch_partition(partitions, index) for index in indexes]
    )


def make_unknown_id_result(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    """Return the topic with UNKNOWN_TOPIC_ID for each wanted partition."""
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(index, INVALID_OFFSET, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)
            for index in topic.partition_indexes
        ],
    )


def error_response(request: OffsetFetchRequest, error: ErrorCode, version: int) -> OffsetFetchResponse:
    """Return the error for each group; from v2 to v7 at the top level; in v1, which has neither, for each partition."""
    if version >= GROUPS_FROM:
        groups = [
            OffsetFetchResponseGroup(group_id=group.group_id, error_code=error) for group in request.groups
        ]
        return OffsetFetchResponse(groups=groups)
    if version >= TOP_ERROR_FROM:
        return OffsetFetchResponse(error_code=error)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(index, INVALID_OFFSET, -1, "", error)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or []
        ]
    )


API: Final = Api(
    SCHEMA,
    versions=VersionRange(1, 10),
    handle=handle,
    error_response=error_response,
    frame=LISTS_AT_ONCE,
    changes=False,
    handle_in_steps=handle_in_steps,
    error_parts=("groups", "topics", "partitions"),
    counts_part_errors=True,
    repeats=True,
    answer_bytes_max=bound_answer_bytes,
)
