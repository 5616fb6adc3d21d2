# SPDX-License-Identifier: Apache-2.0
"""The handler of LeaveGroup v0-v5.

v1: throttle time. v3: several members, by member or instance id (KIP-345). v4: flexible. v5: reason (KIP-800).
"""

from typing import Final

from coordinator.api.context import RequestContext
from coordinator.api.declaration import Api
from coordinator.groups.classic.heartbeat_and_leave import find_members_of_other_clients, leave
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup, GroupAccess, GroupEntry
from protocol.apis import VersionRange
from protocol.bounds import LISTS_AT_ONCE
from protocol.compiled_struct import copy_with_fields
from protocol.errors import ErrorCode
from protocol.hot.leave_group import (
    SCHEMA,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from protocol.newtypes import MemberId

BATCHED_FROM: Final = 3


def handle(node: Node, request: LeaveGroupRequest, ctx: RequestContext) -> LeaveGroupResponse:
    """Remove members from a group: up to v2 one, with a top-level error; later several, each with its own result."""
    if not request.group_id:
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    group_access = node.group_access
    kept = group_access.look_up_local_classic_group(ctx, request.group_id)
    if not isinstance(kept, (GroupEntry, AbsentGroup)):
        return error_response(request, kept, ctx.api_version)
    if ctx.api_version < BATCHED_FROM:
        request = copy_with_fields(request, members=[MemberIdentity(member_id=request.member_id)])
    if isinstance(kept, AbsentGroup):
        answers = [_unknown(member) for member in request.members]
    else:
        others = find_members_of_other_clients(kept.classic_group, request, ctx)
        answers = group_access.carry_out_outcome(
            ctx, kept, leave(group_access.env, kept.classic_group, request, group_access.clock.now())
        )
        if others:
            _log_removals(group_access, kept, ctx, others)
    if ctx.api_version < BATCHED_FROM:
        return LeaveGroupResponse(error_code=answers[0].error_code)
    return LeaveGroupResponse(members=answers)


def _log_removals(
    group_access: GroupAccess, kept: GroupEntry, ctx: RequestContext, others: list[tuple[MemberId, str]]
) -> None:
    members = kept.classic_group.members
    removed = [(member, reason) for member, reason in others if member not in members]
    if removed:
        group_access.outside_changes.add_removed_members(kept.group_id, ctx, removed)


def _unknown(member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )


def error_response(request: LeaveGroupRequest, error: ErrorCode, version: int) -> LeaveGroupResponse:
    """Return the refusal of the whole request."""
    return LeaveGroupResponse(error_code=error)


API: Final = Api(
    SCHEMA,
    versions=VersionRange(0, 5),
    handle=handle,
    error_response=error_response,
    frame=LISTS_AT_ONCE,
    changes=True,
    error_parts=("members",),
    short_answers=True,
)
