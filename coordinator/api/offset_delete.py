# SPDX-License-Identifier: Apache-2.0
"""The handler of OffsetDelete v0 (KIP-496)."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeAlias

from coordinator.api.context import ParkedSentinel, RequestContext, Work
from coordinator.api.declaration import Api
from coordinator.api.refused_topics_first import merge_refused_before_answered
from coordinator.api.slices import iterate_with_none_at_pauses, run_work_and_respond
from coordinator.api.topic_lookup import trigger_topic_search
from coordinator.groups.offsets.commits import plan_offset_deletion
from coordinator.groups.outcome import Outcome
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup, GroupEntry
from coordinator.telemetry.outside_changes import NAMED_MAX, OffsetMove, OutsideChange
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import OffsetDeleteRequest, OffsetDeleteResponse, build_schema
from protocol.newtypes import GroupId
from storage.format.offset_record import TOMBSTONE_BYTES_MIN
from storage.format.records import OffsetCommitRecord, Record

ResponseTopic: TypeAlias = OffsetDeleteResponse.OffsetDeleteResponseTopic
Asked: TypeAlias = tuple[str, list[int]]
"""A topic, and the partitions in the request that exist in the topic."""


def handle(
    node: Node, request: OffsetDeleteRequest, ctx: RequestContext
) -> OffsetDeleteResponse | ParkedSentinel:
    """Delete offsets of partitions, except for topics that the group's members consume, or that do not exist."""
    if not request.group_id:
        return error_response(request, ErrorCode.INVALID_GROUP_ID, ctx.api_version)
    kept = node.group_access.look_up_group_to_change(ctx, GroupId(request.group_id))
    if isinstance(kept, ErrorCode):
        return error_response(request, kept, ctx.api_version)
    if isinstance(kept, AbsentGroup):
        return error_response(request, ErrorCode.GROUP_ID_NOT_FOUND, ctx.api_version)
    return run_work_and_respond(node, ctx, _delete(node, request, ctx, kept))


def _delete(node: Node, request: OffsetDeleteRequest, ctx: RequestContext, kept: GroupEntry) -> Work:
    """Check all partitions in steps, then delete their offsets in one step, or several if one batch is too small."""
    refused: dict[str, ResponseTopic] = {}
    asked: list[Asked] = []
    for topic in request.topics:
        known = node.catalogue.get(topic.name)
        existing: list[int] = []
        missing: list[int] = []
        for partition in iterate_with_none_at_pauses(topic.partitions):
            if partition is None:
                yield
            else:
                index = partition.partition_index
                (existing if known is not None and known.has_partition(index) else missing).append(index)
        if missing or known is None:
            trigger_topic_search(node, topic.name)
            _refuse(refused, topic.name, missing)
        if existing:
            asked.append((topic.name, existing))
        yield
    node.group_access.recheck_and_add_dependency(ctx, kept)
    error = kept.group.validate_delete_offsets()
    if error is not ErrorCode.NONE:
        return error_response(request, error, ctx.api_version)
    taken = []
    for batch in _batches(kept, asked, node.settings.message_max_bytes):
        answers = _delete_together(node, ctx, kept, batch)
        yield
        for (name, indexes), codes in zip(batch, answers, strict=True):
            taken.append((name, _topic(name, indexes, codes)))
            yield
    return OffsetDeleteResponse(error_code=0, topics=merge_refused_before_answered(refused, taken))


def _batches(kept: GroupEntry, asked: list[Asked], bytes_max: int) -> Iterator[list[Asked]]:
    """Yield lists of topics whose tombstones may fit in one batch together."""
    batch: list[Asked] = []
    least_bytes = 0
    for name, indexes in asked:
        topic_bytes = len(indexes) * (TOMBSTONE_BYTES_MIN + len(kept.group_id) + len(name))
        if batch and least_bytes + topic_bytes > bytes_max:
            yield batch
            batch, least_bytes = [], 0
        batch.append((name, indexes))
        least_bytes += topic_bytes
    if batch:
        yield batch


def _delete_together(
    node: Node, ctx: RequestContext, kept: GroupEntry, batch: list[Asked]
) -> list[list[ErrorCode]]:
    """Delete the offsets of some topics; return the errors. Raises RequestRefused if the group is gone by now."""
    node.group_access.recheck_and_add_dependency(ctx, kept)
    answers: list[list[ErrorCode]] = []
    records: list[Record] = []
    for name, indexes in batch:
        outcome = plan_offset_deletion(kept.group, kept.offsets, name, indexes)
        answers.append(outcome.answer)
        records += outcome.records
    count = kept.offsets.count
    first = list(islice(_moves(kept, records), NAMED_MAX))
    node.group_access.carry_out_outcome(ctx, kept, Outcome(None, records, independent=True))
    removed = count - kept.offsets.count
    node.stats.offset_deletions += removed
    if removed:
        changes = node.group_access.outside_changes
        changes.add_offset_moves(OutsideChange.OFFSETS_DELETED, kept.group_id, ctx, removed, first)
    return answers


def _moves(kept: GroupEntry, records: Iterable[Record]) -> Iterator[tuple[str, int, OffsetMove]]:
    for record in records:
        if isinstance(record, OffsetCommitRecord):
            before = kept.offsets.get_topic_offsets(record.topic)[record.partition]
            yield record.topic, record.partition, (before.offset, None)


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
    """Return the refusal of the whole request."""
    return OffsetDeleteResponse(error_code=int(error), topics=[])


API: Final = Api(
    build_schema(OffsetDeleteRequest, OffsetDeleteResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=True,
    error_parts=("topics", "partitions"),
)
