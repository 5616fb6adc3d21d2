# SPDX-License-Identifier: Apache-2.0
"""Clients: members that do what real ones do, committers without a group, and one that sends rubbish."""

import asyncio
import contextlib
import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from protocol import hot
from protocol.apis import ApiKey
from protocol.embedded import decode_assignment, encode_assignment, encode_subscription
from protocol.errors import ErrorCode
from tests.net import requests
from tests.simulation.history import NOTHING, Broken, Write
from tests.simulation.network import ClientEnd, Lost

if TYPE_CHECKING:
    from tests.simulation.world import World

TOPIC = "work"
PARTITIONS = 6
SESSION_MS = 10_000
REBALANCE_MS = 15_000
HEARTBEAT_S = 3.0
ANSWER_S = 70.0
"""Longer than a rebalance and a node that stands still together."""

REFUSED = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
"""Errors that say for certain that a commit did not take place."""
WAIT = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
VERSIONS = {
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.OFFSET_DELETE: 0,
    ApiKey.DELETE_GROUPS: 2,
}


class Client:
    """One connection at a time, and what every client does with it."""

    def __init__(self, world: "World", name: str) -> None:
        self.world = world
        self.name = name
        self.rng = random.Random(f"{world.seed}/{name}")
        self._end: ClientEnd | None = None
        self._correlation = 0

    async def run(self) -> None:
        """Do what this client does, for ever."""
        raise NotImplementedError

    async def ask(self, api: ApiKey, message: Any) -> Any:
        """Send a request and wait for its answer. Raises Lost."""
        end = self._connected()
        number = self._send(end, api, message)
        return await self._answer(end, api, number)

    def _send(self, end: ClientEnd, api: ApiKey, message: Any) -> int:
        """Send a request; returns its number."""
        self._correlation += 1
        end.send(requests.request(api, VERSIONS[api], message, self._correlation))
        return self._correlation

    async def _answer(self, end: ClientEnd, api: ApiKey, number: int) -> Any:
        """The next answer, which must be that of request `number`. Raises Lost."""
        lives, asked = self.world.lives, self.world.loop.time()
        try:
            answer = await end.receive(ANSWER_S)
        except Lost:
            if self.world.lives == lives and self.world.loop.time() - asked >= ANSWER_S:
                raise Broken("every request is answered", f"{self.name}: {api.name} was not") from None
            raise
        if int.from_bytes(answer[:4], "big") != number:
            raise Broken("answers come in the order of the requests", f"{self.name}: {answer[:4]!r}")
        return requests.answer(api, VERSIONS[api], answer)

    def _connected(self) -> ClientEnd:
        if self._end is None or self._end.closed:
            self._end = self.world.connect()
        return self._end

    def drop(self) -> None:
        """Close the connection, whatever is under way."""
        if self._end is not None:
            self._end.drop()
            self._end = None

    async def pause(self, mean_s: float) -> None:
        """Do nothing for a while."""
        await asyncio.sleep(self.rng.expovariate(1 / mean_s))

    async def commit(
        self, group: str, partitions: Sequence[int], member_id: str = "", generation: int = -1
    ) -> ErrorCode:
        """Commit a new offset for each partition, and write down what is known of it then."""
        message, writes = self._new_commit(group, partitions, member_id, generation)
        return self._note(group, writes, await self.ask(ApiKey.OFFSET_COMMIT, message))

    def _new_commit(
        self, group: str, partitions: Sequence[int], member_id: str = "", generation: int = -1
    ) -> tuple[Any, dict[int, Write]]:
        history = self.world.history
        values = {partition: history.new_value() for partition in partitions}
        writes = {p: history.begin((group, TOPIC, p), value) for p, value in values.items()}
        message = hot.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            topics=[
                hot.OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        hot.OffsetCommitRequestPartition(partition_index=p, committed_offset=value)
                        for p, value in values.items()
                    ],
                )
            ],
        )
        return message, writes

    def _note(self, group: str, writes: Mapping[int, Write], response: Any) -> ErrorCode:
        error = ErrorCode.NONE
        for answer in response.topics[0].partitions:
            write = writes[answer.partition_index]
            if answer.error_code == ErrorCode.NONE:
                self.world.history.acknowledged((group, TOPIC, answer.partition_index), write)
            else:
                error = ErrorCode(answer.error_code)
                if error in REFUSED:
                    self.world.history.refused(write)
        return error

    async def fetch(self, group: str) -> ErrorCode:
        """Read all committed offsets of a group, and check them."""
        began = self.world.loop.time()
        wanted = hot.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=list(range(PARTITIONS)))
        response = await self.ask(
            ApiKey.OFFSET_FETCH, hot.OffsetFetchRequest(group_id=group, topics=[wanted])
        )
        if response.error_code:
            return ErrorCode(response.error_code)
        for answer in response.topics[0].partitions:
            self.world.history.fetched((group, TOPIC, answer.partition_index), answer.committed_offset, began)
        return ErrorCode.NONE


class Committer(Client):
    """Commits and reads the offsets of a group without members; with `deletes`, takes some away as well."""

    def __init__(self, world: "World", name: str, group: str, *, deletes: bool = False) -> None:
        super().__init__(world, name)
        self.group = group
        self.deletes = deletes

    async def run(self) -> None:
        while True:
            await self.pause(0.5)
            try:
                await self._one()
            except Lost:
                await self.pause(0.3)

    async def _one(self) -> None:
        choice = self.rng.random()
        if choice < 0.4:
            await self.commit(self.group, self._some())
        elif choice < 0.5:
            await self._commit_ahead()
        elif choice < 0.9 or not self.deletes:
            await self.fetch(self.group)
        elif choice < 0.97:
            await self._delete_offset(self.rng.randrange(PARTITIONS))
        else:
            await self._delete_group()

    def _some(self) -> list[int]:
        return self.rng.sample(range(PARTITIONS), self.rng.randint(1, 3))

    async def _commit_ahead(self) -> None:
        """Send several commits before the first is answered."""
        end = self._connected()
        commits = [self._new_commit(self.group, self._some()) for _ in range(self.rng.randint(2, 8))]
        numbers = [self._send(end, ApiKey.OFFSET_COMMIT, message) for message, _ in commits]
        for number, (_, writes) in zip(numbers, commits, strict=True):
            self._note(self.group, writes, await self._answer(end, ApiKey.OFFSET_COMMIT, number))

    async def _delete_offset(self, partition: int) -> None:
        from protocol.messages import OffsetDeleteRequest as Request

        key = (self.group, TOPIC, partition)
        write = self.world.history.begin(key, NOTHING)
        topic = Request.OffsetDeleteRequestTopic
        response = await self.ask(
            ApiKey.OFFSET_DELETE,
            Request(
                version=0,
                group_id=self.group,
                topics=[
                    topic(
                        version=0,
                        name=TOPIC,
                        partitions=[topic.OffsetDeleteRequestPartition(version=0, partition_index=partition)],
                    )
                ],
            ),
        )
        if response.error_code == ErrorCode.NONE and not response.topics[0].partitions[0].error_code:
            self.world.history.acknowledged(key, write)

    async def _delete_group(self) -> None:
        from protocol.messages import DeleteGroupsRequest as Request

        keys = [(self.group, TOPIC, partition) for partition in range(PARTITIONS)]
        writes = [self.world.history.begin(key, NOTHING) for key in keys]
        response = await self.ask(ApiKey.DELETE_GROUPS, Request(version=2, groups_names=[self.group]))
        error = ErrorCode(response.results[0].error_code)
        for key, write in zip(keys, writes, strict=True):
            if error is ErrorCode.NONE:
                self.world.history.acknowledged(key, write)
            elif error is ErrorCode.GROUP_ID_NOT_FOUND:
                self.world.history.refused(write)


class Member(Client):
    """A consumer in a group: joins, shares the partitions, commits its own, and leaves or dies now and then."""

    def __init__(self, world: "World", name: str, group: str, *, static: bool = False) -> None:
        super().__init__(world, name)
        self.group = group
        self.instance = name if static else None
        self.member_id = ""
        self.generation = -1
        self.mine: list[int] = []
        self._heard = -1.0
        self._lives = -1

    async def run(self) -> None:
        while True:
            try:
                if self.generation < 0:
                    await self._join()
                else:
                    await self._work()
            except Lost:
                await self.pause(0.3)

    # --- getting in ---

    async def _join(self) -> None:
        response = await self.ask(
            ApiKey.JOIN_GROUP,
            hot.JoinGroupRequest(
                group_id=self.group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocols=[hot.JoinGroupRequestProtocol(name="range", metadata=encode_subscription([TOPIC]))],
            ),
        )
        error = ErrorCode(response.error_code)
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error is not ErrorCode.NONE:
            await self._failed(error)
        else:
            self.member_id = response.member_id
            await self._sync(response)

    async def _sync(self, joined: Any) -> None:
        generations = self.world.history.generations[self.group]
        plan: dict[str, bytes] = {}
        if joined.leader == self.member_id and joined.members:
            plan = self._plan([member.member_id for member in joined.members])
            # A static member that comes back has another id, and the same part.
            owners = {each.member_id: each.group_instance_id or each.member_id for each in joined.members}
            generations.proposed(
                joined.generation_id, {owners[member]: part for member, part in plan.items()}
            )
        began = self.world.loop.time()
        response = await self.ask(
            ApiKey.SYNC_GROUP,
            hot.SyncGroupRequest(
                group_id=self.group,
                generation_id=joined.generation_id,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    hot.SyncGroupRequestAssignment(member_id=member, assignment=part)
                    for member, part in plan.items()
                ],
            ),
        )
        error = ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            await self._failed(error)
            return
        now = self.world.loop.time()
        owner = self.instance or self.member_id
        generations.assigned(joined.generation_id, owner, response.assignment, began, now)
        self.generation = joined.generation_id
        self.mine = (decode_assignment(response.assignment) or {}).get(TOPIC, [])
        self.world.history.counts["generations"] += 1
        self._lives = -1  # a sync of a Stable group gives no new session, as in Kafka

    def _plan(self, members: list[str]) -> dict[str, bytes]:
        """Every partition to one member, in an order that differs from plan to plan."""
        shuffled = self.rng.sample(range(PARTITIONS), PARTITIONS)
        shares = {member: shuffled[number :: len(members)] for number, member in enumerate(members)}
        return {member: encode_assignment({TOPIC: share}) for member, share in shares.items()}

    # --- working ---

    async def _work(self) -> None:
        await self.pause(HEARTBEAT_S / 2)
        choice = self.rng.random()
        if choice < 0.02:
            await self._leave()
        elif choice < 0.05:
            await self._die()
        elif choice < 0.06:
            late = LateCommit(self.world, self)
            self.world.start_client(late)
        elif choice < 0.07:
            self.generation = -1  # a change of the subscription, as far as the coordinator knows
        elif choice < 0.35 and self.mine:
            await self._commit_mine()
        elif choice < 0.5:
            await self._failed(await self.fetch(self.group))
        else:
            await self._heartbeat()

    async def _commit_mine(self) -> None:
        began = self.world.loop.time()
        error = await self.commit(self.group, self.mine, self.member_id, self.generation)
        if error is ErrorCode.NONE:
            self.world.history.generations[self.group].committed(self.generation, began)
        await self._failed(error)

    async def _heartbeat(self) -> None:
        began = self.world.loop.time()
        response = await self.ask(
            ApiKey.HEARTBEAT,
            hot.HeartbeatRequest(
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance,
            ),
        )
        error = ErrorCode(response.error_code)
        if error is ErrorCode.NONE:
            self._was_heard(began)
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            silent_s = self.world.loop.time() - self._heard
            if self.world.lives == self._lives and silent_s < SESSION_MS / 1000:
                raise Broken("who is heard stays in", f"{self.name} was silent for {silent_s:.1f} s only")
        await self._failed(error)

    def _was_heard(self, asked: float) -> None:
        """The node had heard of this member not before it was asked."""
        self._heard, self._lives = asked, self.world.lives

    async def _leave(self) -> None:
        member_id, self.member_id, self.generation = self.member_id, "", -1
        identity = hot.MemberIdentity(member_id=member_id, group_instance_id=self.instance)
        await self.ask(ApiKey.LEAVE_GROUP, hot.LeaveGroupRequest(group_id=self.group, members=[identity]))
        await self.pause(5)

    async def _die(self) -> None:
        """The process ends without a word, and comes back as another one."""
        self.drop()
        if self.instance is None:
            self.world.silent[self.member_id] = self.world.loop.time()
        await self.pause(SESSION_MS / 1000)
        self.member_id, self.generation = "", -1

    async def _failed(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id, self.generation = "", -1
        elif error in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.generation = -1
        elif error in WAIT:
            await self.pause(0.2)
        else:
            raise Broken("errors are those that the state allows", f"{self.name} got {error.name}")


class LateCommit(Client):
    """A commit that was on its way for long, on a connection of its own."""

    def __init__(self, world: "World", member: Member) -> None:
        world.late_commits += 1
        super().__init__(world, f"{member.name}-late-{world.late_commits}")
        self._member_id, self._generation = member.member_id, member.generation
        self._group, self._partitions = member.group, list(member.mine)

    async def run(self) -> None:
        await self.pause(8)
        began = self.world.loop.time()
        try:
            error = await self.commit(self._group, self._partitions, self._member_id, self._generation)
        except Lost:
            return
        if error is ErrorCode.NONE and self._partitions:
            self.world.history.generations[self._group].committed(self._generation, began)
        self.drop()


class Vandal(Client):
    """Sends halves of frames, frames twice, rubbish, and reads nothing for a while."""

    async def run(self) -> None:
        while True:
            await self.pause(4)
            with contextlib.suppress(Lost):
                await self._one()
            self.drop()

    async def _one(self) -> None:
        end = self._connected()
        frame = requests.heartbeat("vandals", "nobody", 1)
        choice = self.rng.random()
        if choice < 0.3:
            end.send(frame[: self.rng.randrange(1, len(frame))])
            await self.pause(1)
        elif choice < 0.6:
            end.send(frame * self.rng.randint(2, 40))
            await end.receive(ANSWER_S)
        elif choice < 0.8:
            end.send(self.rng.randbytes(self.rng.randint(1, 200)))
            await self.pause(1)
        else:
            end.stall()
            end.send(requests.fetch_offsets("standalone-0") * 200)
            await self.pause(5)
