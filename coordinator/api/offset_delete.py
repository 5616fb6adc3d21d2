# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete v0 (KIP-496)."""

from typing import Final, TypeAlias

from coordinator.api.context import Parked, RequestContext, Work
from coordinator.api.declaration import Api
from coordinator.api.merging import merge_topics
from coordinator.api.slices import ITEMS_PER_SLICE, work_in_slices
from coordinator.groups.offsets.commits import delete_offsets
from coordinator.node import Node
from coordinator.partitions.door import Absent, KeptGroup
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse, schema_of
from protocol.names import GroupId

ResponseTopic: TypeAlias = OffsetDeleteResponse.OffsetDeleteResponseTopic


def handle(node: Node, request: OffsetDeleteRequest, ctx: RequestContext) -> OffsetDeleteResponse | Parked:
    """Delete offsets of partitions; not those of topics that the group's members consume, or that do not exist."""
    if not request.group_id:
        return error_response(request, ErrorCode.INVALID_GROUP_ID, ctx.api_version)
    kept = node.door.enter(ctx, GroupId(request.group_id))
    if isinstance(kept, ErrorCode):
        return error_response(request, kept, ctx.api_version)
    if isinstance(kept, Absent):
        return error_response(request, ErrorCode.GROUP_ID_NOT_FOUND, ctx.api_version)
    error = kept.group.validate_delete_offsets()
    if error is not ErrorCode.NONE:
        return error_response(request, error, ctx.api_version)
    return work_in_slices(node, ctx, _delete(node, request, ctx, kept))


def _delete(node: Node, request: OffsetDeleteRequest, ctx: RequestContext, kept: KeptGroup) -> Work:
    refused: dict[str, ResponseTopic] = {}
    taken = []
    for topic in request.topics:
        known = node.catalogue.get(topic.name)
        indexes = [partition.partition_index for partition in topic.partitions]
        missing = [index for index in indexes if known is None or not known.has_partition(index)]
        if missing or known is None:
            _refuse(refused, topic.name, missing)
        existing = [index for index in indexes if known is not None and known.has_partition(index)]
        answers: list[ErrorCode] = []
        for start in range(0, len(existing), ITEMS_PER_SLICE):
            answers += _delete_some(node, ctx, kept, topic.name, existing[start : start + ITEMS_PER_SLICE])
            yield
        if existing:
            taken.append((topic.name, _topic(topic.name, existing, answers)))
        yield
    return OffsetDeleteResponse(error_code=0, topics=merge_topics(refused, taken))


def _delete_some(
    node: Node, ctx: RequestContext, kept: KeptGroup, topic: str, indexes: list[int]
) -> list[ErrorCode]:
    """Raises RequestRefused when the group has gone since the last slice."""
    node.door.check(ctx, kept)
    outcome = delete_offsets(kept.group, kept.offsets, topic, indexes)
    answers: list[ErrorCode] = node.door.run(ctx, kept, outcome)
    node.stats.offset_deletions += len(outcome.records)
    return answers


def _refuse(refused: dict[str, ResponseTopic], name: str, indexes: list[int]) -> None:
    topic = _topic(name, indexes, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(indexes))
    known = refused.setdefault(name, topic)
    if known is not topic:
        known.partitions += topic.partitions


def _topic(name: str, indexes: list[int], answers: list[ErrorCode]) -> ResponseTopic:
    return ResponseTopic(
        name=name,
        partitions=[
            ResponseTopic.OffsetDeleteResponsePartition(partition_index=index, error_code=int(answer))
            for index, answer in zip(indexes, answers, strict=True)
        ],
    )


def error_response(request: OffsetDeleteRequest, error: ErrorCode, version: int) -> OffsetDeleteResponse:
    """The refusal of the whole request."""
    return OffsetDeleteResponse(error_code=int(error), topics=[])


API: Final = Api(
    schema_of(OffsetDeleteRequest, OffsetDeleteResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    error_parts=("topics", "partitions"),
)
