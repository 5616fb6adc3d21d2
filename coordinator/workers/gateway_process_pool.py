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
from coordinator.workers.process_fleet import ProcessFleet
from coordinator.workers.process_launcher import Launcher
from coordinator.workers.process_settings import gateway_settings
from coordinator.workers.questions.question_relay import Reply
from coordinator.workers.worker_process import WorkerProcess

log = get_logger("supervisor")

STOP_WITHIN_S: Final = 10.0
SPARE: Final = -1
"""The number of the spare process, until it takes the number of a process that has died."""

_Process: TypeAlias = WorkerProcess[messages.FromGateway]


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
        self._on_broker_seen = on_broker_seen
        self._on_changed = on_changed
        self._on_question = on_question
        self._view = GatewayView()
        self._spare_starts = False
        self.fleet: ProcessFleet[messages.FromGateway] = ProcessFleet(
            settings, loop, tasks, launch, title="gateway", named="gateway", kind=messages.FromGateway
        )
        """The processes by number, from 0; the spare one has the number SPARE."""
        self.fleet.start_one = self._start_one
        self.fleet.on_message = self._got
        self.fleet.on_exit = self._exited

    async def start(self) -> None:
        """Start all processes and return once they listen. Raises ProcessStartFailed if one cannot, and OSError."""
        await self.fleet.start_all(range(self._settings.gateway_workers))
        await self.fleet.wait_until_started()

    @property
    def serving_count(self) -> int:
        """The number of processes that accept clients."""
        fleet = self.fleet
        return 0 if fleet.is_stopping else sum(process.serves for process in fleet.running.values())

    def send_view(self, view: GatewayView) -> None:
        """Send a view to all processes, if it is a new one."""
        if view != self._view:
            self._view = view
            for process in self.fleet.running.values():
                process.send(messages.UpdateGatewayView(view))

    def send_forget_group(self, group_id: str) -> None:
        """Have all processes forget a group that is the cluster's again."""
        for process in self.fleet.running.values():
            process.send(messages.ForgetGroup(group_id))

    def stop_accepting(self) -> None:
        """Have all processes accept no more connections."""
        self.fleet.is_stopping = True
        self._on_changed()
        for process in self.fleet.running.values():
            process.send(messages.GatewayStopAccepting())

    async def stop(self) -> None:
        """End all processes; responses that are not sent by then are lost."""
        self.fleet.is_stopping = True
        for index, process in self.fleet.running.items():
            if process.serves or index == SPARE:
                process.send(messages.Stop())
            else:
                process.kill("stopping while it starts")
        await self.fleet.wait_and_kill(self._loop.time() + STOP_WITHIN_S)

    # --- one process

    async def _start_one(self, index: int) -> None:
        running = self.fleet.running
        if index == SPARE:
            spare = await self.fleet.launch(SPARE)
            self._spare_starts = False
            spare.send(messages.GatewayStandBy(self._settings))
            log.debug("started a spare gateway", pid=spare.pid)
            return
        process = running[index] = running.pop(SPARE) if SPARE in running else await self.fleet.launch(index)
        process.set_node_id(index)
        process.send(messages.GatewayStart(gateway_settings(self._settings, index), index, self._view))
        log.debug("started a gateway", gateway=index, pid=process.pid)

    def _stand_by_soon(self) -> None:
        """Start a spare process once all others serve, because those need the processors first."""
        is_wanted = self._settings.gateway_spare and self.serving_count == self._settings.gateway_workers
        if is_wanted and SPARE not in self.fleet.running and not self._spare_starts:
            self._spare_starts = True
            self._tasks.start(self.fleet.start_again(SPARE), "start a spare gateway")

    def _got(self, process: _Process, message: messages.FromGateway) -> None:
        index = process.node_id
        match message:
            case messages.GatewayListening():
                self.fleet.note_serving(process)
                self._on_changed()
                self._stand_by_soon()
            case messages.ProcessCannotServe():
                log.error("a gateway cannot serve", gateway=index, reason=message.reason)
                self.fleet.note_start_failed(process, message.reason)
            case messages.UnknownBrokerSeen():
                self._on_broker_seen()
            case messages.AskNodes():
                self._on_question(message, process.send)

    def _exited(self, process: _Process, status: int) -> None:
        index = process.node_id
        self._on_changed()
        write = log.info if self.fleet.is_stopping else log.error
        write("a gateway has ended", gateway="spare" if index == SPARE else index, status=status)
        if self.fleet.is_stopping:
            return
        self.fleet.restarts.record_death(index)
        if index == SPARE:
            self._stand_by_soon()
        else:
            self._tasks.start(self.fleet.start_again(index), f"start gateway {index} again")
