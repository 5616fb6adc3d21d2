# SPDX-License-Identifier: Apache-2.0
"""Groups that move: served at the cluster for a while, then here, then given back, with clients on both sides."""

import asyncio
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from coordinator.migration.model import GiveBackStatus
from coordinator.migration.protocol import adopt_group, give_back_group
from coordinator.upstream.errors import UpstreamError
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.simulation.gateway.operator import NotNow, OurNodes
from tests.simulation.gateway.permits import Permit
from tests.simulation.gateway.settings import (
    BROKERS,
    GATEWAY_HOST,
    SIDE_PARTITIONS,
    WORK_PARTITIONS,
    WORK_TOPIC,
)
from tests.simulation.gateway.talk import Asked, Talk
from tests.simulation.history import NOTHING, Broken, Key, Write
from tests.simulation.network import Lost
from tests.simulation.settings import SIDE_TOPIC

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

REFUSED: Final = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""Errors that say for certain that a commit did not take place."""
OUT_OF_GROUP: Final = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)
SESSION_MS: Final = 6_000
SETTLES_S: Final = 30.0
"""So long after the last request of a client nothing of it is under way."""
HERE_S: Final = 15.0
LEAVES_SHARE: Final = 0.7
JOINS_SHARE: Final = 0.05
TAKES_OVER_SHARE: Final = 0.3
IDLE_SHARE: Final = 0.02
GIVES_BACK_EARLY_SHARE: Final = 0.5


def commit_fields(group: str, writes: Mapping[Key, Write], member_id: str, generation: int) -> dict[str, Any]:
    """A commit of these."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for (_, topic, index), write in writes.items():
        part = {"partition_index": index, "committed_offset": write.value, "committed_metadata": "m"}
        topics.setdefault(topic, []).append(part)
    return {
        "group_id": group,
        "generation_id_or_member_epoch": generation,
        "member_id": member_id,
        "topics": [{"name": name, "partitions": parts} for name, parts in topics.items()],
    }


class User:
    """What all clients of a group do: commit and read, and note what that says."""

    def __init__(self, world: "GatewayWorld", name: str, user: str, group: str) -> None:
        self.world = world
        self.name = name
        self.user = user
        self.group = group
        self.rng = random.Random(f"{world.seed}/{name}")
        self.talk: Talk | None = None
        self.member_id = ""
        self.generation = -1

    def keys(self) -> list[Key]:
        """What the group commits."""
        side = [(self.group, SIDE_TOPIC, index) for index in range(SIDE_PARTITIONS)]
        return [*side, *((self.group, WORK_TOPIC, index) for index in range(WORK_PARTITIONS))]

    async def commit(self, talk: Talk, member_id: str = "", generation: int = -1) -> ErrorCode:
        """Commit new offsets; returns the error of one that was refused. Raises Lost."""
        keys = self.rng.sample(self.keys(), self.rng.randint(1, 3))
        writes = {key: self.world.history.begin(key, self.world.history.new_value()) for key in keys}
        asked = await talk.call(
            ApiKey.OFFSET_COMMIT,
            self.rng.choice((5, 8)),
            **commit_fields(self.group, writes, member_id, generation),
        )
        return self.note(writes, asked)

    def note(self, writes: Mapping[Key, Write], asked: Asked) -> ErrorCode:
        """Write down what an answer says of a commit."""
        error = ErrorCode.NONE
        for topic in asked.answer.topics:
            for part in topic.partitions:
                key = (self.group, topic.name, part.partition_index)
                code = ErrorCode(part.error_code)
                if code is ErrorCode.NONE:
                    self.world.history.acknowledged(key, writes[key])
                    if topic.name == SIDE_TOPIC and self.world.may_still_go():
                        self.world.history.begin(key, NOTHING)
                    self.taken(key, asked)
                    continue
                error = code
                if code in REFUSED:
                    self.world.history.refused(writes[key])
                if code is ErrorCode.GROUP_AUTHORIZATION_FAILED:
                    self.world.rules.may_not_see(self.user, Permit("READ", "GROUP", self.group), asked.at_s)
        return error

    def taken(self, key: Key, asked: Asked) -> None:
        """A commit was taken."""
        rules = self.world.rules
        rules.may_see(self.user, Permit("READ", "GROUP", self.group), asked.at_s)
        rules.may_see(self.user, Permit("READ", "TOPIC", key[1]), asked.at_s)

    async def join(self, talk: Talk) -> bool:
        """Whether it is a member now. Raises Lost."""
        fields = {
            "group_id": self.group,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": SESSION_MS,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"m"}],
        }
        asked = await talk.call(ApiKey.JOIN_GROUP, 5, member_id="", **fields)
        joined = await talk.call(ApiKey.JOIN_GROUP, 5, member_id=asked.answer.member_id, **fields)
        if joined.answer.error_code:
            return False
        self.served(joined)
        self.member_id, self.generation = joined.answer.member_id, joined.answer.generation_id
        assignments = [{"member_id": self.member_id, "assignment": b"a"}]
        synced = await talk.call(ApiKey.SYNC_GROUP, 3, assignments=assignments, **self.as_member())
        return not synced.answer.error_code

    def as_member(self) -> dict[str, Any]:
        return {"group_id": self.group, "member_id": self.member_id, "generation_id": self.generation}

    def served(self, asked: Asked) -> None:
        """The group was served."""

    async def leave(self, talk: Talk) -> None:
        """Leave the group. Raises Lost."""
        members = [{"member_id": self.member_id}]
        await talk.call(ApiKey.LEAVE_GROUP, 4, group_id=self.group, members=members)

    async def read(self, talk: Talk) -> ErrorCode:
        """Read all offsets, and check them. Raises Lost."""
        began = self.world.loop.time()
        topics = [
            {"name": name, "partition_indexes": list(range(count))}
            for name, count in ((WORK_TOPIC, WORK_PARTITIONS), (SIDE_TOPIC, SIDE_PARTITIONS))
        ]
        asked = await talk.call(ApiKey.OFFSET_FETCH, 7, group_id=self.group, topics=topics)
        if asked.answer.error_code:
            return ErrorCode(asked.answer.error_code)
        self.world.rules.may_see(self.user, Permit("DESCRIBE", "GROUP", self.group), began)
        values = {
            (self.group, topic.name, part.partition_index): part.committed_offset
            for topic in asked.answer.topics
            for part in topic.partitions
            if not part.error_code
        }
        self.world.history.fetched(values, began)
        return ErrorCode.NONE


class Committer(User):
    """Uses the group through the gateway, wherever it is."""

    async def run(self) -> None:
        """Do so for ever, but while its group's life wants nobody here."""
        while True:
            await asyncio.sleep(self.rng.expovariate(2))
            if self.world.is_quiet(self.group):
                continue
            self.world.begin_use(self.group)
            try:
                await self._one()
            except Lost:
                self.talk = None
                await asyncio.sleep(0.3)
            finally:
                self.world.end_use(self.group)

    async def _one(self) -> None:
        if self.talk is None or not self.talk.is_open:
            self.talk = await self._find()
        choice = self.rng.random()
        if choice < JOINS_SHARE:
            await self._be_member(self.talk)
            return
        error = await (self.commit if choice < 0.5 else self.read)(self.talk)
        if error is ErrorCode.NOT_COORDINATOR:
            self.talk.drop()
            self.talk = None

    async def _be_member(self, talk: Talk) -> None:
        """Join the group, if that can be, commit and leave. Raises Lost."""
        if await self.join(talk):
            for _ in range(self.rng.randint(1, 3)):
                await self.commit(talk, self.member_id, self.generation)
            await self.leave(talk)

    async def _find(self) -> Talk:
        """A connection to the group's coordinator. Raises Lost."""
        talk = await Talk(self.world, self.name, self.user, self.rng.choice(self.world.ports())).log_in()
        asked = await talk.call(
            ApiKey.FIND_COORDINATOR, 3, key=self.group, key_type=0, coordinator_keys=[self.group]
        )
        talk.drop()
        if asked.answer.error_code:
            raise Lost("nobody coordinates the group")
        if asked.answer.host != GATEWAY_HOST:
            raise Broken("no broker address reaches a client", f"{self.group} is at {asked.answer.host}")
        return await Talk(self.world, self.name, self.user, asked.answer.port).log_in()

    def taken(self, key: Key, asked: Asked) -> None:
        super().taken(key, asked)
        self.world.committed_at[self.group] = self.world.loop.time()
        self.served(asked)

    def served(self, asked: Asked) -> None:
        self.world.rules.may_see(self.user, Permit("READ", "GROUP", self.group), asked.at_s)
        group = self.world.model.groups.get(self.group)
        if group is not None and group.member is not None and group.member.since_s < asked.at_s:
            raise Broken("a group is served in one place", f"{self.group} has a member at the cluster")


class Idler(Committer):
    """Reads often, and commits so rarely that what is deleted is not committed anew soon."""

    async def _one(self) -> None:
        if self.talk is None or not self.talk.is_open:
            self.talk = await self._find()
        await (self.commit if self.rng.random() < IDLE_SHARE else self.read)(self.talk)


class Life(User):
    """One group's: a member at the cluster itself, then those who come through the gateway, then it is given back."""

    async def run(self) -> None:
        """Until there is no trouble any more."""
        while not self.world.troubles.over:
            with self.world.quiet(self.group):
                await self._settle()
                talk = await self._join_for_certain()
            await self._be_member(talk)
            if self.rng.random() < TAKES_OVER_SHARE:
                await self._take_over()
            await self._pause()
            if self.rng.random() < GIVES_BACK_EARLY_SHARE and not self.world.troubles.over:
                await self._give_back()  # while clients go on
                await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(self.rng.expovariate(1 / HERE_S))

    async def _settle(self) -> None:
        """Return once the group is the cluster's, and nobody wants it here."""
        await self.world.unused(self.group)
        if self.generation >= 0:
            await asyncio.sleep(SETTLES_S)
        while not await self._give_back():  # noqa: ASYNC110 - its time costs nothing
            await asyncio.sleep(2.0)

    async def _give_back(self) -> bool:
        """Give the group back; whether it is the cluster's now."""
        world = self.world
        try:
            result = await give_back_group(OurNodes(world), world.there, GroupId(self.group))
        except (UpstreamError, NotNow, Lost) as error:
            world.note(f"{self.group} is not given back: {error!r}")
            return False
        world.note(f"{self.group}: {result.outcome.value}")
        world.history.counts[result.outcome.value] += 1
        return result.outcome in (GiveBackStatus.GIVEN, GiveBackStatus.NOTHING)

    async def _take_over(self) -> None:
        """Take the group over before a client asks for it."""
        world = self.world
        try:
            result = await adopt_group(OurNodes(world), world.there, GroupId(self.group))
        except (UpstreamError, NotNow, Lost) as error:
            world.note(f"{self.group} is not taken over: {error!r}")
            return
        world.note(f"{self.group}: {result.outcome.value}")
        world.history.counts[result.outcome.value] += 1

    # --- the member at the cluster ---

    async def _join_for_certain(self) -> Talk:
        while True:
            try:
                talk = await self._talk_to_coordinator()
                if await self.join(talk):
                    return talk
                talk.drop()
            except Lost:
                pass
            await asyncio.sleep(1.0)

    async def _talk_to_coordinator(self) -> Talk:
        """Raises Lost."""
        talk = await self._talk_to(self.rng.choice(list(BROKERS)))
        asked = await talk.call(
            ApiKey.FIND_COORDINATOR, 3, key=self.group, key_type=0, coordinator_keys=[self.group]
        )
        talk.drop()
        if asked.answer.error_code:
            raise Lost("nobody coordinates the group")
        return await self._talk_to(asked.answer.node_id)

    async def _talk_to(self, broker: int) -> Talk:
        address = self.world.model.brokers.get(broker)
        port = BROKERS[broker].port if address is None else address.port
        return await Talk(self.world, self.name, self.user, port).at_cluster().log_in()

    async def _be_member(self, talk: Talk) -> None:
        """Commit and read for a while, then leave, or fall silent."""
        try:
            for _ in range(self.rng.randint(3, 15)):
                await asyncio.sleep(self.rng.random() * 2)
                error = await self.commit(talk, self.member_id, self.generation)
                if error in OUT_OF_GROUP:
                    break  # its session is over, and the group may be elsewhere
                await self.read(talk)
            if self.rng.random() < LEAVES_SHARE:
                await self.leave(talk)
        except Lost:
            self.world.note(f"the member of {self.group} at the cluster is lost")
        talk.drop()
