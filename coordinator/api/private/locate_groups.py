# SPDX-License-Identifier: Apache-2.0
"""The private api LocateGroups v0: reports which groups are here; for the others a gateway asks the cluster."""

from collections.abc import Generator
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import iterate_with_none_at_pauses, run_work_and_respond
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import build_schema
from protocol.private_messages import LocateGroupsRequest, LocateGroupsResponse


def handle(node: Node, request: LocateGroupsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Return whether each group is here, once the state behind that is durable."""
    return run_work_and_respond(node, ctx, _locate(node, request, ctx))


def _locate(
    node: Node, request: LocateGroupsRequest, ctx: RequestContext
) -> Generator[None, None, LocateGroupsResponse]:
    here: list[bool] = []
    adoptions = node.group_access.adoptions
    for group_id in iterate_with_none_at_pauses(request.group_ids):
        if group_id is None:
            yield
        else:
            here.append(
                adoptions.should_answer_group_here(ctx, group_id, discard_readings=request.discard_readings)
            )
    return _response(ErrorCode.NONE, here)


def _response(error: ErrorCode, here: list[bool]) -> LocateGroupsResponse:
    return LocateGroupsResponse(version=0, error_code=int(error), here=here)


def error_response(request: LocateGroupsRequest, error: ErrorCode, version: int) -> LocateGroupsResponse:
    """Return the response with only an error."""
    return _response(error, [])


API: Final = Api(
    build_schema(LocateGroupsRequest, LocateGroupsResponse),
    versions=VersionRange(0, 0),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=lambda request: bool(request.discard_readings),
)
