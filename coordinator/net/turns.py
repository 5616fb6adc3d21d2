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


class Turns:
    """Gives out the loop's time; connections that got none, or not enough, go on in the next turn, in order.

    Those who have had a share already, and want more, come after all who have not: so what one client asks in
    plenty, or what takes long, keeps nobody's heartbeat waiting. They get half of a turn at most.
    """

    def __init__(self, nanos: Nanos, turn_ns: int = TURN_NS) -> None:
        self.nanos: Final = nanos
        self._turn_ns = turn_ns
        self.share_ns: Final = turn_ns // SHARES
        self.ends_ns = nanos() + turn_ns
        """From when on (`nanos`) no further request is handled before the loop has turned.

        Nobody tells when a turn begins, so it may have turned since it was set. Whoever is late goes on later, and
        that turn sets it anew: this costs one turn at most in that time, and most requests nothing.
        """
        self._first: deque[Callable[[], None]] = deque()
        self._again: deque[Callable[[], None]] = deque()
        self._scheduled = False

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
        self.ends_ns = began_ns + self._turn_ns
        again = len(self._again)  # those who come back for more wait for the turn after this
        try:
            try:
                _run(self._first, len(self._first), self.ends_ns, self.nanos)
            finally:
                _run(self._again, again, began_ns + self._turn_ns // 2, self.nanos)
        finally:
            if self._first or self._again:
                self._schedule()


def _run(waiting: deque[Callable[[], None]], count: int, ends_ns: int, nanos: Nanos) -> None:
    """Call so many of those who wait, in order and one at least, until the time is over."""
    for _ in range(count):
        waiting.popleft()()
        if nanos() >= ends_ns:
            break
