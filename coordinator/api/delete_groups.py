# SPDX-License-Identifier: Apache-2.0
"""The handler of DeleteGroups v0-v3. v1: throttle time. v2: flexible. v3: error messages."""

from collections.abc import Generator
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import ITEMS_PER_SLICE, cast_as_list, respond_in_slices
from coordinator.node import Node
from coordinator.telemetry.outside_changes import NAMED_MAX, OutsideChange
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DeleteGroupsRequest, DeleteGroupsResponse, build_schema
from protocol.newtypes import GroupId


def handle(node: Node, request: DeleteGroupsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Delete groups that have no members, and their offsets; a group that is named twice gets one result."""
    return respond_in_slices(
        node, ctx, DeleteGroupsResponse(results=cast_as_list(_delete(node, request, ctx)))
    )


def _delete(
    node: Node, request: DeleteGroupsRequest, ctx: RequestContext
) -> Generator[DeleteGroupsResponse.DeletableGroupResult | None, None, None]:
    for group_id in dict.fromkeys(map(GroupId, request.groups_names)):
        group_access = node.group_access
        count, _metadata_bytes = group_access.measure_group_offsets(group_id)
        first = group_access.select_first_offsets(group_id, NAMED_MAX)
        error = yield from group_access.delete_group_in_steps(ctx, group_id, ITEMS_PER_SLICE)
        if error is ErrorCode.NONE:
            moves = [(topic, partition, (value.offset, None)) for topic, partition, value in first]
            changes = group_access.outside_changes
            changes.add_offset_moves(OutsideChange.GROUP_DELETED, group_id, ctx, count, moves)
        yield _result(group_id, error)


def _result(group_id: GroupId, error: ErrorCode) -> DeleteGroupsResponse.DeletableGroupResult:
    return DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=int(error))


def error_response(request: DeleteGroupsRequest, error: ErrorCode, version: int) -> DeleteGroupsResponse:
    """Return the response with one error for every group."""
    return DeleteGroupsResponse(
        results=[_result(GroupId(group_id), error) for group_id in request.groups_names]
    )


API: Final = Api(
    build_schema(DeleteGroupsRequest, DeleteGroupsResponse),
    versions=VersionRange(0, 3),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=True,
    error_parts=("results",),
)
