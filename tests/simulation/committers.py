# SPDX-License-Identifier: Apache-2.0
"""Clients without a group membership: they commit, read and delete, and create and delete topics."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.simulation.client import Client, all_keys
from tests.simulation.history import NOTHING, Broken, Key, Write
from tests.simulation.network import Lost
from tests.simulation.settings import PARTITIONS, SIDE_TOPIC, TOPIC

if TYPE_CHECKING:
    from tests.simulation.world import World

UNREAD_S = 3.0
UNHEARD_SHARE = 0.3
"""How many deletions of the topic that comes and goes do not reach the node that has the offsets in it."""
MOVE_SHARE = 0.2
MOVES_FIRST_S = 0.2
"""How many of them come while a partition with such offsets loads, and how much later than that has begun."""
SIDE_GROUPS = ("aside", "group-0", "group-1", "group-2")
CRASH_SHARE = 0.3
CRASHES_WITHIN_S = 0.02
"""How many of them are interrupted, somewhere, by the end of the node or of the supervisor."""


class Committer(Client):
    """Commits and reads the offsets of a group without members."""

    deletes = False
    """Whether it also takes some away."""
    pause_s = 0.5
    topics: tuple[str, ...] = (TOPIC,)

    async def run(self) -> None:
        while True:
            await self.pause(self.pause_s)
            try:
                await self._one()
            except Lost:
                await self.pause(0.3)

    async def _one(self) -> None:
        choice = self.rng.random()
        if choice < 0.4:
            await self._heard(await self.commit(self._some()))
        elif choice < 0.48:
            await self._commit_ahead(unread_s=0.0)
        elif choice < 0.5:
            await self._commit_ahead(unread_s=UNREAD_S)
        elif choice < 0.9 or not self.deletes:
            await self._heard(await self.fetch(self.topics))
        elif choice < 0.97:
            await self._delete_offset(self.rng.choice(all_keys(self.group)))
        else:
            await self._delete_group()

    async def _heard(self, error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            await self.wait(error)

    def _some(self) -> list[Key]:
        keys = [key for topic in self.topics for key in all_keys(self.group, topic)]
        return self.rng.sample(keys, self.rng.randint(1, 3))

    async def _commit_ahead(self, unread_s: float) -> None:
        """Send several commits before the first is answered, and perhaps read nothing for a while."""
        end = await self.connected()
        if unread_s:
            end.stall()
        commits = [self.send_commit(end, self._some()) for _ in range(self.rng.randint(2, 8))]
        if unread_s:
            await self.pause(unread_s)
            end.go_on()
        for number, writes in commits:
            self.note(writes, await self.answer(end, ApiKey.OFFSET_COMMIT, number), number)

    async def _delete_offset(self, key: Key) -> None:
        from protocol.kafka_python_messages import OffsetDeleteRequest as Request

        write = self.world.history.begin(key, NOTHING)
        topic = Request.OffsetDeleteRequestTopic
        partition = topic.OffsetDeleteRequestPartition(version=0, partition_index=key[2])
        wanted = topic(version=0, name=key[1], partitions=[partition])
        response = await self.ask(
            ApiKey.OFFSET_DELETE, Request(version=0, group_id=self.group, topics=[wanted])
        )
        if response.error_code == ErrorCode.NONE and not response.topics[0].partitions[0].error_code:
            self.world.history.acknowledged(key, write)

    async def _delete_group(self) -> None:
        from protocol.kafka_python_messages import DeleteGroupsRequest as Request

        keys = [key for topic in (TOPIC, SIDE_TOPIC) for key in all_keys(self.group, topic)]
        writes = [self.world.history.begin(key, NOTHING) for key in keys]
        response = await self.ask(ApiKey.DELETE_GROUPS, Request(version=2, groups_names=[self.group]))
        error = ErrorCode(response.results[0].error_code)
        for key, write in zip(keys, writes, strict=True):
            if error is ErrorCode.NONE:
                self.world.history.acknowledged(key, write)
            elif error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NON_EMPTY_GROUP):
                self.world.history.refused(write)


class Deleter(Committer):
    """Takes away what it and others have committed."""

    deletes = True


class GroupDeleter(Committer):
    """Tries to delete a group that has members now and then."""

    pause_s = 15.0

    async def _one(self) -> None:
        await (self._delete_group() if self.rng.random() < 0.5 else self._delete_side_offset())

    async def _delete_side_offset(self) -> None:
        """Nobody in the group consumes that topic, so this is allowed at any time (KIP-496)."""
        await self._delete_offset(self.rng.choice(all_keys(self.group, SIDE_TOPIC)))


class Sleeper(Committer):
    """Commits so rarely that its offsets expire."""

    pause_s = 25.0


class SideCommitter(Committer):
    """Commits to the topic that comes and goes, and to the one that stays."""

    pause_s = 1.0
    topics = (TOPIC, SIDE_TOPIC)


class Repeater(Client):
    """Sends each commit twice, byte for byte, as a client does that heard no answer; its group is its own."""

    def __init__(self, world: "World", name: str, group: str) -> None:
        super().__init__(world, name, group)
        self._frame: Any = None

    async def run(self) -> None:
        while True:
            await self.pause(2)
            try:
                await self._one()
                error = await self.fetch()
                if error is not ErrorCode.NONE:
                    await self.wait(error)
            except Lost:
                await self.pause(0.3)

    async def _one(self) -> None:
        keys = all_keys(self.group)[: self.rng.randint(1, PARTITIONS)]
        end = await self.connected()
        end.repeats = True
        try:
            number, writes = self.send_commit(end, keys)
        finally:
            end.repeats = False
        self.note(writes, await self.answer(end, ApiKey.OFFSET_COMMIT, number), number)
        again = await self.answer(end, ApiKey.OFFSET_COMMIT, number)
        for answer in again.topics[0].partitions:
            error = ErrorCode(answer.error_code)
            if error is ErrorCode.NONE:
                write = writes[self.group, TOPIC, answer.partition_index]
                write.refused = False
                self.world.history.acknowledged((self.group, TOPIC, answer.partition_index), write)


class TopicKeeper(Client):
    """Creates the topic that comes and goes, and deletes it with all that is committed in it."""

    def __init__(self, world: "World", name: str, group: str) -> None:
        super().__init__(world, name, group)
        self._undecided: Mapping[Key, Write] = {}
        """What a deletion takes away that was never answered."""
        self._is_there: bool | None = None
        """Whether the topic is there, by the last answer; None while that is not known."""

    async def run(self) -> None:
        while True:
            try:
                await self._create()
                await self.pause(25)
                await self._delete()
                await self.pause(5)
            except Lost:
                await self.pause(0.3)

    async def _create(self) -> None:
        from protocol.kafka_python_messages import CreateTopicsRequest as Request

        topic = Request.CreatableTopic(
            version=5,
            name=SIDE_TOPIC,
            num_partitions=PARTITIONS,
            replication_factor=1,
            assignments=[],
            configs=[],
        )
        was_there, self._is_there = self._is_there, None
        response = await self.ask(ApiKey.CREATE_TOPICS, Request(version=5, topics=[topic], timeout_ms=30_000))
        error = ErrorCode(response.topics[0].error_code)
        self._check(error, was_there, ErrorCode.TOPIC_ALREADY_EXISTS)
        if error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            await self.pause(1)
            return
        self._is_there = True
        if error is ErrorCode.NONE:
            await self._had_gone()  # else it could not be made anew
        self._undecided = {}

    def _check(self, error: ErrorCode, was_there: bool | None, if_there: ErrorCode) -> None:
        """An answer says whether the topic was there, and others have said it before."""
        says = {ErrorCode.NONE: if_there is ErrorCode.NONE, if_there: True}
        says.setdefault(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)
        if was_there is not None and says.get(error, was_there) is not was_there:
            raise Broken("what was answered of topics stays", f"{self.name} got {error.name}")

    async def _had_gone(self) -> None:
        """A deletion that was not answered took place: what was committed in the topic goes, wherever it still is."""
        undecided, self._undecided = self._undecided, {}
        if undecided:
            await self._all_know()
            self.world.history.topic_is_gone(undecided)

    async def _all_know(self) -> None:
        """Wait until every partition is served by a node that knows what became of the topic."""
        while not (self.world.is_alone or self.world.know_alike(SIDE_TOPIC)):  # noqa: ASYNC110 - costs nothing
            await asyncio.sleep(0.2)

    async def _delete(self) -> None:
        from protocol.kafka_python_messages import DeleteTopicsRequest as Request

        choice = self.rng.random()
        if choice < UNHEARD_SHARE:
            self.world.troubles.stop_leader("aside")
        elif choice < UNHEARD_SHARE + CRASH_SHARE:
            self.world.troubles.crash_within(CRASHES_WITHIN_S)
        elif choice < UNHEARD_SHARE + CRASH_SHARE + MOVE_SHARE:
            self.world.troubles.move_slowly(self.rng.choice(SIDE_GROUPS))
            await self.pause(MOVES_FIRST_S)
        before, self._undecided = self._undecided, self.world.history.begin_topic_deletion()
        writes = self._undecided
        was_there, self._is_there = self._is_there, None
        response = await self.ask(
            ApiKey.DELETE_TOPICS, Request(version=5, topic_names=[SIDE_TOPIC], timeout_ms=30_000)
        )
        error = ErrorCode(response.responses[0].error_code)
        self._check(error, was_there, ErrorCode.NONE)
        if error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            self._is_there = False
        if error is ErrorCode.NONE:
            await self._all_know()
            self.world.history.topic_is_gone(writes)
            self._undecided = {}
        elif error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            for write in writes.values():
                self.world.history.refused(write)
            self._undecided = before
            await self._had_gone()
        elif error is ErrorCode.INVALID_REQUEST:
            raise Broken("errors are those that the state allows", f"{self.name} got {error.name}")
