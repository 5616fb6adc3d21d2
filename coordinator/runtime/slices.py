# SPDX-License-Identifier: Apache-2.0
"""Long work on the event loop is done in slices, between which the loop serves others: how long one may be.

Each of them looks at a clock after every step and gives way once its time is over:

    slices = Slices(clock.nanos)
    for group in groups:
        look_at(group)
        if slices.over:
            await slices.give_way()
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

Nanos = Callable[[], int]
"""Nanoseconds of a clock that never goes back, counted from any moment (`Clock.nanos`)."""

SLICE_NS: Final = 5_000_000
"""For how long one piece of work may keep the event loop in one of its turns."""


class Slices:
    """The time of one piece of work, which begins now; a step is finished before it gives way."""

    def __init__(self, nanos: Nanos, slice_ns: int = SLICE_NS) -> None:
        self._nanos = nanos
        self._slice_ns = slice_ns
        self._ends_ns = nanos() + slice_ns

    @property
    def over(self) -> bool:
        """Whether this slice has taken its time."""
        return self._nanos() > self._ends_ns

    def begin(self) -> None:
        """The next slice begins now."""
        self._ends_ns = self._nanos() + self._slice_ns

    async def give_way(self) -> None:
        """Let the loop turn once; then the next slice begins."""
        await asyncio.sleep(0)
        self.begin()

    def take(self, steps: Iterator[None]) -> bool:
        """Take steps for one slice, which begins now; returns whether there may be more."""
        self.begin()
        return any(self.over for _ in steps)
