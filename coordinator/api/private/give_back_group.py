# SPDX-License-Identifier: Apache-2.0
"""The private api GiveBackGroup v0: gives a group back to the cluster, which has its offsets already."""

from collections.abc import Generator
from typing import Any, Final

from kafka.protocol.api_message import ApiMessage

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.private.adopt_group import parse_offsets_in_steps
from coordinator.api.slices import run_work_and_respond
from coordinator.node import Node
from coordinator.telemetry.outside_changes import NAMED_MAX, OutsideChange
from protocol.apis import VersionRange
from protocol.bounds import MOVED
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema
from protocol.newtypes import GroupId


class GiveBackGroupRequest(ApiMessage, load_json="protocol.schemas"):
    """A group, and the offsets that were written to the cluster."""

    GivenTopic: Any
    group_id: GroupId
    offsets: list[Any]


class GiveBackGroupResponse(ApiMessage, load_json="protocol.schemas"):
    """The outcome: NONE if the group now belongs to the cluster."""

    error_code: int


def handle(node: Node, request: GiveBackGroupRequest, ctx: RequestContext) -> ParkedSentinel:
    """Delete a group and its ownership marker if the group has no members and exactly these offsets."""
    return run_work_and_respond(node, ctx, _give_back(node, request, ctx))


def _give_back(
    node: Node, request: GiveBackGroupRequest, ctx: RequestContext
) -> Generator[None, None, GiveBackGroupResponse]:
    offsets = yield from parse_offsets_in_steps(request.offsets)
    error = ErrorCode.INVALID_REQUEST
    if offsets is not None:
        error = yield from node.group_access.adoptions.remove_group_if_unchanged(
            ctx, request.group_id, offsets
        )
        if error is ErrorCode.NONE:
            first = [(each.topic, each.partition, (each.offset, None)) for each in offsets[:NAMED_MAX]]
            changes = node.group_access.outside_changes
            changes.add_offset_moves(OutsideChange.GIVEN_BACK, request.group_id, ctx, len(offsets), first)
    return error_response(request, error, ctx.api_version)


def error_response(request: GiveBackGroupRequest, error: ErrorCode, version: int) -> GiveBackGroupResponse:
    """Return the response, which has only an error."""
    make: Any = GiveBackGroupResponse
    response: GiveBackGroupResponse = make(version=version, error_code=int(error))
    return response


API: Final = Api(
    build_schema(GiveBackGroupRequest, GiveBackGroupResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=MOVED,
    changes=True,
)
