# SPDX-License-Identifier: Apache-2.0
"""The handler of ListGroups v0-v5.

v1: throttle time. v3: flexible. v4: filter by state (KIP-518). v5: filter by type (KIP-848).
"""

from collections.abc import Iterator
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list, respond_in_slices
from coordinator.groups.classic.group import KIND
from coordinator.groups.group import Group
from coordinator.node import Node
from protocol.apis import VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import ListGroupsRequest, ListGroupsResponse, build_schema


def handle(
    node: Node, request: ListGroupsRequest, ctx: RequestContext
) -> ListGroupsResponse | ParkedSentinel:
    """Return all groups of the owned partitions; filters ignore case, and unknown states and types match no group."""
    if node.group_access.has_loading_partitions:
        return error_response(request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ctx.api_version)
    states = {state.strip().lower() for state in request.states_filter or ()}
    types = {kind.lower() for kind in request.types_filter or ()}
    if types and KIND not in types:
        return ListGroupsResponse(groups=[])
    return respond_in_slices(node, ctx, ListGroupsResponse(groups=cast_as_list(_groups(node, states, ctx))))


def _groups(
    node: Node, states: set[str], ctx: RequestContext
) -> Iterator[ListGroupsResponse.ListedGroup | None]:
    """Yield the groups in these states, or all if `states` is empty; yield None to let the event loop serve others.

    Raises RequestRefused if a partition is lost meanwhile.
    """
    for kept in node.group_access.iterate_groups(ctx):
        if kept is None:
            yield None
        elif not states or kept.group.state.value.lower() in states:
            yield _listed(kept.group)


def _listed(group: Group) -> ListGroupsResponse.ListedGroup:
    return ListGroupsResponse.ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=group.kind,
    )


def error_response(request: ListGroupsRequest, error: ErrorCode, version: int) -> ListGroupsResponse:
    """Return the error with an empty list of groups."""
    return ListGroupsResponse(error_code=int(error), groups=[])


API: Final = Api(
    build_schema(ListGroupsRequest, ListGroupsResponse),
    versions=VersionRange(0, 5),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=False,
)
