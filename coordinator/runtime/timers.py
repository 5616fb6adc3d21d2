# SPDX-License-Identifier: Apache-2.0
"""Deadlines in a heap, behind one timer of the event loop."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import SLICE_NS
from coordinator.telemetry.logs import get_logger

log = get_logger("timers")

CallAfterInput = Callable[[Callable[[], None]], None]
"""Calls its argument once all that clients had sent by now has been handled."""


class Handle(Protocol):
    """The handle that an event loop's `call_later` returns."""

    def cancel(self) -> None:
        """Cancel the pending call."""


class Loop(Protocol):
    """The part of an event loop that timers need."""

    def call_later(self, delay: float, callback: Callable[[], object]) -> Handle:
        """Call `callback` after `delay` seconds."""


class DeadlineScheduler(Protocol):
    """The part of timers that groups need."""

    @property
    def deadline_cutoff_ms(self) -> int:
        """The moment up to which deadlines are due: all that clients had sent until then has been handled."""

    def call_at(self, deadline_ms: int, callback: Callable[[Any], None], argument: Any = None) -> object:
        """Call `callback(argument)` at `deadline_ms`."""


class Delays(Protocol):
    """The part of timers that api handlers need."""

    def call_after(self, delay_ms: int, callback: Callable[[Any], None], argument: Any = None) -> "Timer":
        """Call `callback(argument)` in `delay_ms`, unless the timer is cancelled before."""


class Timer:
    """One pending call, which `cancel` takes back."""

    __slots__ = ("argument", "callback")

    def __init__(self, callback: Callable[[Any], None], argument: Any) -> None:
        self.callback: Callable[[Any], None] | None = callback
        self.argument = argument

    def cancel(self) -> None:
        """Take the call back; does nothing if it was made already."""
        self.callback = None
        self.argument = None

    def call(self) -> None:
        """Make the call, unless it was taken back or made before, and drop its references."""
        callback, argument = self.callback, self.argument
        if callback is not None:
            self.cancel()
            callback(argument)


class Timers:
    """Calls functions at monotonic milliseconds; never early, and in the order of their deadlines.

    Many calls that are due together are made in several turns of the loop. With `call_after_input` a call waits until
    all that clients had sent before its deadline has been handled: this may still wait in a socket, if the process was
    stopped or the loop was held up.
    """

    def __init__(
        self,
        loop: Loop,
        clock: Clock,
        call_after_input: CallAfterInput | None = None,
        slice_ns: int = SLICE_NS,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._nanos = clock.nanos
        self._slice_ns = slice_ns
        self._call_after_input = call_after_input
        self._heap: list[tuple[int, int, Timer]] = []
        self._tie = count()
        self._handle: Handle | None = None
        self._armed_ms = 0
        self._busy = False  # from the first due deadline to the last due call
        self._due_ms = 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def deadline_cutoff_ms(self) -> int:
        """The moment up to which deadlines are due, in monotonic milliseconds; a call is made no earlier."""
        return self._due_ms

    def call_at(self, deadline_ms: int, callback: Callable[[Any], None], argument: Any = None) -> Timer:
        """Call `callback(argument)` at `deadline_ms`."""
        timer = Timer(callback, argument)
        heapq.heappush(self._heap, (deadline_ms, next(self._tie), timer))
        self._arm_first()
        return timer

    def call_after(self, delay_ms: int, callback: Callable[[Any], None], argument: Any = None) -> Timer:
        """Call `callback(argument)` in `delay_ms`."""
        return self.call_at(self._clock.mono_ms() + delay_ms, callback, argument)

    def close(self) -> None:
        """Drop all pending calls."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        self._heap.clear()

    def _arm_first(self) -> None:
        """Have the event loop call `_fire` at the first deadline, unless it will already."""
        if not self._heap or self._busy:
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
        if self._heap and self._heap[0][0] > now_ms:
            self._arm_first()  # the loop's clock is not ours
            return
        self._busy = True
        self._due_ms = now_ms
        if self._call_after_input is None:
            self._run()
        else:
            self._call_after_input(self._run)

    def _run(self) -> None:
        """Make the calls that are due; those that do not fit into one slice follow in the next turn."""
        heap = self._heap
        ends_ns = self._nanos() + self._slice_ns
        while heap and heap[0][0] <= self._due_ms:
            try:
                heapq.heappop(heap)[2].call()
            except Exception:
                log.exception("a task of a timer failed")  # those after it are due all the same
            if self._nanos() >= ends_ns:
                self._handle = self._loop.call_later(0, self._run)
                return
        self._busy = False
        self._handle = None
        # A call may have armed a deadline of its own, and what was in the heap before may come earlier.
        self._arm_first()
