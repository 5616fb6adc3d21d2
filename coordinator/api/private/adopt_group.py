# SPDX-License-Identifier: Apache-2.0
"""The private api AdoptGroup v0: reports whether a group was taken over from the cluster, and takes it over."""

from collections.abc import Generator, Iterator
from itertools import islice
from typing import Any, Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import iterate_with_none_at_pauses, run_work_and_respond
from coordinator.cluster_requests.model import Offsets, TopicPartition, TransferredOffset
from coordinator.migration.model import ClusterReading, Ownership
from coordinator.node import Node
from coordinator.telemetry.outside_changes import NAMED_MAX, OutsideChange
from protocol.apis import VersionRange
from protocol.bounds import MOVED
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema
from protocol.newtypes import GroupId
from protocol.private_messages import AdoptGroupRequest, AdoptGroupResponse


def handle(
    node: Node, request: AdoptGroupRequest, ctx: RequestContext
) -> AdoptGroupResponse | ParkedSentinel:
    """Return whether a group was taken over; if the request has offsets, take it over first unless it was."""
    if request.offsets is None:
        return _response(node.group_access.adoptions.find_ownership(ctx, request.group_id))
    return run_work_and_respond(node, ctx, _adopt(node, request, ctx))


def _adopt(
    node: Node, request: AdoptGroupRequest, ctx: RequestContext
) -> Generator[None, None, AdoptGroupResponse]:
    offsets = yield from parse_offsets_in_steps(request.offsets or [])
    owned = Ownership(ErrorCode.INVALID_REQUEST)
    if offsets is not None and not (offsets and request.unknown):
        reading = ClusterReading(offsets, request.epoch, request.asked_ms, request.unknown)
        owned = yield from node.group_access.adoptions.adopt(ctx, request.group_id, reading)
        if owned.taken >= 0:
            log_moved_offsets(node, ctx, OutsideChange.TAKEN_OVER, request.group_id, offsets)
    return _response(owned)


def log_moved_offsets(
    node: Node, ctx: RequestContext, change: OutsideChange, group_id: GroupId, offsets: Offsets
) -> None:
    """Log that a group has moved with these offsets, the first of which are named."""
    first = []
    for place, moved in islice(offsets.items(), NAMED_MAX):
        change_of_offset = (
            (None, moved.offset) if change is OutsideChange.TAKEN_OVER else (moved.offset, None)
        )
        first.append((place.topic, place.partition, change_of_offset))
    node.group_access.outside_changes.add_offset_moves(change, group_id, ctx, len(offsets), first)


def parse_offsets_in_steps(
    topics: list[Any],
) -> Generator[None, None, dict[TopicPartition, TransferredOffset] | None]:
    """Read the offsets in a request, in steps; return None if one is invalid, or a partition is in it twice.

    A topic may be in the request several times.
    """
    offsets: dict[TopicPartition, TransferredOffset] = {}
    for found in iterate_with_none_at_pauses(_rows(topics)):
        if found is None:
            yield
            continue
        topic, row = found
        if row is None:
            continue
        place = TopicPartition(topic, row.partition_index)
        if row.partition_index < 0 or row.committed_offset < 0 or place in offsets:
            return None
        offsets[place] = TransferredOffset(
            row.committed_offset, row.committed_leader_epoch, row.committed_metadata or ""
        )
    return offsets


def _rows(topics: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each topic with None, because a topic without rows takes time, too, and then with each of its rows."""
    for topic in topics:
        yield topic.topic, None
        for row in topic.partitions:
            yield topic.topic, row


def _response(owned: Ownership) -> AdoptGroupResponse:
    return AdoptGroupResponse(
        version=0,
        error_code=int(owned.error),
        adopted=owned.is_adopted,
        confirmed_absent=owned.is_confirmed_absent,
        epoch=owned.epoch,
        asked_ms=owned.asked_ms,
        taken=owned.taken,
    )


def error_response(request: AdoptGroupRequest, error: ErrorCode, version: int) -> AdoptGroupResponse:
    """Return the response with only an error."""
    return _response(Ownership(error))


API: Final = Api(
    build_schema(AdoptGroupRequest, AdoptGroupResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=MOVED,
    changes=True,
)
