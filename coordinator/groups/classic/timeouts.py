# SPDX-License-Identifier: Apache-2.0
"""What time alone does to a group: sessions that end, joins and syncs that took too long."""

from itertools import islice
from typing import Final

from coordinator.groups.classic.member import NEVER
from coordinator.groups.classic.membership import remove_member
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.rebalance import (
    complete_join,
    extend_or_complete_initial_rebalance,
    prepare_or_complete,
    prepare_rebalance,
    reset_session,
)
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import Environment
from coordinator.groups.outcome import Instant, Outcome
from coordinator.groups.progress import RebalanceCause

EXPIRED_AT_ONCE: Final = 1_000
"""So many sessions end in one step; those of a larger group go on ending in the next, which is due at once."""


def expire(env: Environment, group: GroupMetadata, now: Instant, due_ms: int) -> Outcome:
    """Do everything that is due, and say in `group.wakeup_ms` when the next thing will be.

    Due is what had its deadline by `due_ms`, monotonic milliseconds: a moment not after `now`, and everything that
    members had sent by then has been handled. What comes of it counts from `now`.
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
    """The earliest of all the group's deadlines, monotonic milliseconds; NEVER if it has none."""
    if group.state is GroupState.DEAD:
        return NEVER
    return min(
        group.join_deadline_ms,
        group.sync_deadline_ms,
        min((member.session_deadline_ms for member in group.members.values()), default=NEVER),
        min(group.pending_members.values(), default=NEVER),
    )


def on_loaded(env: Environment, group: GroupMetadata, now: Instant) -> Outcome:
    """A group has come from the log: its members get a full session before they expire.

    One that is larger than a lowered `group.max.size` rebalances, so that its members may commit before some of
    them are turned away (GroupMetadataManager.onLoaded).
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
        out.note("pending member did not join in time", group=group.group_id, member=member_id)
    if expired:
        _complete_join_if_all_came(group, now, out)


def _expire_sessions(env: Environment, group: GroupMetadata, now: Instant, due_ms: int, out: Outcome) -> None:
    silent = (member for member in group.members.values() if member.session_deadline_ms <= due_ms)
    for member in list(islice(silent, EXPIRED_AT_ONCE)):
        if member.has_satisfied_heartbeat:
            # It waits for us. The answer to its join or sync will start a new session.
            member.session_deadline_ms = NEVER
            continue
        if member.member_id not in group.members:
            continue  # went in the rebalance that an earlier one of them set off
        remove_member(group, member.member_id, out)
        out.report("member's session has expired", group=group.group_id, member=member.member_id)
        if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            reason = f"session of {member.member_id} has expired"
            prepare_or_complete(env, group, RebalanceCause.SESSION_EXPIRED, reason, now, out)
        else:
            _complete_join_if_all_came(group, now, out)


def _complete_join_if_all_came(group: GroupMetadata, now: Instant, out: Outcome) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(group, now, out)


def _expire_pending_sync(env: Environment, group: GroupMetadata, now: Instant, out: Outcome) -> None:
    """Members that got the generation but never synced are dropped and the rest rebalances."""
    group.sync_deadline_ms = NEVER
    if not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync_members:
        return
    missing = sorted(group.pending_sync_members)
    for member_id in missing:
        group.remove(member_id)
    reason = f"members did not sync in time: {', '.join(missing)}"
    prepare_rebalance(env, group, RebalanceCause.SYNC_EXPIRED, reason, now, out)
