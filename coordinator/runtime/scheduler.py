# SPDX-License-Identifier: Apache-2.0
"""What a node does by the clock: one list of named jobs that say when they ran and how long they took."""

from collections.abc import Callable

import msgspec

from coordinator.runtime.clock import Clock
from coordinator.runtime.timers import Timer, Timers


class Job(msgspec.Struct):
    """One periodic job. Times in milliseconds; `last_ms` is how long the newest run kept the event loop."""

    name: str
    interval_ms: int
    run: Callable[[], None]
    runs: int = 0
    last_ms: int = 0
    timer: Timer | None = None


class Scheduler:
    """Runs jobs one after the other on the event loop, each again `interval_ms` after it ended."""

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self._timers = timers
        self._clock = clock
        self.jobs: dict[str, Job] = {}

    def every(self, name: str, interval_ms: int, run: Callable[[], None]) -> None:
        """Run `run` every `interval_ms`, the first time after one interval. It must not block."""
        job = Job(name, interval_ms, run)
        self.jobs[name] = job
        job.timer = self._timers.after(interval_ms, self._run, job)

    def close(self) -> None:
        """Run nothing any more."""
        for job in self.jobs.values():
            if job.timer is not None:
                job.timer.cancel()
        self.jobs.clear()

    def _run(self, job: Job) -> None:
        began_ms = self._clock.mono_ms()
        try:
            job.run()
        finally:
            job.runs += 1
            job.last_ms = self._clock.mono_ms() - began_ms
            if job.name in self.jobs:
                job.timer = self._timers.after(job.interval_ms, self._run, job)
