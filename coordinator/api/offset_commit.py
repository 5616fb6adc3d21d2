# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit v2-v10.

v2-v4: explicit retention time. v3: throttle time. v6: leader epoch (KIP-320). v7: group.instance.id (KIP-345).
v8: flexible. v9: GROUP_ID_NOT_FOUND for a generation of an unknown group (KIP-848). v10: topic ids (KIP-848).
"""

from coordinator.api.context import RequestContext
from coordinator.append_errors import append_error, commit_error
from coordinator.groups.metadata import GroupMetadata
from coordinator.groups.offsets import commit_topic, prolong_session, validate_commit
from coordinator.groups.state import GroupState
from coordinator.node import Node
from coordinator.shard import Shard
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from storage.errors import RecordTooLarge
from storage.records import OffsetCommits

GROUP_NOT_FOUND_FROM = 9
TOPIC_IDS_FROM = 10


def handle(node: Node, request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse:
    """Commit offsets; topics that do not exist are refused each by itself (KafkaApis.handleOffsetCommitRequest).

    The empty group id is a group like any other here (GroupCoordinatorService.commitOffsets).
    """
    manager = node.manager
    group_id = request.group_id
    shard = manager.shard_for(group_id)
    if isinstance(shard, ErrorCode):
        return error_response(request, shard, ctx.api_version)
    group = _group(shard, request, ctx.api_version)
    error = group if isinstance(group, ErrorCode) else validate_commit(group, request)
    if isinstance(group, ErrorCode) or error is not ErrorCode.NONE:
        return error_response(request, error, ctx.api_version)
    now = manager.clock.now()
    if group.state is not GroupState.EMPTY:
        prolong_session(group, request.member_id, now.mono)
    stored: list[OffsetCommits] = []
    config = manager.env.config
    retention_time_ms = request.retention_time_ms
    topics = []
    for topic in request.topics:
        name = _name_of(node, topic, ctx.api_version)
        if isinstance(name, ErrorCode):
            topics.append(_topic_error(topic, name))
        else:
            commits, answer = commit_topic(config, group_id, name, topic, retention_time_ms, now)
            topics.append(answer)
            if commits.values:
                stored.append(commits)
    if stored:
        error = _store(node, shard, group, stored, ctx)
        if error is not ErrorCode.NONE:
            return error_response(request, error, ctx.api_version)
    return OffsetCommitResponse(topics=topics)


def _group(shard: Shard, request: OffsetCommitRequest, version: int) -> GroupMetadata | ErrorCode:
    """The group, a new one for a commit from outside any membership, or why there is none."""
    group = shard.groups.get(request.group_id)
    if group is not None:
        return group
    if request.generation_id_or_member_epoch < 0:
        return GroupMetadata(request.group_id)
    return ErrorCode.GROUP_ID_NOT_FOUND if version >= GROUP_NOT_FOUND_FROM else ErrorCode.ILLEGAL_GENERATION


def _store(
    node: Node, shard: Shard, group: GroupMetadata, commits: list[OffsetCommits], ctx: RequestContext
) -> ErrorCode:
    manager = node.manager
    try:
        flush = manager.store_offsets(shard, group, commits)
    except RecordTooLarge as error:
        return commit_error(append_error(error))
    manager.add_group(shard, group)  # a simple group begins with its first commit
    ctx.flush = flush
    return ErrorCode.NONE


def _name_of(node: Node, topic: OffsetCommitRequestTopic, version: int) -> str | ErrorCode:
    if version >= TOPIC_IDS_FROM:
        known = node.catalogue.by_id(topic.topic_id)
        return ErrorCode.UNKNOWN_TOPIC_ID if known is None else known.name
    return topic.name if topic.name in node.catalogue else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic_error(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition.partition_index, error) for partition in topic.partitions
        ],
    )


def error_response(request: OffsetCommitRequest, error: ErrorCode, version: int) -> OffsetCommitResponse:
    """The same error for every partition of the request."""
    return OffsetCommitResponse(topics=[_topic_error(topic, error) for topic in request.topics])
