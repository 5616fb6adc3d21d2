# SPDX-License-Identifier: Apache-2.0
"""How long rebalances take, and how much of that goes to the slowest member."""

from typing import NamedTuple

from coordinator.groups.classic.state import GroupState
from coordinator.groups.rebalance_timings import RebalanceCause
from tests.groups.harness import Cluster
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
