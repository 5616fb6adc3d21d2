# SPDX-License-Identifier: Apache-2.0
"""Clients of a topic with many partitions: what they ask is handled in slices, or in rows, and others come between.

A commit is taken whole or not at all, however long it is.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.simulation.client import Client, commit_message
from tests.simulation.committers import Committer
from tests.simulation.history import NOTHING, Broken, Key
from tests.simulation.network import ClientEnd, Lost
from tests.simulation.settings import WIDE_PARTITIONS, WIDE_TOPIC

if TYPE_CHECKING:
    from tests.simulation.world import World

IN_ROWS = 60
"""So many partitions are committed, or read, in one piece."""
LOOKED_FOR = 5
"""So many of the offsets of a long commit are looked for on the disk."""
GIVES_UP_SHARE = 0.2
"""How many of the long requests are left before their answer."""
GIVES_UP_S = 0.01
LOOKED_AT_SHARE = 0.4
ENDED_SHARE = 0.1
"""How many of the long commits are looked at while the node works on them, and during how many it ends."""
TURNS_MAX = 40
"""A node that works slowly works on a long commit for fewer turns of its loop than this."""
LOOKS_S = 5.0


class WideCommitter(Committer):
    """Commits, reads and deletes many offsets of one group at once."""

    pause_s = 6.0

    def __init__(self, world: "World", name: str, group: str) -> None:
        super().__init__(world, name, group)
        self._keys = [(group, WIDE_TOPIC, partition) for partition in range(WIDE_PARTITIONS)]
        self._looker = Client(world, f"{name}-looker", group)

    async def _one(self) -> None:
        choice = self.rng.random()
        if choice < 0.25:
            await self._commit_all()
        elif choice < 0.5:
            await self._heard(await self.commit(self._piece()))
        elif choice < 0.85:
            await self._heard(await self._fetch_piece())
        elif choice < 0.95:
            await self._delete_wide_offsets()
        else:
            await self._delete_wide_group()

    def _piece(self) -> Sequence[Key]:
        start = self.rng.randrange(WIDE_PARTITIONS - IN_ROWS)
        return self._keys[start : start + IN_ROWS]

    async def _commit_all(self) -> None:
        end = await self.connected()
        history = self.world.history
        writes = history.begin_commit(self._keys)
        message = commit_message(self.group, writes, "", -1)
        self._promised[self._correlation + 1] = self.rng.sample(list(writes.values()), LOOKED_FOR)
        looking = await self._looker.connected()
        number = self.send(end, ApiKey.OFFSET_COMMIT, message)
        choice = self.rng.random()
        if choice < LOOKED_AT_SHARE:
            try:
                await self._look_within(end, looking)
            except Lost:
                self.drop()  # its answer is still to come
                raise
        elif choice < LOOKED_AT_SHARE + ENDED_SHARE:
            self._after_some_turns(end, partial(self.world.troubles.crash_leader, self.group))
        else:
            await self._perhaps_give_up()
        history.counts["long commits"] += 1
        answer = await self.answer(end, ApiKey.OFFSET_COMMIT, number)
        errors = {part.error_code for part in answer.topics[0].partitions}
        if len(errors) > 1:
            raise Broken("a commit is taken whole", f"{self.name} got {errors} for one commit")
        await self._heard(self.note(writes, answer, number))

    def _after_some_turns(self, end: ClientEnd, call: Callable[[], None]) -> None:
        """Call this while the node works on what it has read."""
        self.world.after_reading(end, self.rng.randrange(TURNS_MAX), call)

    async def _look_within(self, end: ClientEnd, looking: ClientEnd) -> None:
        """Read all offsets over another connection while a commit is under way."""
        looker = self._looker
        asked: asyncio.Future[tuple[int, float]] = self.world.loop.create_future()

        def ask() -> None:
            if not (asked.done() or looking.closed):
                looking.is_at_once = True
                number = looker.send(looking, ApiKey.OFFSET_FETCH, _fetch_of(self._keys))
                asked.set_result((number, self.world.loop.time()))

        self._after_some_turns(end, ask)
        try:
            async with asyncio.timeout(LOOKS_S):
                number, began = await asked
        except TimeoutError:
            raise Lost("it is not read") from None
        self._read(await looker.answer(looking, ApiKey.OFFSET_FETCH, number), began)
        self.world.history.counts["looks within a commit"] += 1

    async def _perhaps_give_up(self) -> None:
        """Be gone before the answer comes, now and then."""
        if self.rng.random() < GIVES_UP_SHARE:
            await self.pause(GIVES_UP_S)
            self.drop()

    async def _fetch_piece(self) -> ErrorCode:
        began = self.world.loop.time()
        return self._read(await self.ask(ApiKey.OFFSET_FETCH, _fetch_of(self._piece())), began)

    def _read(self, response: Any, began: float) -> ErrorCode:
        """Check what a read shows that was sent at `began`; returns its error."""
        if not response.error_code:
            (answered,) = response.topics
            values = {
                (self.group, WIDE_TOPIC, part.partition_index): part.committed_offset
                for part in answered.partitions
            }
            self.world.history.fetched(values, began)
        return ErrorCode(response.error_code)

    async def _delete_wide_offsets(self) -> None:
        from protocol.kafka_python_messages import OffsetDeleteRequest as Request

        keys = self._keys[: self.rng.randint(1, WIDE_PARTITIONS)]
        writes = {key: self.world.history.begin(key, NOTHING) for key in keys}
        kind = Request.OffsetDeleteRequestTopic
        parts = [kind.OffsetDeleteRequestPartition(version=0, partition_index=key[2]) for key in keys]
        topic = kind(version=0, name=WIDE_TOPIC, partitions=parts)
        end = await self.connected()
        number = self.send(end, ApiKey.OFFSET_DELETE, Request(version=0, group_id=self.group, topics=[topic]))
        await self._perhaps_give_up()
        response = await self.answer(end, ApiKey.OFFSET_DELETE, number)
        if response.error_code == ErrorCode.NONE:
            for part in response.topics[0].partitions:
                key = (self.group, WIDE_TOPIC, part.partition_index)
                if not part.error_code:
                    self.world.history.acknowledged(key, writes[key])

    async def _delete_wide_group(self) -> None:
        from protocol.kafka_python_messages import DeleteGroupsRequest as Request

        writes = {key: self.world.history.begin(key, NOTHING) for key in self._keys}
        end = await self.connected()
        number = self.send(end, ApiKey.DELETE_GROUPS, Request(version=2, groups_names=[self.group]))
        await self._perhaps_give_up()
        response = await self.answer(end, ApiKey.DELETE_GROUPS, number)
        if response.results[0].error_code == ErrorCode.NONE:
            for key, write in writes.items():
                self.world.history.acknowledged(key, write)


def _fetch_of(keys: Sequence[Key]) -> hot.OffsetFetchRequest:
    """A read of these, which are of one group and the topic of many partitions."""
    indexes = [partition for _, _, partition in keys]
    topic = hot.OffsetFetchRequestTopic(name=WIDE_TOPIC, partition_indexes=indexes)
    return hot.OffsetFetchRequest(group_id=GroupId(keys[0][0]), topics=[topic])
