# SPDX-License-Identifier: Apache-2.0
"""DeleteGroups v0-v2. v1: throttle time. v2: flexible."""

from collections.abc import Generator

from coordinator.api.context import Parked, RequestContext
from coordinator.api.slices import ITEMS_PER_SLICE, in_slices
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


def handle(node: Node, request: DeleteGroupsRequest, ctx: RequestContext) -> Parked:
    """Delete groups without members together with their offsets; each is answered by itself, and once."""
    return in_slices(node, ctx, DeleteGroupsResponse(results=_delete(node, request, ctx)))


def _delete(
    node: Node, request: DeleteGroupsRequest, ctx: RequestContext
) -> Generator[DeleteGroupsResponse.DeletableGroupResult | None, None, None]:
    for group_id in dict.fromkeys(request.groups_names):
        error = yield from node.door.delete_group(ctx, group_id, ITEMS_PER_SLICE)
        yield _result(group_id, error)


def _result(group_id: str, error: ErrorCode) -> DeleteGroupsResponse.DeletableGroupResult:
    return DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=int(error))


def error_response(request: DeleteGroupsRequest, error: ErrorCode, version: int) -> DeleteGroupsResponse:
    """The same error for every group."""
    return DeleteGroupsResponse(results=[_result(group_id, error) for group_id in request.groups_names])
