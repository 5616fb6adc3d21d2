# SPDX-License-Identifier: Apache-2.0
"""The private api GiveBackGroup v0: gives a group back to the cluster, which has its offsets already."""

from collections.abc import Generator
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.private.adopt_group import log_moved_offsets, parse_offsets_in_steps
from coordinator.api.slices import run_work_and_respond
from coordinator.node import Node
from coordinator.telemetry.outside_changes import OutsideChange
from protocol.apis import VersionRange
from protocol.bounds import MOVED
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema
from protocol.private_messages import GiveBackGroupRequest, GiveBackGroupResponse


def handle(node: Node, request: GiveBackGroupRequest, ctx: RequestContext) -> ParkedSentinel:
    """Delete a group and its mark if the group has no members and exactly these offsets."""
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
            log_moved_offsets(node, ctx, OutsideChange.GIVEN_BACK, request.group_id, offsets)
    return error_response(request, error, ctx.api_version)


def error_response(request: GiveBackGroupRequest, error: ErrorCode, version: int) -> GiveBackGroupResponse:
    """Return the response, which has only an error."""
    return GiveBackGroupResponse(version=version, error_code=int(error))


API: Final = Api(
    build_schema(GiveBackGroupRequest, GiveBackGroupResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=MOVED,
    changes=True,
)
