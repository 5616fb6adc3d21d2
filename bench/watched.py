# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.watched FILE LOOP KEY=VALUE …`: a node that notes how long each turn of its event loop takes.

LOOP is `asyncio`, or `uvloop`, which does not let anybody look at its turns: there a timer notes each millisecond how
much the loop's thread has worked. The node compacts on SIGUSR1, not by the clock. When it ends it writes what it noted
to FILE.
"""

import asyncio
import gc
import os
import signal
import sys
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import uvloop

from bench.servers import Groupkeeper
from coordinator.config import load
from coordinator.host_resources import real_machine
from coordinator.logs.files.upkeep import FileLogUpkeep
from coordinator.runtime.garbage import GC_THRESHOLDS
from coordinator.single_node import open_single_node
from coordinator.telemetry import logs

CLEAN: Final = signal.SIGUSR1
LOOK_S: Final = 0.001


class Turn(NamedTuple):
    """One turn of the loop, without its wait for events."""

    ended: float  # time.monotonic()
    cpu_s: float  # of the loop's thread
    wall_s: float  # also while another thread or process had the processor


class WatchedNode(Groupkeeper):
    """Such a node as a child process, on the event loop of this name."""

    loop = "asyncio"

    @property
    def turns_file(self) -> Path:
        """Where it writes its turns."""
        return self.work / "turns"

    def command(self) -> list[str]:
        """`python -m bench.watched …`."""
        settings = {
            "listen": self.address,
            "advertise": self.address,
            "data.dir": self.data,
            "metrics.listen": self.metrics,
            "log.cleaner.enable": "false",  # it runs on demand
            **self.settings,
        }
        chosen = [f"{key}={value}" for key, value in settings.items()]
        return [sys.executable, "-m", "bench.watched", str(self.turns_file), self.loop, *chosen]

    def clean(self) -> None:
        """Compact whatever needs it."""
        os.kill(self.pid, CLEAN)

    def turns(self, name: str = "") -> list[Turn]:
        """All turns, once the node was stopped; of several processes, those of the one with this name."""
        numbers = array("d", Path(f"{self.turns_file}{name}").read_bytes())
        return [Turn(*numbers[at : at + 3]) for at in range(0, len(numbers), 3)]


class TimedSelector:
    """A selector that sums up how long it has waited."""

    def __init__(self, selector: Any) -> None:
        self._selector = selector
        self.waited_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)

    def select(self, timeout: float | None = None) -> Any:
        """Wait for events."""
        began = time.perf_counter()
        events = self._selector.select(timeout)
        self.waited_s += time.perf_counter() - began
        return events


class TimedLoop(asyncio.SelectorEventLoop):
    """Notes each turn in `turns`: three numbers each, as in Turn."""

    _selector: Any

    def __init__(self) -> None:
        super().__init__()
        self.turns = array("d")
        self._selector = TimedSelector(self._selector)

    def _run_once(self) -> None:
        selector = self._selector
        waited, began, cpu = selector.waited_s, time.perf_counter(), time.thread_time()
        super()._run_once()  # type: ignore[misc]  # not in the stubs
        cpu_s, wall_s = time.thread_time() - cpu, time.perf_counter() - began
        self.turns.extend((time.monotonic(), cpu_s, wall_s - (selector.waited_s - waited)))


class TimedByLooks:
    """Turns of any loop, noted by a timer; several short ones that follow each other may count as one.

    `turns` has three numbers for each, as in Turn: both times are those of the processor.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.turns = array("d")
        self._loop = loop
        self._cpu_s = time.thread_time()
        self._look()

    def _look(self) -> None:
        cpu_s = time.thread_time()
        self.turns.extend((time.monotonic(), cpu_s - self._cpu_s, cpu_s - self._cpu_s))
        self._cpu_s = cpu_s
        self._loop.call_later(LOOK_S, self._look)


async def _serve_by_looks(arguments: Sequence[str]) -> "array[float]":
    looks = TimedByLooks(asyncio.get_running_loop())
    await _serve(arguments)
    return looks.turns


async def _serve(arguments: Sequence[str]) -> None:
    settings = load(None, {}, arguments, {})
    logs.configure(settings.log_format, settings.log_level)
    loop = asyncio.get_running_loop()
    app = open_single_node(settings, loop, real_machine())
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    assert isinstance(app.log.upkeep, FileLogUpkeep)
    loop.add_signal_handler(CLEAN, app.log.upkeep.cleaner.start_cleaning_if_idle)
    try:
        await app.start()
        await stop.wait()
    finally:
        await app.stop()


def main(arguments: Sequence[str]) -> None:
    """Serve until SIGTERM."""
    file, loop, *chosen = arguments
    gc.set_threshold(*GC_THRESHOLDS)
    if loop == "uvloop":
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            turns = runner.run(_serve_by_looks(chosen))
    else:
        with asyncio.Runner(loop_factory=TimedLoop) as runner:
            runner.run(_serve(chosen))
            turns = cast(TimedLoop, runner.get_loop()).turns
    Path(file).write_bytes(turns.tobytes())


if __name__ == "__main__":
    main(sys.argv[1:])
