# SPDX-License-Identifier: Apache-2.0
"""Measures the lag of a node's groups, again and again, between the requests of clients."""

from collections.abc import Awaitable, Callable, Iterator

from coordinator.lag.lag_book import CommittedGroup, FoundEnds, LagBook, empty_in_steps
from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices


class LagWatch:
    """Finds the ends of the partitions, and measures the lag of all groups behind them."""

    def __init__(
        self,
        book: LagBook,
        groups: Callable[[], Iterator[CommittedGroup]],
        clock: Clock,
        find_ends: Callable[[], Awaitable[FoundEnds | None]],
    ) -> None:
        """Measure all `groups` into `book`; `find_ends` returns the ends, or None if they cannot be found now."""
        self._book = book
        self._groups = groups
        self._clock = clock
        self._find_ends = find_ends

    async def measure_once(self) -> None:
        """Measure the lag once; the last measurement stays if the ends cannot be found."""
        ends = await self._find_ends()
        if ends is None:
            return
        slices = Slices(self._clock.nanos)
        for _ in self._book.measure_in_steps(self._groups(), ends, self._clock.wall_ms()):
            if slices.is_over:
                await slices.yield_to_event_loop()
        for _ in empty_in_steps(ends):
            if slices.is_over:
                await slices.yield_to_event_loop()
