# SPDX-License-Identifier: Apache-2.0
"""The status of a group, by the trend of its offsets: each of Burrow's rules, and what must not alarm anybody."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.lag.lag_book import CommittedGroup, CommittedTopic, LagBook, PartitionEnd
from coordinator.lag.lag_trend import WINDOW_MEASUREMENTS, LagStatus
from protocol.newtypes import GroupId

STEP_MS = 15_000
WINDOW_MS = WINDOW_MEASUREMENTS * STEP_MS
OK, WARN, STALLED, STOPPED = LagStatus
G = GroupId("g")
LONG = 4 * WINDOW_MEASUREMENTS

Measured = tuple[int, int, int]
"""At a measurement: the end, the committed offset, and the number of the measurement at which it was committed."""


def statuses(*partitions: Sequence[Measured]) -> list[LagStatus]:
    """The status of a group at each measurement of its partitions."""
    book = LagBook("group", WINDOW_MS)
    found = []
    for number, rows in enumerate(zip(*partitions, strict=True)):
        ends = {"t": {part: PartitionEnd(end, end) for part, (end, _, _) in enumerate(rows)}}
        offsets = [(part, offset, committed * STEP_MS) for part, (_, offset, committed) in enumerate(rows)]
        group = CommittedGroup(G, 1, [CommittedTopic("t", offsets)])
        for _ in book.measure_in_steps([group], ends, number * STEP_MS):
            pass
        found.append(book.newest.groups[0].status)
    return found


def each(measured: Callable[[int], Measured], count: int = LONG) -> list[Measured]:
    return [measured(number) for number in range(count)]


KEEPS_UP = each(lambda now: (100 * now + 50, 100 * now, now))
IDLE = each(lambda _: (100, 100, 0))
STANDS = each(lambda now: (100 + now, 50, now))
NOBODY_COMMITS = each(lambda now: (100 + now, 50, 0))
FALLS_BEHIND = each(lambda now: (100 * now + 100, 80 * now, now))


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param(KEEPS_UP, id="always a little behind"),
        pytest.param(IDLE, id="nothing to do, and so no commits"),
        pytest.param(each(lambda now: (10_000, 100 * now, now)), id="catches up"),
        pytest.param(each(lambda now: (1_000 + 100 * now, 100 * now, now)), id="as far behind as before"),
        pytest.param(each(lambda now: (100 * now, 100 * now // 900 * 900, now)), id="commits in leaps"),
        pytest.param(each(lambda now: (100, 120, 0)), id="beyond the end"),
    ],
)
def test_a_group_that_gets_on_with_its_work_is_ok(measured: Sequence[Measured]) -> None:
    assert set(statuses(measured)) == {OK}


@pytest.mark.parametrize(
    ("measured", "status"),
    [
        pytest.param(STANDS, STALLED, id="commits the same offset"),
        pytest.param(NOBODY_COMMITS, STOPPED, id="commits nothing"),
        pytest.param(FALLS_BEHIND, WARN, id="too slow"),
    ],
)
def test_it_has_its_status_once_a_window_has_passed(measured: Sequence[Measured], status: LagStatus) -> None:
    found = statuses(measured)
    first = found.index(status)
    assert set(found[:first]) == {OK}
    assert set(found[first:]) == {status}
    assert WINDOW_MEASUREMENTS <= first <= WINDOW_MEASUREMENTS + 1


def test_the_worst_partition_counts() -> None:
    assert statuses(IDLE, FALLS_BEHIND, KEEPS_UP)[-1] is WARN
    assert statuses(FALLS_BEHIND, STANDS)[-1] is STALLED
    assert statuses(STANDS, NOBODY_COMMITS, FALLS_BEHIND)[-1] is STOPPED


@pytest.mark.parametrize("before", [STANDS, NOBODY_COMMITS, FALLS_BEHIND])
def test_it_is_over_at_once_when_the_group_has_reached_the_end(before: Sequence[Measured]) -> None:
    end, _, _ = before[-1]
    found = statuses([*before, *([(end, end, LONG)] * LONG)])
    assert found[LONG - 1] is not OK
    assert set(found[LONG:]) == {OK}


def test_a_group_that_goes_on_is_not_stopped_any_more() -> None:
    end, offset, _ = NOBODY_COMMITS[-1]
    going_on = [(end, offset + 1 + number, LONG + number) for number in range(LONG)]
    assert set(statuses([*NOBODY_COMMITS, *going_on])[LONG:]) == {OK}


def test_a_group_that_was_set_back_has_a_window_to_catch_up() -> None:
    """It commits a lower offset, and then reads on; it is behind by far more than before."""
    back = each(lambda now: (100 * (now + LONG) + 50, 80 * now, now + LONG), WINDOW_MEASUREMENTS)
    assert set(statuses([*KEEPS_UP, *back])) == {OK}


def test_an_end_that_is_missing_for_a_while_changes_nothing() -> None:
    """A broker restarts, and its partitions have no end for some measurements; others are known."""
    book = LagBook("group", WINDOW_MS)
    group = CommittedGroup(G, 1, [CommittedTopic("t", [(0, 50, 0), (1, 100, 0)])])
    found = []
    for number in range(LONG):
        ends = {0: PartitionEnd(100, 100), 1: PartitionEnd(100, 100)}
        if number in (WINDOW_MEASUREMENTS // 2, 2 * WINDOW_MEASUREMENTS):
            del ends[0]
        for _ in book.measure_in_steps([group], {"t": ends}, number * STEP_MS):
            pass
        found.append(book.newest.groups[0])
    assert [row.status for row in found] == [OK] * WINDOW_MEASUREMENTS + [STOPPED] * (
        LONG - WINDOW_MEASUREMENTS
    )
    assert {row.since_ms for row in found[1:]} == {found[0].since_ms}


def test_a_topic_that_no_member_reads_any_more_does_not_count() -> None:
    """Its offsets stand still until they expire; the lag is shown all the same."""
    book = LagBook("group", WINDOW_MS)
    ends = {topic: {0: PartitionEnd(100, 100)} for topic in ("new", "old")}
    for number in range(LONG):
        old = CommittedTopic("old", [(0, 50, 0)], is_read=False)
        group = CommittedGroup(G, 1, [CommittedTopic("new", [(0, 100, number * STEP_MS)]), old])
        for _ in book.measure_in_steps([group], ends, number * STEP_MS):
            pass
    (row,) = book.newest.groups
    assert (row.lag, row.status) == (50, OK)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=40))
def test_a_group_that_is_not_behind_is_ok_whatever_came_before(steps: list[tuple[int, int]]) -> None:
    end = offset = 0
    measured = []
    for number, (more, read) in enumerate(steps):
        end += more
        offset = min(end, offset + read)
        measured.append((end, offset, number))
    for (last, committed, _), status in zip(measured, statuses(measured), strict=True):
        if committed == last:
            assert status is OK
