# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit v2-v10.

v2-v4: explicit retention time. v3: throttle time. v6: leader epoch (KIP-320). v7: group.instance.id (KIP-345).
v8: flexible. v9: GROUP_ID_NOT_FOUND for a generation of an unknown group (KIP-848). v10: topic ids (KIP-848).
"""

from coordinator.api.context import RequestContext
from coordinator.api.merging import merge_topics
from coordinator.api.part_errors import count_part_errors
from coordinator.append_errors import append_error, commit_error
from coordinator.catalogue.topic import Topic
from coordinator.groups.limits import OffsetRoom, has_ample_room, new_group
from coordinator.groups.metadata import GroupMetadata
from coordinator.groups.offsets import commit_topic, prolong_session, validate_commit
from coordinator.groups.outcome import Instant
from coordinator.groups.state import GroupState
from coordinator.node import Node
from coordinator.shard import Shard
from protocol.apis import ApiKey
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

Taken = list[tuple[str | bytes, OffsetCommitResponseTopic]]
"""What is committed, by the name or id that the request gives it, in the order of the request."""
Refused = dict[str | bytes, OffsetCommitResponseTopic]
"""What does not exist, by the name or id that the request gives it."""


def handle(node: Node, request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse:
    """Commit offsets; what does not exist is refused by itself (KafkaApis.handleOffsetCommitRequest).

    The empty group id is a group like any other here (GroupCoordinatorService.commitOffsets).
    """
    manager = node.manager
    group_id = request.group_id
    shard = manager.shard_for(group_id)
    if isinstance(shard, ErrorCode):
        return _refuse(node, request, shard, ctx.api_version)
    group = _group(node, shard, request, ctx.api_version)
    error = group if isinstance(group, ErrorCode) else validate_commit(group, request)
    if isinstance(group, ErrorCode) or error is not ErrorCode.NONE:
        ctx.wait_for(shard.absence_flush)
        return _refuse(node, request, error, ctx.api_version)
    now = manager.clock.now()
    stored, taken, refused, whole = _decide(node, request, ctx.api_version, now, group)
    if taken and group.state is not GroupState.EMPTY:
        prolong_session(group, request.member_id, now.mono)
    if stored:
        error = _store(node, shard, group, stored, ctx)
        if error is not ErrorCode.NONE:
            return _refuse(node, request, error, ctx.api_version)
    response = OffsetCommitResponse(topics=merge_topics(refused, taken))
    if not whole:
        count_part_errors(node.stats, ApiKey.OFFSET_COMMIT, response)
    return response


def _group(node: Node, shard: Shard, request: OffsetCommitRequest, version: int) -> GroupMetadata | ErrorCode:
    """The group, a new one for a commit from outside any membership, or why there is none."""
    group = shard.groups.get(request.group_id)
    if group is not None:
        return group
    if request.generation_id_or_member_epoch < 0:
        env = node.manager.env
        error = new_group(env.config.limits, env.usage, request.group_id)
        return error if error is not ErrorCode.NONE else GroupMetadata(request.group_id, env.usage)
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


def _decide(
    node: Node,
    request: OffsetCommitRequest,
    version: int,
    now: Instant,
    group: GroupMetadata | None = None,
) -> tuple[list[OffsetCommits], Taken, Refused, bool]:
    """What a commit comes to if the group lets it: what goes to the log, and the two parts of the answer.

    The last is whether every offset is taken. Without `group` nothing will be stored, and limits do not matter.
    """
    env = node.manager.env
    config = env.config
    room = None
    if group is not None and not has_ample_room(config.limits, env.usage):
        room = OffsetRoom(config.limits, env.usage)
    group_id, retention_time_ms = request.group_id, request.retention_time_ms
    stored: list[OffsetCommits] = []
    taken: Taken = []
    refused: Refused = {}
    whole = True
    for topic in request.topics:
        key, known = _find(node, topic, version)
        if isinstance(known, ErrorCode):
            whole = False
            _add(refused, key, topic, [part.partition_index for part in topic.partitions], known)
            continue
        commits, answers, missing = commit_topic(
            config, group_id, known.name, known.partitions, topic, retention_time_ms, now
        )
        if room is not None and group is not None:
            room.fit(group, commits, answers)
        if len(commits.values) < len(topic.partitions):
            whole = False  # or one was given twice
        if missing:
            _add(refused, key, topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if answers:
            taken.append((key, OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)))
        if commits.values:
            stored.append(commits)
    return stored, taken, refused, whole


def _find(node: Node, topic: OffsetCommitRequestTopic, version: int) -> tuple[str | bytes, Topic | ErrorCode]:
    """What the request names the topic by, and the topic or why there is none."""
    if version >= TOPIC_IDS_FROM:
        return topic.topic_id, node.catalogue.by_id(topic.topic_id) or ErrorCode.UNKNOWN_TOPIC_ID
    return topic.name, node.catalogue.get(topic.name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _add(
    refused: Refused, key: str | bytes, topic: OffsetCommitRequestTopic, indexes: list[int], error: ErrorCode
) -> None:
    answers = [OffsetCommitResponsePartition(index, error) for index in indexes]
    known = refused.get(key)
    if known is None:
        refused[key] = OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)
    else:
        known.partitions += answers


def _refuse(node: Node, request: OffsetCommitRequest, error: ErrorCode, version: int) -> OffsetCommitResponse:
    """The error for every partition that exists; what does not exist is told so before anybody asks the group."""
    _, taken, refused, _ = _decide(node, request, version, node.manager.clock.now())
    for _, topic in taken:
        topic.partitions = [
            OffsetCommitResponsePartition(partition.partition_index, error) for partition in topic.partitions
        ]
    response = OffsetCommitResponse(topics=merge_topics(refused, taken))
    count_part_errors(node.stats, ApiKey.OFFSET_COMMIT, response)
    return response


def error_response(request: OffsetCommitRequest, error: ErrorCode, version: int) -> OffsetCommitResponse:
    """The same error for every partition of the request."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                topic.name,
                topic.topic_id,
                [OffsetCommitResponsePartition(part.partition_index, error) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )
