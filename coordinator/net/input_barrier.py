# SPDX-License-Identifier: Apache-2.0
"""Runs a callback once all requests that clients have sent before are handled, so that no timeout comes too early."""

from collections.abc import Callable
from typing import Final

from coordinator.net.fair_queue import FairQueue

TURNS: Final = 4
"""The number of turns of the event loop to wait: in the first every socket is read, in the second every connection with
input has a share of the time, and in the third another share, for a request that was cut off."""


class InputBarrier:
    """Delays a callback until the requests that clients have sent are handled.

    A process that was stopped, or busy for long, finds the deadlines of its members passed while their heartbeats are
    unread in the sockets. Input of a client that takes more than two shares of time is not waited for.
    """

    def __init__(self, fair_queue: FairQueue) -> None:
        self._fair_queue = fair_queue

    def call_after_input(self, then: Callable[[], None]) -> None:
        """Call `then` once all requests that clients have sent before this call are handled."""
        self._wait(TURNS, then)

    def _wait(self, turns: int, then: Callable[[], None]) -> None:
        if turns == 0:
            then()
        else:
            self._fair_queue.go_on_later(lambda: self._wait(turns - 1, then), again=turns == 1)
