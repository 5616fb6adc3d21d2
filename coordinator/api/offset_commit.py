# SPDX-License-Identifier: Apache-2.0
"""The handler of OffsetCommit v2-v10. It stores all offsets of a request in one batch, or none (CoordinatorRuntime).

v2-v4: explicit retention time. v3: throttle time. v6: leader epoch (KIP-320). v7: group.instance.id (KIP-345).
v8: flexible. v9: GROUP_ID_NOT_FOUND for a generation of an unknown group (KIP-848). v10: topic ids (KIP-848).
"""

from collections.abc import Generator, Iterator
from itertools import compress, islice
from typing import Any, Final
from uuid import UUID

from coordinator.api.context import InSteps, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.part_error_counting import record_part_errors
from coordinator.api.refused_topics_first import merge_refused_before_answered
from coordinator.api.slices import respond_in_slices
from coordinator.api.topic_lookup import find_topic, trigger_topic_search
from coordinator.catalogue.steps import run_all_steps
from coordinator.catalogue.topic import Topic
from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.heartbeat_and_leave import prolong_session
from coordinator.groups.classic.state import GroupState
from coordinator.groups.group import Group
from coordinator.groups.limits import OffsetRoom, has_room_for_any_commit
from coordinator.groups.offsets.commits import (
    NO_RETENTION_TIME,
    ROWS_FROM,
    add_later_commits,
    iterate_offset_moves,
    prepare_rows_commit,
    prepare_topic_commit,
)
from coordinator.groups.outcome import Instant
from coordinator.node import Node
from coordinator.partitions.append_errors import get_client_error_code, get_unmapped_append_error_code
from coordinator.partitions.group_access import AbsentGroup, GroupAccess, GroupEntry
from coordinator.telemetry.outside_changes import NAMED_MAX, OutsideChange
from protocol.apis import ApiKey, VersionRange
from protocol.bounds import COMMITS
from protocol.client_ids import CLI_CLIENT_ID
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    SCHEMA,
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.kafka_python_messages import OffsetCommitResponse as StreamedResponse
from protocol.mypyc_shim import mypyc_attr
from storage.errors import RecordTooLarge
from storage.format.offset_record import pack_plain_offsets_into_rows
from storage.format.records import TopicOffsetCommits

_NONE: Final = ErrorCode.NONE
_EMPTY: Final = GroupState.EMPTY
"""The enum members are looked up here once, because each look-up takes hundreds of instructions."""

GROUP_NOT_FOUND_FROM: Final = 9
TOPIC_IDS_FROM: Final = 10
ERROR_PARTS: Final = ("topics", "partitions")
ITEMS_PER_STEP: Final = 100
"""The number of topics and partitions of a long commit in one step: some 100 microseconds."""


@mypyc_attr(acyclic=True)
class Decision:
    """The outcome of a commit if the group allows it: the offsets to append, and the two parts of the response."""

    __slots__ = ("answers", "refused", "stored", "taken", "whole")

    def __init__(self) -> None:
        self.stored: list[TopicOffsetCommits] = []
        self.answers: list[OffsetCommitResponseTopic] = []  # the results of each of `stored`
        self.taken: list[tuple[str | bytes, OffsetCommitResponseTopic]] = []
        """The results of topics that exist, with the name or id in the request, in the order of the request."""
        self.refused: dict[str | bytes, OffsetCommitResponseTopic] = {}
        """The results of topics and partitions that do not exist, by the topic's name or id in the request."""
        self.whole = True  # True if every offset is accepted

    def add_topics(self, other: "Decision") -> None:
        """Add the decision on other topics of the request."""
        self.stored += other.stored
        self.answers += other.answers
        self.taken += other.taken
        self._refuse_with(other)

    def add_partitions(self, part: "Decision") -> None:
        """Add the decision on more partitions of the one topic of this decision."""
        if not self.taken:
            self.taken = part.taken
        elif part.taken:
            self.taken[0][1].partitions.extend(part.taken[0][1].partitions)
        if not self.stored:
            self.stored = part.stored
            self.answers = [topic for _, topic in self.taken] if part.stored else []
        elif part.stored:
            add_later_commits(self.stored[0], part.stored[0])
        self._refuse_with(part)

    def _refuse_with(self, other: "Decision") -> None:
        self.whole = self.whole and other.whole
        for key, topic in other.refused.items():
            known = self.refused.setdefault(key, topic)
            if known is not topic:
                known.partitions.extend(topic.partitions)


def handle(node: Node, request: OffsetCommitRequest, ctx: RequestContext) -> OffsetCommitResponse:
    """Commit offsets; refuse only topics and partitions that do not exist (KafkaApis.handleOffsetCommitRequest).

    The empty group id is valid here (GroupCoordinatorService.commitOffsets).
    """
    group_access = node.group_access
    now = group_access.clock.now()
    decided = Decision()
    for topic in request.topics:
        _decide(node, request, topic, ctx.api_version, now, decided)
    error = _commit(group_access, request, ctx, decided, now)
    if error is not _NONE:
        run_all_steps(_refuse_in_steps(decided, error))
    response = OffsetCommitResponse(topics=merge_refused_before_answered(decided.refused, decided.taken))
    if not decided.whole:
        record_part_errors(node.stats, ApiKey.OFFSET_COMMIT, ERROR_PARTS, response)
    return response


def handle_in_steps(
    node: Node, request: OffsetCommitRequest, ctx: RequestContext
) -> InSteps[OffsetCommitResponse]:
    """Commit many offsets: decide in steps which are accepted, then store all of these in one step, or none."""
    decided = Decision()
    topics = yield from _decide_in_steps(node, request, ctx.api_version, decided)
    _drop_deleted(node, decided, topics)
    error = _commit(node.group_access, request, ctx, decided, node.group_access.clock.now())
    yield
    if error is not _NONE:
        yield from _refuse_in_steps(decided, error)
    answers = merge_refused_before_answered(decided.refused, decided.taken)
    yield
    return respond_in_slices(node, ctx, _response_in_slices(ctx.api_version, answers))


def _decide_in_steps(
    node: Node, request: OffsetCommitRequest, version: int, decided: Decision
) -> Generator[None, None, list[Topic]]:
    """Decide the commit of every topic; return the topics found for the offsets to store."""
    now = node.group_access.clock.now()
    found: list[Topic] = []
    items = 0
    for topic in request.topics:
        if len(topic.partitions) > ITEMS_PER_STEP:
            found += yield from _decide_wide(node, request, topic, version, now, decided)
            continue
        _decide(node, request, topic, version, now, decided)
        found += _topics_of(node, decided.stored[len(found) :])
        items += 1 + len(topic.partitions)
        if items > ITEMS_PER_STEP:
            items = 0
            yield
    return found


def _decide_wide(
    node: Node,
    request: OffsetCommitRequest,
    topic: OffsetCommitRequestTopic,
    version: int,
    now: Instant,
    decided: Decision,
) -> Generator[None, None, list[Topic]]:
    """Decide the commit of one topic like `_decide_in_steps`, some of its partitions at each step."""
    whole = Decision()
    found: list[Topic] = []
    for start in range(0, len(topic.partitions), ITEMS_PER_STEP):
        rows = topic.partitions[start : start + ITEMS_PER_STEP]
        part = Decision()
        _decide(node, request, OffsetCommitRequestTopic(topic.name, topic.topic_id, rows), version, now, part)
        whole.add_partitions(part)
        found += _topics_of(node, whole.stored[len(found) :])
        yield
    for commits in whole.stored:
        if not commits.metadata_bytes and request.retention_time_ms == NO_RETENTION_TIME:
            commits.rows = pack_plain_offsets_into_rows(commits.values)
            yield
    decided.add_topics(whole)
    return found


def _topics_of(node: Node, commits: list[TopicOffsetCommits]) -> list[Topic]:
    by_name = node.catalogue.topics_by_name
    return [by_name[each.topic] for each in commits]


def _drop_deleted(node: Node, decided: Decision, topics: list[Topic]) -> None:
    """Drop the offsets of topics that were deleted since they were found, as if the deletion followed the commit.

    A new topic of the same name does not count as the deleted one.
    """
    by_id = node.catalogue.topics_by_id
    there = [topic.id in by_id for topic in topics]
    if not all(there):
        decided.stored = list(compress(decided.stored, there))
        decided.answers = list(compress(decided.answers, there))


def _commit(
    group_access: GroupAccess,
    request: OffsetCommitRequest,
    ctx: RequestContext,
    decided: Decision,
    now: Instant,
) -> ErrorCode:
    """Store the decided offsets if the group allows it, and let the reply wait for them; else return the error."""
    kept = _find_group(group_access, request, ctx)
    if not isinstance(kept, GroupEntry):
        return kept
    limits, usage = group_access.env.config.limits, group_access.env.usage
    if not has_room_for_any_commit(limits, usage):
        _make_fit(kept, decided, OffsetRoom(limits, usage))
    group = kept.group
    if decided.taken and isinstance(group, ClassicGroup) and group.state is not _EMPTY:
        prolong_session(group, request.member_id, now.mono)
    if not decided.stored:
        return _NONE
    if request.generation_id_or_member_epoch < 0 and _is_from_outside(group, ctx):
        return _store_and_log(group_access, kept, decided.stored, ctx)
    return _store(group_access, kept, decided.stored, ctx)


def _find_group(
    group_access: GroupAccess, request: OffsetCommitRequest, ctx: RequestContext
) -> GroupEntry | ErrorCode:
    """Return the group if it allows the commit now; else the error that every partition gets."""
    kept = _group(group_access, request, ctx)
    if not isinstance(kept, GroupEntry):
        return kept
    error = kept.group.validate_commit(request)
    return kept if error is _NONE else error


def _make_fit(kept: GroupEntry, decided: Decision, room: OffsetRoom) -> None:
    """Refuse the offsets that would exceed the limits."""
    for commits, answer in zip(decided.stored, decided.answers, strict=True):
        count = len(commits.values)
        room.remove_excess_from_commits(kept.offsets, commits, answer.partitions)
        if len(commits.values) < count:
            decided.whole = False
    decided.stored = [commits for commits in decided.stored if commits.values]


def _group(
    group_access: GroupAccess, request: OffsetCommitRequest, ctx: RequestContext
) -> GroupEntry | ErrorCode:
    """Return the group, a new one for a commit that names no generation, or why there is none."""
    if request.generation_id_or_member_epoch < 0:
        kept = group_access.look_up_group_to_change(ctx, request.group_id)
        return group_access.make_unstored_group(kept) if isinstance(kept, AbsentGroup) else kept
    kept = group_access.look_up_local_group(ctx, request.group_id)
    if not isinstance(kept, AbsentGroup):
        return kept
    is_new = ctx.api_version >= GROUP_NOT_FOUND_FROM
    return ErrorCode.GROUP_ID_NOT_FOUND if is_new else ErrorCode.ILLEGAL_GENERATION


def _is_from_outside(group: Group, ctx: RequestContext) -> bool:
    """Return whether a commit without a generation changes the offsets of a group whose members have left.

    A group that never had members is that of a simple consumer, whose commits are its own.
    """
    if ctx.client_id == CLI_CLIENT_ID:
        return True
    return group.is_empty and group.generation_id > 0


def _store_and_log(
    group_access: GroupAccess, kept: GroupEntry, commits: list[TopicOffsetCommits], ctx: RequestContext
) -> ErrorCode:
    moves = list(islice(iterate_offset_moves(kept.offsets, commits), NAMED_MAX))
    error = _store(group_access, kept, commits, ctx)
    if error is _NONE:
        count = sum(len(each.values) for each in commits)
        changes = group_access.outside_changes
        changes.add_offset_moves(OutsideChange.OFFSETS_COMMITTED, kept.group_id, ctx, count, moves)
    return error


def _store(
    group_access: GroupAccess, kept: GroupEntry, commits: list[TopicOffsetCommits], ctx: RequestContext
) -> ErrorCode:
    try:
        group_access.store_offsets(ctx, kept, commits)
    except RecordTooLarge as error:
        return get_client_error_code(get_unmapped_append_error_code(error))
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
        trigger_topic_search(node, key)
        decided.whole = False
        _add(decided.refused, key, topic, [part.partition_index for part in topic.partitions], known)
        return
    if _decide_rows(request, topic, key, known, now, decided):
        return
    commits, answers, missing = prepare_topic_commit(
        node.group_access.env.config,
        request.group_id,
        known.name,
        known.partitions,
        topic,
        request.retention_time_ms,
        now,
    )
    if len(commits.values) < len(topic.partitions):
        decided.whole = False  # or the request names a partition twice
    if missing:
        trigger_topic_search(node, key)
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
    """Decide the commit of a topic decoded as rows; return False if its partitions must be decided one by one."""
    rows = topic.partition_rows
    if rows is None or rows.count < ROWS_FROM or request.retention_time_ms != NO_RETENTION_TIME:
        return False
    commits = prepare_rows_commit(request.group_id, known.name, known.partitions, rows, now)
    if commits is None:
        return False
    answer = OffsetCommitResponseTopic(topic.name, topic.topic_id, partition_rows=rows)
    decided.taken.append((key, answer))
    decided.stored.append(commits)
    decided.answers.append(answer)
    return True


def _find(node: Node, topic: OffsetCommitRequestTopic, version: int) -> tuple[str | bytes, Topic | ErrorCode]:
    """Return the topic's name or id in the request, and the topic or why there is none."""
    if version >= TOPIC_IDS_FROM:
        return topic.topic_id, find_topic(node.catalogue, None, topic.topic_id)
    return topic.name, find_topic(node.catalogue, topic.name, None)


def _add(
    refused: dict[str | bytes, OffsetCommitResponseTopic],
    key: str | bytes,
    topic: OffsetCommitRequestTopic,
    indexes: list[int],
    error: ErrorCode,
) -> None:
    answers = [OffsetCommitResponsePartition(index, error) for index in indexes]
    known = refused.get(key)
    if known is None:
        refused[key] = OffsetCommitResponseTopic(topic.name, topic.topic_id, answers)
    else:
        known.partitions.extend(answers)


def _refuse_in_steps(decided: Decision, error: ErrorCode) -> Generator[None, None, None]:
    """Give every partition that exists the error; those that do not exist were refused before."""
    decided.whole = False
    items = 0
    for place, (key, topic) in enumerate(decided.taken):
        refused = OffsetCommitResponseTopic(topic.name, topic.topic_id, [])
        for partition in topic.partitions:
            refused.partitions.append(OffsetCommitResponsePartition(partition.partition_index, error))
            items += 1
            if items % ITEMS_PER_STEP == 0:
                yield
        decided.taken[place] = (key, refused)


def _response_in_slices(version: int, topics: list[OffsetCommitResponseTopic]) -> Any:
    """Return a response for `in_slices`, which takes the topics of the hot codec unchanged, except for their ids."""
    kind: Any = StreamedResponse
    answered = topics if version < TOPIC_IDS_FROM else _by_id(kind.OffsetCommitResponseTopic, version, topics)
    return kind(version=version, topics=iter(answered))


def _by_id(kind: Any, version: int, topics: list[OffsetCommitResponseTopic]) -> Iterator[Any]:
    for topic in topics:
        yield kind(version=version, topic_id=UUID(bytes=topic.topic_id), partitions=topic.partitions)


def error_response(request: OffsetCommitRequest, error: ErrorCode, version: int) -> OffsetCommitResponse:
    """Return the response with one error for every partition of the request."""
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
    changes=True,
    handle_in_steps=handle_in_steps,
    error_parts=ERROR_PARTS,
    counts_part_errors=True,
    short_answers=True,
)
