# SPDX-License-Identifier: Apache-2.0
"""The private api AdoptGroup v0: reports whether a group was taken over from the cluster, and takes it over."""

from collections.abc import Generator, Iterator
from typing import Any, Final

from kafka.protocol.api_message import ApiMessage

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import iterate_with_none_at_pauses, run_work_and_respond
from coordinator.node import Node
from coordinator.partitions.group_adoption import AdoptedOffset, AdoptionOutcome, AdoptionReading
from coordinator.telemetry.outside_changes import NAMED_MAX, OutsideChange
from protocol.apis import VersionRange
from protocol.bounds import MOVED
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema
from protocol.newtypes import GroupId


class AdoptGroupRequest(ApiMessage, load_json="protocol.schemas"):
    """A group and the offsets that the cluster has for it; without offsets the request only asks for its state.

    `epoch` and `asked_ms` are copied from the response to an earlier request without offsets, sent before the cluster
    was read. `unknown` is True if the cluster does not know the group.
    """

    AdoptedTopic: Any
    group_id: GroupId
    epoch: int
    asked_ms: int
    unknown: bool
    offsets: list[Any] | None


class AdoptGroupResponse(ApiMessage, load_json="protocol.schemas"):
    """The state of a group: `adopted` if it was taken over, and the number of offsets that this request took over.

    A `confirmed_absent` group exists neither here nor in the cluster; requests for it are allowed for a moment. The
    error is FENCED_LEADER_EPOCH if the offsets read from the cluster may be outdated by now.
    """

    error_code: int
    adopted: bool
    confirmed_absent: bool
    epoch: int
    asked_ms: int
    taken: int


def handle(
    node: Node, request: AdoptGroupRequest, ctx: RequestContext
) -> AdoptGroupResponse | ParkedSentinel:
    """Return whether a group was taken over; if the request has offsets, take it over first unless it was."""
    if request.offsets is None:
        return _response(
            node.group_access.adoptions.find_adoption_state(ctx, request.group_id), ctx.api_version
        )
    return run_work_and_respond(node, ctx, _adopt(node, request, ctx))


def _adopt(
    node: Node, request: AdoptGroupRequest, ctx: RequestContext
) -> Generator[None, None, AdoptGroupResponse]:
    offsets = yield from parse_offsets_in_steps(request.offsets or [])
    adopted = AdoptionOutcome(ErrorCode.INVALID_REQUEST)
    if offsets is not None and not (offsets and request.unknown):
        reading = AdoptionReading(offsets, request.epoch, request.asked_ms, request.unknown)
        adopted = yield from node.group_access.adoptions.adopt(ctx, request.group_id, reading)
        if adopted.is_newly_adopted:
            first = [(each.topic, each.partition, (None, each.offset)) for each in offsets[:NAMED_MAX]]
            changes = node.group_access.outside_changes
            changes.add_offset_moves(OutsideChange.TAKEN_OVER, request.group_id, ctx, adopted.taken, first)
    return _response(adopted, ctx.api_version)


def parse_offsets_in_steps(topics: list[Any]) -> Generator[None, None, list[AdoptedOffset] | None]:
    """Read the offsets in a request, in steps; return None if one is invalid, or a partition is in it twice.

    A topic may be in the request several times.
    """
    offsets: list[AdoptedOffset] = []
    places: set[tuple[str, int]] = set()
    for found in iterate_with_none_at_pauses(_rows(topics)):
        if found is None:
            yield
            continue
        topic, row = found
        if row is None:
            continue
        if row.partition_index < 0 or row.committed_offset < 0:
            return None
        places.add((topic, row.partition_index))
        metadata = row.committed_metadata or ""
        offset = AdoptedOffset(
            topic, row.partition_index, row.committed_offset, row.committed_leader_epoch, metadata
        )
        offsets.append(offset)
    return offsets if len(places) == len(offsets) else None


def _rows(topics: list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield each topic with None, because a topic without rows takes time, too, and then with each of its rows."""
    for topic in topics:
        yield topic.topic, None
        for row in topic.partitions:
            yield topic.topic, row


def _response(adopted: AdoptionOutcome, version: int) -> AdoptGroupResponse:
    make: Any = AdoptGroupResponse
    response: AdoptGroupResponse = make(
        version=version,
        error_code=int(adopted.error),
        adopted=adopted.is_adopted,
        confirmed_absent=adopted.is_confirmed_absent,
        epoch=adopted.epoch,
        asked_ms=adopted.asked_ms,
        taken=adopted.taken,
    )
    return response


def error_response(request: AdoptGroupRequest, error: ErrorCode, version: int) -> AdoptGroupResponse:
    """Return the response with only an error."""
    return _response(AdoptionOutcome(error), version)


API: Final = Api(
    build_schema(AdoptGroupRequest, AdoptGroupResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=MOVED,
    changes=True,
)
