# SPDX-License-Identifier: Apache-2.0
"""The handler of Heartbeat v0-v4. v1: throttle time. v3: group.instance.id (KIP-345). v4: flexible."""

from typing import Final

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.groups.classic.heartbeat_and_leave import heartbeat
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup, GroupEntry
from protocol.apis import VersionRange
from protocol.bounds import STRINGS
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import SCHEMA, HeartbeatRequest, HeartbeatResponse


def handle(node: Node, request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    """Prolong a member's session; the response reports if the member must rejoin."""
    # Checked before the lookup: a group with the empty id can have offsets (GroupCoordinatorService.heartbeat).
    if not request.group_id:
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    group_access = node.group_access
    kept = group_access.look_up_local_classic_group(ctx, request.group_id)
    if not isinstance(kept, (GroupEntry, AbsentGroup)):
        if kept is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # The member is not loaded yet, and must not rejoin for that (GroupCoordinatorService.heartbeat).
            return HeartbeatResponse(error_code=0)
        return HeartbeatResponse(error_code=kept)
    if isinstance(kept, AbsentGroup):
        return HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    outcome = heartbeat(kept.classic_group, request, group_access.clock.mono_ms())
    return HeartbeatResponse(error_code=group_access.carry_out_outcome(ctx, kept, outcome))


def error_response(request: HeartbeatRequest, error: ErrorCode, version: int) -> HeartbeatResponse:
    """Return the refusal of a heartbeat."""
    return HeartbeatResponse(error_code=error)


API: Final = Api(
    SCHEMA,
    versions=VersionRange(0, 4),
    handle=handle,
    error_response=error_response,
    frame=STRINGS,
    changes=True,
    repeats=True,
    short_answers=True,
)
