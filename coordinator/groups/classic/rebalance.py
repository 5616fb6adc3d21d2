# SPDX-License-Identifier: Apache-2.0
"""Begins and completes rebalances: the phase between Stable (or Empty) and CompletingRebalance."""

from typing import Final

from coordinator.groups.classic.member import NEVER, MemberMetadata
from coordinator.groups.classic.metadata import NO_MEMBERS, GroupMetadata
from coordinator.groups.classic.replay import make_empty_group_record
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.outcome import Instant, Outcome
from coordinator.groups.rebalance_timings import RebalanceCause, RebalanceTimings
from protocol.errors import ErrorCode
from protocol.hot.join_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.hot.sync_group import SyncGroupResponse
from protocol.newtypes import MemberId

_EMPTY: Final = GroupState.EMPTY
_PREPARING: Final = GroupState.PREPARING_REBALANCE
_COMPLETING: Final = GroupState.COMPLETING_REBALANCE
"""Members of the enum, looked up once because each lookup takes hundreds of instructions."""

STORE_AGAIN_MS: Final = 60_000
"""The delay before a group is stored as Empty again whose record was too large for `message.max.bytes`."""


def reset_session(group: GroupMetadata, member: MemberMetadata, now: Instant) -> None:
    """Give a member a full session from now."""
    member.session_deadline_ms = now.mono + member.session_timeout_ms
    group.schedule_wakeup_by(member.session_deadline_ms)


def answer_join(
    group: GroupMetadata, member: MemberMetadata, response: JoinGroupResponse, out: Outcome
) -> None:
    """Add the reply to a member's waiting join to `out`, if the member has one."""
    if member.awaiting_join is not None:
        out.reply(member.awaiting_join, response)
        member.awaiting_join = None
        group.num_members_awaiting_join -= 1


def join_response(group: GroupMetadata, member_id: MemberId, *, with_members: bool) -> JoinGroupResponse:
    """Return the response that gives one member the current generation; only a leader gets the members."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or MemberId(""),
        member_id=member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(group.protocol_name),
            )
            for member in group.members.values()
        ]
        if with_members
        else [],
    )


def propagate_assignment_error(group: GroupMetadata, error: ErrorCode, now: Instant, out: Outcome) -> None:
    """Reply to every waiting sync with `error`, and clear the members' assignments."""
    for member in group.members.values():
        group.set_assignment(member, b"")
        if member.awaiting_sync is not None:
            out.reply(member.awaiting_sync, SyncGroupResponse(error_code=error))
            member.awaiting_sync = None
            reset_session(group, member, now)


def prepare_rebalance(
    env: GroupEnvironment,
    group: GroupMetadata,
    cause: RebalanceCause,
    reason: str,
    now: Instant,
    out: Outcome,
) -> None:
    """Enter PreparingRebalance: the members are asked to rejoin in the response to their next heartbeat.

    An Empty group waits `group.initial.rebalance.delay.ms` for more members (KIP-134). Any other group waits until
    all members have joined, but at most for the largest of their rebalance timeouts.
    """
    if group.state is _COMPLETING:
        propagate_assignment_error(group, ErrorCode.REBALANCE_IN_PROGRESS, now, out)
    group.pending_sync_members = NO_MEMBERS
    group.sync_deadline_ms = NEVER
    initial = group.state is _EMPTY
    group.transition_to(_PREPARING, now.wall)
    if group.rebalance is None:
        group.rebalance = RebalanceTimings(cause, now.mono)
    else:
        group.rebalance.restart_join_times(now.mono)
    out.add_event(
        "preparing to rebalance",
        cause,
        group=group.group_id,
        generation=group.generation_id,
        members=len(group.members),
        reason=reason,
    )
    if initial:
        _wait_initial_delay(env, group, now, out)
    elif group.has_all_members_joined:
        complete_join(group, now, out)
    else:
        group.initial_delay_ms = 0
        set_join_deadline(group, now.mono + group.rebalance_timeout_ms)


def _wait_initial_delay(env: GroupEnvironment, group: GroupMetadata, now: Instant, out: Outcome) -> None:
    delay_ms = env.config.initial_rebalance_delay_ms
    group.new_member_added = False
    group.initial_delay_ms = delay_ms
    group.extension_left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
    set_join_deadline(group, now.mono + delay_ms)
    if delay_ms == 0:
        complete_join(group, now, out)


def set_join_deadline(group: GroupMetadata, deadline_ms: int) -> None:
    """Set the moment at which the join phase ends with the members that have joined by then."""
    group.join_deadline_ms = deadline_ms
    group.schedule_wakeup_by(deadline_ms)


def rebalance_or_complete_join(
    env: GroupEnvironment,
    group: GroupMetadata,
    cause: RebalanceCause,
    reason: str,
    now: Instant,
    out: Outcome,
) -> None:
    """Begin a rebalance if one may begin, or else complete the one under way if all members have joined."""
    if group.can_rebalance:
        prepare_rebalance(env, group, cause, reason, now, out)
    else:
        maybe_complete_join(group, now, out)


def maybe_complete_join(group: GroupMetadata, now: Instant, out: Outcome) -> None:
    """Form the generation if all members have joined, but not before the initial delay has passed."""
    if group.state is _PREPARING and group.previous_state is not _EMPTY and group.has_all_members_joined:
        complete_join(group, now, out)


def complete_join(group: GroupMetadata, now: Instant, out: Outcome) -> None:
    """End the join phase: remove the dynamic members that did not rejoin and form the next generation.

    Static members that did not rejoin stay until their session ends (KIP-345). If no member has rejoined, the
    phase is prolonged. A group that has lost all its members becomes Empty, by a record in the log.
    """
    group.join_deadline_ms = NEVER
    absent = [member for member in group.members.values() if member.awaiting_join is None]
    if absent and group.rebalance is not None:
        group.rebalance.note_awaited(absent[0].member_id, absent[0].client_host)
    missing = [member for member in absent if not member.is_static_member]
    for member in missing:
        group.remove(member.member_id)
    if missing:
        out.add_notable_event(
            "removed members that did not rejoin",
            group=group.group_id,
            members=[member.member_id for member in missing],
        )
    if not group.maybe_elect_new_joined_leader() and group.members:
        group.initial_delay_ms = 0
        set_join_deadline(group, now.mono + group.rebalance_timeout_ms)
        return
    if not group.members:
        _become_empty(group, now, out)
        return
    _form_generation(group, now, out)


def _become_empty(group: GroupMetadata, now: Instant, out: Outcome) -> None:
    """Add the record to `out` that makes the group Empty once it is applied."""
    assert not out.records, f"group {group.group_id} becomes empty twice"
    group.check_transition_to(_EMPTY)
    group.pending_sync_members = NO_MEMBERS
    out.records.append(make_empty_group_record(group, now.wall))
    out.starts_over = True
    if group.rebalance is not None:
        group.rebalance.note_formed(now.mono, "", waited=False)
    report_rebalance_end(group, group.generation_id + 1, now, out)
    out.add_notable_event("group is now empty", group=group.group_id, generation=group.generation_id + 1)


def report_rebalance_end(group: GroupMetadata, generation_id: int, now: Instant, out: Outcome) -> None:
    """Note in `out` that the rebalance is over, with this generation, once the outcome's records are appended."""
    progress = group.rebalance
    if progress is not None:
        progress.note_rebalance_ended(
            now.mono, now.wall, generation_id=generation_id, member_count=len(group.members)
        )
        out.ended_rebalance = progress


def _form_generation(group: GroupMetadata, now: Instant, out: Outcome) -> None:
    if group.rebalance is not None:
        waited = group.previous_state is not _EMPTY
        group.rebalance.note_formed(now.mono, group.leader_id or "", waited=waited)
    group.generation_id += 1
    group.protocol_name = protocol = group.select_protocol()
    group.subscribed_topics = group.compute_subscribed_topics()
    group.transition_to(_COMPLETING, now.wall)
    group.pending_sync_members = set(group.members)
    group.sync_deadline_ms = now.mono + group.rebalance_timeout_ms
    group.schedule_wakeup_by(group.sync_deadline_ms)
    out.add_event(
        "formed generation",
        group=group.group_id,
        generation=group.generation_id,
        members=len(group.members),
        protocol=protocol,
        leader=group.leader_id,
    )
    for member in group.members.values():
        member.is_new = False
        leads = group.is_leader(member.member_id)
        answer_join(group, member, join_response(group, member.member_id, with_members=leads), out)
        reset_session(group, member, now)


def extend_or_complete_initial_rebalance(
    env: GroupEnvironment, group: GroupMetadata, now: Instant, out: Outcome
) -> None:
    """Prolong the initial delay if a new member has joined and time is left, else form the generation."""
    if group.new_member_added and group.extension_left_ms:
        group.new_member_added = False
        delay_ms = min(env.config.initial_rebalance_delay_ms, group.extension_left_ms)
        group.extension_left_ms = max(group.extension_left_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        set_join_deadline(group, now.mono + delay_ms)
    else:
        complete_join(group, now, out)


def replace_refused_outcome(
    env: GroupEnvironment, group: GroupMetadata, outcome: Outcome, error: ErrorCode, now: Instant
) -> Outcome:
    """Return the outcome that replaces one whose records the log refused: replies with `error`, and a new rebalance.

    A group without members that could not be stored as Empty is stored again later.
    """
    out = Outcome()
    for reply in outcome.replies:
        if isinstance(reply.response, SyncGroupResponse):
            out.reply(reply.caller, SyncGroupResponse(error_code=error))
        else:
            member_id = reply.response.member_id
            out.reply(
                reply.caller, JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
            )
    if outcome.starts_over and not group.members:
        set_join_deadline(group, now.mono + STORE_AGAIN_MS)
    elif outcome.starts_over and group.can_rebalance:
        reason = f"storing the group failed with {error.name}"
        prepare_rebalance(env, group, RebalanceCause.STORE_FAILED, reason, now, out)
    return out
