# SPDX-License-Identifier: Apache-2.0
"""Deadlines that come together: many are called in several turns, in their order, and others go on between."""

import asyncio
from itertools import pairwise

from coordinator.runtime.timers import Timers
from tests.groups.harness import FakeClock

MANY = 50
ONE_CALL = 0
"""A slice whose time is over after one call."""


async def test_many_that_are_due_together_leave_the_loop_to_others() -> None:
    clock = FakeClock()
    clock.passed_ms = MANY
    timers = Timers(asyncio.get_running_loop(), clock, slice_ns=ONE_CALL)
    called: list[int] = []
    for number in reversed(range(MANY)):
        timers.call_at(number, called.append, number)
    seen = []
    for _ in range(10 * MANY):
        seen.append(len(called))
        await asyncio.sleep(0)
    assert called == list(range(MANY))
    assert max(after - before for before, after in pairwise(seen)) == 1
    timers.close()


async def test_what_is_set_meanwhile_waits_for_its_own_moment() -> None:
    clock = FakeClock()
    clock.passed_ms = 10
    timers = Timers(asyncio.get_running_loop(), clock, slice_ns=ONE_CALL)
    called: list[str] = []

    def call_and_set_another(name: str) -> None:
        called.append(name)
        timers.call_at(3, called.append, f"set by {name}")

    timers.call_at(1, call_and_set_another, "a")
    timers.call_at(2, call_and_set_another, "b")
    for _ in range(20):
        await asyncio.sleep(0)
    assert called == ["a", "b", "set by a", "set by b"]
    timers.close()


async def test_nothing_is_kept_of_a_call_that_was_made() -> None:
    clock = FakeClock()
    timers = Timers(asyncio.get_running_loop(), clock, slice_ns=ONE_CALL)
    timer = timers.call_at(1, lambda _: None, "an argument")
    clock.passed_ms = 1
    timers._fire()
    assert (timer.callback, timer.argument) == (None, None)
