# SPDX-License-Identifier: Apache-2.0
"""Starts the processes of a gateway, sends them the view, and replaces those that have died.

The processes hold nothing that could be lost: clients of one that has died connect again. With `gateway.spare`
one more process stands by, which has imported all that a gateway needs, so that clients wait for no start of Python.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeAlias

from coordinator.config import Settings
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from coordinator.topology.gateway_view import GatewayView
from coordinator.workers import messages
from coordinator.workers.liveness import PINGS_PER_TIMEOUT, Liveness
from coordinator.workers.process_launcher import Launcher
from coordinator.workers.process_settings import gateway_settings
from coordinator.workers.question_relay import Reply
from coordinator.workers.restarts import Restarts
from coordinator.workers.worker_process import WorkerProcess, wait_until_all_ended

log = get_logger("supervisor")

STOP_WITHIN_S: Final = 10.0
SPARE: Final = -1
"""The number of the spare process, until it takes the number of a process that has died."""

_Process: TypeAlias = WorkerProcess[messages.FromGateway]


class GatewayStartFailed(Exception):
    """A gateway's process could not start; the text says why."""


class ClusterUnusable(Exception):
    """The cluster cannot be used until a setting, or the cluster, is changed; one line says why."""


class GatewayProcessPool:
    """The `gateway.workers` processes: `send_view` them a view, `start` them, and `stop` them."""

    def __init__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        tasks: Tasks,
        launch: Launcher,
        *,
        on_broker_seen: Callable[[], None],
        on_changed: Callable[[], None],
        on_question: Callable[[messages.AskNodes, Reply], None],
    ) -> None:
        """`tasks` are the supervisor's, which cancels them at its stop.

        `on_broker_seen` is called when the cluster has named to a client a broker that is not in the view, and
        `on_changed` when `serving_count` has changed. `on_question` gets a process's question to all nodes.
        """
        self._settings = settings
        self._loop = loop
        self._tasks = tasks
        self._launch = launch
        self._on_broker_seen = on_broker_seen
        self._on_changed = on_changed
        self._on_question = on_question
        self._view = GatewayView()
        self.running: dict[int, _Process] = {}
        """The processes by number, from 0; the spare one has the number SPARE."""
        self._spare_starts = False
        self.restarts = Restarts(loop.time)
        self._starting: dict[int, asyncio.Future[None]] = {}
        self._stopping = False

    async def start(self) -> None:
        """Start all processes and return once they listen. Raises GatewayStartFailed if one cannot, and OSError."""
        self._starting = {
            index: self._loop.create_future() for index in range(self._settings.gateway_workers)
        }
        for index in self._starting:
            await self._start_one(index)
        self._tasks.start(self._ping(), "ping gateways")
        await asyncio.gather(*self._starting.values())

    @property
    def serving_count(self) -> int:
        """The number of processes that accept clients."""
        return sum(process.serves for process in self.running.values()) if not self._stopping else 0

    def send_view(self, view: GatewayView) -> None:
        """Send a view to all processes, if it is a new one."""
        if view != self._view:
            self._view = view
            for process in self.running.values():
                process.send(messages.UpdateGatewayView(view))

    def send_forget_group(self, group_id: str) -> None:
        """Have all processes forget a group that is the cluster's again."""
        for process in self.running.values():
            process.send(messages.ForgetGroup(group_id))

    def stop_accepting(self) -> None:
        """Have all processes accept no more connections."""
        self._stopping = True
        self._on_changed()
        for process in self.running.values():
            process.send(messages.GatewayStopAccepting())

    async def stop(self) -> None:
        """End all processes; responses that are not sent by then are lost."""
        self._stopping = True
        deadline = self._loop.time() + STOP_WITHIN_S
        for index, process in self.running.items():
            if process.serves or index == SPARE:
                process.send(messages.Stop())
            else:
                process.kill("stopping while it starts")
        await wait_until_all_ended(self.running, deadline)
        for process in list(self.running.values()):
            process.kill("it does not stop in time")
            await process.end

    # --- one process

    async def _start_one(self, index: int) -> None:
        spare = self.running.pop(SPARE, None)
        process = self.running[index] = spare or await self._launch_one(index)
        process.set_node_id(index)
        process.send(messages.GatewayStart(gateway_settings(self._settings, index), index, self._view))
        log.debug("started a gateway", gateway=index, pid=process.pid)

    async def _launch_one(self, index: int) -> _Process:
        liveness = Liveness(self._settings.worker_timeout_ms, self._settings.worker_stuck_timeout_ms)
        process: _Process = WorkerProcess(
            index,
            liveness,
            lambda message: self._got(process, message),
            lambda status: self._exited(process, status),
            kind=messages.FromGateway,
            named="gateway",
        )
        await process.start(self._launch, self._tasks)
        return process

    def _stand_by_soon(self) -> None:
        """Start a spare process once all others serve, because those need the processors first."""
        is_wanted = self._settings.gateway_spare and self.serving_count == self._settings.gateway_workers
        if is_wanted and SPARE not in self.running and not self._spare_starts:
            self._spare_starts = True
            self._tasks.start(self._start_again(SPARE), "start a spare gateway")

    async def _stand_by(self) -> None:
        spare = self.running[SPARE] = await self._launch_one(SPARE)
        self._spare_starts = False
        spare.send(messages.GatewayStandBy(self._settings))
        log.debug("started a spare gateway", pid=spare.pid)

    def _got(self, process: _Process, message: messages.FromGateway) -> None:
        index = process.node_id
        match message:
            case messages.GatewayListening():
                process.serves = True
                self._started(index, None)
                self._on_changed()
                self._stand_by_soon()
            case messages.ProcessCannotServe():
                log.error("a gateway cannot serve", gateway=index, reason=message.reason)
                self._started(index, GatewayStartFailed(message.reason))
            case messages.UnknownBrokerSeen():
                self._on_broker_seen()
            case messages.AskNodes():
                self._on_question(message, process.send)

    def _started(self, index: int, error: GatewayStartFailed | None) -> None:
        starting = self._starting.get(index)
        if starting is None or starting.done():
            return
        if error is None:
            starting.set_result(None)
        else:
            starting.set_exception(error)
            starting.exception()  # retrieved, whether it is awaited or not

    def _exited(self, process: _Process, status: int) -> None:
        index = process.node_id
        del self.running[index]
        self._on_changed()
        self._started(
            index, GatewayStartFailed(f"a gateway's process ended with status {status} while it started")
        )
        write = log.info if self._stopping else log.error
        write("a gateway has ended", gateway=_name(index), status=status)
        if self._stopping:
            return
        self.restarts.record_death(index)
        if index == SPARE:
            self._stand_by_soon()
        else:
            self._tasks.start(self._start_again(index), f"start gateway {index} again")

    async def _start_again(self, index: int) -> None:
        while not self._stopping:
            await asyncio.sleep(self.restarts.compute_restart_delay_s(index))
            try:
                await (self._stand_by() if index == SPARE else self._start_one(index))
                return
            except OSError as error:
                log.error("cannot start a gateway", gateway=_name(index), reason=str(error))
                self.restarts.record_death(index)

    async def _ping(self) -> None:
        interval_s = self._settings.worker_timeout_ms / 1000 / PINGS_PER_TIMEOUT
        while True:
            await asyncio.sleep(interval_s)
            for process in list(self.running.values()):
                process.ping_or_kill()


def _name(index: int) -> int | str:
    return "spare" if index == SPARE else index
