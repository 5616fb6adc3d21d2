# SPDX-License-Identifier: Apache-2.0
"""A supervisor with its workers, and with the processes that clients of the cluster come through."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from coordinator.config import Address, Settings
from coordinator.gateway.gateway import Gateway
from coordinator.host_resources import HostResources
from coordinator.workers.gateway_process import GatewayParts, GatewayProcess, make_gateway
from coordinator.workers.supervisor import Supervisor
from storage.recovery.shared_directory import SharedDirectoryFiles
from tests.simulation.node import Body
from tests.simulation.workers import KILLED, LaunchedBody, SupervisedHost

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.gateway.world import GatewayWorld


class GatewayBody(LaunchedBody):
    """One gateway's process."""

    def __init__(self, host: "GatewayHost", number: int, pid: int) -> None:
        super().__init__(host.world, f"gateway-{number}", pid)
        self._host = host
        self.gateway: Gateway | None = None
        """Once the supervisor has said what it is to do."""

    def begin(self, channel: tuple[Body, asyncio.Protocol], pulse: tuple[Body, asyncio.Protocol]) -> None:
        """Start, with a line to each of the supervisor's protocols."""
        launched = self.process.context.run(
            GatewayProcess, self.world.loop, self.machine, self, self._make_gateway
        )
        self.connect(launched, channel, pulse)

    def _make_gateway(
        self,
        settings: Settings,
        loop: asyncio.AbstractEventLoop,
        machine: HostResources,
        discovered: "Callable[[int, Address], None]",
    ) -> GatewayParts:
        parts = make_gateway(settings, loop, machine, discovered)
        self.gateway = parts.gateway
        return parts

    def end(self, status: int = KILLED) -> None:
        if self._host.gateways.get(self.pid) is self:
            del self._host.gateways[self.pid]
        super().end(status)


class GatewayHost(SupervisedHost):
    """What runs on the machine."""

    def __init__(self, world: "GatewayWorld") -> None:
        super().__init__(world)
        self.gateways: dict[int, GatewayBody] = {}
        """The processes that run, by their ids."""

    def bodies(self) -> list[Body]:
        """All processes that are alive, the supervisor's first."""
        return [*super().bodies(), *self.gateways.values()]

    def _new_supervisor(self, body: Body, shared: SharedDirectoryFiles, cluster_id: str) -> Supervisor:
        launch, launch_gateway = partial(self._launch, body), partial(self._launch_gateway, body)
        settings, loop = self.world.settings, self.world.loop
        return Supervisor(settings, loop, body.machine, launch, shared, cluster_id, launch_gateway)

    async def _prepare(self, supervisor: Supervisor, body: Body) -> None:
        """It serves; the topics are the cluster's."""

    async def _launch_gateway(
        self, body: Body, number: int, channel: asyncio.Protocol, pulse: asyncio.Protocol
    ) -> GatewayBody:
        self._launches += 1
        launched = GatewayBody(self, number, self._launches)
        self.gateways[launched.pid] = launched
        launched.begin((body, channel), (body, pulse))
        return launched
