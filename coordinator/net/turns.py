# SPDX-License-Identifier: Apache-2.0
"""How long requests may keep the event loop in one of its turns, all connections together."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Final

TURN_NS: Final = 10_000_000
"""What clients have sent ahead must not keep timers, flushes and loading waiting for longer."""


class Turns:
    """Gives out the loop's time; connections that got none, or not enough, go on in the next turn, in order."""

    def __init__(self, turn_ns: int = TURN_NS) -> None:
        self._turn_ns = turn_ns
        self.ends_ns = perf_counter_ns() + turn_ns
        """From when on (`perf_counter_ns`) no further request is handled before the loop has turned.

        Nobody tells when a turn begins, so it may have turned since it was set. Whoever is late goes on later, and
        that turn sets it anew: this costs one turn at most in that time, and most requests nothing.
        """
        self._waiting: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def go_on_later(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` in the next turn, or in one after that where those who wait already take long."""
        self._waiting.append(go_on)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._scheduled = False
        self.ends_ns = perf_counter_ns() + self._turn_ns
        try:
            for _ in range(len(self._waiting)):  # those who come back for more wait for the turn after this
                self._waiting.popleft()()
                if perf_counter_ns() >= self.ends_ns:
                    break
        finally:
            if self._waiting:
                self._schedule()
