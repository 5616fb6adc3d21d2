# SPDX-License-Identifier: Apache-2.0
"""The two clocks of a node."""

import time
from typing import Protocol

from coordinator.groups.outcome import Instant


class Clock(Protocol):
    """Time in whole milliseconds."""

    def mono_ms(self) -> int:
        """For deadlines: never goes back."""

    def wall_ms(self) -> int:
        """For record timestamps and retention: since the epoch."""

    def now(self) -> Instant:
        """Both at once."""


class SystemClock:
    """The machine's clocks."""

    def mono_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def now(self) -> Instant:
        """Both clocks, read one after the other."""
        return Instant(time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000)
