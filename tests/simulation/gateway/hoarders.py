# SPDX-License-Identifier: Apache-2.0
"""Clients that make a gateway keep much: long requests that never come to their end, and answers that are not read."""

import asyncio
import random
from typing import TYPE_CHECKING, Any, Final

from protocol.apis import ApiKey
from tests.simulation.gateway.settings import OWN, PORT_BASE, WORK_TOPIC
from tests.simulation.gateway.talk import Talk
from tests.simulation.network import Lost

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

HOARDS_S: Final = 12.0
METADATA_BYTES: Final = 30_000
LARGE_BYTES: Final = 190_000


class Hoarder:
    """Comes, hoards and goes, again and again."""

    def __init__(self, world: "GatewayWorld", name: str, user: str) -> None:
        self.world = world
        self.name = name
        self.user = user
        self.rng = random.Random(f"{world.seed}/{name}")

    async def run(self) -> None:
        """For ever."""
        while True:
            await asyncio.sleep(self.rng.expovariate(1 / HOARDS_S))
            try:
                if self.rng.random() < 0.5:
                    await self._half()
                else:
                    await self._unread()
            except Lost:
                continue

    async def _half(self) -> None:
        """Send most of a commit whose end does not come."""
        port = self.rng.choice(self.world.nodes).port
        talk = await Talk(self.world, self.name, self.user, port).log_in()
        parts: list[dict[str, Any]] = [
            {"partition_index": 0, "committed_offset": 1, "committed_metadata": "x" * METADATA_BYTES}
            for _ in range(self.rng.randint(2, 20))
        ]
        topics = [{"name": WORK_TOPIC, "partitions": parts}]
        talk.half(
            ApiKey.OFFSET_COMMIT,
            5,
            group_id=OWN,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=topics,
        )
        await asyncio.sleep(self.rng.random() * HOARDS_S)
        talk.drop()

    async def _unread(self) -> None:
        """Ask for much and read nothing of it."""
        talk = await Talk(self.world, self.name, self.user, PORT_BASE + self.rng.randint(1, 3)).log_in()
        talk.end.stall()
        part = {"partition": 0, "fetch_offset": 1, "partition_max_bytes": LARGE_BYTES}
        topics = [{"topic": WORK_TOPIC, "partitions": [part]}]
        for _ in range(self.rng.randint(2, 8)):
            talk.ask(
                ApiKey.FETCH,
                11,
                max_wait_ms=1,
                min_bytes=1,
                max_bytes=1 << 20,
                topics=topics,
                forgotten_topics_data=[],
            )
        await asyncio.sleep(self.rng.random() * HOARDS_S)
        talk.drop()
