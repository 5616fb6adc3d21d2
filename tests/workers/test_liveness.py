# SPDX-License-Identifier: Apache-2.0
"""Which workers are killed: the dead and the stuck, and never one that works, however long it holds its loop."""

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from coordinator.runtime.tasks import Tasks
from coordinator.workers.liveness import (
    PINGS_PER_TIMEOUT,
    SILENCE_UNEXPLAINED,
    Liveness,
    LivenessVerdict,
    OsProcessSnapshot,
)
from coordinator.workers.loop_heartbeat import LoopHeartbeat
from coordinator.workers.messages import FromWorker
from coordinator.workers.process_launcher import ANSWER, PING
from coordinator.workers.subprocesses import SubprocessLauncher
from coordinator.workers.worker_process import WorkerProcess
from tests.partitions.running import eventually
from tests.workers import held_worker

TIMEOUT_MS = 100
STUCK_MS = 1_000
INTERVAL_NS = TIMEOUT_MS * 1_000_000 // PINGS_PER_TIMEOUT
PINGS_UNTIL_STUCK = STUCK_MS * PINGS_PER_TIMEOUT // TIMEOUT_MS
IDLE = OsProcessSnapshot("S", 7)


def liveness() -> Liveness:
    return Liveness(TIMEOUT_MS, STUCK_MS)


def verdicts_without_an_answer(pings: int, *facts: OsProcessSnapshot | None) -> list[LivenessVerdict]:
    """What each ping finds when nothing is answered; the last facts stay."""
    worker = liveness()
    worker.record_answer(1, 0)
    return [worker.count_ping_and_judge(facts[min(number, len(facts) - 1)]) for number in range(pings)]


@pytest.mark.parametrize("state", ["S", "D", "T", "t"])
def test_what_neither_answers_nor_computes_is_dead_after_the_timeout(state: str) -> None:
    found = verdicts_without_an_answer(PINGS_PER_TIMEOUT + 1, OsProcessSnapshot(state, 7))
    assert found == [LivenessVerdict.FINE] * PINGS_PER_TIMEOUT + [LivenessVerdict.DEAD]


def test_what_computes_in_silence_is_slow_until_it_stops_computing() -> None:
    computing = [OsProcessSnapshot("S", ticks) for ticks in range(100)]
    found = verdicts_without_an_answer(100 + PINGS_PER_TIMEOUT, *computing)
    assert found.index(LivenessVerdict.SLOW) == PINGS_PER_TIMEOUT
    assert LivenessVerdict.DEAD not in found[:-1]
    assert found[-1] is LivenessVerdict.DEAD


def test_what_waits_for_a_processor_is_not_dead() -> None:
    """A machine with too much to do may give a process nothing for a while."""
    assert LivenessVerdict.DEAD not in verdicts_without_an_answer(1_000, OsProcessSnapshot("R", 7))


def test_where_the_system_does_not_tell_silence_has_to_last_longer() -> None:
    last = PINGS_PER_TIMEOUT * SILENCE_UNEXPLAINED
    found = verdicts_without_an_answer(last + 1, None)
    assert found.index(LivenessVerdict.DEAD) == last


def test_a_busy_loop_is_told_once_and_once_more_when_it_turns() -> None:
    worker = liveness()
    found = []
    for number in range(10 * PINGS_UNTIL_STUCK):
        worker.record_answer(1, number * INTERVAL_NS // 10)  # a tenth of a processor is work enough
        found.append(worker.count_ping_and_judge(IDLE))
    assert found.index(LivenessVerdict.SLOW) == PINGS_PER_TIMEOUT
    assert set(found) == {LivenessVerdict.FINE, LivenessVerdict.SLOW}
    assert found.count(LivenessVerdict.SLOW) == 1
    assert worker.slow_ms == 10 * STUCK_MS
    worker.record_answer(2, 0)
    assert [worker.count_ping_and_judge(IDLE), worker.count_ping_and_judge(IDLE)] == [
        LivenessVerdict.RECOVERED,
        LivenessVerdict.FINE,
    ]


def test_a_loop_that_waits_for_ever_is_stuck_after_the_longer_timeout() -> None:
    worker = liveness()
    found = []
    for _ in range(PINGS_UNTIL_STUCK + 1):
        worker.record_answer(1, 5)
        found.append(worker.count_ping_and_judge(IDLE))
    assert found.index(LivenessVerdict.STUCK) == PINGS_UNTIL_STUCK


def test_a_loop_that_turns_now_and_then_is_not_stuck() -> None:
    worker = liveness()
    for number in range(5 * PINGS_UNTIL_STUCK):
        worker.record_answer(number // PINGS_UNTIL_STUCK, 0)
        assert worker.count_ping_and_judge(IDLE) is not LivenessVerdict.STUCK


async def test_a_stall_is_counted_when_the_loop_comes_round() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stalled = asyncio.Event()
        pulse = LoopHeartbeat(asyncio.get_running_loop(), theirs)
        pulse.set_stall_ended_callback(TIMEOUT_MS, stalled.set)
        pulse.start()
        threading.Event().wait(2 * TIMEOUT_MS / 1000)  # holds the loop
        assert not stalled.is_set()
        await asyncio.wait_for(asyncio.to_thread(answer_of, ours), 120)
        await asyncio.wait_for(stalled.wait(), 120)


def answer_of(sock: socket.socket) -> tuple[int, int]:
    """What a worker's thread answers to a ping."""
    sock.sendall(PING)
    turns, loop_cpu_ns = ANSWER.unpack(sock.recv(ANSWER.size, socket.MSG_WAITALL))
    assert turns > 0
    assert loop_cpu_ns > 0
    return turns, loop_cpu_ns


@asynccontextmanager
async def held(how: int) -> AsyncIterator[tuple[WorkerProcess[FromWorker], asyncio.Future[int]]]:
    """A held worker that must answer, and its exit status to come."""
    ended = asyncio.get_running_loop().create_future()
    worker: WorkerProcess[FromWorker] = WorkerProcess(
        how, liveness(), lambda _message: None, ended.set_result
    )
    reader, writer = os.pipe()
    try:
        launch = SubprocessLauncher(
            lambda: (reader,), held_worker.__name__, {"GIVEN": "value", "PATH": "lost"}
        )
        await worker.start(launch, Tasks())
        await first_answer(worker)
        worker.serves = True
        yield worker, ended
    finally:
        os.close(reader)
        os.close(writer)
        worker.kill("the test is over")
        await worker.end


async def first_answer(worker: WorkerProcess[FromWorker]) -> None:
    """Return once the process has been started, and answers."""

    def answers() -> bool:
        worker.ping_or_kill()
        return bool(worker.has_ever_answered_ping)

    await eventually(answers, "an answer of the process")


async def ping(worker: WorkerProcess[FromWorker], ended: asyncio.Future[int], times: int) -> None:
    """As the supervisor does, but no more often than `times`; ends when the worker does."""
    for _ in range(times):
        worker.ping_or_kill()
        await asyncio.wait([ended], timeout=TIMEOUT_MS / 1000 / PINGS_PER_TIMEOUT)
        if ended.done():
            return


@pytest.mark.process
@pytest.mark.parametrize(
    "how",
    [
        held_worker.BUSY,
        pytest.param(
            held_worker.BUSY_IN_ONE_CALL,
            marks=pytest.mark.skipif(
                sys.platform != "linux", reason="only /proc tells what a silent process does"
            ),
        ),
    ],
)
async def test_a_worker_whose_loop_works_for_many_timeouts_is_not_killed(how: int) -> None:
    async with held(how) as (worker, ended):
        with capture_logs() as logs:
            await ping(worker, ended, 2 * PINGS_UNTIL_STUCK)
        assert not ended.done(), logs
        slow = [entry for entry in logs if entry["event"] == "a worker is slow"]
        assert len(slow) == 1


@pytest.mark.process
async def test_a_worker_whose_loop_waits_for_ever_is_killed() -> None:
    async with held(held_worker.DEADLOCK) as (worker, ended):
        with capture_logs() as logs:
            await ping(worker, ended, 20 * PINGS_UNTIL_STUCK)
        assert ended.done()
        assert ended.result() == -signal.SIGKILL
        (killed,) = {entry["reason"] for entry in logs if entry["event"] == "killing a worker"}
        assert killed == LivenessVerdict.STUCK.value


@pytest.mark.process
async def test_a_stopped_worker_is_killed_and_one_that_goes_on_in_time_is_not() -> None:
    async with held(held_worker.IDLE) as (worker, ended):
        await ping(worker, ended, 2 * PINGS_PER_TIMEOUT)
        os.kill(worker.pid, signal.SIGSTOP)
        await ping(worker, ended, PINGS_PER_TIMEOUT - 2)
        os.kill(worker.pid, signal.SIGCONT)
        await ping(worker, ended, 2 * PINGS_PER_TIMEOUT)
        assert not ended.done()
        os.kill(worker.pid, signal.SIGSTOP)
        pings = PINGS_PER_TIMEOUT * (SILENCE_UNEXPLAINED if sys.platform != "linux" else 1)
        await ping(worker, ended, pings + 20)
        assert ended.done()


@pytest.mark.process
async def test_a_process_is_given_variables_that_its_supervisor_does_not_have() -> None:
    async with held(held_worker.IDLE) as (worker, _ended):
        given = environment_of(worker.pid)
    assert b"GIVEN=value" in given
    assert f"PATH={os.environ['PATH']}".encode() in given


def environment_of(pid: int) -> list[bytes]:
    """The variables that a process was started with."""
    return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
