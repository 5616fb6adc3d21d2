# SPDX-License-Identifier: Apache-2.0
"""Clients of a topic with many partitions: what they ask is handled in slices, or in rows, and others come between.

A commit is taken whole or not at all, however long it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.names import GroupId
from tests.simulation.client import commit_message
from tests.simulation.committers import Committer
from tests.simulation.history import NOTHING, Broken, Key
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


class WideCommitter(Committer):
    """Commits, reads and deletes many offsets of one group at once."""

    pause_s = 6.0

    def __init__(self, world: "World", name: str, group: str) -> None:
        super().__init__(world, name, group)
        self._keys = [(group, WIDE_TOPIC, partition) for partition in range(WIDE_PARTITIONS)]

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
        number = self.send(end, ApiKey.OFFSET_COMMIT, message)
        await self._perhaps_give_up()
        history.counts["long commits"] += 1
        answer = await self.answer(end, ApiKey.OFFSET_COMMIT, number)
        errors = {part.error_code for part in answer.topics[0].partitions}
        if len(errors) > 1:
            raise Broken("a commit is taken whole", f"{self.name} got {errors} for one commit")
        await self._heard(self.note(writes, answer, number))

    async def _perhaps_give_up(self) -> None:
        """Be gone before the answer comes, now and then."""
        if self.rng.random() < GIVES_UP_SHARE:
            await self.pause(GIVES_UP_S)
            self.drop()

    async def _fetch_piece(self) -> ErrorCode:
        began = self.world.loop.time()
        keys = self._piece()
        indexes = [partition for _, _, partition in keys]
        topic = hot.OffsetFetchRequestTopic(name=WIDE_TOPIC, partition_indexes=indexes)
        request = hot.OffsetFetchRequest(group_id=GroupId(self.group), topics=[topic])
        response = await self.ask(ApiKey.OFFSET_FETCH, request)
        if response.error_code:
            return ErrorCode(response.error_code)
        (answered,) = response.topics
        values = {
            (self.group, WIDE_TOPIC, part.partition_index): part.committed_offset
            for part in answered.partitions
        }
        self.world.history.fetched(values, began)
        return ErrorCode.NONE

    async def _delete_wide_offsets(self) -> None:
        from protocol.messages import OffsetDeleteRequest as Request

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
        from protocol.messages import DeleteGroupsRequest as Request

        writes = {key: self.world.history.begin(key, NOTHING) for key in self._keys}
        end = await self.connected()
        number = self.send(end, ApiKey.DELETE_GROUPS, Request(version=2, groups_names=[self.group]))
        await self._perhaps_give_up()
        response = await self.answer(end, ApiKey.DELETE_GROUPS, number)
        if response.results[0].error_code == ErrorCode.NONE:
            for key, write in writes.items():
                self.world.history.acknowledged(key, write)
