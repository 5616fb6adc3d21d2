# SPDX-License-Identifier: Apache-2.0
"""Which groups rebalance often, and for how long they are said to."""

from collections.abc import Iterable

import pytest

from coordinator.telemetry.frequent_rebalances import OFTEN, PERIOD_MS, FrequentRebalances
from protocol.newtypes import GroupId

G, H = GroupId("g"), GroupId("h")
START_MS = 1_000_000


def rebalanced(group: GroupId, times: Iterable[int], found: FrequentRebalances) -> None:
    for now_ms in times:
        found.add(group, now_ms)


def test_a_group_counts_from_so_many_rebalances_of_one_period_on() -> None:
    found = FrequentRebalances()
    rebalanced(G, range(START_MS, START_MS + OFTEN - 1), found)
    rebalanced(H, [START_MS + 10], found)
    assert found.count_groups(START_MS + 20) == 0
    found.add(G, START_MS + 30)
    assert found.count_groups(START_MS + 30) == 1
    rebalanced(H, range(START_MS + 40, START_MS + 50), found)
    assert found.count_groups(START_MS + 50) == 2


def test_it_counts_to_the_end_of_the_next_period() -> None:
    found = FrequentRebalances()
    rebalanced(G, [START_MS] * OFTEN, found)
    assert found.count_groups(START_MS + PERIOD_MS - 1) == 1
    assert found.count_groups(START_MS + PERIOD_MS) == 1
    assert found.count_groups(START_MS + 2 * PERIOD_MS - 1) == 1
    assert found.count_groups(START_MS + 2 * PERIOD_MS) == 0


def test_nothing_is_left_after_two_periods_in_which_nobody_looked() -> None:
    found = FrequentRebalances()
    rebalanced(G, [START_MS] * OFTEN, found)
    assert found.count_groups(START_MS + 2 * PERIOD_MS) == 0


@pytest.mark.parametrize(("every_ms", "often"), [(PERIOD_MS // OFTEN - 1, True), (PERIOD_MS // 2, False)])
def test_a_group_that_goes_on_is_said_to_without_a_gap(every_ms: int, often: bool) -> None:
    found = FrequentRebalances()
    said = set()
    for now_ms in range(START_MS, START_MS + 20 * PERIOD_MS, every_ms):
        found.add(G, now_ms)
        if now_ms >= START_MS + PERIOD_MS:
            said.add(found.count_groups(now_ms))
    assert said == {int(often)}
