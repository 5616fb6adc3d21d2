# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit v2-v10.

v2-v4: explicit retention time. v3: throttle time. v6: leader epoch (KIP-320). v7: group.instance.id (KIP-345).
v8: flexible. v9: GROUP_ID_NOT_FOUND for a generation of an unknown group (KIP-848). v10: topic ids (KIP-848).
"""

from collections.abc import Generator
from itertools import compress
from typing import Final

from coordinator.api.context import InSteps, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.long_commits import (
    ANSWERED_AT_ONCE,
    Answers,
    Refused,
    Taken,
    fit_together,
    parts,
    response_in_slices,
)
from coordinator.api.merging import merge_topics
from coordinator.api.part_errors import count_part_errors
from coordinator.api.slices import in_slices
from coordinator.api.topics import find_topic
from coordinator.catalogue.topic import Topic
from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.membership import prolong_session
from coordinator.groups.classic.state import GroupState
from coordinator.groups.limits import OffsetRoom, has_ample_room
from coordinator.groups.offsets.commits import (
    NO_RETENTION_TIME,
    ROWS_FROM,
    commit_rows,
    commit_topic,
)
from coordinator.groups.outcome import Instant
from coordinator.node import Node
from coordinator.partitions.append_errors import append_error, commit_error
from coordinator.partitions.door import Absent, Door, KeptGroup
from protocol.apis import ApiKey, VersionRange
from protocol.bounds import COMMITS
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    SCHEMA,
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.native import mypyc_attr
from storage.errors import RecordTooLarge
from storage.format.records import OffsetCommits

_NONE: Final = ErrorCode.NONE
_EMPTY: Final = GroupState.EMPTY
"""Looked up here once: finding a member of an enum takes hundreds of instructions each time."""

GROUP_NOT_FOUND_FROM: Final = 9
TOPIC_IDS_FROM: Final = 10
ERROR_PARTS: Final = ("topics", "partitions")


@mypyc_attr(acyclic=True)
class Decision:
    """What a commit comes to if the group lets it: what goes to the log, and the two parts of the answer."""

    __slots__ = ("answers", "refused", "stored", "taken", "whole")

    def __init__(self) -> None:
        self.stored: list[OffsetCommits] = []
        self.answers: list[OffsetCommitResponseTopic] = []  # to each of `stored`
        self.taken: Taken = []
        self.refused: Refused = {}
        self.whole = True  # whether every offset is taken


def handle(node: Node, request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse:
    """Commit offsets; what does not exist is refused by itself (KafkaApis.handleOffsetCommitRequest).

    The empty group id is a group like any other here (GroupCoordinatorService.commitOffsets).
    """
    door = node.door
    now = door.clock.now()
    decided = Decision()
    for topic in request.topics:
        _decide(node, request, topic, ctx.api_version, now, decided)
    error = _commit(door, request, ctx, decided, now)
    if error is not _NONE:
        _refuse(decided, error)
    response = OffsetCommitResponse(topics=merge_topics(decided.refused, decided.taken))
    if not decided.whole:
        count_part_errors(node.stats, ApiKey.OFFSET_COMMIT, ERROR_PARTS, response)
    return response


def handle_in_steps(
    node: Node, request: OffsetCommitRequest, ctx: RequestContext
) -> InSteps[OffsetCommitResponse]:
    """Commit many offsets, part by part (`long_commits`)."""
    decisions = yield from _decide_parts(node, request, ctx.api_version)
    answers = yield from _commit_parts(node, request, ctx, decisions)
    topics = merge_topics(answers.refused, answers.taken)
    yield
    if answers.items > ANSWERED_AT_ONCE:
        return in_slices(node, ctx, response_in_slices(ctx.api_version, topics))
    response = OffsetCommitResponse(topics=topics)
    count_part_errors(node.stats, ApiKey.OFFSET_COMMIT, ERROR_PARTS, response)
    return response


Decided = list[tuple[Decision, list[int], list[Topic]]]
"""The parts of a long commit: what each takes, the places of that in the request, and the topics of what it stores."""


def _decide_parts(node: Node, request: OffsetCommitRequest, version: int) -> Generator[None, None, Decided]:
    now = node.door.clock.now()
    decisions: Decided = []
    for part in parts(request.topics):
        decided = Decision()
        places: list[int] = []
        for place, topic in part:
            taken = len(decided.taken)
            _decide(node, request, topic, version, now, decided)
            if len(decided.taken) > taken:
                places.append(place)
        topics = [node.catalogue.topics_by_name[commits.topic] for commits in decided.stored]
        decisions.append((decided, places, topics))
        yield
    return decisions


def _commit_parts(
    node: Node, request: OffsetCommitRequest, ctx: RequestContext, decisions: Decided
) -> Generator[None, None, Answers]:
    """Store part by part, up to the first that the group does not let."""
    found = _find_group(node.door, request, ctx)
    error = _NONE if isinstance(found, KeptGroup) else found
    if error is _NONE:
        error = yield from fit_together(node.settings, [decided.stored for decided, _, _ in decisions])
    answers = Answers()
    for decided, places, topics in decisions:
        if error is _NONE:
            _drop_deleted(node, decided, topics)
            # The session counts from now: a heartbeat of the member may have come since the last part.
            error = _commit(node.door, request, ctx, decided, node.door.clock.now())
        if error is not _NONE:
            _refuse(decided, error)
        answers.add(places, decided.taken, decided.refused)
        yield
    return answers


def _drop_deleted(node: Node, decided: Decision, topics: list[Topic]) -> None:
    """Topics that were deleted meanwhile are as if they had been deleted after the commit.

    Others of their names have nothing to do with it.
    """
    there = [topic.id in node.catalogue.topics_by_id for topic in topics]
    decided.stored = list(compress(decided.stored, there))
    decided.answers = list(compress(decided.answers, there))


def _commit(
    door: Door, request: OffsetCommitRequest, ctx: RequestContext, decided: Decision, now: Instant
) -> ErrorCode:
    """Store what was decided if the group lets it, and let the reply wait for it; else why nothing was stored."""
    kept = _find_group(door, request, ctx)
    if not isinstance(kept, KeptGroup):
        return kept
    limits, usage = door.env.config.limits, door.env.usage
    if not has_ample_room(limits, usage):
        _make_fit(kept, decided, OffsetRoom(limits, usage))
    group = kept.group
    if decided.taken and isinstance(group, ClassicGroup) and group.state is not _EMPTY:
        prolong_session(group, request.member_id, now.mono)
    return _store(door, kept, decided.stored, ctx) if decided.stored else _NONE


def _find_group(door: Door, request: OffsetCommitRequest, ctx: RequestContext) -> KeptGroup | ErrorCode:
    """The group, if it lets the request commit now; else the error that every partition hears."""
    kept = _group(door, request, ctx)
    if not isinstance(kept, KeptGroup):
        return kept
    error = kept.group.validate_commit(request)
    return kept if error is _NONE else error


def _make_fit(kept: KeptGroup, decided: Decision, room: OffsetRoom) -> None:
    """Refuse what there is no room for."""
    for commits, answer in zip(decided.stored, decided.answers, strict=True):
        count = len(commits.values)
        room.fit(kept.offsets, commits, answer.partitions)
        if len(commits.values) < count:
            decided.whole = False
    decided.stored = [commits for commits in decided.stored if commits.values]


def _group(door: Door, request: OffsetCommitRequest, ctx: RequestContext) -> KeptGroup | ErrorCode:
    """The group, a new one for a commit from outside any membership, or why there is none."""
    kept = door.enter(ctx, request.group_id)
    if not isinstance(kept, Absent):
        return kept
    if request.generation_id_or_member_epoch < 0:
        return door.begin(kept)
    is_new = ctx.api_version >= GROUP_NOT_FOUND_FROM
    return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION


def _store(door: Door, kept: KeptGroup, commits: list[OffsetCommits], ctx: RequestContext) -> ErrorCode:
    try:
        door.commit(ctx, kept, commits)
    except RecordTooLarge as error:
        return commit_error(append_error(error))
    return _NONE


def _decide(
    node: Node,
    request: OffsetCommitRequest,
    topic: OffsetCommitRequestTopic,
    version: int,
    now: Instant,
    decided: Decision,
) -> None:
    """Decide the commit of one topic."""
    key, known = _find(node, topic, version)
    if not isinstance(known, Topic):
        node.catalogue_store.on_missed()
        decided.whole = False
        _add(decided.refused, key, topic, [part.partition_index for part in topic.partitions], known)
        return
    if _decide_rows(request, topic, key, known, now, decided):
        return
    commits, answers, missing = commit_topic(
        node.door.env.config,
        request.group_id,
        known.name,
        known.partitions,
        topic,
        request.retention_time_ms,
        now,
    )
    if len(commits.values) < len(topic.partitions):
        decided.whole = False  # or one was given twice
    if missing:
        _add(decided.refused, key, topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    answer = OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)
    if answers:
        decided.taken.append((key, answer))
    if commits.values:
        decided.stored.append(commits)
        decided.answers.append(answer)


def _decide_rows(
    request: OffsetCommitRequest,
    topic: OffsetCommitRequestTopic,
    key: str | bytes,
    known: Topic,
    now: Instant,
    decided: Decision,
) -> bool:
    """Decide the commit of a topic whose partitions came as rows; False where they are to be looked at one by one."""
    rows = topic.partition_rows
    if rows is None or rows.count < ROWS_FROM or request.retention_time_ms != NO_RETENTION_TIME:
        return False
    commits = commit_rows(request.group_id, known.name, known.partitions, rows, now)
    if commits is None:
        return False
    answer = OffsetCommitResponseTopic(topic.name, topic.topic_id, partition_rows=rows)
    decided.taken.append((key, answer))
    decided.stored.append(commits)
    decided.answers.append(answer)
    return True


def _find(node: Node, topic: OffsetCommitRequestTopic, version: int) -> tuple[str | bytes, Topic | ErrorCode]:
    """What the request names the topic by, and the topic or why there is none."""
    if version >= TOPIC_IDS_FROM:
        return topic.topic_id, find_topic(node.catalogue, None, topic.topic_id)
    return topic.name, find_topic(node.catalogue, topic.name, None)


def _add(
    refused: Refused, key: str | bytes, topic: OffsetCommitRequestTopic, indexes: list[int], error: ErrorCode
) -> None:
    answers = [OffsetCommitResponsePartition(index, error) for index in indexes]
    known = refused.get(key)
    if known is None:
        refused[key] = OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)
    else:
        known.partitions.extend(answers)


def _refuse(decided: Decision, error: ErrorCode) -> None:
    """Answer the error for every partition that exists; what does not is refused before the group is asked."""
    decided.taken = [(key, _refuse_topic(topic, error)) for key, topic in decided.taken]
    decided.whole = False


def _refuse_topic(topic: OffsetCommitResponseTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    answers = [
        OffsetCommitResponsePartition(partition.partition_index, error) for partition in topic.partitions
    ]
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)


def error_response(request: OffsetCommitRequest, error: ErrorCode, version: int) -> OffsetCommitResponse:
    """The response with one error for every partition of the request."""
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


API: Final = Api(
    SCHEMA,
    versions=VersionRange(2, 10),
    handle=handle,
    error_response=error_response,
    frame=COMMITS,
    handle_in_steps=handle_in_steps,
    error_parts=ERROR_PARTS,
    counts_part_errors=True,
    short_answers=True,
)
