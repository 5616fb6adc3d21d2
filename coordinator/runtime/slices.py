# SPDX-License-Identifier: Apache-2.0
"""Time slices for long work on the event loop, which serves others between them.

The work checks a clock after every step, and yields to the event loop once its slice is over:

    slices = Slices(clock.nanos)
    for group in groups:
        look_at(group)
        if slices.is_over:
            await slices.yield_to_event_loop()
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

Nanos = Callable[[], int]
"""Nanoseconds of a clock that never goes back, counted from any moment (`Clock.nanos`)."""

SLICE_NS: Final = 5_000_000
"""How long one piece of work may keep the event loop in one turn."""


class Slices:
    """The time slice of one piece of work, which begins now; a step is finished before the work yields."""

    def __init__(self, nanos: Nanos, slice_ns: int = SLICE_NS) -> None:
        self._nanos = nanos
        self._slice_ns = slice_ns
        self._ends_ns = nanos() + slice_ns

    @property
    def is_over(self) -> bool:
        """True if the time of this slice is over."""
        return self._nanos() > self._ends_ns

    def reset_slice_end(self) -> None:
        """Begin the next slice now."""
        self._ends_ns = self._nanos() + self._slice_ns

    async def yield_to_event_loop(self) -> None:
        """Yield to the event loop once, then begin the next slice."""
        await asyncio.sleep(0)
        self.reset_slice_end()

    def run_for_one_slice(self, steps: Iterator[None]) -> bool:
        """Take steps for one slice, which begins now; return whether there may be more."""
        self.reset_slice_end()
        return any(self.is_over for _ in steps)
