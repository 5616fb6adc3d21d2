# SPDX-License-Identifier: Apache-2.0
"""The clocks of a node."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from coordinator.groups.outcome import Instant

_MONOTONIC_NS: Final[Callable[[], int]] = time.monotonic_ns
_TIME_NS: Final[Callable[[], int]] = time.time_ns


class Clock(Protocol):
    """Time in whole milliseconds, and a finer one for what takes less."""

    def mono_ms(self) -> int:
        """For deadlines: never goes back."""

    def wall_ms(self) -> int:
        """For record timestamps and retention: since the epoch."""

    def now(self) -> Instant:
        """Both at once."""

    def nanos(self) -> int:
        """For how long something took: nanoseconds since any moment, which never go back.

        Bind it once where it is read for each request: it may be the system's function itself.
        """


class SystemClock:
    """The machine's clocks."""

    def __init__(self) -> None:
        self.nanos: Callable[[], int] = time.perf_counter_ns

    def mono_ms(self) -> int:
        """Milliseconds of the monotonic clock."""
        return _MONOTONIC_NS() // 1_000_000

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        return _TIME_NS() // 1_000_000

    def now(self) -> Instant:
        """Both clocks, read one after the other."""
        return Instant(_MONOTONIC_NS() // 1_000_000, _TIME_NS() // 1_000_000)
