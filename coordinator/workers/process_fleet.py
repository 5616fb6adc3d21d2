# SPDX-License-Identifier: Apache-2.0
"""The processes of one kind that a supervisor runs: started, pinged, started again, and stopped by a deadline."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Generic, TypeVar

from coordinator.config import Settings
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from coordinator.workers.liveness import PINGS_PER_TIMEOUT, Liveness
from coordinator.workers.process_launcher import Launcher
from coordinator.workers.restarts import Restarts
from coordinator.workers.worker_process import WorkerProcess

Received = TypeVar("Received")

log = get_logger("supervisor")


class ProcessStartFailed(Exception):
    """A process could not start; the text says which one and why."""


class ProcessFleet(Generic[Received]):
    """Processes by number, which say messages of one type.

    The owner's `start_one` launches the process of a number and sends it its first message; `on_message` and `on_exit`
    get what a process says, and the status with which it has ended.
    """

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        tasks: Tasks,
        launch: Launcher,
        *,
        title: str,
        named: str,
        kind: object,
    ) -> None:
        """`title` is what people call a process, and `named` the field of log lines that has its number.

        `kind` is the type of its messages; `tasks` are the supervisor's, which cancels them at its stop.
        """
        self._timeout_ms: Final = settings.worker_timeout_ms
        self._stuck_timeout_ms: Final = settings.worker_stuck_timeout_ms
        self._loop = loop
        self._tasks = tasks
        self._launch = launch
        self._title = title
        self._named = named
        self._kind = kind
        self.running: dict[int, WorkerProcess[Received]] = {}
        self.restarts = Restarts(loop.time)
        self.is_stopping = False
        self._starting: dict[int, asyncio.Future[None]] = {}
        self.start_one: Callable[[int], Awaitable[None]]
        self.on_message: Callable[[WorkerProcess[Received], Received], None]
        self.on_exit: Callable[[WorkerProcess[Received], int], None]

    async def start_all(self, numbers: Iterable[int]) -> None:
        """Start the processes of these numbers, and begin to ping them. Raises OSError."""
        self._starting = {number: self._loop.create_future() for number in numbers}
        for number in self._starting:
            await self.start_one(number)
        self._tasks.start(self._ping(), f"ping {self._title}s")

    async def wait_until_started(self) -> None:
        """Return once all processes serve. Raises ProcessStartFailed if one cannot."""
        await asyncio.gather(*self._starting.values())

    async def launch(self, number: int) -> WorkerProcess[Received]:
        """Launch a process, which is running on return. Raises OSError."""
        process: WorkerProcess[Received] = WorkerProcess(
            number,
            Liveness(self._timeout_ms, self._stuck_timeout_ms),
            lambda message: self.on_message(process, message),
            lambda status: self._exited(process, status),
            kind=self._kind,
            named=self._named,
        )
        await process.start(self._launch, self._tasks)
        self.running[number] = process
        if self.is_stopping:  # meanwhile: it will not be asked to stop
            process.kill("stopping while it starts")
        return process

    def note_serving(self, process: WorkerProcess[Received]) -> None:
        """Note that a process serves: from now on it must answer pings."""
        process.serves = True
        starting = self._starting.get(process.node_id)
        if starting is not None and not starting.done():
            starting.set_result(None)

    def note_start_failed(self, process: WorkerProcess[Received], reason: str) -> None:
        """Note why a process cannot start, for `wait_until_started`; nothing happens if it serves already."""
        starting = self._starting.get(process.node_id)
        if starting is not None and not starting.done():
            starting.set_exception(ProcessStartFailed(reason))
            starting.exception()  # retrieved, whether it is awaited or not

    async def start_again(self, number: int) -> None:
        """Start a process after the pause that its deaths ask for, unless all are to stop by then.

        Try again if it cannot be launched.
        """
        while True:
            await asyncio.sleep(self.restarts.compute_restart_delay_s(number))
            if self.is_stopping:
                return
            try:
                await self.start_one(number)
                return
            except OSError as error:
                log.bind(**{self._named: number}).error("cannot start a process", reason=str(error))
                self.restarts.record_death(number)

    async def wait_and_kill(self, deadline_s: float) -> None:
        """Return once all processes have ended; those that run at `deadline_s` on the loop's clock are killed."""
        while self._loop.time() < deadline_s:
            running = [process.end for process in self.running.values() if not process.end.done()]
            if not running:
                break
            await asyncio.wait(running, timeout=deadline_s - self._loop.time())
        for process in list(self.running.values()):
            process.kill("it does not stop in time")
            await process.end

    def _exited(self, process: WorkerProcess[Received], status: int) -> None:
        del self.running[process.node_id]
        ended = f"{self._title} {process.node_id} ended with status {status} while it started"
        self.note_start_failed(process, ended)
        self.on_exit(process, status)

    async def _ping(self) -> None:
        interval_s = self._timeout_ms / 1000 / PINGS_PER_TIMEOUT
        while True:
            await asyncio.sleep(interval_s)
            for process in list(self.running.values()):
                process.ping_or_kill()
