# SPDX-License-Identifier: Apache-2.0
"""How long requests may keep the event loop in one of its turns, all connections together."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from coordinator.runtime.slices import Nanos

TURN_NS: Final = 10_000_000
"""What clients have sent ahead must not keep timers, flushes and loading waiting for longer."""

SHARES: Final = 10
"""One connection may go on for a tenth of a turn before it makes way for others."""


IDLE_NS: Final = 1_000_000
"""When no request was handled for so long, and none waits, a turn has begun in which none was."""


class Turns:
    """Gives out the loop's time; connections that got none, or not enough, go on in the next turn, in order.

    Those who have had a share already, and want more, come after all who have not: so what one client asks in
    plenty, or what takes long, keeps no heartbeat waiting. They get half of a turn at most.
    """

    def __init__(self, nanos: Nanos, turn_ns: int = TURN_NS) -> None:
        self.nanos: Final = nanos
        self._turn_ns: Final = turn_ns
        self.share_ns: Final = turn_ns // SHARES
        self.handled_ns = nanos() - IDLE_NS
        """When the newest request was handled that came when it was its turn."""
        self._ends_ns = self.handled_ns
        self._first: deque[Callable[[], None]] = deque()
        self._again: deque[Callable[[], None]] = deque()
        self._scheduled = False

    def ends_ns(self, now_ns: int) -> int:
        """From when on no further request is handled before the loop has turned.

        The loop does not say when a turn begins. It has begun if nothing has been handled for a while and nothing
        waits; where the time is over otherwise, one goes on later, and that turn gives a new time.
        """
        if now_ns >= self._ends_ns and not self._scheduled and now_ns - self.handled_ns >= IDLE_NS:
            self._ends_ns = now_ns + self._turn_ns
        return self._ends_ns

    def go_on_later(self, go_on: Callable[[], None], *, again: bool = False) -> None:
        """Call `go_on` in the next turn, or in one after that where those who wait already take long.

        `again` is for those who have had a share of this turn or an earlier one.
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
        again = len(self._again)  # those who come back for more wait for the turn after this
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
        """Call so many of those who wait, in order and one at least, until the time is over."""
        for _ in range(count):
            waiting.popleft()()
            if self.nanos() >= ends_ns:
                break
