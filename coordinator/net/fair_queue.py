# SPDX-License-Identifier: Apache-2.0
"""Divides the time of the event loop among connections, and limits how much of a turn requests take."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from coordinator.runtime.slices import Nanos

TURN_NS: Final = 10_000_000
"""The most time that requests take in one turn, so that timers, flushes and loading do not wait for longer."""

SHARES: Final = 10
"""The number of shares in a turn: a connection yields to others after one share."""

IDLE_NS: Final = 1_000_000
"""The time without a handled or waiting request after which a new turn must have begun."""


class FairQueue:
    """Gives connections shares of each turn; those with none, or too few, go on in the next turn, in order.

    Connections that want another share come after all that have had none, and get half of a turn at most. So no
    heartbeat waits for a client that sends many requests, or requests that take long.
    """

    def __init__(self, nanos: Nanos, turn_ns: int = TURN_NS) -> None:
        self.nanos: Final = nanos
        self._turn_ns: Final = turn_ns
        self.share_ns: Final = turn_ns // SHARES
        self.handled_ns = nanos() - IDLE_NS
        """The time, by the clock in nanoseconds, at which the newest request was handled that did not have to wait."""
        self._ends_ns = self.handled_ns
        self._first: deque[Callable[[], None]] = deque()
        self._again: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def update_turn_end_ns(self, now_ns: int) -> int:
        """Return the time from which on no further request is handled in this turn, in nanoseconds of the clock.

        The event loop does not report when a turn begins. A new one has begun if nothing was handled for IDLE_NS and
        nothing waits; otherwise requests go on in the next turn, whose time then begins.
        """
        if now_ns >= self._ends_ns and not self._scheduled and now_ns - self.handled_ns >= IDLE_NS:
            self._ends_ns = now_ns + self._turn_ns
        return self._ends_ns

    def go_on_later(self, go_on: Callable[[], None], *, again: bool = False) -> None:
        """Call `go_on` in the next turn, or in a later one if the connections before it take long.

        `again` marks a connection that has had a share of this turn or an earlier one.
        """
        (self._again if again else self._first).append(go_on)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._scheduled = False
        began_ns = self.nanos()
        self._ends_ns = began_ns + self._turn_ns
        again = len(self._again)  # those that are added meanwhile wait for the turn after this
        try:
            try:
                self._run(self._first, len(self._first), self._ends_ns)
            finally:
                self._run(self._again, again, began_ns + self._turn_ns // 2)
        finally:
            self.handled_ns = self.nanos()
            if self._first or self._again:
                self._schedule()

    def _run(self, waiting: deque[Callable[[], None]], count: int, ends_ns: int) -> None:
        """Call up to `count` of the waiting callbacks in order, one at least, until the time is over."""
        for _ in range(count):
            waiting.popleft()()
            if self.nanos() >= ends_ns:
                break
