# SPDX-License-Identifier: Apache-2.0
"""A task has an owner, who hears of its failure; the log has its traceback; and there is no other way to start one."""

import ast
import asyncio
import logging
from pathlib import Path
from typing import Final

import pytest

from coordinator.groups.outcome import Instant
from coordinator.runtime.periodic_jobs import Scheduler
from coordinator.runtime.tasks import Tasks
from coordinator.runtime.timers import Timers
from tests.support.idle import idle

ROOT: Final = Path(__file__).parents[2]
STARTERS: Final = ("create_task", "ensure_future", "TaskGroup", "run_coroutine_threadsafe")


async def fail() -> None:
    raise ValueError("broken")


def errors(caplog: pytest.LogCaptureFixture) -> list[tuple[str, object]]:
    """Of each error that was logged the message and the exception."""
    return [
        (record.getMessage(), record.exc_info and record.exc_info[1])
        for record in caplog.records
        if record.levelno >= logging.ERROR
    ]


async def test_a_failure_is_logged_once_and_its_owner_hears_of_it(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[BaseException] = []
    tasks = Tasks(heard.append)
    task = tasks.start(fail(), "the work")
    await asyncio.wait([task])
    await idle()
    error = task.exception()
    assert error is not None
    assert heard == [error]
    assert errors(caplog) == [("the work: failed", error)]
    assert error.__traceback__ is not None
    assert len(tasks) == 0


async def test_one_task_may_have_a_callback_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[BaseException] = []
    own: list[BaseException] = []
    tasks = Tasks(heard.append)
    tasks.start(fail(), "the work", own.append)
    await tasks.wait_until_done()
    await idle()
    assert [repr(error) for error in own] == ["ValueError('broken')"]
    assert heard == []
    assert len(errors(caplog)) == 1


async def test_a_task_is_kept_until_it_ends() -> None:
    tasks = Tasks()
    done = asyncio.Event()
    task = tasks.start(done.wait(), "the work")
    await idle()
    assert len(tasks) == 1
    done.set()
    await tasks.wait_until_done()
    assert task.result() is True
    await idle()
    assert len(tasks) == 0


async def test_close_cancels_and_returns_once_all_have_ended(caplog: pytest.LogCaptureFixture) -> None:
    """Also those that a cancelled task starts; and cancellation is no failure."""
    heard: list[BaseException] = []
    tasks = Tasks(heard.append)
    ended: list[str] = []

    async def last() -> None:
        await asyncio.sleep(0)
        ended.append("last")

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("work")
            tasks.start(last(), "last")

    tasks.start(work(), "work")
    await idle()
    await tasks.close()
    assert ended == ["work", "last"]
    assert heard == []
    assert errors(caplog) == []


class Clock:
    """Time that a test moves."""

    ms = 0

    def mono_ms(self) -> int:
        return self.ms

    def wall_ms(self) -> int:
        return 1_000_000 + self.ms

    def now(self) -> Instant:
        return Instant(self.mono_ms(), self.wall_ms())

    def nanos(self) -> int:
        return self.ms * 1_000_000


async def test_a_periodic_job_that_raises_leaves_one_error_line_and_runs_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    timers = Timers(asyncio.get_running_loop(), clock)
    scheduler = Scheduler(timers, clock)
    scheduler.schedule_periodic_task("expire_offsets", 10, fail)
    job = scheduler.jobs["expire_offsets"]
    for runs in (1, 2):
        clock.ms += 10
        timers._fire()
        await idle()
        assert (job.runs, job.failures) == (runs, runs)
        assert [message for message, _ in errors(caplog)] == ["expire_offsets: failed"] * runs
    assert job.failing_since_ms == 1_000_010
    scheduler.close()
    timers.close()


async def test_a_job_that_runs_when_the_scheduler_closes_is_cancelled() -> None:
    clock = Clock()
    timers = Timers(asyncio.get_running_loop(), clock)
    scheduler = Scheduler(timers, clock)
    is_cancelled = False

    async def work() -> None:
        nonlocal is_cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            is_cancelled = True
            raise

    scheduler.schedule_periodic_task("work", 10, work)
    clock.ms = 10
    timers._fire()
    await idle()
    scheduler.close()
    await idle()
    assert is_cancelled
    timers.close()


def test_nothing_else_starts_a_task() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.attr}"
        for package in ("audit", "coordinator", "protocol", "storage")
        for path in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in STARTERS
    ]
    assert [place.split(":")[0] for place in found] == ["coordinator/runtime/tasks.py"], found
