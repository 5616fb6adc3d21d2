# SPDX-License-Identifier: Apache-2.0
"""All deadlines of a node in one heap, behind one timer of the event loop."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from coordinator.logs import get_logger
from coordinator.runtime.clock import Clock

log = get_logger("timers")


class Handle(Protocol):
    """What an event loop's `call_later` gives."""

    def cancel(self) -> None:
        """Take the call back."""


class Loop(Protocol):
    """The part of an event loop that timers need."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Handle:
        """Call `callback` in so many seconds."""


class Deadlines(Protocol):
    """The part of timers that groups need."""

    def at(self, deadline_ms: int, callback: Callable[[Any], None], argument: Any = None) -> object:
        """Call `callback(argument)` at `deadline_ms`."""


class Timer:
    """One call to come; `cancel` makes it not come."""

    __slots__ = ("argument", "callback")

    def __init__(self, callback: Callable[[Any], None], argument: Any) -> None:
        self.callback: Callable[[Any], None] | None = callback
        self.argument = argument

    def cancel(self) -> None:
        """Take the call back; harmless when it was made already."""
        self.callback = None
        self.argument = None


class Timers:
    """Calls functions at monotonic milliseconds; never early, in the order of their deadlines."""

    def __init__(self, loop: Loop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._tie = count()
        self._handle: Handle | None = None
        self._armed_ms = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, deadline_ms: int, callback: Callable[[Any], None], argument: Any = None) -> Timer:
        """Call `callback(argument)` at `deadline_ms`."""
        timer = Timer(callback, argument)
        heapq.heappush(self._heap, (deadline_ms, next(self._tie), timer))
        self._arm_first()
        return timer

    def after(self, delay_ms: int, callback: Callable[[Any], None], argument: Any = None) -> Timer:
        """Call `callback(argument)` in `delay_ms`."""
        return self.at(self._clock.mono_ms() + delay_ms, callback, argument)

    def close(self) -> None:
        """Forget all calls."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._heap.clear()

    def _arm_first(self) -> None:
        """Have the loop call at the first deadline, unless it will already."""
        if not self._heap:
            return
        deadline_ms = self._heap[0][0]
        if self._handle is not None:
            if self._armed_ms <= deadline_ms:
                return
            self._handle.cancel()
        self._armed_ms = deadline_ms
        delay_ms = max(deadline_ms - self._clock.mono_ms(), 0)
        self._handle = self._loop.call_later(delay_ms / 1000, self._fire)

    def _fire(self) -> None:
        self._handle = None
        now_ms = self._clock.mono_ms()
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            timer = heapq.heappop(heap)[2]
            if timer.callback is not None:
                try:
                    timer.callback(timer.argument)
                except Exception:
                    log.exception("a timer's call failed")  # those after it are due all the same
        # A call may have armed a deadline of its own, and what was in the heap before may come earlier.
        self._arm_first()
