# SPDX-License-Identifier: Apache-2.0
"""The life of a group, step by step: joins, syncs, heartbeats, leaving, timeouts."""

import pytest

from coordinator.groups.classic.state import VALID_PREVIOUS_STATES, GroupState, IllegalTransition
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, MemberId
from tests.groups.harness import Call, Cluster
from tests.support.groups import classic

NONE = ErrorCode.NONE


def test_first_join_gets_an_id_and_the_second_forms_a_generation() -> None:
    cluster = Cluster()
    first = cluster.join(client_id="me")
    assert first.response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.response.member_id.startswith("me-")
    assert (first.response.generation_id, first.response.protocol_name) == (-1, None)
    second = cluster.join(first.response.member_id)
    assert second.response.error_code == NONE
    assert second.response.generation_id == 1
    assert second.response.leader == second.response.member_id == first.response.member_id
    assert [member.member_id for member in second.response.members] == [first.response.member_id]


def test_join_before_version_4_needs_no_id() -> None:
    call = Cluster().join(version=3)
    assert call.response.error_code == NONE
    assert call.response.generation_id == 1


def test_initial_rebalance_waits_and_is_prolonged_by_new_members() -> None:
    cluster = Cluster(initial_rebalance_delay_ms=3_000)
    first = cluster.member()
    cluster.advance(2_000)
    second = cluster.member()
    assert not first.answered
    cluster.advance(1_500)  # the first delay is over, but somebody new has come meanwhile
    assert not first.answered
    cluster.advance(2_500)  # the delay is as long again
    assert first.answered
    assert second.answered
    assert first.response.generation_id == second.response.generation_id == 1
    assert len(first.response.members) == 2
    assert second.response.members == []


def test_initial_rebalance_ends_with_the_rebalance_timeout_however_many_come() -> None:
    cluster = Cluster(initial_rebalance_delay_ms=3_000)
    first = cluster.member(rebalance_ms=7_000, session_ms=60_000)
    for _ in range(10):
        cluster.advance(900)
        if first.answered:
            break
        cluster.member(rebalance_ms=7_000, session_ms=60_000)
    assert first.answered
    assert cluster.clock.passed_ms <= 9_000


def test_followers_sync_waits_for_the_leader_and_gets_its_part() -> None:
    cluster = Cluster()
    members = cluster.stable_group(2)
    leader, follower = members
    group = cluster.group()
    assert group.members[MemberId(leader)].assignment == f"for {leader}".encode()
    again = cluster.sync(follower, group.generation_id)
    assert again.response.assignment == f"for {follower}".encode()


def test_member_that_the_leader_leaves_out_gets_nothing_and_made_up_ids_are_ignored() -> None:
    cluster = Cluster()
    first = cluster.member()
    second = cluster.member()
    first = cluster.join(first.response.member_id)
    generation = first.response.generation_id
    waiting = cluster.sync(second.response.member_id, generation)
    assert not waiting.answered
    cluster.sync(first.response.member_id, generation, {"nobody": b"x", first.response.member_id: b"all"})
    assert waiting.response.assignment == b""
    assert set(cluster.group().members) == {first.response.member_id, second.response.member_id}


def test_new_member_makes_a_stable_group_rebalance_and_heartbeats_say_so() -> None:
    cluster = Cluster()
    members = cluster.stable_group(2)
    generation = cluster.group().generation_id
    new = cluster.member()
    assert not new.answered
    for member in members:
        assert cluster.heartbeat(member, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    rejoined = [cluster.join(member) for member in members]
    assert new.answered
    assert all(call.answered for call in rejoined)
    assert new.response.generation_id == generation + 1


def test_members_that_do_not_rejoin_in_time_are_dropped() -> None:
    cluster = Cluster()
    _, follower = cluster.stable_group(2, session_ms=60_000, rebalance_ms=20_000)
    new = cluster.member(session_ms=60_000, rebalance_ms=20_000)
    cluster.advance(10_000)
    rejoined = cluster.join(follower, session_ms=60_000, rebalance_ms=20_000)
    cluster.advance(10_001)
    assert new.answered
    assert rejoined.answered
    assert set(cluster.group().members) == {follower, new.response.member_id}
    assert cluster.group().leader_id in {follower, new.response.member_id}


def test_silent_member_is_out_after_its_session_and_the_rest_rebalances() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_group(2, session_ms=10_000)
    generation = cluster.group().generation_id
    for _ in range(4):
        cluster.advance(3_000)
        cluster.heartbeat(leader, generation)
    assert set(cluster.group().members) == {leader}
    assert follower not in cluster.group().members
    assert cluster.group().state is GroupState.PREPARING_REBALANCE
    assert cluster.heartbeat(leader, generation) is ErrorCode.REBALANCE_IN_PROGRESS


def test_commits_of_a_member_keep_its_session_alive() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1, session_ms=10_000)
    generation = cluster.group().generation_id
    for step in range(5):
        cluster.advance(6_000)
        assert cluster.commit(step, member_id=member, generation=generation) is NONE
    assert member in cluster.group().members


def test_member_that_never_syncs_is_dropped_after_the_rebalance_timeout() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_group(2, session_ms=60_000, rebalance_ms=10_000)
    cluster.join(leader, session_ms=60_000, rebalance_ms=10_000)
    cluster.join(follower, session_ms=60_000, rebalance_ms=10_000)
    generation = cluster.group().generation_id
    waiting = cluster.sync(follower, generation)
    cluster.advance(10_001)  # the leader never brings the assignment
    assert waiting.response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert set(cluster.group().members) == {follower}


def test_emptied_group_bumps_its_generation_and_keeps_its_offsets() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    cluster.commit(42, member_id=member, generation=1)
    assert cluster.leave(member) == [NONE]
    group = cluster.group()
    assert (group.state, group.generation_id, group.members) == (GroupState.EMPTY, 2, {})
    assert cluster.committed() == 42
    assert cluster.member(protocol_type="connect").response.generation_id == 3


def test_pending_member_that_leaves_makes_nobody_rejoin_who_waits_already() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    pending = cluster.join()
    assert cluster.leave(pending.response.member_id) == [NONE]
    assert cluster.group().pending_members == {}
    assert member in cluster.group().members


def test_pending_member_expires_after_its_session() -> None:
    cluster = Cluster()
    pending = cluster.join(session_ms=6_000)
    cluster.advance(6_001)
    assert cluster.group().pending_members == {}
    assert cluster.join(pending.response.member_id).response.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_second_join_of_a_member_takes_the_place_of_the_first() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_group(2)
    first = cluster.join(leader)
    second = cluster.join(leader)
    cluster.join(follower)
    assert second.answered
    assert not first.answered


def test_joining_member_that_is_removed_hears_that_it_is_unknown() -> None:
    cluster = Cluster()
    cluster.stable_group(2)
    new = cluster.member()
    assert not new.answered
    assert cluster.leave(_id_of(cluster, new)) == [NONE]
    assert new.response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert new.response.member_id == ""


def test_group_max_size_turns_away_the_last_one() -> None:
    cluster = Cluster(max_size=2)
    cluster.stable_group(2)
    refused = cluster.join()
    assert refused.response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert refused.response.member_id == ""
    assert len(cluster.group().members) == 2


def test_batched_leave_answers_each_member_and_repeats_fail() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_group(2)
    assert cluster.leave(leader, "nobody", leader, follower) == [
        NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        NONE,
    ]
    assert cluster.group().state is GroupState.EMPTY


@pytest.mark.parametrize("state", list(GroupState))
@pytest.mark.parametrize("target", list(GroupState))
def test_transitions_are_those_of_the_table_and_an_illegal_one_changes_nothing(
    state: GroupState, target: GroupState
) -> None:
    cluster = Cluster()
    cluster.stable_group(1)
    group = cluster.group()
    group.state = state
    if state in VALID_PREVIOUS_STATES[target]:
        group.transition_to(target, 7)
        assert (group.state, group.previous_state, group.current_state_timestamp) == (target, state, 7)
        return
    before = (group.state, group.previous_state, group.current_state_timestamp)
    with pytest.raises(IllegalTransition):
        group.transition_to(target, 7)
    assert (group.state, group.previous_state, group.current_state_timestamp) == before


def test_protocol_with_the_most_votes_among_the_common_ones_wins() -> None:
    cluster = Cluster()
    a, b, c = (b"a", b"b", b"c")
    first = cluster.member(protocols=[("B", a), ("A", a)])
    second = cluster.member(protocols=[("A", b), ("B", b), ("C", b)])
    first_id = first.response.member_id
    third = cluster.member(protocols=[("D", c), ("B", c), ("A", c)])
    second_again = cluster.join(_id_of(cluster, second), protocols=[("A", b), ("B", b), ("C", b)])
    rejoined = cluster.join(first_id, protocols=[("B", a), ("A", a)])
    assert rejoined.response.protocol_name == "B"
    assert second_again.response.protocol_name == third.response.protocol_name == "B"


def _id_of(cluster: Cluster, call: Call) -> str:
    return next(m.member_id for m in cluster.group().members.values() if m.awaiting_join is call.ctx)


def test_join_without_a_common_protocol_is_refused() -> None:
    cluster = Cluster()
    cluster.stable_group(1)
    refused = cluster.join(protocols=[("other", b"")])
    assert refused.response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    refused = cluster.join(protocol_type="connect")
    assert refused.response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_refused_join_leaves_no_group_behind() -> None:
    cluster = Cluster()
    assert cluster.join(protocols=[]).response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert cluster.join("made-up").response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert classic(cluster.manager, "g") is None


def test_leader_rejoin_rebalances_and_follower_rejoin_with_the_same_metadata_does_not() -> None:
    cluster = Cluster()
    leader, follower = cluster.stable_group(2)
    generation = cluster.group().generation_id
    same = cluster.join(follower)
    assert same.response.generation_id == generation
    assert cluster.group().state is GroupState.STABLE
    cluster.join(leader)
    assert cluster.group().state is GroupState.PREPARING_REBALANCE


def test_a_deletion_that_is_broken_off_leaves_the_groups_deadlines() -> None:
    """The client of DeleteGroups goes away between two of its steps, while a pending member's time is over."""
    cluster = Cluster(initial_rebalance_delay_ms=3_000, batch_bytes_max=60)
    for partition in range(6):
        cluster.commit(partition, partition=partition)
    cluster.join(session_ms=10_000)  # an id is given out, and never used
    deletion = cluster.manager.delete_group_in_steps(GroupId("g"), 2)
    next(deletion)
    cluster.advance(10_001)
    deletion.close()
    named = cluster.join()
    joined = cluster.join(named.response.member_id)
    cluster.advance(600_000)
    assert joined.answered
    assert joined.response.generation_id == 1
