# SPDX-License-Identifier: Apache-2.0
"""A client's connection: it logs in, and its requests are answered in their order."""

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from protocol.apis import ApiKey
from protocol.errors import ProtocolError
from tests.simulation.client import brief
from tests.simulation.gateway.messages import read_answer, request
from tests.simulation.gateway.model import PLAIN
from tests.simulation.gateway.settings import BROKERS, OUR_ID_FIRST, PORT_BASE
from tests.simulation.history import Broken
from tests.simulation.network import ClientEnd, Lost, Port

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

ANSWER_S: Final = 45.0
"""Longer than any part of it stands still."""


@dataclass(slots=True)
class Asked:
    """A request, and its answer once it has come."""

    number: int
    api: ApiKey
    version: int
    at_s: float
    fields: dict[str, Any] = field(default_factory=dict)
    answer: Any = None
    node_id: int = -1
    """That of the node that was asked."""


class Talk:
    """One connection of a user."""

    def __init__(self, world: "GatewayWorld", name: str, user: str, port: Port) -> None:
        """Connect. Raises Lost."""
        self.world = world
        self.name = name
        self.user = user
        self.end: ClientEnd = world.network.connect(port)
        self.end.on_answer = world.rules.leaves
        self.port = port
        self._asked: deque[Asked] = deque()
        self._count = 0
        world.talks.add(self)

    @property
    def is_open(self) -> bool:
        return not self.end.closed

    @property
    def node_id(self) -> int:
        """That of the node at the other end of a gateway's port; -1 for other ports."""
        if not isinstance(self.port, int):
            return -1
        number = self.port - PORT_BASE
        return number if number in BROKERS else OUR_ID_FIRST + self.port - self.world.settings.listen.port

    @property
    def awaited(self) -> int:
        """How many requests are not answered yet."""
        return len(self._asked)

    def at_cluster(self) -> "Talk":
        """Talk to a broker itself, whose answers may have any address."""
        self.end.on_answer = lambda _number, _frame: None
        return self

    async def log_in(self) -> "Talk":
        """Say who it is. Raises Lost."""
        await self.call(ApiKey.SASL_HANDSHAKE, 1, mechanism=PLAIN)
        token = b"\0".join((b"", self.user.encode(), self.user.encode()))
        answered = await self.call(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=token)
        if answered.answer.error_code:
            raise Lost("the login is refused")
        return self

    def ask(self, api: ApiKey, version: int, **fields: Any) -> Asked:
        """Send a request. Raises Lost."""
        asked = self._new(api, version, fields)
        self._asked.append(asked)
        self.end.send(self._bytes(asked))
        return asked

    def tell(self, api: ApiKey, version: int, **fields: Any) -> None:
        """Send a request that is not answered. Raises Lost."""
        self.end.send(self._bytes(self._new(api, version, fields)))

    def half(self, api: ApiKey, version: int, **fields: Any) -> None:
        """Send a request but for its last byte. Raises Lost."""
        self.end.send(self._bytes(self._new(api, version, fields))[:-1])

    async def call(self, api: ApiKey, version: int, **fields: Any) -> Asked:
        """Send a request and wait for its answer; nothing else is awaited. Raises Lost."""
        self.ask(api, version, **fields)
        return await self.hear()

    async def hear(self) -> Asked:
        """The answer to the oldest request. Raises Lost."""
        asked = self._asked.popleft()
        began = self.world.loop.time()
        try:
            frame = await self.end.receive(ANSWER_S)
        except Lost:
            is_late = self.world.loop.time() - began >= ANSWER_S
            if is_late and not self.world.has_swallowed_since(asked.at_s - ANSWER_S):
                what = f"{self.name}: {asked.api.name} {asked.number} at {self.port}"
                raise Broken("every request is answered", what) from None
            raise
        number = int.from_bytes(frame[:4], "big")
        if number != asked.number:
            told = f"{self.name} hears {number}, and {asked.number} was the oldest"
            raise Broken("answers come in the order of the requests", told)
        asked.answer = self._read(asked, frame)
        if self.world.tracing:
            self.world.note(f"{self.name} hears {number} {asked.api.name} {brief(asked.answer)[:300]}")
        return asked

    def _read(self, asked: Asked, frame: bytes) -> Any:
        try:
            return read_answer(asked.api, asked.version, frame)
        except (ProtocolError, ValueError, IndexError) as error:
            told = f"{self.name}: {asked.api.name} v{asked.version}: {error!r}"
            raise Broken("an answer is that of its request", told) from None

    def _new(self, api: ApiKey, version: int, fields: dict[str, Any]) -> Asked:
        self._count += 1
        if self.world.tracing:
            self.world.note(f"{self.name} asks {self._count} {api.name} {str(fields)[:300]} at {self.port}")
        return Asked(self._count, api, version, self.world.loop.time(), fields, node_id=self.node_id)

    def _bytes(self, asked: Asked) -> bytes:
        client_id = f"{self.user}/{self.name}"
        return request(asked.api, asked.version, asked.number, client_id, **asked.fields)

    def drop(self) -> None:
        """Close."""
        self.world.talks.discard(self)
        self.end.drop()
