# SPDX-License-Identifier: Apache-2.0
"""Clocks for nodes that run in a test."""

from coordinator.groups.outcome import Instant
from coordinator.runtime.clock import SystemClock


class SlowLook:
    """The machine's clocks, but that each look at the fine one takes `look_ns`: so work is cut where a test wants."""

    def __init__(self, look_ns: int) -> None:
        self._real = SystemClock()
        self._look_ns = look_ns
        self._looked_ns = 0

    def mono_ms(self) -> int:
        return self._real.mono_ms()

    def wall_ms(self) -> int:
        return self._real.wall_ms()

    def now(self) -> Instant:
        return self._real.now()

    def nanos(self) -> int:
        self._looked_ns += self._look_ns
        return self._looked_ns
