# SPDX-License-Identifier: Apache-2.0
"""Heartbeat and LeaveGroup, and what happens when a member goes."""

from coordinator.groups.config import Environment
from coordinator.groups.metadata import GroupMetadata
from coordinator.groups.outcome import Instant, Outcome, RebalanceCause
from coordinator.groups.rebalance import answer_join, maybe_complete_join, prepare_or_complete
from coordinator.groups.state import GroupState
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.hot.join_group import JoinGroupResponse
from protocol.hot.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse


def heartbeat(group: GroupMetadata, request: HeartbeatRequest, now_mono_ms: int) -> ErrorCode:
    """Prolong a member's session; REBALANCE_IN_PROGRESS asks it to rejoin (classicGroupHeartbeat)."""
    state = group.state
    if state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    member = group.members.get(request.member_id)
    if member is None or request.group_instance_id is not None:
        error = group.validate_member(request.member_id, request.group_instance_id)
        if error is not ErrorCode.NONE or member is None:
            return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    # The deadline only moves away, so no timer has to be moved with it.
    member.session_deadline_ms = now_mono_ms + member.session_timeout_ms
    if state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    env: Environment, group: GroupMetadata, request: LeaveGroupRequest, now: Instant
) -> tuple[list[MemberResponse], Outcome]:
    """Take members out, by id or by instance id (KIP-345), and rebalance the rest.

    Returns one answer a member in the order asked; repeats fail the second time.
    """
    out = Outcome()
    answers = [
        MemberResponse(
            member_id=leaving.member_id,
            group_instance_id=leaving.group_instance_id,
            error_code=_leave_one(group, leaving, out),
        )
        for leaving in request.members
    ]
    left = [answer.member_id for answer in answers if answer.error_code == ErrorCode.NONE]
    if left:
        reason = f"members left: {', '.join(left)}"
        match group.state:
            case GroupState.STABLE | GroupState.COMPLETING_REBALANCE:
                prepare_or_complete(env, group, RebalanceCause.MEMBER_LEFT, reason, now, out)
            case GroupState.PREPARING_REBALANCE:
                maybe_complete_join(group, now, out)
            case _:
                pass
    return answers, out


def _leave_one(group: GroupMetadata, leaving: MemberIdentity, out: Outcome) -> ErrorCode:
    member_id = leaving.member_id
    if not member_id:
        # An administrator removes a static member without knowing its id.
        if leaving.group_instance_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        static_id = group.static_members.get(leaving.group_instance_id)
        if static_id is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = static_id
    elif member_id in group.pending_members:
        group.remove(member_id)
        out.note("pending member left", group=group.group_id, member=member_id)
        return ErrorCode.NONE
    else:
        error = group.validate_member(member_id, leaving.group_instance_id)
        if error is not ErrorCode.NONE:
            return error
    remove_member(group, member_id, out)
    out.note("member left", group=group.group_id, member=member_id, reason=leaving.reason or "not provided")
    return ErrorCode.NONE


def remove_member(group: GroupMetadata, member_id: str, out: Outcome) -> None:
    """Take a member out, telling a join of it that still waits to start over."""
    response = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id="", protocol_name=None)
    answer_join(group, group.members[member_id], response, out)
    group.remove(member_id)
