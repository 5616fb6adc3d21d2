# SPDX-License-Identifier: Apache-2.0
"""How long rebalances take, and how much of that goes to the slowest member."""

from typing import Any, NamedTuple

import pytest

from coordinator.groups.classic.state import GroupState
from coordinator.groups.rebalance_timings import RebalanceCause, RebalanceTimings
from coordinator.overview.group_details import EndedRebalance, describe_ended_rebalance
from coordinator.telemetry.recent_rebalances import (
    CHARACTERS_PER_REBALANCE,
    REBALANCES_PER_GROUP,
    RecentRebalances,
)
from protocol.newtypes import GroupId
from tests.groups.harness import WALL_START_MS, Cluster
from tests.support.log_lines import captured

JOINED = RebalanceCause.MEMBER_JOINED
LEFT = RebalanceCause.MEMBER_LEFT


class Counted(NamedTuple):
    """What was counted of the rebalances of one cause, in milliseconds."""

    rebalances: int
    took_ms: int
    slowest_join_ms: int
    assignment_ms: int


def counted(cluster: Cluster, cause: RebalanceCause) -> Counted:
    stats = cluster.manager.stats
    histogram = stats.rebalance_durations[cause]
    assert histogram.sum_ns % 1_000_000 == 0
    return Counted(
        sum(histogram.counts),
        histogram.sum_ns // 1_000_000,
        stats.slowest_join_ms[cause],
        stats.assignment_ms[cause],
    )


def test_the_last_to_rejoin_and_the_leader_have_their_shares() -> None:
    cluster = Cluster()
    leader, second, third = cluster.stable_group(3, session_ms=60_000, rebalance_ms=60_000)
    before = counted(cluster, JOINED)
    fourth = cluster.member(session_ms=60_000, rebalance_ms=60_000)
    cluster.advance(1_000)
    cluster.join(leader, session_ms=60_000, rebalance_ms=60_000)
    cluster.advance(2_000)
    cluster.join(second, session_ms=60_000, rebalance_ms=60_000)
    cluster.advance(30_000)
    assert not fourth.answered
    cluster.join(third, session_ms=60_000, rebalance_ms=60_000)
    assert cluster.group().rebalance is not None
    assert counted(cluster, JOINED) == before
    cluster.advance(500)
    with captured() as lines:
        cluster.sync(leader, cluster.group().generation_id, {})
    after = counted(cluster, JOINED)
    assert Counted(*(b - a for a, b in zip(before, after, strict=True))) == Counted(1, 33_500, 30_000, 500)
    assert cluster.group().rebalance is None
    assert lines.events == ["stabilized group"]
    assert lines.fields("stabilized group")[0]["milliseconds"] == 33_500


def test_a_member_that_never_rejoins_is_the_slowest_until_the_others_go_on_without_it() -> None:
    cluster = Cluster()
    leader, second, _ = cluster.stable_group(3, session_ms=600_000)
    cluster.leave(second)
    cluster.advance(4_000)
    cluster.join(leader)
    cluster.advance(26_000)
    assert cluster.group().state is GroupState.COMPLETING_REBALANCE, (
        "after the rebalance timeout of 30 seconds"
    )
    cluster.sync(leader, cluster.group().generation_id, {})
    assert counted(cluster, LEFT) == Counted(1, 30_000, 26_000, 0)


def test_a_delay_that_is_set_is_no_members_fault() -> None:
    cluster = Cluster(initial_rebalance_delay_ms=3_000)
    first = cluster.member()
    cluster.advance(3_000)
    cluster.sync(first.response.member_id, 1, {})
    assert counted(cluster, JOINED) == Counted(1, 3_000, 0, 0)


def test_one_that_begins_anew_before_it_is_over_counts_once_and_from_its_begin() -> None:
    cluster = Cluster()
    first = cluster.member().response.member_id
    cluster.advance(1_000)  # and the leader brings no assignment
    second = cluster.member()
    cluster.advance(2_000)
    cluster.join(first)
    assert second.answered
    cluster.sync(first, 2, {})
    assert counted(cluster, JOINED) == Counted(1, 3_000, 2_000, 0)


def test_an_empty_group_has_no_rebalance_under_way() -> None:
    cluster = Cluster()
    (only,) = cluster.stable_group(1)
    cluster.leave(only)
    assert cluster.group().rebalance is None
    assert counted(cluster, LEFT) == Counted(1, 0, 0, 0)


# --- the last rebalances of a group ---

SLOW: dict[str, Any] = {"session_ms": 600_000, "rebalance_ms": 60_000}


def last_rebalance(cluster: Cluster) -> EndedRebalance:
    return describe_ended_rebalance(cluster.manager.recent_rebalances.of_group(GroupId("g"))[0])


def slowest(cluster: Cluster) -> tuple[str, int]:
    """End the rebalance, and return its slowest member and how long the group waited for it."""
    group = cluster.group()
    assert group.state is GroupState.COMPLETING_REBALANCE
    cluster.sync(group.leader_id or "", group.generation_id, {})
    ended = last_rebalance(cluster)
    return ended.slowest_member, ended.slowest_member_ms


def test_a_rebalance_is_kept_with_its_times_and_its_slowest_member() -> None:
    cluster = Cluster()
    leader, second = cluster.stable_group(2, **SLOW)
    cluster.advance(7_000)
    cluster.member(**SLOW)
    cluster.advance(1_000)
    cluster.join(leader, **SLOW)
    cluster.advance(30_000)
    cluster.join(second, **SLOW)
    generation = cluster.group().generation_id
    cluster.advance(500)
    cluster.sync(leader, generation, {})
    assert last_rebalance(cluster) == EndedRebalance(
        began_ms=WALL_START_MS + 7_000,
        duration_ms=31_500,
        cause="member_joined",
        generation=generation,
        members=3,
        slowest_member=second,
        slowest_member_host="/127.0.0.1",
        slowest_member_ms=30_000,
        leader=leader,
        assignment_ms=500,
    )


def test_a_group_without_members_has_no_slowest_one_and_no_leader() -> None:
    cluster = Cluster()
    (only,) = cluster.stable_group(1)
    cluster.leave(only)
    ended = last_rebalance(cluster)
    assert (ended.cause, ended.members, ended.slowest_member, ended.leader) == ("member_left", 0, "", "")


def test_a_member_that_never_rejoined_is_the_slowest() -> None:
    cluster = Cluster()
    leader, second, third = cluster.stable_group(3, session_ms=600_000)
    cluster.leave(second)
    cluster.join(leader)
    cluster.advance(30_000)
    assert slowest(cluster) == (third, 30_000)


def test_a_member_whose_session_ended_is_the_slowest() -> None:
    cluster = Cluster()
    leader, second = cluster.stable_group(2)
    cluster.member()
    cluster.join(leader)
    cluster.advance(10_000)
    assert slowest(cluster) == (second, 10_000)


def test_a_static_member_that_did_not_rejoin_is_the_slowest_and_stays() -> None:
    cluster = Cluster()
    leader = cluster.join(instance="a", **SLOW).response.member_id
    cluster.sync(leader, 1, {})
    cluster.member(**SLOW)
    cluster.advance(60_000)
    assert leader in cluster.group().members
    assert slowest(cluster) == (leader, 60_000)


def test_an_id_that_was_given_out_and_never_used_is_the_slowest() -> None:
    cluster = Cluster()
    leader, second = cluster.stable_group(2, **SLOW)
    given_out = cluster.join(session_ms=20_000).response.member_id
    cluster.join(leader, protocols=(("range", b"changed"),), **SLOW)
    cluster.advance(1_000)
    cluster.join(second, **SLOW)
    cluster.advance(19_000)
    assert slowest(cluster) == (given_out, 19_000)


def test_the_time_of_the_slowest_member_is_that_of_its_round_alone() -> None:
    cluster = Cluster()
    leader, second = cluster.stable_group(2, **SLOW)
    cluster.member(**SLOW)
    cluster.join(leader, **SLOW)
    cluster.advance(5_000)
    cluster.join(second, **SLOW)
    last = cluster.member(**SLOW).response  # before the leader has made an assignment
    assert last is None or last.error_code
    for member in list(cluster.group().members)[:-1]:
        cluster.join(member, **SLOW)
        cluster.advance(1_000)
    assert slowest(cluster) == (second, 5_000)


def test_a_deleted_group_leaves_no_rebalances_to_one_of_its_name() -> None:
    cluster = Cluster()
    (only,) = cluster.stable_group(1)
    cluster.leave(only)
    assert cluster.manager.recent_rebalances.of_group(GroupId("g"))
    cluster.manager.delete_group(GroupId("g"))
    assert cluster.manager.recent_rebalances.of_group(GroupId("g")) == []


def ended(leader: str = "") -> RebalanceTimings:
    timings = RebalanceTimings(LEFT, 0)
    timings.leader_id = leader
    return timings


def test_each_group_keeps_its_last_rebalances_the_newest_first() -> None:
    recent = RecentRebalances()
    timings = [ended() for _ in range(REBALANCES_PER_GROUP + 3)]
    for each in timings:
        recent.add(GroupId("busy"), each)
    calm = ended()
    recent.add(GroupId("calm"), calm)
    assert recent.of_group(GroupId("busy")) == timings[:2:-1]
    assert recent.of_group(GroupId("calm")) == [calm]
    assert recent.of_group(GroupId("unknown")) == []


def test_the_groups_that_have_not_rebalanced_for_longest_are_forgotten_first() -> None:
    recent = RecentRebalances(characters_max=3 * CHARACTERS_PER_REBALANCE + 3)
    for group in ("a", "b", "a", "c"):
        recent.add(GroupId(group), ended())
    assert [len(recent.of_group(GroupId(group))) for group in ("a", "b", "c")] == [2, 0, 1]


@pytest.mark.parametrize("size", [1, REBALANCES_PER_GROUP * 2])
def test_long_names_take_the_room_of_many_rebalances(size: int) -> None:
    recent = RecentRebalances(characters_max=100 * CHARACTERS_PER_REBALANCE)
    for _ in range(size):
        recent.add(GroupId("short"), ended())
    long = ended(leader="m" * 98 * CHARACTERS_PER_REBALANCE)
    recent.add(GroupId("long"), long)
    assert recent.of_group(GroupId("short")) == []
    assert recent.of_group(GroupId("long")) == [long]


def test_the_room_of_forgotten_rebalances_is_free_again() -> None:
    recent = RecentRebalances(characters_max=2 * CHARACTERS_PER_REBALANCE + 2)
    for _ in range(3):
        recent.add(GroupId("a"), ended())
        recent.forget(GroupId("a"))
    recent.forget(GroupId("a"))
    for group in ("b", "c"):
        recent.add(GroupId(group), ended())
    assert [len(recent.of_group(GroupId(group))) for group in ("b", "c")] == [1, 1]
