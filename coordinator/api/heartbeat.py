# SPDX-License-Identifier: Apache-2.0
"""Heartbeat v0-v4. v1: throttle time. v3: group.instance.id (KIP-345). v4: flexible."""

from coordinator.api.context import RequestContext
from coordinator.groups.membership import heartbeat
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(node: Node, request: HeartbeatRequest, ctx: RequestContext) -> HeartbeatResponse:
    """Prolong a session; the answer tells the member when it must rejoin."""
    manager = node.manager
    group_id = request.group_id
    shard = manager.shard_for(group_id)
    if isinstance(shard, ErrorCode):
        if shard is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            # Nobody knows the member yet; it is not to be disturbed (GroupCoordinatorService.heartbeat).
            return HeartbeatResponse(error_code=0)
        return HeartbeatResponse(error_code=shard)
    group = shard.groups.get(group_id)
    if group is None:
        ctx.flush = shard.absence_flush
        error = ErrorCode.UNKNOWN_MEMBER_ID if group_id else ErrorCode.INVALID_GROUP_ID
        return HeartbeatResponse(error_code=error)
    ctx.flush = group.flush
    return HeartbeatResponse(error_code=heartbeat(group, request, manager.clock.mono_ms()))


def error_response(request: HeartbeatRequest, error: ErrorCode, version: int) -> HeartbeatResponse:
    """The refusal of a heartbeat."""
    return HeartbeatResponse(error_code=error)
