# SPDX-License-Identifier: Apache-2.0
"""A guard against a wall clock that is wrong for a moment: what expires by it is gone for good."""

from coordinator.runtime.clock import Clock
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats

log = get_logger("expiry")


class WallClockGuard:
    """Compares how far the wall clock went with the monotonic one, from one check to the next.

    A difference of more than `tolerance_ms`, forward or back, is a jump: the time counts only once the next check
    finds both clocks in step again. A sleep of the machine is a jump, too: its monotonic clock stood still.
    """

    def __init__(self, clock: Clock, stats: Stats, tolerance_ms: int) -> None:
        self._clock = clock
        self._stats = stats
        self._tolerance_ms = tolerance_ms
        self._ahead_ms = self._read()

    def _read(self) -> int:
        now = self._clock.now()
        return now.wall - now.mono

    def check_wall_clock(self) -> bool:
        """Return True unless the clock has jumped since the last call (at first: since the start); log a jump."""
        ahead_ms = self._read()
        jump_ms, self._ahead_ms = ahead_ms - self._ahead_ms, ahead_ms
        if abs(jump_ms) <= self._tolerance_ms:
            return True
        self._stats.wall_clock_jumps += 1
        log.warning(
            "the wall clock jumped: nothing expires until the next check confirms it", jump_ms=jump_ms
        )
        return False
