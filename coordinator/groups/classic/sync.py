# SPDX-License-Identifier: Apache-2.0
"""SyncGroup: the leader brings the assignment, and each member gets its part."""

from typing import Final

from coordinator.groups.classic.member import NEVER
from coordinator.groups.classic.metadata import NO_MEMBERS, GroupMetadata
from coordinator.groups.classic.rebalance import report_rebalance_end, reset_session
from coordinator.groups.classic.replay import make_stable_group_record
from coordinator.groups.classic.state import GroupState
from coordinator.groups.outcome import Instant, Outcome, RequestRef
from protocol.errors import ErrorCode
from protocol.hot.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.newtypes import MemberId

_NONE: Final = ErrorCode.NONE
_DEAD: Final = GroupState.DEAD
_EMPTY: Final = GroupState.EMPTY
_STABLE: Final = GroupState.STABLE
_PREPARING: Final = GroupState.PREPARING_REBALANCE
"""Members of the enum, looked up once because each lookup takes hundreds of instructions."""


def sync(group: GroupMetadata, request: SyncGroupRequest, caller: RequestRef, now: Instant) -> Outcome:
    """Handle a SyncGroup request (GroupMetadataManager.classicGroupSyncToClassicGroup).

    A follower's sync waits for the leader's; the reply then comes in the leader's outcome.
    """
    out = Outcome()
    error = _validate(group, request)
    if error is not _NONE:
        return out.reply(caller, SyncGroupResponse(error_code=error))
    state = group.state
    if state is _PREPARING:
        return out.reply(caller, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    member = group.members[request.member_id]
    _no_longer_pending(group, request.member_id)
    if state is _STABLE:
        return out.reply(caller, _assignment_response(group, member.assignment))
    member.awaiting_sync = caller
    if group.is_leader(request.member_id):
        _stabilise(group, request, now, out)
    return out


def _validate(group: GroupMetadata, request: SyncGroupRequest) -> ErrorCode:
    if group.state is _DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if group.state is _EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is not _NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    # KIP-559: clients from v5 on name the type and protocol that they expect; older ones name none.
    for claimed, actual in (
        (request.protocol_type, group.protocol_type),
        (request.protocol_name, group.protocol_name),
    ):
        if claimed is not None and claimed != actual:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return _NONE


def _no_longer_pending(group: GroupMetadata, member_id: MemberId) -> None:
    group.pending_sync_members.discard(member_id)
    if not group.pending_sync_members:
        group.pending_sync_members = NO_MEMBERS
        group.sync_deadline_ms = NEVER


def _assignment_response(group: GroupMetadata, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=assignment
    )


def _stabilise(group: GroupMetadata, request: SyncGroupRequest, now: Instant, out: Outcome) -> None:
    """Add the record of the leader's assignment to `out`; applying it makes the group Stable.

    Members that the leader left out get empty bytes; ids that are not in the group are ignored.
    """
    assignments = {entry.member_id: entry.assignment for entry in request.assignments}
    group.check_transition_to(_STABLE)
    out.records.append(make_stable_group_record(group, assignments, now.wall))
    out.starts_over = True
    report_rebalance_end(group, group.generation_id, now, out)
    progress = group.rebalance
    out.add_notable_event(
        "stabilized group",
        group=group.group_id,
        generation=group.generation_id,
        members=len(group.members),
        leader=group.leader_id,
        milliseconds=0 if progress is None else progress.total_duration_ms,
    )
    for member in group.members.values():
        if member.awaiting_sync is not None:
            out.reply(
                member.awaiting_sync, _assignment_response(group, assignments.get(member.member_id, b""))
            )
            member.awaiting_sync = None
            # A session that ended while the sync waited was forgiven; without a new deadline it would never end.
            reset_session(group, member, now)
