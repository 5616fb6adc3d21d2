# SPDX-License-Identifier: Apache-2.0
"""The handler of SyncGroup v0-v5.

v1: throttle time. v3: group.instance.id (KIP-345). v4: flexible. v5: protocol type and name, checked (KIP-559).
"""

from typing import Final

from coordinator.api.context import PARKED, ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.groups.classic.sync import sync
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup, GroupEntry
from protocol.apis import VersionRange
from protocol.bounds import BLOBS
from protocol.errors import ErrorCode
from protocol.hot.sync_group import SCHEMA, SyncGroupRequest, SyncGroupResponse
from protocol.sync_group_validation import lacks_protocol


def handle(node: Node, request: SyncGroupRequest, ctx: RequestContext) -> SyncGroupResponse | ParkedSentinel:
    """Return a member's part of the assignment; a follower waits until the leader has sent the assignment."""
    if lacks_protocol(request, ctx.api_version):
        return error_response(request, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, ctx.api_version)
    if not request.group_id:
        return error_response(request, ErrorCode.INVALID_GROUP_ID, ctx.api_version)
    group_access = node.group_access
    kept = group_access.look_up_local_classic_group(ctx, request.group_id)
    if not isinstance(kept, (GroupEntry, AbsentGroup)):
        return error_response(request, kept, ctx.api_version)
    if isinstance(kept, AbsentGroup):
        return error_response(request, ErrorCode.UNKNOWN_MEMBER_ID, ctx.api_version)
    group_access.carry_out_outcome(
        ctx, kept, sync(kept.classic_group, request, ctx, group_access.clock.now())
    )
    return PARKED


def error_response(request: SyncGroupRequest, error: ErrorCode, version: int) -> SyncGroupResponse:
    """Return the refusal of a sync: no protocol, and an empty assignment."""
    return SyncGroupResponse(error_code=error)


API: Final = Api(
    SCHEMA,
    versions=VersionRange(0, 5),
    handle=handle,
    error_response=error_response,
    frame=BLOBS,
    changes=True,
    waits_for_members=True,
    short_answers=True,
)
