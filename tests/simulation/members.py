# SPDX-License-Identifier: Apache-2.0
"""Members of groups: they do what real consumers do, and what those should not do but have done."""

from typing import TYPE_CHECKING, Any

from protocol import hot
from protocol.apis import ApiKey
from protocol.consumer_protocol import decode_assignment
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, MemberId
from tests.simulation.client import WAIT, Client, all_keys
from tests.simulation.history import Broken, Key
from tests.simulation.network import Lost
from tests.simulation.settings import HEARTBEAT_S, PARTITIONS, REBALANCE_MS, SESSION_MS, SIDE_TOPIC, TOPIC
from tests.support.consumer_protocol import encode_assignment, encode_subscription

if TYPE_CHECKING:
    from tests.simulation.world import World

LATENCY_S_MAX = 2.5
"""Longer than anything is on its way to a node."""
NOT_SENT = ErrorCode.UNKNOWN_SERVER_ERROR


class Member(Client):
    """A consumer in a group: joins, shares the partitions, commits its own, and leaves or dies now and then."""

    def __init__(
        self, world: "World", name: str, group: str, *, static: bool = False, absent_s: float = 5.0
    ) -> None:
        super().__init__(world, name, group)
        self.absent_s = absent_s
        """How long it stays away in the mean once it has left."""
        self.instance = name if static else None
        self.member_id = MemberId("")
        self.generation = -1
        self.mine: list[Key] = []
        self._heard = -1.0
        self._moves = -1

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
                group_id=GroupId(self.group),
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
        early = NOT_SENT
        if plan and self.instance is None and self.rng.random() < 0.1:
            early = await self.commit(
                [self.rng.choice(all_keys(self.group))], self.member_id, joined.generation_id
            )
        began = self.world.loop.time()
        response = await self.ask(
            ApiKey.SYNC_GROUP,
            hot.SyncGroupRequest(
                group_id=GroupId(self.group),
                generation_id=joined.generation_id,
                member_id=self.member_id,
                group_instance_id=self.instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[
                    hot.SyncGroupRequestAssignment(member_id=MemberId(member), assignment=part)
                    for member, part in plan.items()
                ],
            ),
        )
        error = ErrorCode(response.error_code)
        if error is not ErrorCode.NONE:
            await self._failed(error)
            return
        if early is ErrorCode.NONE:
            # Until its leader has synced a generation is not complete.
            raise Broken("a commit in a rebalance is refused", f"{self.name} in {joined.generation_id}")
        now = self.world.loop.time()
        owner = self.instance or self.member_id
        parts = decode_assignment(response.assignment) or {}
        owned = [(topic, partition) for topic, part in parts.items() for partition in part]
        generations.assigned(joined.generation_id, owner, response.assignment, owned, began, now)
        self.generation = joined.generation_id
        self.mine = [(self.group, topic, partition) for topic, partition in owned]
        self.world.history.counts["generations"] += 1
        self._moves = -1  # a sync of a Stable group gives no new session, as in Kafka

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
        elif choice < 0.34 and self.mine:
            await self._commit_mine()
        elif choice < 0.35:
            await self._commit_aside()
        elif choice < 0.5:
            await self._failed(await self.fetch((TOPIC, SIDE_TOPIC)))
        else:
            await self._heartbeat()

    async def _commit_aside(self) -> None:
        """An offset in a topic that nobody in the group consumes, which may expire while the group works."""
        key = self.rng.choice(all_keys(self.group, SIDE_TOPIC))
        error = await self.commit([key], self.member_id, self.generation)
        if error is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            await self._failed(error)

    async def _commit_mine(self) -> None:
        began = self.world.loop.time()
        error = await self.commit(self.mine, self.member_id, self.generation)
        if error is ErrorCode.NONE:
            self.world.history.generations[self.group].committed(self.generation, began)
        await self._failed(error)

    async def _heartbeat(self) -> None:
        began, moves = self.world.loop.time(), self.world.moves
        # While its partition loads, a heartbeat is answered as in Kafka: without a look at the group.
        is_blind = self.world.is_loading
        response = await self.ask(
            ApiKey.HEARTBEAT,
            hot.HeartbeatRequest(
                group_id=GroupId(self.group),
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self.instance,
            ),
        )
        error = ErrorCode(response.error_code)
        if error is ErrorCode.NONE:
            self._heard, self._moves = began, -1 if is_blind or self.world.is_loading else moves
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            # What was sent in time lies in the node's socket at least, should the node stand still.
            silent_s = began - self._heard
            if self.world.moves == self._moves and silent_s < SESSION_MS / 1000 - LATENCY_S_MAX:
                raise Broken("who is heard stays in", f"{self.name} was silent for {silent_s:.1f} s only")
        await self._failed(error)

    async def _leave(self) -> None:
        member_id, self.member_id, self.generation = self.member_id, MemberId(""), -1
        identity = hot.MemberIdentity(member_id=member_id, group_instance_id=self.instance)
        await self.ask(
            ApiKey.LEAVE_GROUP, hot.LeaveGroupRequest(group_id=GroupId(self.group), members=[identity])
        )
        await self.pause(self.absent_s)

    async def _die(self) -> None:
        """The process ends without a word, and comes back as another one."""
        self.drop()
        if self.instance is None:
            self.world.silent[self.member_id] = self.world.loop.time()
        await self.pause(max(SESSION_MS / 1000, self.absent_s))
        self.member_id, self.generation = MemberId(""), -1

    async def _failed(self, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            return
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self.member_id, self.generation = MemberId(""), -1
        elif error in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
            self.generation = -1
        elif error in WAIT:
            await self.wait(error)
        else:
            raise Broken("errors are those that the state allows", f"{self.name} got {error.name}")


class LateCommit(Client):
    """A commit that was on its way for long, on a connection of its own."""

    def __init__(self, world: "World", member: Member) -> None:
        world.late_commits += 1
        super().__init__(world, f"{member.name}-late-{world.late_commits}", member.group)
        self._member_id, self._generation = member.member_id, member.generation
        self._keys = list(member.mine)

    async def run(self) -> None:
        await self.pause(8)
        began = self.world.loop.time()
        try:
            error = await self.commit(self._keys, self._member_id, self._generation)
        except Lost:
            return
        if error is ErrorCode.NONE and self._keys:
            self.world.history.generations[self.group].committed(self._generation, began)
        self.drop()
