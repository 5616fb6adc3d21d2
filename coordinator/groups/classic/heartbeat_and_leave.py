# SPDX-License-Identifier: Apache-2.0
"""Heartbeat and LeaveGroup, and the removal of members."""

from typing import Final

from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.rebalance import answer_join, maybe_complete_join, rebalance_or_complete_join
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.outcome import Instant, Outcome, RequestRef
from coordinator.groups.rebalance_timings import RebalanceCause
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.hot.join_group import JoinGroupResponse
from protocol.hot.leave_group import LeaveGroupRequest, MemberIdentity, MemberResponse
from protocol.newtypes import MemberId

_NONE: Final = ErrorCode.NONE
_DEAD: Final = GroupState.DEAD
_STABLE: Final = GroupState.STABLE
_PREPARING: Final = GroupState.PREPARING_REBALANCE
_COMPLETING: Final = GroupState.COMPLETING_REBALANCE
"""Members of the enum, looked up once because each lookup takes hundreds of instructions."""


_ALIVE: Final = Outcome(_NONE)
_REJOIN: Final = Outcome(ErrorCode.REBALANCE_IN_PROGRESS)
"""The outcomes of nearly all heartbeats, which share them: nothing may be added to one."""


def heartbeat(group: GroupMetadata, request: HeartbeatRequest, now_mono_ms: int) -> Outcome:
    """Prolong a member's session; REBALANCE_IN_PROGRESS asks the member to rejoin (classicGroupHeartbeat).

    The answer is an ErrorCode.
    """
    state = group.state
    if state is _DEAD:
        return Outcome(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = group.members.get(request.member_id)
    if member is None or request.group_instance_id is not None:
        error = group.validate_member(request.member_id, request.group_instance_id)
        if error is not _NONE or member is None:
            return Outcome(error)
    if request.generation_id != group.generation_id:
        return Outcome(ErrorCode.ILLEGAL_GENERATION)
    # The deadline only moves away, so no timer has to be moved with it.
    member.session_deadline_ms = now_mono_ms + member.session_timeout_ms
    return _REJOIN if state is _PREPARING else _ALIVE


def prolong_session(group: GroupMetadata, member_id: MemberId, now_mono_ms: int) -> None:
    """Prolong a member's session: its commit counts as a heartbeat (OffsetMetadataManager.commitOffset)."""
    member = group.members.get(member_id)
    if member is not None:
        member.session_deadline_ms = now_mono_ms + member.session_timeout_ms


def leave(env: GroupEnvironment, group: GroupMetadata, request: LeaveGroupRequest, now: Instant) -> Outcome:
    """Remove members, by id or by instance id (KIP-345), and rebalance the rest.

    The answer is a list of MemberResponse in the order of the request; a member named twice fails the second time.
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
    left = [answer.member_id for answer in answers if answer.error_code == _NONE]
    if left:
        reason = f"members left: {', '.join(left)}"
        state = group.state
        if state is _STABLE or state is _COMPLETING:
            rebalance_or_complete_join(env, group, RebalanceCause.MEMBER_LEFT, reason, now, out)
        elif state is _PREPARING:
            maybe_complete_join(group, now, out)
    out.answer = answers
    return out


def find_members_of_other_clients(
    group: GroupMetadata, request: LeaveGroupRequest, requester: RequestRef
) -> list[tuple[MemberId, str]]:
    """Return the members in a request to leave that joined as another client, with the reasons that it gives."""
    others = []
    for leaving in request.members:
        member_id = leaving.member_id or group.static_members.get(leaving.group_instance_id or "")
        member = None if member_id is None else group.members.get(member_id)
        if member is not None and (
            member.client_id != requester.client_id or member.client_host != requester.client_host
        ):
            others.append((member.member_id, leaving.reason or "not provided"))
    return others


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
        out.add_event("pending member left", group=group.group_id, member=member_id)
        return _NONE
    else:
        error = group.validate_member(member_id, leaving.group_instance_id)
        if error is not _NONE:
            return error
    fail_join_and_remove(group, member_id, out)
    out.add_notable_event(
        "member left", group=group.group_id, member=member_id, reason=leaving.reason or "not provided"
    )
    return _NONE


def fail_join_and_remove(group: GroupMetadata, member_id: MemberId, out: Outcome) -> None:
    """Remove a member; a join that it still waits in is answered with an error that makes its client join again."""
    response = JoinGroupResponse(
        error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=MemberId(""), protocol_name=None
    )
    answer_join(group, group.members[member_id], response, out)
    group.remove(member_id)
