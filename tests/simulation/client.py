# SPDX-License-Identifier: Apache-2.0
"""What every client does: finds its coordinator, sends frames, waits for answers, and notes what it knows then."""

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from coordinator.api.private import adopt_group
from protocol import hot
from protocol.apis import ApiKey
from protocol.compiled_struct import FieldsValue, fields_as_dict
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader, encode_request_header
from protocol.newtypes import GroupId, MemberId, Offset
from tests.net import requests
from tests.simulation.history import NOTHING, Broken, Key, Write
from tests.simulation.network import ClientEnd, Lost
from tests.simulation.settings import PARTITIONS, TOPIC

if TYPE_CHECKING:
    from tests.simulation.world import World

LOOKED_AT_SHARE = 0.1
"""How many reads are looked at while they leave the node."""
ANSWER_S = 70.0
"""Longer than a rebalance and a node that stands still together."""

REFUSED = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
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
ONLY_ASKED: Mapping[str, Any] = {"epoch": 0, "asked_ms": 0, "unknown": False, "offsets": None}
"""Of AdoptGroup: nothing was read of the cluster."""
FLEXIBLE_HEADER_BYTES = 5
VERSIONS = {
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.OFFSET_DELETE: 0,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 5,
}


class Client:
    """One connection at a time, and what every client does with it."""

    def __init__(self, world: "World", name: str, group: str) -> None:
        self.world = world
        self.name = name
        self.group = group
        self.rng = random.Random(f"{world.seed}/{name}")
        self._end: ClientEnd | None = None
        self._port: int | None = None
        self._correlation = 0
        self._promised: dict[int, Sequence[Write]] = {}  # by request, what its answer may say is durable
        self._early: set[int] = set()  # offsets that were not when the answer left
        self._reads: set[int] = set()  # requests that read offsets
        self._read_early: int | None = (
            None  # an offset that was read, and was not durable when the answer left
        )

    async def run(self) -> None:
        """Do what this client does, for ever."""
        raise NotImplementedError

    async def ask(self, api: ApiKey, message: Any) -> Any:
        """Send a request and wait for its answer. Raises Lost."""
        end = await self.connected()
        number = self.send(end, api, message)
        return await self.answer(end, api, number)

    def send(self, end: ClientEnd, api: ApiKey, message: Any) -> int:
        """Send a request; returns its number. Raises Lost."""
        self._correlation += 1
        if self.world.tracing:
            self.world.note(f"{self.name} asks {self._correlation} {api.name} {brief(message)}")
        end.send(requests.request(api, VERSIONS[api], message, self._correlation))
        return self._correlation

    async def answer(self, end: ClientEnd, api: ApiKey, number: int) -> Any:
        """The next answer, which must be that of request `number`. Raises Lost."""
        answer = requests.answer(api, VERSIONS[api], await self.frame(end, api.name, number))
        if self.world.tracing:
            self.world.note(f"{self.name} hears {number} {api.name} {brief(answer)}")
        return answer

    async def frame(self, end: ClientEnd, api: str, number: int) -> bytes:
        """The next answer as it came, which must be that of request `number`. Raises Lost."""
        asked = self.world.loop.time()
        try:
            frame = await end.receive(ANSWER_S)
        except Lost:
            late = self.world.loop.time() - asked >= ANSWER_S
            if late and end.server.process.runs:
                raise Broken("every request is answered", f"{self.name}: {api} was not") from None
            raise
        if int.from_bytes(frame[:4], "big") != number:
            raise Broken("answers come in the order of the requests", f"{self.name}: {frame[:4]!r}")
        return frame

    async def connected(self) -> ClientEnd:
        """The connection, a new one where there is none. Raises Lost."""
        if self._end is None or self._end.closed:
            if self._port is None:
                self._port = await self._find_coordinator()
            port, self._port = self._port, None  # to be asked for again when this connection is gone
            self._end = self.world.network.connect(port)
            self._end.on_answer = self._left
            self._port = port if self.world.is_alone else None
        return self._end

    async def _find_coordinator(self) -> int:
        from protocol.kafka_python_messages import FindCoordinatorRequest as Request

        self._end = self.world.network.connect(self.world.any_port(self.rng))
        answer = await self.ask(ApiKey.FIND_COORDINATOR, Request(version=3, key=self.group, key_type=0))
        self.drop()
        if answer.error_code:
            raise Lost(f"nobody coordinates {self.group}")
        return int(answer.port)

    def drop(self) -> None:
        """Close the connection, whatever is under way."""
        if self._end is not None:
            self._end.drop()
            self._end = None

    async def pause(self, mean_s: float) -> None:
        """Do nothing for a while."""
        await asyncio.sleep(self.rng.expovariate(1 / mean_s))

    async def wait(self, error: ErrorCode) -> None:
        """The group cannot be served now."""
        if error is ErrorCode.NOT_COORDINATOR and not self.world.is_alone:
            self.drop()
        if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self.world.has_marks:
            await self.take_in()
        await self.pause(0.2)

    async def take_in(self) -> None:
        """Do what a gateway does first, which finds out that the cluster knows nothing of the group. Raises Lost."""
        mark = await self.ask_private(adopt_group.API, ONLY_ASKED)
        if mark.error_code or mark.adopted or mark.confirmed_absent:
            return
        heard = {"epoch": mark.epoch, "asked_ms": mark.asked_ms}
        answer = await self.ask_private(adopt_group.API, {**heard, "unknown": True, "offsets": []})
        self.world.history.counts["groups taken in"] += not answer.error_code

    async def ask_private(self, api: Any, values: Mapping[str, Any]) -> Any:
        """Ask what gateways ask about the group, and wait for the answer. Raises Lost."""
        end = await self.connected()
        self._correlation += 1
        header = RequestHeader(api.key, 0, self._correlation, "gateway")
        body = api.schema.codecs[0].encode_request(
            api.schema.request(version=0, group_id=self.group, **values)
        )
        if self.world.tracing:
            self.world.note(f"{self.name} asks {self._correlation} {api.key} {values}")
        end.send(requests.framed(encode_request_header(header, flexible=True) + body))
        answer = api.schema.codecs[0].decode_response(
            await self.frame(end, str(api.key), self._correlation), FLEXIBLE_HEADER_BYTES
        )
        if self.world.tracing:
            self.world.note(f"{self.name} hears {self._correlation} {answer}")
        return answer

    # --- commits ---

    async def commit(self, keys: Iterable[Key], member_id: str = "", generation: int = -1) -> ErrorCode:
        """Commit a new offset for each of these, all of one group, and write down what is known of it then."""
        end = await self.connected()
        number, writes = self.send_commit(end, keys, member_id, generation)
        return self.note(writes, await self.answer(end, ApiKey.OFFSET_COMMIT, number), number)

    def send_commit(
        self, end: ClientEnd, keys: Iterable[Key], member_id: str = "", generation: int = -1
    ) -> tuple[int, Mapping[Key, Write]]:
        """Send a commit; returns its number and what it writes."""
        writes = self.world.history.begin_commit(list(keys))
        self._promised[self._correlation + 1] = list(writes.values())
        number = self.send(
            end, ApiKey.OFFSET_COMMIT, commit_message(self.group, writes, member_id, generation)
        )
        return number, writes

    def note(self, writes: Mapping[Key, Write], response: Any, number: int) -> ErrorCode:
        """Write down what an answer says of a commit; returns its error, if any part has one."""
        self._promised.pop(number, None)
        error = ErrorCode.NONE
        for topic in response.topics:
            for answer in topic.partitions:
                key = (self.group, topic.name, answer.partition_index)
                if answer.error_code == ErrorCode.NONE:
                    if writes[key].value in self._early:
                        raise Broken("nothing is answered before it is durable", f"{self.name}: {key}")
                    self.world.history.acknowledged(key, writes[key])
                else:
                    error = ErrorCode(answer.error_code)
                    if error in REFUSED:
                        self.world.history.refused(writes[key])
                    if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and topic.name == TOPIC:
                        self.world.check_unknown(self.name)
        return error

    def _left(self, number: int, frame: bytes) -> None:
        """The node sends its answer to this request now; what that says must be on the disk."""
        for write in self._promised.pop(number, ()):
            if not self.world.is_on_disk(write.value):
                self._early.add(write.value)
        if number in self._reads:
            self._reads.discard(number)
            answer = requests.answer(ApiKey.OFFSET_FETCH, VERSIONS[ApiKey.OFFSET_FETCH], frame)
            for value in _values(answer):
                if value != NOTHING and not self.world.is_on_disk(value):
                    self._read_early = value

    # --- reads ---

    async def fetch(self, topics: Sequence[str] = (TOPIC,), into: dict[Key, int] | None = None) -> ErrorCode:
        """Read all committed offsets of the group, and check them; they are put `into` a dict, if one is given."""
        began = self.world.loop.time()
        wanted = [
            hot.OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(PARTITIONS)))
            for topic in topics
        ]
        await self.connected()  # what that asks has numbers, too
        if self.rng.random() < LOOKED_AT_SHARE:
            self._reads.add(self._correlation + 1)
        response = await self.ask(
            ApiKey.OFFSET_FETCH, hot.OffsetFetchRequest(group_id=GroupId(self.group), topics=wanted)
        )
        if self._read_early is not None:
            raise Broken("nothing is answered before it is durable", f"{self.name} reads {self._read_early}")
        if response.error_code:
            return ErrorCode(response.error_code)
        values = {
            (self.group, topic.name, answer.partition_index): answer.committed_offset
            for topic in response.topics
            for answer in topic.partitions
        }
        self.world.history.fetched(values, began)
        if into is not None:
            into.update(values)
        return ErrorCode.NONE


def _values(answer: Any) -> list[int]:
    """The offsets in an answer to OffsetFetch."""
    return [each.committed_offset for topic in answer.topics for each in topic.partitions]


def brief(message: Any) -> str:
    """A message for a reader: what is as by default is left out."""
    if isinstance(message, list | tuple):
        return f"[{', '.join(map(brief, message))}]"
    if not isinstance(message, FieldsValue):
        return str(message)
    usual = fields_as_dict(type(message)())
    parts = []
    for name, value in fields_as_dict(message).items():
        if value != usual[name]:
            parts.append(f"{name}={brief(value)}")
    return f"({', '.join(parts)})"


def commit_message(
    group: str, writes: Mapping[Key, Write], member_id: str, generation: int
) -> hot.OffsetCommitRequest:
    """A commit of these."""
    partitions: dict[str, list[Any]] = {}
    for (_, topic, partition), write in writes.items():
        partitions.setdefault(topic, []).append(
            hot.OffsetCommitRequestPartition(partition_index=partition, committed_offset=Offset(write.value))
        )
    return hot.OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=generation,
        member_id=MemberId(member_id),
        topics=[
            hot.OffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in partitions.items()
        ],
    )


@lru_cache(maxsize=64)
def all_keys(group: str, topic: str = TOPIC) -> Sequence[Key]:
    """Everything that the group can commit in a topic."""
    return [(group, topic, partition) for partition in range(PARTITIONS)]
