# SPDX-License-Identifier: Apache-2.0
"""The clocks of a node."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from coordinator.groups.outcome import Instant

_MONOTONIC_NS: Final[Callable[[], int]] = time.monotonic_ns
_TIME_NS: Final[Callable[[], int]] = time.time_ns


class Clock(Protocol):
    """The time in whole milliseconds, and in nanoseconds for what takes less."""

    def mono_ms(self) -> int:
        """Return monotonic milliseconds, for deadlines: they never go back."""

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch, for record timestamps and retention."""

    def now(self) -> Instant:
        """Return both times at once."""

    def nanos(self) -> int:
        """Return nanoseconds since any moment, which never go back, to measure durations.

        Bind the method once if it is called for each request: it may be the system's function itself.
        """


class SystemClock:
    """The clocks of the operating system."""

    def __init__(self) -> None:
        self.nanos: Callable[[], int] = time.perf_counter_ns

    def mono_ms(self) -> int:
        """Return milliseconds of the monotonic clock."""
        return _MONOTONIC_NS() // 1_000_000

    def wall_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return _TIME_NS() // 1_000_000

    def now(self) -> Instant:
        """Return the time of both clocks, read one after the other."""
        return Instant(_MONOTONIC_NS() // 1_000_000, _TIME_NS() // 1_000_000)
