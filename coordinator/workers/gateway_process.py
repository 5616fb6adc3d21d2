# SPDX-License-Identifier: Apache-2.0
"""A gateway under its supervisor: the channel to that, and the Gateway that does what comes over it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from coordinator.config import Address, Settings
from coordinator.gateway.book import OurNode
from coordinator.gateway.gateway import Gateway
from coordinator.machine import Machine
from coordinator.telemetry.logs import get_logger
from coordinator.topology.gateway_view import GatewayView
from coordinator.workers import messages
from coordinator.workers.own_settings import gateway_config
from coordinator.workers.worker import EXIT_FAILED, Surroundings

log = get_logger("gateway")


class MakeGateway(Protocol):
    """Makes the Gateway of a process. Raises OSError and ValueError for settings that it cannot use."""

    def __call__(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        machine: Machine,
        discovered: Callable[[int, Address], None],
    ) -> Gateway: ...


def make_gateway(
    settings: Settings,
    loop: asyncio.AbstractEventLoop,
    machine: Machine,
    discovered: Callable[[int, Address], None],
) -> Gateway:
    """A gateway with all that it does."""
    return Gateway(gateway_config(settings), loop, machine, discovered=discovered)


class GatewayProcess:
    """Connect `channel`, and await `ended`, the exit status; then `close` it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        machine: Machine,
        surroundings: Surroundings,
        make: MakeGateway = make_gateway,
    ) -> None:
        self._loop = loop
        self._machine = machine
        self._surroundings = surroundings
        self._make = make
        self._gateway: Gateway | None = None
        self._task: asyncio.Task[None] | None = None
        self.channel = messages.Channel(messages.ToGateway, self._got, self._orphaned)
        self.ended: asyncio.Future[int] = loop.create_future()

    def _got(self, message: Any) -> None:
        match message:
            case messages.GatewayWelcome():
                self._welcome(message)
            case messages.GatewayViewed():
                self._show(message.view)
            case messages.StopAccepting():
                if self._gateway is not None:
                    self._gateway.stop_accepting()
            case messages.Stop():
                self._task = self._loop.create_task(self._stop())

    def _welcome(self, welcome: messages.GatewayWelcome) -> None:
        settings = welcome.settings
        self._surroundings.configure(settings)
        self._surroundings.watch(settings.worker_timeout_ms, _stalled)
        try:
            self._gateway = self._make(settings, self._loop, self._machine, self._discovered)
            self._show(welcome.view)
            self._gateway.start()
        except (OSError, ValueError) as error:
            self._gateway = None
            self.channel.send(
                messages.CannotServe(str(error.strerror if isinstance(error, OSError) else error))
            )
            self.ended.set_result(EXIT_FAILED)
            return
        self.channel.send(messages.GatewayServes())

    def _show(self, view: GatewayView) -> None:
        if self._gateway is None:
            return
        self._gateway.set_brokers({each.node_id: Address(each.host, each.port) for each in view.brokers})
        self._gateway.set_nodes(
            {
                each.node_id: OurNode(each.node_id, Address(each.host, each.port), Path(each.socket))
                for each in view.nodes
            }
        )

    def _discovered(self, node_id: int, _address: Address) -> None:
        self.channel.send(messages.BrokerSeen(node_id))

    async def _stop(self) -> None:
        if self._gateway is not None:
            await self._gateway.stop()
        self.ended.set_result(0)

    def _orphaned(self, reason: str) -> None:
        if not self.ended.done():
            self._surroundings.orphaned(reason)

    def close(self) -> None:
        """Say what is left to say."""
        self.channel.close()


def _stalled() -> None:
    log.warning("the event loop was held")
