# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete v0 (KIP-496)."""

from coordinator.api.context import RequestContext
from coordinator.groups.offsets import delete_offsets, validate_delete_offsets
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.messages import OffsetDeleteRequest, OffsetDeleteResponse
from storage.records import Record


def handle(node: Node, request: OffsetDeleteRequest, ctx: RequestContext) -> OffsetDeleteResponse:
    """Delete offsets of partitions; not those of topics that the group's members consume, or that do not exist."""
    manager = node.manager
    shard = manager.shard_for(request.group_id)
    if isinstance(shard, ErrorCode):
        return error_response(request, shard, ctx.api_version)
    group = shard.groups.get(request.group_id)
    if group is None:
        return error_response(request, ErrorCode.GROUP_ID_NOT_FOUND, ctx.api_version)
    error = validate_delete_offsets(group)
    if error is not ErrorCode.NONE:
        return error_response(request, error, ctx.api_version)
    tombstones: list[Record] = []
    topics = []
    for topic in request.topics:
        indexes = [partition.partition_index for partition in topic.partitions]
        if topic.name in node.catalogue:
            answers, records = delete_offsets(group, topic.name, indexes)
            tombstones += records
        else:
            answers = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(indexes)
        topics.append(_topic(topic.name, indexes, answers))
    manager.append_tombstones(shard, tombstones)
    manager.stats.offset_deletions += len(tombstones)
    ctx.wait_for(group.flush)
    return OffsetDeleteResponse(error_code=0, topics=topics)


def _topic(
    name: str, indexes: list[int], answers: list[ErrorCode]
) -> OffsetDeleteResponse.OffsetDeleteResponseTopic:
    topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
    return topic(
        name=name,
        partitions=[
            topic.OffsetDeleteResponsePartition(partition_index=index, error_code=int(answer))
            for index, answer in zip(indexes, answers, strict=True)
        ],
    )


def error_response(request: OffsetDeleteRequest, error: ErrorCode, version: int) -> OffsetDeleteResponse:
    """The refusal of the whole request."""
    return OffsetDeleteResponse(error_code=int(error), topics=[])
