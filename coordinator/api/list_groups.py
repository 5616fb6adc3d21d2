# SPDX-License-Identifier: Apache-2.0
"""ListGroups v0-v5. v1: throttle time. v3: flexible. v4: filter by state (KIP-518). v5: by type (KIP-848)."""

from coordinator.api.context import RequestContext
from coordinator.groups.metadata import GroupMetadata
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.messages import ListGroupsRequest, ListGroupsResponse

CLASSIC = "classic"


def handle(node: Node, request: ListGroupsRequest, ctx: RequestContext) -> ListGroupsResponse:
    """All groups of the owned partitions; filters ignore case, unknown states and types match nothing."""
    manager = node.manager
    if manager.loading_partitions:
        return error_response(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ctx.api_version)
    states = {state.strip().lower() for state in request.states_filter or ()}
    types = {kind.lower() for kind in request.types_filter or ()}
    groups = []
    for shard in manager.owned_partitions.values():
        ctx.wait_for(shard.absence_flush)
    for group in manager.current_groups():
        if (not states or group.state.value.lower() in states) and (not types or CLASSIC in types):
            ctx.wait_for(group.flush)
            groups.append(_listed(group))
    return ListGroupsResponse(groups=groups)


def _listed(group: GroupMetadata) -> ListGroupsResponse.ListedGroup:
    overview = group.overview()
    return ListGroupsResponse.ListedGroup(
        group_id=overview.group_id,
        protocol_type=overview.protocol_type,
        group_state=overview.state,
        group_type=CLASSIC,
    )


def error_response(request: ListGroupsRequest, error: ErrorCode, version: int) -> ListGroupsResponse:
    """An error in place of the list."""
    return ListGroupsResponse(error_code=int(error), groups=[])
