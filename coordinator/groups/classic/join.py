# SPDX-License-Identifier: Apache-2.0
"""JoinGroup: accepts or refuses members, gives out their ids, and begins rebalances.

The caller has validated the group id and the session timeout, which needs no group.
"""

from sys import intern
from typing import Final

from coordinator.groups.classic.member import MemberMetadata, count_protocols_bytes, intern_protocols
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.rebalance import (
    answer_join,
    join_response,
    maybe_complete_join,
    prepare_rebalance,
    rebalance_or_complete_join,
    reset_session,
)
from coordinator.groups.classic.replay import make_replaced_member_record
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.limits import (
    refuse_member_bytes_over_limit,
    refuse_member_over_limit,
    refuse_pending_over_limit,
)
from coordinator.groups.outcome import Instant, Outcome, RequestRef
from coordinator.groups.rebalance_timings import RebalanceCause
from protocol.errors import ErrorCode
from protocol.hot.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from protocol.hot.sync_group import SyncGroupResponse
from protocol.newtypes import MemberId
from storage.format.records import GroupMetadataValue, MemberValue

_NONE: Final = ErrorCode.NONE
_EMPTY: Final = GroupState.EMPTY
_DEAD: Final = GroupState.DEAD
_STABLE: Final = GroupState.STABLE
_PREPARING: Final = GroupState.PREPARING_REBALANCE
_COMPLETING: Final = GroupState.COMPLETING_REBALANCE
"""Members of the enum, looked up once because each lookup takes hundreds of instructions."""
_TEXTS: Final[dict[GroupState | RebalanceCause, str]] = {
    each: str(each.value) for each in (*GroupState, *RebalanceCause)
}
"""The values of the enums, which these find by calls in Python."""

REQUIRES_KNOWN_MEMBER_ID_FROM: Final = 4  # KIP-394
SKIPS_ASSIGNMENT_FROM: Final = 9  # KIP-814


def join(
    env: GroupEnvironment, group: GroupMetadata, request: JoinGroupRequest, caller: RequestRef, now: Instant
) -> Outcome:
    """Handle a JoinGroup request (GroupMetadataManager.classicGroupJoinToClassicGroup).

    The reply may come in a later outcome: a join waits until its rebalance is complete.
    """
    return _Join(env, group, request, caller, now).run()


def unique_protocols(request: JoinGroupRequest) -> list[tuple[str, bytes]]:
    """Return the request's protocols in order; if a name occurs twice, only the first counts."""
    first: dict[str, bytes] = {}
    for protocol in request.protocols:
        first.setdefault(intern(protocol.name), protocol.metadata)
    return intern_protocols(list(first.items()))


class _Join:
    """One JoinGroup request while it is handled, with the values that every step needs."""

    __slots__ = ("caller", "env", "group", "now", "out", "protocols", "request")

    def __init__(
        self,
        env: GroupEnvironment,
        group: GroupMetadata,
        request: JoinGroupRequest,
        caller: RequestRef,
        now: Instant,
    ) -> None:
        self.env = env
        self.group = group
        self.request = request
        self.caller = caller
        self.now = now
        self.out = Outcome()
        self.protocols = unique_protocols(request)

    def run(self) -> Outcome:
        group, request = self.group, self.request
        if not self._accepted():
            group.remove(request.member_id)
            return self._refuse(ErrorCode.GROUP_MAX_SIZE_REACHED, member_id=MemberId(""))
        if group.state is _DEAD:
            return self._refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        names = [name for name, _ in self.protocols]
        if not group.supports_protocols(request.protocol_type, names):
            return self._refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if request.member_id:
            return self._known_member()
        return self._unknown_member()

    def _refuse(self, error: ErrorCode, member_id: MemberId | None = None) -> Outcome:
        response = JoinGroupResponse(
            error_code=error,
            member_id=self.request.member_id if member_id is None else member_id,
            protocol_name=None,
        )
        return self.out.reply(self.caller, response)

    def _accepted(self) -> bool:
        """Return whether `group.max.size` lets the member join (GroupMetadataManager.acceptJoiningMember).

        While members rejoin, only those that wait are counted: the last ones to rejoin a group that is larger
        than a lowered `group.max.size` are refused.
        """
        group, max_size = self.group, self.env.config.max_size
        member = group.members.get(self.request.member_id)
        state = group.state
        if state is _EMPTY or state is _DEAD:
            return True
        if state is _PREPARING:
            waits = member is not None and member.awaiting_join is not None
            return waits or group.num_members_awaiting_join < max_size
        return member is not None or len(group.members) < max_size

    # --- members without an id ---

    def _unknown_member(self) -> Outcome:
        request, group = self.request, self.group
        instance_id = request.group_instance_id
        prefix = self.caller.client_id if instance_id is None else instance_id
        member_id = MemberId(f"{prefix}-{self.env.new_member_suffix()}")
        if instance_id is None:
            if self.caller.api_version >= REQUIRES_KNOWN_MEMBER_ID_FROM:
                return self._hand_out(member_id)
            return self._add(member_id)
        old_member_id = group.static_members.get(instance_id)
        if old_member_id is None:
            return self._add(member_id)
        return self._replace_static(old_member_id, member_id)

    def _hand_out(self, member_id: MemberId) -> Outcome:
        """Give the id out first, so that a client that never gets the response leaves no member behind."""
        error = refuse_pending_over_limit(self.env.config.limits, self.env.usage, member_id)
        if error is not _NONE:
            return self._refuse(error)
        self.group.add_pending_member(member_id, self.now.mono + self.request.session_timeout_ms)
        return self._refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)

    def _add(self, member_id: MemberId) -> Outcome:
        group, request, now = self.group, self.request, self.now
        member = MemberMetadata(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=intern(self.caller.client_id),  # many members have the same
            client_host=self.caller.client_host,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocol_type=intern(request.protocol_type),
            supported_protocols=self.protocols,
            is_new=True,
        )
        member.awaiting_join = self.caller
        error = refuse_member_over_limit(self.env.config.limits, self.env.usage, group, member)
        if error is not _NONE:
            return self._refuse(error)
        if group.state is _PREPARING and group.previous_state is _EMPTY:
            group.new_member_added = True
        group.add(member)
        self._came(member)
        self.out.add_notable_event(
            "member joined",
            group=group.group_id,
            member=member_id,
            client=member.client_id,
            host=member.client_host,
            members=len(group.members),
        )
        # The client may vanish unnoticed while its join waits: a new member gets a session, but a long one.
        member.session_deadline_ms = now.mono + self.env.config.new_member_join_timeout_ms
        group.schedule_wakeup_by(member.session_deadline_ms)
        reason = f"adding new member {member_id}; client reason: {self._client_reason()}"
        rebalance_or_complete_join(self.env, group, RebalanceCause.MEMBER_JOINED, reason, now, self.out)
        return self.out

    def _replace_static(self, old_member_id: MemberId, member_id: MemberId) -> Outcome:
        """Give a static member that rejoins without its id its old place under a new id (KIP-345)."""
        group = self.group
        old = group.members[old_member_id]
        error = self._room_for_change(old)
        if error is not _NONE:
            return self._refuse(error)
        self.out.add_event(
            "static member replaced",
            group=group.group_id,
            instance=old.group_instance_id,
            old_member=old_member_id,
            new_member=member_id,
        )
        stays = group.state is _STABLE and (
            group.predict_selected_protocol(old, self.protocols) == group.protocol_name
        )
        if stays:
            return self._replace_stored(old, member_id)
        return self._replace_and_rebalance(old, member_id)

    def _replace_stored(self, old: MemberMetadata, member_id: MemberId) -> Outcome:
        """Keep the generation, with the new id: only applying the record replaces the member."""
        group, request = self.group, self.request
        kept = group.protocol_name
        new = MemberValue(
            member_id=member_id,
            group_instance_id=old.group_instance_id,
            client_id=old.client_id,
            client_host=old.client_host,
            rebalance_timeout=request.rebalance_timeout_ms,
            session_timeout=request.session_timeout_ms,
            subscription=dict(self.protocols)[kept or ""],
            assignment=old.assignment,
        )
        record, value = make_replaced_member_record(group, old.member_id, new)
        self.out.records.append(record)
        # The protocols that it offers, other than the generation's, are not in the log.
        others = [(name, old.metadata(kept) if name == kept else data) for name, data in self.protocols]
        group.set_protocols(old, others)
        old.session_deadline_ms = self.now.mono + request.session_timeout_ms
        group.schedule_wakeup_by(old.session_deadline_ms)
        return self.out.reply(self.caller, self._replaced_response(value, member_id))

    def _replaced_response(self, value: GroupMetadataValue, member_id: MemberId) -> JoinGroupResponse:
        """Return a response that keeps a replaced leader from assigning: by a flag, before v9 by the old leader id."""
        skips = self.caller.api_version >= SKIPS_ASSIGNMENT_FROM
        leads = value.leader == member_id
        return JoinGroupResponse(
            generation_id=value.generation,
            protocol_type=value.protocol_type,
            protocol_name=value.protocol,
            leader=(value.leader if skips else self.group.leader_id) or MemberId(""),
            skip_assignment=skips and leads,
            member_id=member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    metadata=member.subscription,
                )
                for member in value.members
            ]
            if skips and leads
            else [],
        )

    def _replace_and_rebalance(self, old: MemberMetadata, member_id: MemberId) -> Outcome:
        group, now = self.group, self.now
        old_member_id = old.member_id
        fenced = ErrorCode.FENCED_INSTANCE_ID
        refusal = JoinGroupResponse(error_code=fenced, member_id=old_member_id, protocol_name=None)
        answer_join(group, old, refusal, self.out)
        if old.awaiting_sync is not None:
            self.out.reply(old.awaiting_sync, SyncGroupResponse(error_code=fenced))
            old.awaiting_sync = None
        member = group.replace_static_member(old_member_id, member_id)
        self._update(member)
        reset_session(group, member, now)
        self._wait(member)
        if group.can_rebalance:
            # The leader may have got the old id already and would assign to that: start again.
            reason = (
                f"static member {member.group_instance_id} replaced; client reason: {self._client_reason()}"
            )
            prepare_rebalance(self.env, group, RebalanceCause.STATIC_MEMBER_REPLACED, reason, now, self.out)
        else:
            maybe_complete_join(group, now, self.out)
        return self.out

    # --- members with an id ---

    def _known_member(self) -> Outcome:
        group, request = self.group, self.request
        if request.member_id in group.pending_members:
            if request.group_instance_id is not None:
                # Ids are given out to dynamic members only.
                return self._refuse(ErrorCode.UNKNOWN_MEMBER_ID)
            return self._add(request.member_id)
        error = group.validate_member(request.member_id, request.group_instance_id)
        if error is not _NONE:
            return self._refuse(error)
        return self._rejoin(group.members[request.member_id])

    def _rejoin(self, member: MemberMetadata) -> Outcome:
        """Handle a rejoin: begin a rebalance if the protocols have changed, or the leader of a Stable group rejoins.

        The leader rejoins if the topics that it assigns have changed, which its own metadata does not show.
        """
        group = self.group
        leads = group.is_leader(member.member_id)
        unchanged = member.matches(self.protocols)
        state = group.state
        if state is _PREPARING:
            cause = RebalanceCause.MEMBER_REJOINED
        elif state is not _STABLE and state is not _COMPLETING:
            return self._refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        elif unchanged and (state is _COMPLETING or not leads):
            with_members = leads and state is _COMPLETING
            return self.out.reply(
                self.caller, join_response(group, member.member_id, with_members=with_members)
            )
        elif state is _STABLE and leads:
            cause = RebalanceCause.LEADER_REJOINED
        else:
            cause = RebalanceCause.METADATA_CHANGED
        error = self._room_for_change(member)
        if error is not _NONE:
            return self._refuse(error)
        self._update(member)
        self._wait(member)
        reason = (
            f"{_TEXTS[cause]} {member.member_id} in {_TEXTS[state]}; client reason: {self._client_reason()}"
        )
        rebalance_or_complete_join(self.env, group, cause, reason, self.now, self.out)
        return self.out

    def _room_for_change(self, member: MemberMetadata) -> ErrorCode:
        """Return NONE if the limits allow the member's new protocols in place of the old ones, else an error."""
        more_bytes = count_protocols_bytes(self.protocols) - count_protocols_bytes(member.supported_protocols)
        return refuse_member_bytes_over_limit(self.env.config.limits, self.env.usage, self.group, more_bytes)

    def _update(self, member: MemberMetadata) -> None:
        self.group.set_protocols(member, self.protocols)
        member.rebalance_timeout_ms = self.request.rebalance_timeout_ms
        member.session_timeout_ms = self.request.session_timeout_ms

    def _wait(self, member: MemberMetadata) -> None:
        """Park the join. A member's second join replaces the first, which never gets a response."""
        if member.awaiting_join is None:
            self.group.num_members_awaiting_join += 1
        member.awaiting_join = self.caller
        self._came(member)

    def _came(self, member: MemberMetadata) -> None:
        if self.group.rebalance is not None:
            self.group.rebalance.note_rejoined(self.now.mono, member.member_id, member.client_host)

    def _client_reason(self) -> str:
        return self.request.reason or "not provided"
