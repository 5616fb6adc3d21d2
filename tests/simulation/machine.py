# SPDX-License-Identifier: Apache-2.0
"""The machine that simulated nodes run on: its clocks and its threads."""

import asyncio
import math
import random
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from coordinator.groups.outcome import Instant
from tests.simulation.loop import NS, SimulatedLoop
from tests.storage.faulty import Crash

WALL_START_MS: Final = 1_700_000_000_000
LONG_SHARE: Final = 0.01
SLOW_SHARE: Final = 0.5
"""How many of the looks at what has passed find that a slice is over: mostly, and where code is slow."""


class SimulatedClock:
    """The loop's time for deadlines; for the wall clock the same, which jumps now and then."""

    def __init__(self, loop: SimulatedLoop, rng: random.Random | None = None) -> None:
        self._loop = loop
        self._rng = rng or random.Random(0)
        self._long_share = LONG_SHARE
        self._jumped_ms = 0
        self._worked_ns = 0
        self.jumped_at_s = -math.inf
        """The loop's time of the newest jump."""
        self._jumps: list[tuple[float, int]] = []

    def mono_ms(self) -> int:
        return self._loop.now_ns // 1_000_000

    def wall_ms(self) -> int:
        return WALL_START_MS + self._jumped_ms + self.mono_ms()

    def now(self) -> Instant:
        return Instant(self.mono_ms(), self.wall_ms())

    def nanos(self) -> int:
        """What seems to have passed while code ran; chance makes it so long now and then that a slice is over."""
        self._worked_ns += 30_000_000 if self._rng.random() < self._long_share else 1_000
        return self._loop.now_ns + self._worked_ns

    def work_slowly(self) -> None:
        """From now on slices are short."""
        self._long_share = SLOW_SHARE

    def work_as_ever(self) -> None:
        """From now on few slices are."""
        self._long_share = LONG_SHARE

    def jump(self, by_ms: int) -> None:
        """Set the wall clock."""
        self._jumped_ms += by_ms
        self.jumped_at_s = self._loop.time()
        self._jumps.append((self.jumped_at_s, by_ms))

    def jumped_within_ms(self, seconds: float) -> int:
        """By how much it has jumped in so many seconds, in all: there and back again is nothing."""
        since = self._loop.time() - seconds
        return sum(by_ms for at, by_ms in self._jumps if at > since)


class Slowness:
    """How long the disk takes for a call, in seconds; `factor` makes it slow."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.factor = 1.0

    def delay_s(self) -> float:
        """How long the next call takes."""
        return self._rng.expovariate(1_000) * self.factor


class SimulatedThread:
    """Runs calls one after the other, each after a while, and reports each after another while."""

    def __init__(self, loop: asyncio.AbstractEventLoop, slowness: Slowness) -> None:
        self._loop = loop
        self._slowness = slowness
        self._calls: deque[tuple[Callable[[], Any], Callable[[Any], None]]] = deque()
        self._busy = False

    def submit_with_callback(self, call: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        self._calls.append((call, on_done))
        if not self._busy:
            self._busy = True
            self._loop.call_later(self._slowness.delay_s(), self._run)

    async def run_blocking(self, call: Callable[[], Any]) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()

        def settle(result: Any) -> None:
            if not future.done():
                future.set_result(result)

        self.submit_with_callback(call, settle)
        result = await future
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """Finish what was submitted."""
        while self._calls:
            call, on_done = self._calls.popleft()
            on_done(_result_of(call))

    def _run(self) -> None:
        if not self._calls:  # it was closed meanwhile
            self._busy = False
            return
        call, on_done = self._calls.popleft()
        result = _result_of(call)
        self._loop.call_later(self._slowness.delay_s() / 4, self._done, on_done, result)

    def _done(self, on_done: Callable[[Any], None], result: Any) -> None:
        if self._calls:
            self._loop.call_later(self._slowness.delay_s(), self._run)
        else:
            self._busy = False
        on_done(result)


def _result_of(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Crash:
        raise  # nothing of the process goes on
    except Exception as error:  # noqa: BLE001 - as the real thread does
        return error


__all__ = ["NS", "SimulatedClock", "SimulatedThread", "Slowness"]
