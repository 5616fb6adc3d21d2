# SPDX-License-Identifier: Apache-2.0
"""A group whose rebalance never timed out: its deadline was passed over when another's call set a later one."""

from collections.abc import Callable
from typing import Any

from coordinator.runtime.timers import Timers
from tests.groups.harness import FakeClock


class Handle:
    """What an event loop gives for a call to come."""

    def __init__(self, due_ms: int, callback: Callable[[], Any]) -> None:
        self.due_ms = due_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """An event loop that calls when the test moves the clock."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.handles: list[Handle] = []

    def call_later(self, delay_s: float, callback: Callable[[], Any]) -> Handle:
        self.handles.append(Handle(self.clock.mono_ms() + round(delay_s * 1000), callback))
        return self.handles[-1]

    def advance(self, delta_ms: int) -> None:
        self.clock.passed_ms += delta_ms
        for handle in [handle for handle in self.handles if handle.due_ms <= self.clock.passed_ms]:
            self.handles.remove(handle)
            if not handle.cancelled:
                handle.callback()


def test_a_call_that_sets_a_later_deadline_does_not_hide_an_earlier_one() -> None:
    clock = FakeClock()
    loop = FakeLoop(clock)
    timers = Timers(loop, clock)
    called: list[str] = []

    def call_again_much_later(_: Any) -> None:
        timers.call_at(30_000, called.append, "much later")

    timers.call_at(10, call_again_much_later)
    timers.call_at(20, called.append, "soon")

    loop.advance(10)
    loop.advance(10)

    assert called == ["soon"]
