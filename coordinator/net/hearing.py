# SPDX-License-Identifier: Apache-2.0
"""Hearing clients out before they are judged by what they did not say."""

from collections.abc import Callable
from typing import Final

from coordinator.net.turns import Turns

TURNS: Final = 4
"""So many turns, one after the other, it takes: before the second begins, every socket was looked at after the
question; before the third those that had something to say have had a share, and before the fourth another one, for
what was cut off."""


class Hearing:
    """Knows when what clients had sent by some moment has been handled.

    A process that was stopped, or kept by something long, finds the deadlines of its members passed and their
    heartbeats unread in the sockets. Who sends so much that two shares are not enough for it is not waited for longer.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def listen(self, then: Callable[[], None]) -> None:
        """Call `then` once everything that clients had sent by now has been handled."""
        self._wait(TURNS, then)

    def _wait(self, turns: int, then: Callable[[], None]) -> None:
        if turns == 0:
            then()
        else:
            self._turns.go_on_later(lambda: self._wait(turns - 1, then), again=turns == 1)
