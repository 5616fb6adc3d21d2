# SPDX-License-Identifier: Apache-2.0
"""SyncGroup v0-v5.

v1: throttle time. v3: group.instance.id (KIP-345). v4: flexible. v5: protocol type and name, checked (KIP-559).
"""

from coordinator.api.context import PARKED, Parked, RequestContext
from coordinator.groups.sync import sync
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.hot.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_REQUIRED_FROM = 5


def handle(node: Node, request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse | Parked:
    """Give a member its part of the assignment; a follower waits for the leader to bring it."""
    manager = node.manager
    if ctx.api_version >= PROTOCOL_REQUIRED_FROM and None in (request.protocol_type, request.protocol_name):
        return error_response(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ctx.api_version)
    if not request.group_id:
        return error_response(request, ErrorCode.INVALID_GROUP_ID, ctx.api_version)
    shard = manager.shard_for(request.group_id)
    if isinstance(shard, ErrorCode):
        return error_response(request, shard, ctx.api_version)
    group = shard.groups.get(request.group_id)
    if group is None:
        ctx.wait_for(shard.absence_flush)
        return error_response(request, ErrorCode.UNKNOWN_MEMBER_ID, ctx.api_version)
    manager.run(shard, group, sync(group, request, ctx, manager.clock.now()))
    return PARKED


def error_response(request: SyncGroupRequest, error: ErrorCode, version: int) -> SyncGroupResponse:
    """The refusal of a sync: no protocol, an empty assignment."""
    return SyncGroupResponse(error_code=error)
