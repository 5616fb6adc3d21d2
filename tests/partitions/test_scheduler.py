# SPDX-License-Identifier: Apache-2.0
"""Periodic jobs: when they run, that none runs beside itself, and what they note of it."""

import asyncio

from coordinator.groups.outcome import Instant
from coordinator.runtime.periodic_jobs import End, Scheduler
from coordinator.runtime.timers import Timers


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.ms = 0

    def mono_ms(self) -> int:
        return self.ms

    def wall_ms(self) -> int:
        return self.ms

    def now(self) -> Instant:
        return Instant(self.ms, self.ms)

    def nanos(self) -> int:
        return self.ms * 1_000_000


class Timed:
    """A scheduler whose clock a test moves."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.timers = Timers(asyncio.get_running_loop(), self.clock)
        self.scheduler = Scheduler(self.timers, self.clock)

    def pass_ms(self, ms: int) -> None:
        for _ in range(ms):
            self.clock.ms += 1
            self.timers._fire()


async def test_a_job_runs_after_each_interval() -> None:
    timed = Timed()
    ran: list[int] = []
    timed.scheduler.schedule_periodic_call("job", 10, lambda: ran.append(timed.clock.ms))
    timed.pass_ms(35)
    assert ran == [10, 20, 30]
    assert timed.scheduler.jobs["job"].runs == 3
    timed.scheduler.close()
    timed.pass_ms(35)
    assert len(ran) == 3


async def test_a_job_that_goes_on_elsewhere_runs_again_an_interval_after_its_end() -> None:
    timed = Timed()
    ends: list[End] = []
    timed.scheduler.schedule_callback_job("job", 10, ends.append)
    job = timed.scheduler.jobs["job"]
    timed.pass_ms(60)
    assert len(ends) == 1, "it still runs"
    assert job.began_ms == 10
    ends[0](False)
    assert (job.runs, job.failures, job.last_ms) == (1, 0, 50)
    timed.pass_ms(10)
    assert len(ends) == 2
    ends[1](True)
    ends[1](True)
    assert (job.runs, job.failures) == (2, 1), "a run ends once"


async def test_a_job_that_raises_has_failed_and_runs_again() -> None:
    timed = Timed()

    def fail() -> None:
        raise RuntimeError("no")

    timed.scheduler.schedule_periodic_call("job", 10, fail)
    timed.pass_ms(25)
    job = timed.scheduler.jobs["job"]
    assert (job.runs, job.failures) == (2, 2)


async def test_an_end_that_comes_after_the_close_starts_nothing() -> None:
    timed = Timed()
    ends: list[End] = []
    timed.scheduler.schedule_callback_job("job", 10, ends.append)
    timed.pass_ms(10)
    timed.scheduler.close()
    ends[0](False)
    timed.pass_ms(50)
    assert len(ends) == 1
