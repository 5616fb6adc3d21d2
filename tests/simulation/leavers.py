# SPDX-License-Identifier: Apache-2.0
"""A client that closes its connections behind what a node has read, where nothing else is wrong."""

import asyncio
from typing import TYPE_CHECKING, Any, Final

from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, MemberId
from tests.simulation.client import Client, all_keys
from tests.simulation.history import NOTHING, Broken, Key, Write
from tests.simulation.network import ClientEnd, Lost
from tests.simulation.settings import PARTITIONS, REBALANCE_MS, SESSION_MS, TOPIC, WIDE_PARTITIONS, WIDE_TOPIC
from tests.support.consumer_protocol import encode_subscription

if TYPE_CHECKING:
    from tests.simulation.world import World

REQUESTS_MAX: Final = 5
TURNS_MAX: Final = 10
"""How many turns of the loop come between the last byte and the end of the connection."""
READ_S: Final = 5.0
DONE_S: Final = 5.0
"""After so long, in peace, what was read is carried out."""
RULE: Final = "what was read whole is carried out"


class Leaver(Client):
    """Sends several requests in a row, and is gone when the last byte was read; then looks what became of them."""

    def __init__(self, world: "World", name: str, group: str) -> None:
        super().__init__(world, name, group)
        self._staying = Client(world, f"{name}-staying", f"{group}-members")
        self._leaving = Client(world, f"{name}-leaving", f"{group}-members")
        self._topics = (TOPIC, WIDE_TOPIC) if world.is_wide else (TOPIC,)
        self._keys = [key for topic in self._topics for key in all_keys(group, topic)]
        """What is looked at."""
        self._wide_keys = [(group, WIDE_TOPIC, partition) for partition in range(WIDE_PARTITIONS)]

    async def run(self) -> None:
        while True:
            await self.pause(0.5)
            if self.world.is_settled:
                try:
                    await (self._leave_offsets() if self.rng.random() < 0.7 else self._leave_a_join())
                except Lost:
                    await self.pause(0.3)

    async def _leave_offsets(self) -> None:
        lives = self.world.lives
        expected: dict[Key, int] = {}
        error = await self.fetch(self._topics, into=expected)
        if error is not ErrorCode.NONE:
            await self.wait(error)
            return
        end = await self.connected()
        deletions: dict[Key, Write] = {}
        for _ in range(self.rng.randint(1, REQUESTS_MAX)):
            keys = self.rng.sample(all_keys(self.group), self.rng.randint(1, PARTITIONS))
            choice = self.rng.random()
            if choice < 0.7:
                is_long = self.world.is_wide and choice < 0.3
                _, writes = self.send_commit(end, self._wide_keys if is_long else keys)
                expected |= {key: writes[key].value for key in self._keys if key in writes}
                continue
            if choice < 0.85:
                self._send_offset_delete(end, keys)
            else:
                keys = [*all_keys(self.group), *(self._wide_keys if self.world.is_wide else ())]
                self._send_delete_groups(end)
            gone = {key: self.world.history.begin(key, NOTHING) for key in keys}
            deletions |= gone
            expected |= {key: NOTHING for key in self._keys if key in gone}
        self._promised.clear()  # nobody hears the answers
        await self._close_behind(self, end)
        await self._see(expected, lives)
        for key, write in deletions.items():
            if expected.get(key) == NOTHING:
                self.world.history.acknowledged(key, write)

    def _send_offset_delete(self, end: ClientEnd, keys: list[Key]) -> None:
        from protocol.kafka_python_messages import OffsetDeleteRequest as Request

        kind = Request.OffsetDeleteRequestTopic
        parts = [kind.OffsetDeleteRequestPartition(version=0, partition_index=key[2]) for key in keys]
        topic = kind(version=0, name=TOPIC, partitions=parts)
        self.send(end, ApiKey.OFFSET_DELETE, Request(version=0, group_id=self.group, topics=[topic]))

    def _send_delete_groups(self, end: ClientEnd) -> None:
        from protocol.kafka_python_messages import DeleteGroupsRequest as Request

        self.send(end, ApiKey.DELETE_GROUPS, Request(version=2, groups_names=[self.group]))

    async def _see(self, expected: dict[Key, int], lives: int) -> None:
        """Look until all of it is there."""
        until = self.world.loop.time() + DONE_S
        seen: dict[Key, int] = {}
        while seen != expected:
            error = await self.fetch(self._topics, into=seen)
            if error is not ErrorCode.NONE:
                await self.wait(error)
            if self.world.lives != lives or not self.world.is_settled:
                return
            if seen != expected and self.world.loop.time() > until:
                raise Broken(RULE, f"{self.name} sees {seen}, not {expected}")
        self.world.history.counts["connections left behind"] += 1

    async def _close_behind(self, client: Client, end: ClientEnd) -> None:
        """Close the connection some turns after the node has read all of it. Raises Lost."""
        closed = asyncio.Event()

        def close() -> None:
            client.drop()
            closed.set()

        self.world.after_reading(end, self.rng.randrange(TURNS_MAX), close)
        try:
            async with asyncio.timeout(READ_S):
                await closed.wait()
        except TimeoutError:
            client.drop()
            raise Lost("it is not read") from None

    # --- members ---

    async def _leave_a_join(self) -> None:
        """A member that leaves behind its own join, which waits for another member, is gone at once."""
        lives = self.world.lives
        staying, leaving = self._staying, self._leaving
        mine = await self._joined(staying)
        other = MemberId((await leaving.ask(ApiKey.JOIN_GROUP, _join(leaving, MemberId("")))).member_id)
        end = await leaving.connected()
        leaving.send(end, ApiKey.JOIN_GROUP, _join(leaving, other))
        leaving.send(end, ApiKey.LEAVE_GROUP, _leave(leaving, other))
        await self._close_behind(leaving, end)
        again = await staying.ask(ApiKey.JOIN_GROUP, _join(staying, mine))
        members = [member.member_id for member in again.members]
        is_whole = again.error_code or members == [mine]
        if not is_whole and self.world.lives == lives and self.world.is_settled:
            raise Broken(RULE, f"{other} has left, and {members} are members")
        self.world.history.counts["members left behind"] += 1
        await staying.ask(ApiKey.LEAVE_GROUP, _leave(staying, mine))

    async def _joined(self, client: Client) -> MemberId:
        """The id of a client that is the only member of its group. Raises Lost."""
        named = await client.ask(ApiKey.JOIN_GROUP, _join(client, MemberId("")))
        if named.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            await client.wait(
                ErrorCode(named.error_code)
            )  # where it is asked first whether the cluster has it
        member_id = MemberId(named.member_id)
        joined = await client.ask(ApiKey.JOIN_GROUP, _join(client, member_id))
        if joined.error_code or [member.member_id for member in joined.members] != [member_id]:
            raise Lost("it is not the only member")
        sync = hot.SyncGroupRequest(
            group_id=GroupId(client.group),
            generation_id=joined.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[],
        )
        if (await client.ask(ApiKey.SYNC_GROUP, sync)).error_code:
            raise Lost("it has not synced")
        return member_id


def _join(client: Client, member_id: MemberId) -> hot.JoinGroupRequest:
    return hot.JoinGroupRequest(
        group_id=GroupId(client.group),
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[hot.JoinGroupRequestProtocol(name="range", metadata=encode_subscription([TOPIC]))],
    )


def _leave(client: Client, member_id: MemberId) -> Any:
    return hot.LeaveGroupRequest(
        group_id=GroupId(client.group), members=[hot.MemberIdentity(member_id=member_id)]
    )
