# SPDX-License-Identifier: Apache-2.0
"""Measures how long the event loop was kept from running."""

from typing import Final

from coordinator.runtime.clock import Clock
from coordinator.runtime.timers import Timer, Timers
from coordinator.telemetry.stats import Stats

TICK_MS: Final = 25
RECENT_MS: Final = 60_000
"""The shortest time for which a pause counts as recent; the longest is twice as long."""


class LoopWatch:
    """Sets a timer every `TICK_MS` and measures how late it is called.

    A pause shows as at least its length less one tick. `Stats.loop_pause_ms_max` holds the longest since the start,
    `Stats.recent_loop_pause_ms_max` that of this minute and the one before.
    """

    def __init__(self, timers: Timers, clock: Clock, stats: Stats) -> None:
        self._timers = timers
        self._clock = clock
        self._stats = stats
        self._timer: Timer | None = None
        self._minute_ends_ms = 0
        self._this_minute_ms = 0
        self._last_minute_ms = 0

    def start(self) -> None:
        """Begin to measure pauses."""
        now_ms = self._clock.mono_ms()
        self._minute_ends_ms = now_ms + RECENT_MS
        self._next(now_ms)

    def close(self) -> None:
        """Stop the measuring of pauses."""
        if self._timer is not None:
            self._timer.cancel()

    def _next(self, now_ms: int) -> None:
        due_ms = now_ms + TICK_MS
        self._timer = self._timers.call_at(due_ms, self._tick, due_ms)

    def _tick(self, due_ms: int) -> None:
        now_ms = self._clock.mono_ms()
        late_ms = now_ms - due_ms
        if now_ms >= self._minute_ends_ms:
            self._minute_ends_ms = now_ms + RECENT_MS
            self._last_minute_ms, self._this_minute_ms = self._this_minute_ms, 0
        self._this_minute_ms = max(self._this_minute_ms, late_ms)
        stats = self._stats
        stats.loop_pause_ms_max = max(stats.loop_pause_ms_max, late_ms)
        stats.recent_loop_pause_ms_max = max(self._this_minute_ms, self._last_minute_ms)
        self._next(now_ms)
