# SPDX-License-Identifier: Apache-2.0
"""Random sequences of requests and clock steps on real groups keep the invariants."""

from collections.abc import Collection
from typing import Any

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.api.context import RequestContext
from coordinator.groups.classic.member import NEVER
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.replay import rebuild_last_record_value
from coordinator.groups.classic.state import GroupState
from coordinator.groups.group_totals import GroupTotals, text_bytes
from coordinator.groups.limits import NodeMemoryLimits
from coordinator.partitions.shard import GroupEntry
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, MemberId, Partition
from tests.groups.harness import Call, Cluster
from tests.support.groups import classic

GROUPS = ("g", "h")
INSTANCES = ("static-1", "static-2")
METADATA = (b"one", b"two")
PROTOCOLS = st.sampled_from(
    [(("range", METADATA[0]),), (("range", METADATA[1]),), (("sticky", b"s"), ("range", METADATA[0]))]
)
SESSION_MS = 10_000
REBALANCE_MS = 20_000


class GroupMachine(RuleBasedStateMachine):
    """Members that behave well, badly, and not at all."""

    limits = NodeMemoryLimits()

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(initial_rebalance_delay_ms=3_000, max_size=4, limits=self.limits)
        self.ids: dict[str, list[str]] = {group: [] for group in GROUPS}  # every id that was ever given out
        self.calls: list[tuple[str, Call]] = []
        self.assigned: dict[tuple[str, int], dict[str, bytes]] = {}  # by group and generation
        self.preparing_since: dict[str, int] = {}

    # --- what clients do ---

    @rule(
        group=st.sampled_from(GROUPS),
        instance=st.sampled_from([None, *INSTANCES]),
        protocols=PROTOCOLS,
        version=st.sampled_from([0, 3, 5, 9]),
    )
    def join_anew(self, group: str, instance: str | None, protocols: Any, version: int) -> None:
        self._join("", group, instance=instance, protocols=protocols, version=version)

    @rule(data=st.data(), group=st.sampled_from(GROUPS), protocols=PROTOCOLS, static=st.booleans())
    def rejoin(self, data: st.DataObject, group: str, protocols: Any, static: bool) -> None:
        member_id = self._some_id(data, group)
        instance = self._instance_of(group, member_id) if static else None
        self._join(member_id, group, instance=instance, protocols=protocols)

    @rule(data=st.data(), group=st.sampled_from(GROUPS), stale=st.integers(0, 5), salt=st.binary(max_size=2))
    def sync(self, data: st.DataObject, group: str, stale: int, salt: bytes) -> None:
        member_id = self._some_id(data, group)
        found = classic(self.cluster.manager, group)
        generation = found.generation_id if found else 0
        members: list[str] = list(found.members) if found else []
        assignments = {member: salt + member.encode() for member in members}
        call = self.cluster.sync(
            member_id,
            generation - (stale == 0),
            assignments,
            group=group,
            instance=self._instance_of(group, member_id),
        )
        self.calls.append((group, call))

    @rule(data=st.data(), group=st.sampled_from(GROUPS))
    def heartbeat(self, data: st.DataObject, group: str) -> None:
        found = classic(self.cluster.manager, group)
        member_id = self._some_id(data, group)
        answer = self.cluster.heartbeat(member_id, found.generation_id if found else 0, group=group)
        if found is None or member_id not in found.members:
            assert answer is ErrorCode.UNKNOWN_MEMBER_ID

    @rule(data=st.data(), group=st.sampled_from(GROUPS))
    def leave(self, data: st.DataObject, group: str) -> None:
        self.cluster.leave(self._some_id(data, group), group=group)

    @rule(data=st.data(), group=st.sampled_from(GROUPS), offset=st.integers(0, 99), outside=st.booleans())
    def commit(self, data: st.DataObject, group: str, offset: int, outside: bool) -> None:
        found = classic(self.cluster.manager, group)
        before = self.cluster.committed(group=group)
        if outside:
            answer = self.cluster.commit(offset, group=group)
        else:
            generation = found.generation_id if found else 0
            member_id = self._some_id(data, group)
            answer = self.cluster.commit(offset, group=group, member_id=member_id, generation=generation)
        after = self.cluster.committed(group=group)
        assert after == (offset if answer is ErrorCode.NONE else before)

    @rule(
        group=st.sampled_from(GROUPS),
        topic=st.sampled_from(["t", "u"]),
        partition=st.integers(1, 3),
        metadata=st.sampled_from(["", "m", "longer", "ü", "\U0001f600"]),
    )
    def commit_with_metadata(self, group: str, topic: str, partition: int, metadata: str) -> None:
        self.cluster.commit(1, group=group, topic=topic, partition=partition, metadata=metadata)

    @rule(group=st.sampled_from(GROUPS))
    def delete_group(self, group: str) -> None:
        self.cluster.manager.delete_group(GroupId(group))

    @rule(topic=st.sampled_from(["t", "u"]))
    def delete_topic(self, topic: str) -> None:
        list(self.cluster.manager.delete_offsets_of_topics(frozenset([topic])))

    @rule(delta_ms=st.sampled_from([1, 1_000, 3_001, 9_999, 10_001, 20_001, 300_001]))
    def time_passes(self, delta_ms: int) -> None:
        self.cluster.advance(delta_ms)

    @rule(days=st.integers(0, 8))
    def check_expiry(self, days: int) -> None:
        now = self.cluster.clock.wall_ms() + days * 86_400_000
        for kept in list(self.cluster.shard.groups.values()):
            sum(self.cluster.manager.expire_offsets_in_steps(kept, now))

    @precondition(lambda self: self.cluster.shard.groups)
    @rule()
    def restart(self) -> None:
        """The partition moves away and back: those who wait hear of it, and the log has it all."""
        waiting = [
            member.awaiting_join or member.awaiting_sync
            for kept in self.cluster.shard.groups.values()
            for member in kept.classic_group.members.values()
        ]
        self.cluster.manager.remove_groups_for_partition(Partition(0))
        for call in waiting:
            if call is not None:
                assert isinstance(call, RequestContext)
                assert isinstance(call.sink, Call)
                assert call.sink.response.error_code == ErrorCode.NOT_COORDINATOR
        self.cluster.log.replay(self.cluster.manager.begin_load(Partition(0)))
        self.cluster.manager.remove_groups_for_partition(
            Partition(0)
        )  # moved away again in the middle of its load
        loading = self.cluster.manager.begin_load(Partition(0))
        self.cluster.log.replay(loading)
        self.cluster.serve(loading)
        self.cluster.shard = loading

    @rule(group=st.sampled_from(GROUPS), salt=st.binary(max_size=2), finish=st.booleans())
    def everybody_does_what_is_asked(self, group: str, salt: bytes, finish: bool) -> None:
        """Without this the members would hardly ever agree on anything."""
        found = classic(self.cluster.manager, group)
        if found is None:
            return
        if found.state is GroupState.PREPARING_REBALANCE:
            for member in [m for m in found.members.values() if m.awaiting_join is None]:
                protocols = tuple(member.supported_protocols)
                self._join(member.member_id, group, instance=member.group_instance_id, protocols=protocols)
            self.cluster.advance(3_001)
        if found.state is GroupState.COMPLETING_REBALANCE and finish:
            assignments: dict[str, bytes] = {
                member_id: salt + member_id.encode() for member_id in found.members
            }
            for member in list(found.members.values()):
                call = self.cluster.sync(member.member_id, found.generation_id, assignments, group=group)
                self.calls.append((group, call))

    # --- what must hold ---

    @invariant()
    def no_request_is_answered_twice(self) -> None:
        assert all(call.replies <= 1 for _, call in self.calls)

    @invariant()
    def members_are_consistent(self) -> None:
        for kept in self.cluster.shard.groups.values():
            assert_consistent(kept.classic_group, self.cluster.clock.mono_ms())

    @invariant()
    def a_generation_has_one_assignment(self) -> None:
        for group in (kept.classic_group for kept in self.cluster.shard.groups.values()):
            if group.state is not GroupState.STABLE:
                continue
            # By member id, not by generation alone: a group that was deleted starts at generation 1 again.
            known = self.assigned.setdefault((group.group_id, group.generation_id), {})
            for member_id, member in group.members.items():
                assert known.setdefault(member_id, member.assignment) == member.assignment

    @invariant()
    def log_gives_the_state_back(self) -> None:
        loaded = self.cluster.log.replay().groups
        for kept in self.cluster.shard.groups.values():
            assert_replays(kept, loaded.get(kept.group_id))
        for group_id, kept in loaded.items():
            assert group_id in self.cluster.shard.groups or kept.offsets.count == 0

    @invariant()
    def the_books_are_right(self) -> None:
        assert books_of(self.cluster.env.usage) == recount(self.cluster.shard.groups.values())

    # --- helpers ---

    def _join(self, member_id: str, group: str, **options: Any) -> None:
        call = self.cluster.join(
            member_id, group=group, session_ms=SESSION_MS, rebalance_ms=REBALANCE_MS, **options
        )
        self.calls.append((group, call))

    def _some_id(self, data: st.DataObject, group: str) -> str:
        known = {getattr(call.response, "member_id", "") for where, call in self.calls if where == group}
        found = classic(self.cluster.manager, group)
        if found is not None:
            known |= set(found.members) | set(found.pending_members)
        member_id: str = data.draw(st.sampled_from(sorted(known - {""}) or ["nobody"]))
        return member_id

    def _instance_of(self, group: str, member_id: str) -> str | None:
        found = classic(self.cluster.manager, group)
        member = found.members.get(MemberId(member_id)) if found else None
        return member.group_instance_id if member else None


def assert_consistent(group: GroupMetadata, now_ms: int) -> None:
    """The group's books are right, and nothing in it is overdue."""
    members = group.members.values()
    assert group.num_members_awaiting_join == sum(member.awaiting_join is not None for member in members)
    counts: dict[str, int] = {}
    for member in members:
        assert not (member.awaiting_join and member.awaiting_sync), f"{member.member_id} is in two phases"
        assert member.member_id not in group.pending_members, f"{member.member_id} is member and pending"
        for name, _ in member.supported_protocols:
            counts[name] = counts.get(name, 0) + 1
        assert member.session_deadline_ms > now_ms, f"{member.member_id} is silent and still there"
        if member.session_deadline_ms == NEVER:
            assert member.has_satisfied_heartbeat, f"{member.member_id} would never expire"
    assert group.protocol_counts == counts
    static = {m.group_instance_id: m.member_id for m in members if m.group_instance_id is not None}
    assert group.static_members == static
    assert (group.leader_id in group.members) if group.members else (group.leader_id is None)
    assert group.pending_sync_members <= set(group.members)
    assert all(deadline > now_ms for deadline in group.pending_members.values())
    match group.state:
        case GroupState.EMPTY:
            assert not group.members
        case GroupState.PREPARING_REBALANCE:
            assert now_ms <= group.join_deadline_ms < NEVER, "a rebalance without an end"
            assert not any(member.awaiting_sync for member in members)
        case GroupState.COMPLETING_REBALANCE:
            assert now_ms <= group.sync_deadline_ms < NEVER, "a sync phase without an end"
            assert not any(member.awaiting_join for member in members)
        case GroupState.STABLE:
            assert not any(member.awaiting_join or member.awaiting_sync for member in members)


def assert_replays(live_kept: GroupEntry, loaded_kept: GroupEntry | None) -> None:
    """What the log gives of a group is what is in memory: always the offsets, and the members where it is at rest."""
    live, offsets = live_kept.classic_group, list(live_kept.offsets.all())
    if loaded_kept is None:
        assert not offsets
        # Generation 0 was never stored; a later one would have been.
        assert live.generation_id == 0 or live.state in (
            GroupState.PREPARING_REBALANCE,
            GroupState.COMPLETING_REBALANCE,
        )
        return
    loaded = loaded_kept.classic_group
    assert sorted(offsets) == sorted(loaded_kept.offsets.all())
    if live.state in (GroupState.EMPTY, GroupState.STABLE):
        assert live.state is loaded.state
        assert rebuild_last_record_value(live) == rebuild_last_record_value(loaded)  # every field of a record
        assert live.subscribed_topics == loaded.subscribed_topics


def books_of(usage: GroupTotals) -> dict[str, int]:
    """What a node believes to hold."""
    public = {name: getattr(usage, name) for name in dir(usage) if not name.startswith("_")}
    return {name: number for name, number in public.items() if isinstance(number, int)}


def recount(all_kept: Collection[GroupEntry]) -> dict[str, int]:
    """What there is."""
    groups = [kept.classic_group for kept in all_kept]
    members = [member for group in groups for member in group.members.values()]
    pending = [member_id for group in groups for member_id in group.pending_members]
    offsets = [value for kept in all_kept for _, _, value in kept.offsets.all()]
    for kept in all_kept:
        assert kept.offsets.count == sum(1 for _ in kept.offsets.all())
    return {
        "groups": len(groups),
        "group_id_bytes": sum(text_bytes(group.group_id) for group in groups),
        "members": len(members),
        "member_bytes": sum(member.count_bytes() for member in members) + sum(map(text_bytes, pending)),
        "pending_members": len(pending),
        "offsets": len(offsets),
        "offset_metadata_bytes": sum(text_bytes(value.metadata) for value in offsets),
    }


class CrampedMachine(GroupMachine):
    """The same with hardly any room: every limit refuses something now and then, and none is ever passed."""

    limits = NodeMemoryLimits(
        max_groups=1,
        max_members=2,
        max_members_bytes=250,
        max_pending_members=1,
        group_members_max_bytes=200,
        max_offsets=3,
        max_offsets_metadata_bytes=8,
    )

    @invariant()
    def no_limit_is_passed(self) -> None:
        usage, limits = self.cluster.env.usage, self.limits
        assert usage.groups <= limits.max_groups
        assert usage.members <= limits.max_members
        assert usage.pending_members <= limits.max_pending_members
        assert usage.offsets <= limits.max_offsets
        assert usage.offset_metadata_bytes <= limits.max_offsets_metadata_bytes


TestGroupMachine = GroupMachine.TestCase
TestCrampedMachine = CrampedMachine.TestCase


def test_a_static_member_that_came_back_stands_where_the_record_has_it() -> None:
    """Joins that were made in one rebalance, and the static member again before it ended."""
    machine = GroupMachine()
    try:
        anew = {"group": "g", "protocols": (("range", b"one"),), "version": 0}
        machine.join_anew(instance="static-1", **anew)
        machine.everybody_does_what_is_asked(finish=True, group="g", salt=b"")
        machine.join_anew(instance=None, **anew)
        machine.everybody_does_what_is_asked(finish=False, group="g", salt=b"")
        machine.join_anew(instance="static-1", **anew)
        machine.everybody_does_what_is_asked(finish=True, group="g", salt=b"")
        machine.log_gives_the_state_back()
    finally:
        machine.teardown()
