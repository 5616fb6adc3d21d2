# SPDX-License-Identifier: Apache-2.0
"""A group's state: its members, its generation and its votes."""

from collections.abc import Collection
from typing import Final

from coordinator.groups.classic.member import (
    NEVER,
    PROTOCOL_TYPE_CONSUMER,
    MemberMetadata,
    Protocols,
)
from coordinator.groups.classic.protocol_votes import change_protocol_counts, find_winning_protocol
from coordinator.groups.classic.shared_topic_sets import intern_topics
from coordinator.groups.classic.state import VALID_PREVIOUS_STATES, GroupState, IllegalTransition
from coordinator.groups.classic.summary import GroupSummary
from coordinator.groups.group_totals import GroupTotals, text_bytes
from coordinator.groups.rebalance_timings import RebalanceTimings
from protocol.consumer_protocol import subscribed_topics
from protocol.errors import ErrorCode
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, MemberId

_NONE: Final = ErrorCode.NONE
_UNKNOWN: Final = ErrorCode.UNKNOWN_MEMBER_ID
_EMPTY: Final = GroupState.EMPTY
_DEAD: Final = GroupState.DEAD
_STABLE: Final = GroupState.STABLE
_PREPARING: Final = GroupState.PREPARING_REBALANCE
"""Members of the enum, looked up once because each lookup takes hundreds of instructions."""

# Most groups have none of these: they share the empty ones, which are replaced and never changed.
NO_STATIC_MEMBERS: Final[dict[str, MemberId]] = {}
NO_PENDING_MEMBERS: Final[dict[MemberId, int]] = {}
NO_MEMBERS: Final[set[MemberId]] = set()


@mypyc_attr(acyclic=True)
class GroupMetadata:
    """The members of one classic group (Kafka: GroupMetadata, today ClassicGroup).

    This class keeps the group consistent (members with their votes, static ids, leader); the other modules of the
    package decide when it changes. All `*_deadline_ms` are monotonic milliseconds, NEVER if not set.
    """

    __slots__ = (
        "_votes",
        "current_state_timestamp",
        "extension_left_ms",
        "generation_id",
        "group_id",
        "initial_delay_ms",
        "join_deadline_ms",
        "leader_id",
        "member_bytes",
        "members",
        "new_member_added",
        "num_members_awaiting_join",
        "of_other_protocol",
        "pending_members",
        "pending_sync_members",
        "previous_state",
        "protocol_name",
        "protocol_type",
        "rebalance",
        "state",
        "static_members",
        "subscribed_topics",
        "sync_deadline_ms",
        "usage",
        "wakeup_ms",
    )

    def __init__(self, group_id: GroupId, usage: GroupTotals | None = None) -> None:
        """Begin an Empty group without members; what it holds is counted in `usage`, the node's totals."""
        self.group_id = group_id
        self.usage = GroupTotals() if usage is None else usage
        self.state = _EMPTY
        self.previous_state = _EMPTY
        self.current_state_timestamp: int | None = None  # wall clock, in the log
        self.of_other_protocol = False
        """True if a broker's log has the group under a protocol that is not served here (KIP-848, streams)."""
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: MemberId | None = None
        self.members: dict[MemberId, MemberMetadata] = {}
        self.static_members: dict[str, MemberId] = NO_STATIC_MEMBERS  # group.instance.id -> member id
        self.pending_members: dict[MemberId, int] = (
            NO_PENDING_MEMBERS  # ids given out, not yet joined -> deadline
        )
        self.pending_sync_members: set[MemberId] = NO_MEMBERS
        self.num_members_awaiting_join = 0
        self._votes: dict[str, int] | None = None  # see `protocol_counts`
        self.new_member_added = False
        self.subscribed_topics: frozenset[str] | None = None
        self.member_bytes = 0  # of members' metadata, assignments and names, and of ids that were given out
        self.rebalance: RebalanceTimings | None = None
        """The progress of the rebalance that is under way; None at rest."""
        self.join_deadline_ms = NEVER
        self.initial_delay_ms = 0  # of the initial rebalance that join_deadline_ms ends; 0 in any other
        self.extension_left_ms = 0  # by how much the initial rebalance may still be prolonged
        self.sync_deadline_ms = NEVER
        self.wakeup_ms = NEVER  # the earliest moment at which this group has something to do

    # --- state ---

    def is_in_state(self, *states: GroupState) -> bool:
        """Return whether the group is in one of these states."""
        return self.state in states

    @property
    def can_rebalance(self) -> bool:
        """True if a rebalance may start now: the state is a valid predecessor of PreparingRebalance."""
        return self.state in VALID_PREVIOUS_STATES[_PREPARING]

    def transition_to(self, state: GroupState, wall_ms: int) -> None:
        """Enter `state`. Raises IllegalTransition, and changes nothing, if the table forbids it."""
        self.check_transition_to(state)
        self.previous_state, self.state = self.state, state
        self.current_state_timestamp = wall_ms

    def check_transition_to(self, state: GroupState) -> None:
        """Raise IllegalTransition if the table forbids entering `state` now."""
        if self.state not in VALID_PREVIOUS_STATES[state]:
            raise IllegalTransition(
                f"group {self.group_id}: {self.state.value} must not become {state.value}"
            )

    def schedule_wakeup_by(self, deadline_ms: int) -> None:
        """Have `expire_due_deadlines` called no later than `deadline_ms`."""
        self.wakeup_ms = min(self.wakeup_ms, deadline_ms)

    # --- members ---

    def is_leader(self, member_id: MemberId) -> bool:
        """Return whether this member makes the generation's assignment."""
        return self.leader_id == member_id

    def validate_member(self, member_id: MemberId, group_instance_id: str | None) -> ErrorCode:
        """Return NONE for a member that may act under this id, FENCED_INSTANCE_ID for a replaced static member.

        An instance id that the group does not know is UNKNOWN_MEMBER_ID even with a valid member id
        (ClassicGroup.validateMember).
        """
        if group_instance_id is not None:
            owner = self.static_members.get(group_instance_id)
            if owner is None:
                return _UNKNOWN
            if owner != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return _NONE if member_id in self.members else _UNKNOWN

    def add(self, member: MemberMetadata) -> None:
        """Add a member: it leads if there is no leader, its protocols count, its id is pending no more."""
        assert member.member_id not in self.members, f"{member.member_id} joins {self.group_id} twice"
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self.static_members, (
                f"static member {member.group_instance_id} joins {self.group_id} twice"
            )
            if not self.static_members:
                self.static_members = {}
            self.static_members[member.group_instance_id] = member.member_id
        if not self.members:
            self.protocol_type = member.protocol_type
        assert self.protocol_type == member.protocol_type, (
            f"group {self.group_id} is {self.protocol_type}, its new member is {member.protocol_type}"
        )
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.usage.members += 1
        self._count_bytes(member)
        self._vote(member, 1)
        if member.awaiting_join is not None:
            self.num_members_awaiting_join += 1
        self._forget_pending(member.member_id)

    def remove(self, member_id: MemberId) -> None:
        """Remove a member, or an id that was given out. If it was the leader, the first remaining member leads."""
        member = self.members.pop(member_id, None)
        if self.rebalance is not None and self.state is _PREPARING:
            self.rebalance.note_awaited(member_id, "" if member is None else member.client_host)
        if member is not None:
            self.usage.members -= 1
            self._add_member_bytes(-member.counted_bytes)
            self._vote(member, -1)
            if member.awaiting_join is not None:
                self.num_members_awaiting_join -= 1
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self._forget_pending(member_id)
        self.pending_sync_members.discard(member_id)

    def add_pending_member(self, member_id: MemberId, deadline_ms: int) -> None:
        """Record an id that was given out: its member may join with it until `deadline_ms`."""
        assert member_id not in self.pending_members, f"{member_id} is given out twice"
        if not self.pending_members:
            self.pending_members = {}
        self.pending_members[member_id] = deadline_ms
        self.usage.pending_members += 1
        self._add_member_bytes(text_bytes(member_id))
        self.schedule_wakeup_by(deadline_ms)

    def _forget_pending(self, member_id: MemberId) -> None:
        if self.pending_members.pop(member_id, None) is not None:
            self.usage.pending_members -= 1
            self._add_member_bytes(-text_bytes(member_id))
            if not self.pending_members:
                self.pending_members = NO_PENDING_MEMBERS

    def forget_all_pending(self) -> None:
        """Forget all ids that were given out: none may join any more."""
        for member_id in list(self.pending_members):
            self._forget_pending(member_id)

    def replace_static_member(self, old_member_id: MemberId, new_member_id: MemberId) -> MemberMetadata:
        """Give a static member a new id and keep everything else but its waiting requests (KIP-345).

        Returns the member. The caller has replied to the old id's waiting requests before.
        """
        member = self.members.pop(old_member_id)
        assert member.awaiting_join is None, f"{old_member_id} still waits in a join"
        assert member.awaiting_sync is None, f"{old_member_id} still waits in a sync"
        assert member.group_instance_id is not None, f"{old_member_id} is not a static member"
        member.member_id = new_member_id
        self._count_bytes(member)
        member.is_new = False
        self.members[new_member_id] = member
        self.static_members[member.group_instance_id] = new_member_id
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        if old_member_id in self.pending_sync_members:
            self.pending_sync_members.discard(old_member_id)
            self.pending_sync_members.add(new_member_id)
        return member

    def set_protocols(self, member: MemberMetadata, protocols: list[tuple[str, bytes]]) -> None:
        """Replace the protocols that a member offers, and update the votes."""
        self._vote(member, -1)
        member.supported_protocols = protocols
        self._vote(member, 1)
        self._count_bytes(member)

    def set_assignment(self, member: MemberMetadata, assignment: bytes) -> None:
        """Set a member's assignment, and update the group's bytes."""
        more_bytes = len(assignment) - len(member.assignment)
        member.assignment = assignment
        member.counted_bytes += more_bytes
        self._add_member_bytes(more_bytes)

    def maybe_elect_new_joined_leader(self) -> bool:
        """Elect the first joined member if the leader has not joined this rebalance; return whether a leader has.

        Returns False if the group has no members, or none of them rejoined.
        """
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is not None:
            return True
        for member in self.members.values():
            if member.awaiting_join is not None:
                self.leader_id = member.member_id
                return True
        return False

    @property
    def has_all_members_joined(self) -> bool:
        """True if every member waits in a join, and no id that was given out still waits for its member to join."""
        return len(self.members) == self.num_members_awaiting_join and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that a rebalance waits: the largest of the members' rebalance timeouts."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # --- protocols ---

    @property
    def protocol_counts(self) -> dict[str, int]:
        """The number of members that offer each protocol, kept until the group is Stable."""
        votes = self._votes
        if votes is None:
            votes = self._votes = {}
            for member in self.members.values():
                change_protocol_counts(votes, member, 1)
        return votes

    def _vote(self, member: MemberMetadata, step: int) -> None:
        votes = self._votes
        if votes is not None:
            change_protocol_counts(votes, member, step)

    def free_cached_votes(self) -> None:
        """Free the memory of the votes once the group is at rest; the next join counts them again."""
        self._votes = None

    @property
    def candidate_protocols(self) -> set[str]:
        """The names of the protocols that every member offers."""
        size = len(self.members)
        return {name for name, votes in self.protocol_counts.items() if votes == size}

    def supports_protocols(self, protocol_type: str, names: Collection[str]) -> bool:
        """Return whether a member with this type and these protocols may join (ClassicGroup.supportsProtocols).

        An Empty group accepts any type; another one only its own, with a protocol that all members share.
        """
        if self.state is _EMPTY:
            return bool(protocol_type) and bool(names)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.protocol_counts.get(name, 0) == size for name in names
        )

    def select_protocol(self) -> str:
        """Return the protocol with the most votes among those that all members support.

        In a tie, it is the one that Kafka's hash map lists first (ClassicGroup.selectProtocol).
        """
        assert self.members, f"group {self.group_id} has no member to vote"
        offers = [member.supported_protocols for member in self.members.values()]
        return find_winning_protocol(offers, self.candidate_protocols)

    def predict_selected_protocol(self, member: MemberMetadata, protocols: Protocols) -> str:
        """Return the protocol that would win if this member offered these; all others must support one of them."""
        offers = [protocols if each is member else each.supported_protocols for each in self.members.values()]
        candidates = set.intersection(*[{name for name, _ in offer} for offer in offers])
        return find_winning_protocol(offers, candidates)

    @property
    def uses_consumer_group_protocol(self) -> bool:
        """True if the members are consumers, whose subscriptions can be read."""
        return self.protocol_type == PROTOCOL_TYPE_CONSUMER

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics that the members subscribe to; None if they are unknown.

        They are unknown if the members are no consumers, no protocol is chosen yet, or metadata does not parse.
        """
        if not self.uses_consumer_group_protocol:
            return None
        if not self.members:
            return frozenset()
        protocol_name = self.protocol_name
        if protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscribed_topics(member.metadata(protocol_name))
            if subscribed is None:
                return None
            topics |= subscribed
        return intern_topics(frozenset(topics))

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether a member consumes `topic` now; if the topics are unknown, True for any consumer group."""
        if self.subscribed_topics is None:
            return self.uses_consumer_group_protocol
        return topic in self.subscribed_topics

    # --- totals ---

    def _count_bytes(self, member: MemberMetadata) -> None:
        """Update the totals after the member has changed."""
        size_bytes = member.count_bytes()
        self._add_member_bytes(size_bytes - member.counted_bytes)
        member.counted_bytes = size_bytes

    def _add_member_bytes(self, more_bytes: int) -> None:
        self.member_bytes += more_bytes
        self.usage.member_bytes += more_bytes

    def start_counting_in_totals(self) -> None:
        """Add the group to the node's totals, because it has entered the cache."""
        self.usage.groups += 1
        self.usage.group_id_bytes += text_bytes(self.group_id)

    def mark_dead_and_uncount(self) -> None:
        """Make a group that has left the cache Dead, and subtract it and its members from the node's totals."""
        self.previous_state, self.state = self.state, _DEAD
        usage, self.usage = self.usage, GroupTotals()
        usage.groups -= 1
        usage.group_id_bytes -= text_bytes(self.group_id)
        usage.members -= len(self.members)
        usage.member_bytes -= self.member_bytes
        usage.pending_members -= len(self.pending_members)

    # --- views ---

    def summary(self) -> GroupSummary:
        """Return the summary for DescribeGroups; with member metadata only if Stable (ClassicGroup.describe)."""
        stable = self.state is _STABLE
        shown = self.protocol_name if stable else None
        return GroupSummary(
            state=self.state.value,
            protocol_type=self.protocol_type or "",
            protocol=(self.protocol_name or "") if stable else "",
            members=[member.summary(shown) for member in self.members.values()],
        )
