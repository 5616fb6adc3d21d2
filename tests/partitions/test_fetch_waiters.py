# SPDX-License-Identifier: Apache-2.0
"""Who waits at the end of a log is woken once it has moved, only then, and once."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.partitions.fetch_waiters import LOOK_MS, WOKEN_AT_ONCE, FetchWaiters
from coordinator.runtime.timers import Timer
from protocol.newtypes import Offset, Partition


class Timers:
    """Keeps the calls to come."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Timer]] = []

    def call_after(self, delay_ms: int, callback: Callable[[Any], None], argument: Any = None) -> Timer:
        timer = Timer(callback, argument)
        self.calls.append((delay_ms, timer))
        return timer

    def fire(self) -> int:
        delay_ms, timer = self.calls.pop(0)
        timer.call()
        return delay_ms


class Ends:
    """Where the logs end, and a tail that looks at them."""

    def __init__(self) -> None:
        self.ends = {0: Offset(5), 1: Offset(7)}
        self.looks = 0
        self.timers = Timers()
        self.tail = FetchWaiters(self._end, self.timers)
        self.woken: list[str] = []

    def _end(self, partition: Partition) -> Offset | None:
        self.looks += 1
        if partition not in self.ends:
            return None
        return self.ends[partition]

    def wait(self, name: str, **ends: int) -> Any:
        wanted = {Partition(int(key[1:])): Offset(end) for key, end in ends.items()}
        return self.tail.add_waiter(wanted, lambda: self.woken.append(name))


@pytest.fixture
def ends() -> Ends:
    return Ends()


def test_who_waits_is_woken_when_a_log_has_moved_and_only_once(ends: Ends) -> None:
    ends.wait("zero", p0=5)
    ends.wait("both", p0=5, p1=7)
    ends.wait("one", p1=7)
    assert ends.timers.fire() == LOOK_MS
    assert ends.woken == []
    ends.ends[0] = Offset(6)
    ends.timers.fire()
    assert ends.woken == ["zero", "both"]
    ends.ends[1] = Offset(8)
    ends.timers.fire()
    assert ends.woken == ["zero", "both", "one"]


def test_nobody_looks_while_nobody_waits(ends: Ends) -> None:
    waiting = ends.wait("zero", p0=5)
    ends.tail.remove_waiter(waiting)
    ends.timers.fire()
    assert (ends.timers.calls, ends.looks) == ([], 0)
    ends.wait("again", p0=5)
    ends.ends[0] = Offset(6)
    ends.timers.fire()
    assert (ends.woken, ends.timers.calls) == (["again"], [])


def test_many_who_wait_cost_a_look_for_each_log(ends: Ends) -> None:
    for number in range(100):
        ends.wait(str(number), p0=5, p1=7)
    ends.timers.fire()
    assert ends.looks == 2


def test_who_has_seen_less_than_the_others_is_woken_at_once(ends: Ends) -> None:
    ends.wait("knows", p0=5)
    ends.timers.fire()
    ends.wait("does not", p0=4)
    ends.timers.fire()
    assert ends.woken == ["does not"]
    ends.ends[0] = Offset(6)
    ends.timers.fire()
    assert ends.woken == ["does not", "knows"]


def test_a_log_that_goes_back_wakes_too(ends: Ends) -> None:
    """After a repair without what was never synced."""
    ends.wait("zero", p0=5)
    ends.ends[0] = Offset(3)
    ends.timers.fire()
    assert ends.woken == ["zero"]


def test_a_log_that_is_not_here_any_more_wakes_who_waits_for_it(ends: Ends) -> None:
    ends.wait("zero", p0=5)
    ends.timers.fire()
    del ends.ends[0]
    ends.timers.fire()
    assert ends.woken == ["zero"]
    ends.wait("later", p0=5)
    ends.timers.fire()
    assert ends.woken == ["zero", "later"]


def test_a_log_that_goes_wakes_all_who_have_seen_different_ends(ends: Ends) -> None:
    ends.wait("zero", p0=5)
    ends.wait("one", p0=6)
    del ends.ends[0]
    ends.timers.fire()
    assert ends.woken == ["zero", "one"]


def test_of_many_some_are_woken_in_each_turn(ends: Ends) -> None:
    count = 2 * WOKEN_AT_ONCE + 1
    for number in range(count):
        ends.wait(str(number), p0=5)
    ends.ends[0] = Offset(6)
    ends.timers.fire()
    assert len(ends.woken) == WOKEN_AT_ONCE
    while ends.timers.calls:
        before = len(ends.woken)
        ends.timers.fire()
        assert len(ends.woken) - before <= WOKEN_AT_ONCE
    assert ends.woken == [str(number) for number in range(count)]


def test_who_is_to_be_woken_can_still_go_away(ends: Ends) -> None:
    waiting = [ends.wait(str(number), p0=5) for number in range(WOKEN_AT_ONCE + 1)]
    ends.ends[0] = Offset(6)
    ends.timers.fire()
    ends.tail.remove_waiter(waiting[-1])
    while ends.timers.calls:
        ends.timers.fire()
    assert len(ends.woken) == WOKEN_AT_ONCE


def test_who_wakes_may_wait_again(ends: Ends) -> None:
    def again() -> None:
        ends.woken.append("woken")
        ends.tail.add_waiter({Partition(0): ends.ends[0]}, again)

    ends.tail.add_waiter({Partition(0): Offset(5)}, again)
    for end in (6, 7):
        ends.ends[0] = Offset(end)
        ends.timers.fire()
        ends.timers.fire()
    assert ends.woken == ["woken", "woken"]


def test_who_is_woken_may_let_all_others_go_away(ends: Ends) -> None:
    others: list[Any] = []

    def first() -> None:
        ends.woken.append("first")
        for other in others:
            ends.tail.remove_waiter(other)

    ends.tail.add_waiter({Partition(0): Offset(5)}, first)
    others += [ends.wait("other", p0=5) for _ in range(3)]
    ends.ends[0] = Offset(6)
    ends.timers.fire()
    assert (ends.woken, ends.timers.calls) == (["first"], [])
