# SPDX-License-Identifier: Apache-2.0
"""The brokers of the model cluster on the simulated network, and how they misbehave."""

import asyncio
import random
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from coordinator.config import Address
from protocol.apis import ApiKey
from protocol.errors import ErrorCode, ProtocolError
from protocol.framing import FrameReader
from protocol.headers import RequestHeader
from protocol.wire import MAX_INT32
from tests.simulation.gateway.messages import answer, read_request
from tests.simulation.gateway.model import (
    BEFORE_LOGIN,
    OFFERED,
    PLAIN,
    Caller,
    Faults,
    Fields,
    Model,
    api_versions,
)
from tests.simulation.gateway.settings import MOVES_BY, MOVING
from tests.simulation.loop import Process
from tests.simulation.network import BoundSocket

if TYPE_CHECKING:
    from tests.simulation.gateway.world import GatewayWorld

USUAL_S: Final = 0.002
LATE_S_MAX: Final = 4.0
BEFORE: Final = (
    ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.POLICY_VIOLATION,
)
"""Errors that a broker may answer without having looked at permissions."""
AFTER: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
OF_PARTITION: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.OFFSET_METADATA_TOO_LARGE,
    ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
)


class Mischief:
    """How often brokers misbehave; nothing where there is to be peace."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.late = self.lost = self.cut = self.half = self.before = self.after = self.of_partition = 0.0

    def begin(self) -> None:
        """From now on."""
        self.late, self.lost, self.cut, self.half = 0.02, 0.0005, 0.001, 0.001
        self.before, self.after, self.of_partition = 0.03, 0.03, 0.02

    def end(self) -> None:
        """No more."""
        self.late = self.lost = self.cut = self.half = self.before = self.after = self.of_partition = 0.0

    def happens(self, share: float) -> bool:
        """Whether something that is so frequent happens now."""
        return self.rng.random() < share

    def delay_s(self) -> float:
        """How long the next answer takes."""
        usual = self.rng.expovariate(1 / USUAL_S)
        return usual + (self.rng.random() * LATE_S_MAX if self.happens(self.late) else 0.0)

    def faults(self) -> Faults:
        """What goes wrong with the next request."""
        rng = self.rng
        before = rng.choice(BEFORE) if self.happens(self.before) else ErrorCode.NONE
        after = rng.choice(AFTER) if self.happens(self.after) else ErrorCode.NONE
        return Faults(before, after, self._of_partition)

    def _of_partition(self) -> ErrorCode:
        return self.rng.choice(OF_PARTITION) if self.happens(self.of_partition) else ErrorCode.NONE


class Broker:
    """One broker: listens while it is alive."""

    def __init__(self, world: "GatewayWorld", model: Model, number: int, address: Address) -> None:
        self.world = world
        self.model = model
        self.number = number
        self.address = address
        self.process = Process(world.loop, f"broker-{number}")
        self._listening: Any = None

    def start(self) -> None:
        """Come to life."""
        self.process = Process(self.world.loop, f"broker-{self.number}")
        self.process.context.run(self._listen)
        self.model.brokers[self.number] = self.address

    def come_back(self) -> None:
        """Come to life again, where it was; the one that no setting names, elsewhere."""
        if self.number == MOVING:
            self.address = self.address._replace(port=self.address.port + MOVES_BY)
        self.start()

    def _listen(self) -> None:
        sock = BoundSocket(*self.address)
        self.world.network.listen(sock, lambda: BrokerConnection(self))

    def die(self) -> None:
        """End, with all connections."""
        self.model.brokers.pop(self.number, None)
        self.process.die()
        self.world.network.cut(self.process)


class BrokerConnection(asyncio.Protocol):
    """One connection: requests are answered one after the other."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._world = broker.world
        self._mischief = broker.world.mischief
        self._transport: Any = None
        self._frames = FrameReader(MAX_INT32)
        self._requests: deque[bytes] = deque()
        self._is_busy = False
        self.user: str | None = None
        """Who has logged in."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._requests += self._frames.feed(data)
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        self._requests.clear()
        self._transport = None

    def _next(self) -> None:
        if self._is_busy or not self._requests or self._transport is None:
            return
        self._is_busy = True
        frame = self._requests.popleft()
        mischief, loop = self._mischief, self._world.loop
        if not self._world.troubles.over and mischief.happens(mischief.lost):
            self._world.note(f"broker {self._broker.number} never answers a request")
            self._world.swallowed_at = loop.time()
            return
        if mischief.rng.random() < 0.5:
            loop.call_later(mischief.delay_s(), self._say, self._answer(frame))
        else:
            loop.call_later(mischief.delay_s(), lambda: self._say(self._answer(frame)))

    def _answer(self, frame: bytes) -> bytes | None:
        """What is to be sent; empty where nothing is, None where the connection ends."""
        try:
            header, request = read_request(frame)
        except ProtocolError as error:
            self._world.fail(error)
            return None
        api, version = ApiKey(header.api_key), header.api_version
        if api is ApiKey.API_VERSIONS:
            told, versions = api_versions(version)
            return answer(api, told, header.correlation_id, versions)
        low, high = OFFERED.get(api, (0, -1))
        if not low <= version <= high or (self.user is None and api not in BEFORE_LOGIN):
            return None
        fields = self._login(api, request) if api in BEFORE_LOGIN else self._asked(header, request)
        return b"" if fields is None else answer(api, version, header.correlation_id, fields)

    def _asked(self, header: RequestHeader, request: Any) -> Fields | None:
        model, broker = self._broker.model, self._broker.number
        model.faults = self._mischief.faults()
        caller = Caller(self.user or "", broker, header.client_id or "")
        self._world.rules.cluster_is_asked(caller, ApiKey(header.api_key), request)
        try:
            return model.handle(caller, ApiKey(header.api_key), header.api_version, request)
        finally:
            model.faults = Faults()

    def _login(self, api: ApiKey, request: Any) -> Fields:
        if api is ApiKey.SASL_HANDSHAKE:
            known = request.mechanism == PLAIN
            error = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return {"error_code": int(error), "mechanisms": [PLAIN]}
        _, user, password = request.auth_bytes.split(b"\0")
        if user != password:
            error = ErrorCode.SASL_AUTHENTICATION_FAILED
            return {"error_code": int(error), "error_message": "wrong password", "auth_bytes": b""}
        self.user = user.decode()
        return {"error_code": 0, "error_message": None, "auth_bytes": b""}

    def _say(self, data: bytes | None) -> None:
        self._is_busy = False
        if self._transport is None:
            return
        mischief = self._mischief
        if data is None or mischief.happens(mischief.cut):
            self._transport.close()
            return
        if mischief.happens(mischief.half):
            self._transport.write(data[: len(data) // 2])
            self._transport.close()
            return
        if data:
            self._transport.write(data)
        self._next()
