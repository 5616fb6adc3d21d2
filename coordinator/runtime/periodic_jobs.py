# SPDX-License-Identifier: Apache-2.0
"""The periodic jobs of a node, by name, with when they ran, how long they took, and whether they failed."""

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from coordinator.runtime.clock import Clock
from coordinator.runtime.tasks import Tasks
from coordinator.runtime.timers import Timer, Timers

End = Callable[[bool], None]
"""The callback for the end of a job, called once, with True if the job has failed."""


class PeriodicJob(msgspec.Struct):
    """One periodic job. Times in milliseconds; `last_ms` is how long the newest run took, wherever it ran."""

    name: str
    interval_ms: int
    run: Callable[[End], None]
    runs: int = 0
    failures: int = 0
    last_ms: int = 0
    failing_since_ms: int = 0
    """The wall clock at the end of the first failed run since the last success; 0 if the newest run did not fail."""
    began_ms: int | None = None
    """The monotonic clock at the start of the current run; None if the job is not running."""
    timer: Timer | None = None


class Scheduler:
    """Begins jobs on the event loop, each again `interval_ms` after it ended: no two runs of a job overlap."""

    def __init__(self, timers: Timers, clock: Clock) -> None:
        self._timers = timers
        self._clock = clock
        self._tasks = Tasks()
        self.jobs: dict[str, PeriodicJob] = {}

    def schedule_periodic_call(self, name: str, interval_ms: int, run: Callable[[], None]) -> None:
        """Run `run` every `interval_ms`, the first time after one interval. It must not block."""

        def run_and_end(end: End) -> None:
            run()
            end(False)

        self.schedule_callback_job(name, interval_ms, run_and_end)

    def schedule_periodic_task(
        self, name: str, interval_ms: int, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Repeat a coroutine as a task, which `close` cancels if it runs."""

        def start(end: End) -> None:
            task = self._tasks.start(work(), name)
            task.add_done_callback(lambda task: end(task.cancelled() or task.exception() is not None))

        self.schedule_callback_job(name, interval_ms, start)

    def schedule_callback_job(self, name: str, interval_ms: int, run: Callable[[End], None]) -> None:
        """Repeat a job that continues in a thread: `run` gets a function to call on the loop at its end."""
        job = PeriodicJob(name, interval_ms, run)
        self.jobs[name] = job
        job.timer = self._timers.call_after(interval_ms, self._begin, job)

    def close(self) -> None:
        """Begin no more jobs, and cancel the coroutines that run."""
        for job in self.jobs.values():
            if job.timer is not None:
                job.timer.cancel()
        self.jobs.clear()
        self._tasks.cancel()

    def _begin(self, job: PeriodicJob) -> None:
        job.began_ms = self._clock.mono_ms()
        try:
            job.run(lambda failed: self._end(job, failed=failed))
        except Exception:
            self._end(job, failed=True)
            raise

    def _end(self, job: PeriodicJob, *, failed: bool) -> None:
        if job.began_ms is None:
            return
        job.runs += 1
        job.failures += failed
        job.last_ms = self._clock.mono_ms() - job.began_ms
        job.failing_since_ms = (job.failing_since_ms or self._clock.wall_ms()) if failed else 0
        job.began_ms = None
        if self.jobs.get(job.name) is job:
            job.timer = self._timers.call_after(job.interval_ms, self._begin, job)
