# SPDX-License-Identifier: Apache-2.0
"""The deadlines of a group: sessions that expire, and joins and syncs that take too long."""

from itertools import islice
from typing import Final

from coordinator.groups.classic.heartbeat_and_leave import fail_join_and_remove
from coordinator.groups.classic.member import NEVER
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.rebalance import (
    complete_join,
    extend_or_complete_initial_rebalance,
    prepare_rebalance,
    rebalance_or_complete_join,
    reset_session,
)
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.outcome import Instant, Outcome
from coordinator.groups.rebalance_timings import RebalanceCause

EXPIRED_AT_ONCE: Final = 1_000
"""The number of sessions that may expire in one step; the rest expire in the next, which is due at once."""


def handle_due_deadlines(env: GroupEnvironment, group: GroupMetadata, now: Instant, due_ms: int) -> Outcome:
    """Expire everything that is due, and set `group.wakeup_ms` to the next deadline.

    Deadlines up to `due_ms` are due. That is a moment in monotonic milliseconds, not after `now`, and all requests
    received by then have been handled. New deadlines count from `now`.
    """
    out = Outcome()
    if group.state is not GroupState.DEAD:
        _expire_pending_members(group, now, due_ms, out)
        _expire_sessions(env, group, now, due_ms, out)
        if group.join_deadline_ms <= due_ms:
            if group.initial_delay_ms:
                extend_or_complete_initial_rebalance(env, group, now, out)
            else:
                complete_join(group, now, out)
        if group.sync_deadline_ms <= due_ms:
            _expire_pending_sync(env, group, now, out)
    group.wakeup_ms = next_deadline(group)
    return out


def next_deadline(group: GroupMetadata) -> int:
    """Return the earliest of the group's deadlines, in monotonic milliseconds; NEVER if it has none."""
    if group.state is GroupState.DEAD:
        return NEVER
    return min(
        group.join_deadline_ms,
        group.sync_deadline_ms,
        min((member.session_deadline_ms for member in group.members.values()), default=NEVER),
        min(group.pending_members.values(), default=NEVER),
    )


def on_loaded(env: GroupEnvironment, group: GroupMetadata, now: Instant) -> Outcome:
    """Give the members of a group that was loaded from the log a full session before they expire.

    A group that is larger than a lowered `group.max.size` rebalances, so that its members may commit before some
    of them are refused (GroupMetadataManager.onLoaded).
    """
    out = Outcome()
    for member in group.members.values():
        reset_session(group, member, now)
    if len(group.members) > env.config.max_size:
        reason = f"freshly loaded with {len(group.members)} members, allowed are {env.config.max_size}"
        prepare_rebalance(env, group, RebalanceCause.OVER_CAPACITY, reason, now, out)
    return out


def _expire_pending_members(group: GroupMetadata, now: Instant, due_ms: int, out: Outcome) -> None:
    expired = [member_id for member_id, deadline in group.pending_members.items() if deadline <= due_ms]
    for member_id in expired:
        group.remove(member_id)
        out.add_event("pending member did not join in time", group=group.group_id, member=member_id)
    if expired:
        _complete_join_if_all_came(group, now, out)


def _expire_sessions(
    env: GroupEnvironment, group: GroupMetadata, now: Instant, due_ms: int, out: Outcome
) -> None:
    silent = (member for member in group.members.values() if member.session_deadline_ms <= due_ms)
    for member in list(islice(silent, EXPIRED_AT_ONCE)):
        if member.has_satisfied_heartbeat:
            # The reply to the join or sync that it waits in will start a new session.
            member.session_deadline_ms = NEVER
            continue
        if member.member_id not in group.members:
            continue  # removed in the rebalance that the expiry of an earlier one has begun
        fail_join_and_remove(group, member.member_id, out)
        out.add_notable_event("member's session has expired", group=group.group_id, member=member.member_id)
        if group.is_in_state(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            reason = f"session of {member.member_id} has expired"
            rebalance_or_complete_join(env, group, RebalanceCause.SESSION_EXPIRED, reason, now, out)
        else:
            _complete_join_if_all_came(group, now, out)


def _complete_join_if_all_came(group: GroupMetadata, now: Instant, out: Outcome) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(group, now, out)


def _expire_pending_sync(env: GroupEnvironment, group: GroupMetadata, now: Instant, out: Outcome) -> None:
    """Remove the members that have not synced in this generation, and rebalance the rest."""
    group.sync_deadline_ms = NEVER
    if (
        not group.is_in_state(GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
        or not group.pending_sync_members
    ):
        return
    missing = sorted(group.pending_sync_members)
    for member_id in missing:
        group.remove(member_id)
    reason = f"members did not sync in time: {', '.join(missing)}"
    prepare_rebalance(env, group, RebalanceCause.SYNC_EXPIRED, reason, now, out)
