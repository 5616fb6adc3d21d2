# SPDX-License-Identifier: Apache-2.0
"""Pauses of the event loop: the longest since the start, and the longest of the last minute or two."""

import asyncio

from coordinator.jobs.loop_watch import RECENT_MS, TICK_MS, LoopWatch
from coordinator.runtime.timers import Timers
from coordinator.telemetry.stats import Stats
from tests.groups.harness import FakeClock


class Watched:
    """A loop that goes on when a test says so."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.timers = Timers(asyncio.get_running_loop(), self.clock)
        self.stats = Stats()
        LoopWatch(self.timers, self.clock, self.stats).start()

    def run_ms(self, ms: int) -> None:
        for _ in range(ms // TICK_MS):
            self.clock.passed_ms += TICK_MS
            self.timers._fire()

    def stand_still_ms(self, ms: int) -> None:
        self.clock.passed_ms += TICK_MS + ms
        self.timers._fire()


async def test_a_recent_pause_is_forgotten_after_a_minute_or_two() -> None:
    watched = Watched()
    watched.stand_still_ms(700)
    watched.run_ms(RECENT_MS - 5_000)
    watched.stand_still_ms(300)
    assert (watched.stats.recent_loop_pause_ms_max, watched.stats.loop_pause_ms_max) == (700, 700)
    watched.run_ms(RECENT_MS)
    assert watched.stats.recent_loop_pause_ms_max == 700, "it was in the minute before"
    watched.run_ms(RECENT_MS)
    assert (watched.stats.recent_loop_pause_ms_max, watched.stats.loop_pause_ms_max) == (0, 700)
    watched.timers.close()


async def test_a_pause_of_more_than_a_minute_is_recent_when_it_ends() -> None:
    watched = Watched()
    watched.stand_still_ms(10 * RECENT_MS)
    assert watched.stats.recent_loop_pause_ms_max == 10 * RECENT_MS
    watched.run_ms(3 * RECENT_MS)
    assert watched.stats.recent_loop_pause_ms_max == 0
    watched.timers.close()
