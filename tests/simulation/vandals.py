# SPDX-License-Identifier: Apache-2.0
"""Clients that keep to no rule: halves of frames, frames many times, rubbish, and readers that do not read."""

import contextlib

from protocol.apis import ApiKey
from tests.net import requests
from tests.simulation.client import ANSWER_S, VERSIONS, Client, all_keys, commit_message
from tests.simulation.network import Lost


class Vandal(Client):
    """Does harm only to itself."""

    async def run(self) -> None:
        while True:
            await self.pause(4)
            with contextlib.suppress(Lost):
                await self._one()
            self.drop()

    def _commit(self) -> bytes:
        """A commit that will not take place."""
        writes = self.world.history.begin_commit(all_keys(self.group)[:2])
        for write in writes.values():
            self.world.history.refused(write)
        message = commit_message(self.group, writes, "", -1)
        return requests.request(ApiKey.OFFSET_COMMIT, VERSIONS[ApiKey.OFFSET_COMMIT], message)

    async def _one(self) -> None:
        end = self._end = self.world.network.connect(self.world.any_port(self.rng))
        frame = requests.heartbeat("vandals", "nobody", 1)
        choice = self.rng.random()
        if choice < 0.3:
            half_of = self._commit() if choice < 0.15 else frame
            end.send(half_of[: self.rng.randrange(1, len(half_of))])
            await self.pause(1)
        elif choice < 0.6:
            end.send(frame * self.rng.randint(2, 40))
            await end.receive(ANSWER_S)
        elif choice < 0.8:
            end.send(self.rng.randbytes(self.rng.randint(1, 200)))
            await self.pause(1)
        else:
            end.stall()
            end.send(requests.fetch_offsets(self.group) * 200)
            await self.pause(5)
