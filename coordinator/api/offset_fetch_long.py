# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch of many offsets, answered in slices: of groups with thousands of offsets, and of many groups at once.

The topics of a group are read one after the other, so the response shows the offsets of several moments; a client sees
the same if other clients commit meanwhile. If a group disappears meanwhile, the request ends with an error.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.slices import ANSWER_BYTES_MAX, iterate_with_none_at_pauses, respond_in_slices
from coordinator.api.topic_lookup import request_unknown_topics_search
from coordinator.catalogue.topic import Topic
from coordinator.groups.offsets.commits import INVALID_OFFSET, fetch_partition
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup, GroupEntry, RequestRefused
from protocol.errors import ErrorCode, MessageTooLarge
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponsePartitions,
)
from protocol.kafka_python_messages import OffsetFetchResponse
from protocol.newtypes import GroupId
from storage.format.records import OffsetAndMetadata

GROUPS_FROM: Final = 8
TOPIC_IDS_FROM: Final = 10
OFFSET_BYTES: Final = 18
"""The bytes of an offset in a response, without its metadata."""
STRING_BYTES_MAX: Final = 512
"""An upper bound of the bytes of a topic's name and the fields next to it."""

Offsets = dict[str, dict[int, OffsetAndMetadata]]
Response: Any = OffsetFetchResponse  # its lists hold topics of the hot codec


def answer_in_slices(node: Node, request: OffsetFetchRequest, ctx: RequestContext) -> ParkedSentinel:
    """Answer with the committed offsets of every group in the request (v8 and later), or of its one group."""
    if ctx.api_version >= GROUPS_FROM:
        groups = _groups(node, request, ctx)
        return respond_in_slices(node, ctx, Response(version=ctx.api_version, groups=groups))
    kept = node.group_access.look_up_group(ctx, request.group_id)
    if isinstance(kept, ErrorCode):
        raise RequestRefused(kept)
    node.stats.offset_fetches += 1
    topics = _topics(node, kept, request.topics, Response.OffsetFetchResponseTopic, ctx)
    return respond_in_slices(node, ctx, Response(version=ctx.api_version, topics=topics))


def count_whole_group_offsets(node: Node, request: OffsetFetchRequest) -> int:
    """Return the number of offsets of groups whose topics are null (v8 and later); a repeated group counts again."""
    counts: dict[str, int] = {}
    total = 0
    for wanted in request.groups:
        if wanted.topics is None:
            count = counts.get(wanted.group_id)
            if count is None:
                count = counts[wanted.group_id] = node.group_access.measure_group_offsets(wanted.group_id)[0]
            total += count
    return total


def bound_answer_bytes(node: Node, request: OffsetFetchRequest, version: int) -> int:
    """Return an upper bound of the bytes of the response, without making it."""
    if version >= GROUPS_FROM:
        return sum(_bytes_max(node, group.group_id, group.topics) for group in request.groups)
    return _bytes_max(node, request.group_id, request.topics)


def _bytes_max(node: Node, group_id: GroupId, topics: Sequence[Any] | None) -> int:
    offsets, metadata_bytes = node.group_access.measure_group_offsets(group_id)
    if topics is None:
        return STRING_BYTES_MAX + offsets * (STRING_BYTES_MAX + OFFSET_BYTES) + metadata_bytes
    each_bytes = OFFSET_BYTES + min(
        metadata_bytes, 3 * node.group_access.env.config.offset_metadata_max_bytes
    )
    return sum(STRING_BYTES_MAX + each_bytes * len(topic.partition_indexes) for topic in topics)


def _groups(node: Node, request: OffsetFetchRequest, ctx: RequestContext) -> Iterator[Any]:
    """Yield the groups of the response. Raises MessageTooLarge at once if it would exceed ANSWER_BYTES_MAX."""
    if count_whole_group_offsets(node, request) * OFFSET_BYTES > ANSWER_BYTES_MAX:
        raise MessageTooLarge(f"more than {ANSWER_BYTES_MAX} bytes")
    for wanted in request.groups:
        yield _group(node, wanted, ctx)


def _group(node: Node, wanted: OffsetFetchRequestGroup, ctx: RequestContext) -> Any:
    make = Response.OffsetFetchResponseGroup
    version = ctx.api_version
    kept = node.group_access.look_up_group(ctx, wanted.group_id)
    if isinstance(kept, ErrorCode):
        return make(version=version, group_id=wanted.group_id, error_code=kept, topics=[])
    node.stats.offset_fetches += 1
    topics = _topics(node, kept, wanted.topics, make.OffsetFetchResponseTopics, ctx)
    return make(version=version, group_id=wanted.group_id, topics=topics)


def _topics(
    node: Node, kept: GroupEntry | AbsentGroup, wanted: Any, make: Any, ctx: RequestContext
) -> Iterator[Any]:
    """Yield the wanted topics, or all with offsets for None; by id (v10) yield the unknown ones last."""
    offsets: Offsets = {} if isinstance(kept, AbsentGroup) else kept.offsets.by_topic
    by_id = ctx.api_version >= TOPIC_IDS_FROM
    unknown = []
    for topic in iterate_with_none_at_pauses(list(offsets) if wanted is None else wanted):
        known: Topic | None = None
        if topic is not None and wanted is not None:
            request_unknown_topics_search(node, (topic,), by_id=by_id)
        if topic is not None and by_id:
            known = _known(node, topic)
            if known is None and wanted is not None:
                unknown.append(topic)
        if topic is None or (by_id and known is None):
            yield None
            continue
        name = topic if wanted is None else topic.name
        committed = offsets.get(name if known is None else known.name, {})
        _still_there(node, kept, ctx)
        indexes = list(committed) if wanted is None else topic.partition_indexes
        partitions = _partitions(node, kept, committed, indexes, ctx)
        yield _topic(make, ctx, name, None if known is None else known.uuid, partitions)
    for topic in unknown:
        refused = (_unknown_topic_id(index) for index in topic.partition_indexes)
        yield _topic(make, ctx, topic.name, UUID(bytes=topic.topic_id), refused)


def _known(node: Node, topic: Any) -> Topic | None:
    """Return the topic of a name in the group, or of an id in the request."""
    return node.catalogue.get(topic) if isinstance(topic, str) else node.catalogue.by_id(topic.topic_id)


def _topic(make: Any, ctx: RequestContext, name: str, topic_id: UUID | None, partitions: Any) -> Any:
    topic = make(version=ctx.api_version, name=name, partitions=partitions)
    if ctx.api_version >= TOPIC_IDS_FROM:
        topic.topic_id = topic_id
    return topic


def _partitions(
    node: Node,
    kept: GroupEntry | AbsentGroup,
    committed: dict[int, OffsetAndMetadata],
    indexes: list[int],
    ctx: RequestContext,
) -> Any:
    """Return the partitions, as a list if they are few, so that they are encoded at once."""
    if len(indexes) <= 50:
        return [fetch_partition(committed, index) for index in indexes]
    return _many_partitions(node, kept, committed, indexes, ctx)


def _many_partitions(
    node: Node,
    kept: GroupEntry | AbsentGroup,
    committed: dict[int, OffsetAndMetadata],
    indexes: list[int],
    ctx: RequestContext,
) -> Iterator[Any]:
    for index in iterate_with_none_at_pauses(indexes):
        if index is None:
            _still_there(node, kept, ctx)
            yield None
        else:
            yield fetch_partition(committed, index)
    _still_there(node, kept, ctx)


def _still_there(node: Node, kept: GroupEntry | AbsentGroup, ctx: RequestContext) -> None:
    """Let the reply wait for the offsets read so far.

    Raises RequestRefused if the group is gone, because it may have lost records.
    """
    if not isinstance(kept, AbsentGroup):
        node.group_access.recheck_and_add_dependency(ctx, kept)


def _unknown_topic_id(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, INVALID_OFFSET, -1, "", ErrorCode.UNKNOWN_TOPIC_ID)
