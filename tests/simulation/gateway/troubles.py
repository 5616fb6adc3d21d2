# SPDX-License-Identifier: Apache-2.0
"""What goes wrong around a gateway: its processes as anywhere, and the cluster behind it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.gateway.settings import SIDE_PARTITIONS
from tests.simulation.node import SimulatedNode
from tests.simulation.settings import SIDE_TOPIC
from tests.simulation.troubles import Troubles

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

DEAD_S: Final = (0.5, 4.0, 15.0)
MISCHIEF_S: Final = 15.0


class GatewayTroubles(Troubles):
    """Also those of the cluster."""

    every_s = 8.0

    def __init__(self, world: "GatewayWorld") -> None:
        super().__init__(world)
        self._gateway_world = world

    def _kinds(self) -> list[Callable[[SimulatedNode], Awaitable[None]]]:
        of_cluster = [
            self._mischief,
            self._mischief,
            self._mischief,
            self._broker_dies,
            self._coordinators_move,
            self._topic_anew,
            self._topic_anew,
            self._gateway_dies,
        ]
        return [*of_cluster, self._crash, self._crash_in_an_operation, self._fail_an_operation, self._pause]

    async def _mischief(self, _: SimulatedNode) -> None:
        world = self._gateway_world
        world.note("brokers misbehave")
        world.mischief.begin()
        world.later(MISCHIEF_S, world.mischief.end)

    async def _broker_dies(self, _: SimulatedNode) -> None:
        world = self._gateway_world
        broker, seconds = self._rng.choice(world.brokers), self._rng.choice(DEAD_S)
        world.note(f"broker {broker.number} is dead for {seconds} s")
        broker.die()
        await asyncio.sleep(seconds)
        broker.come_back()

    async def _coordinators_move(self, _: SimulatedNode) -> None:
        self._gateway_world.note("leaders and coordinators move")
        self._gateway_world.model.moves += 1

    async def _topic_anew(self, _: SimulatedNode) -> None:
        world = self._gateway_world
        world.note(f"{SIDE_TOPIC} is deleted")
        world.topic_goes(SIDE_TOPIC)
        await asyncio.sleep(self._rng.choice((0.0, 0.1, 5.0)))
        world.note(f"{SIDE_TOPIC} is made anew")
        world.model.create_topic(SIDE_TOPIC, SIDE_PARTITIONS)

    async def _gateway_dies(self, _: SimulatedNode) -> None:
        gateways = self._gateway_world.gateways
        if gateways:
            self._rng.choice(gateways).crashed()
