# SPDX-License-Identifier: Apache-2.0
"""The sockets of one client connection, around its Session."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from socket import socket
from typing import Protocol

from coordinator.gateway.book import Book
from coordinator.gateway.dialing import Dialed, Dialer
from coordinator.gateway.kept import COUNTED_FROM_BYTES, Kept
from coordinator.gateway.outside import Outside
from coordinator.gateway.ports import Port
from coordinator.gateway.session import READ_BYTES, Session
from coordinator.gateway.ways import BROKER, COORDINATOR, Bytes
from coordinator.gateway.wire import Ends, Owner, Wire
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from protocol.errors import ProtocolError
from protocol.proxy_header import Endpoint
from protocol.strangers import NotKafka

log = get_logger("gateway")


class House(Protocol):
    """A gateway process, as its entrance and its connections see it."""

    loop: asyncio.AbstractEventLoop
    buffer: memoryview
    ends: Ends
    book: Book
    dialer: Dialer
    request_bytes_max: int
    kept: Kept
    closed: Counter[str]
    tasks: Tasks

    def let_in(self, port: Port, sock: socket, peer: Endpoint) -> None:
        """Serve a client that has connected."""

    def left(self, relay: "Relay") -> None:
        """This connection is over, and the client's socket is closed; others of it may not be yet."""

    def gone(self, relay: "Relay") -> None:
        """This connection is over, and all its sockets are closed."""


class Relay(Outside, Owner):
    """One client connection: its socket, and those of its lanes."""

    def __init__(self, house: House, port: Port, sock: socket, peer: Endpoint) -> None:
        self._house = house
        self._port = port
        self.node_id = port.node_id
        self.peer = peer
        self._ours = _endpoint(sock.getsockname())
        self.session = Session(self, port.routes, house.request_bytes_max)
        self._client = Wire(house.loop, self, house.buffer, house.ends)
        self._lanes: list[Wire | None] = [None, None]
        self._dialing: dict[Wire, asyncio.Task[None]] = {}
        self._later: list[Callable[[], None]] = []
        self._over = False
        self._has_left = False
        self._is_counted = False
        self._has_received = False
        # When a side was last seen to have said something, and the client to have taken its answers.
        self._active_s = self._taken_s = house.loop.time()
        self._taken_bytes = 0
        self._client.read(READ_BYTES)
        self._client.connected(sock)

    @property
    def waiting_bytes(self) -> int:
        """How much of what has come is kept, on all sides."""
        return self.session.kept_bytes + sum(wire.waiting_bytes for wire in self._wires())

    @property
    def peer_name(self) -> str:
        """The client's address, for the log."""
        return str(self.peer)

    @property
    def has_client(self) -> bool:
        """Whether the client's socket is open."""
        return not self._client.is_gone

    @property
    def is_gone(self) -> bool:
        """Whether all its sockets are closed."""
        return all(wire.is_gone for wire in self._wires())

    def _wires(self) -> Iterator[Wire]:
        return (wire for wire in (self._client, *self._lanes) if wire is not None)

    def idle_s(self, now_s: float) -> float:
        """For how long no side has said anything; to be asked again and again."""
        if self._has_received:
            self._active_s, self._has_received = now_s, False
        return now_s - self._active_s

    def unread_s(self, now_s: float) -> float:
        """For how long the client has taken nothing of what waits for it; to be asked again and again."""
        taken_bytes = self._client.sent_bytes
        if not self._client.is_full or taken_bytes != self._taken_bytes:
            self._taken_s, self._taken_bytes = now_s, taken_bytes
        return now_s - self._taken_s

    # --- what the wires say ---

    def received(self, wire: Wire, data: memoryview) -> None:
        """Bytes have come."""
        self._has_received = True
        if wire is self._client:
            self.session.requested(data)
        else:
            self.session.answered(self._lane_of(wire), data)
        self._settle()

    def drained(self, wire: Wire) -> None:
        """What waited has left: who writes to this wire may be read again."""
        self._call_later()
        self._settle()

    def ended(self, wire: Wire) -> None:
        """A side has closed: so does the other, but where what was asked of a coordinator can be refused.

        What a client has sent whole before is still carried out.
        """
        if wire is self._client:
            self.session.client_gone()
            self._settle()
            return
        self._lane_ended(self._lane_of(wire))

    def gone(self, wire: Wire) -> None:
        """A socket is closed."""
        if self._over and self._is_counted:
            self._count()
        self._leave()

    def _leave(self) -> None:
        """A connection counts until the client's socket is closed, also where the client takes its time for that."""
        if self._over and not self.has_client and not self._has_left:
            self._has_left = True
            self._house.left(self)
        if self._has_left and self.is_gone:
            self._house.gone(self)

    def _lane_ended(self, lane: int) -> None:
        self._lanes[lane] = None
        if lane == BROKER or not self.session.lost(lane):
            self.finish()
        else:
            self._settle()

    def _lane_of(self, wire: Wire) -> int:
        return BROKER if wire is self._lanes[BROKER] else COORDINATOR

    @property
    def _client_is_full(self) -> bool:
        """Whether answers wait for the client; one that is gone takes them all, and they are dropped."""
        return self._client.is_full and self.has_client

    def _settle(self) -> None:
        """Read each side as far as the other takes what it says."""
        if self._over:
            return
        session = self.session
        if session.is_done:
            self.finish()
            return
        client_is_full = self._client_is_full
        broker_is_free = self._settle_lane(BROKER, client_is_full)
        lanes_are_free = self._settle_lane(COORDINATOR, client_is_full) and broker_is_free
        # A client that does not read its answers may not ask for more: those made here pass no lane.
        self._client.read(session.wanted_bytes if lanes_are_free and not client_is_full else 0)
        if (
            self._is_counted
            or client_is_full
            or not lanes_are_free
            or session.kept_bytes >= COUNTED_FROM_BYTES
        ):
            self._count()

    def _settle_lane(self, number: int, client_is_full: bool) -> bool:
        """Read a lane as far as the client takes what it says; returns whether it takes what the client says."""
        lane = self._lanes[number]
        if lane is None:
            return True
        lane.read(READ_BYTES if not client_is_full and self.session.wants_answers(number) else 0)
        return not lane.is_full

    def _count(self) -> None:
        """Count what is kept in the budget of all connections."""
        count = self.waiting_bytes
        self._is_counted = count >= COUNTED_FROM_BYTES
        self._house.kept.keeps(self, count)

    # --- what the session says ---

    def to_client(self, data: Bytes) -> None:
        """Send to the client."""
        self._client.write(data)

    def to_lane(self, lane: int, data: Bytes) -> None:
        """Send to a broker or coordinator, and connect where that was not done yet."""
        wire = self._lanes[lane]
        if wire is None:
            wire = self._open(lane)
        wire.write(data)

    def soon(self, call: Callable[[], None]) -> None:
        """Call this in the next turn of the event loop in which the client takes what it is sent."""
        self._later.append(call)
        self._house.loop.call_soon(self._call_later)

    def _call_later(self) -> None:
        if not self._client_is_full:
            calls, self._later = self._later, []
            for call in calls:
                call()

    def went_on(self) -> None:
        """Read the sides that may be read again."""
        self._settle()

    def broken(self, error: ProtocolError) -> None:
        """Somebody does not speak Kafka's protocol."""
        self._house.closed["protocol"] += 1
        log.info("closing a connection that breaks the protocol", peer=str(self.peer), reason=str(error))
        if isinstance(error, NotKafka):
            self._client.write(error.answer)
        self.finish()

    def failed(self) -> None:
        """A fault of ours, which this connection alone is to feel."""
        self._house.closed["fault"] += 1
        log.exception("a connection has failed", peer=str(self.peer))
        self.abort()

    # --- lanes ---

    def open_broker(self) -> None:
        """Connect to the broker before the client has asked anything: where it is gone, the client learns that."""
        self._open(BROKER)

    def _open(self, lane: int) -> Wire:
        wire = self._lanes[lane] = Wire(self._house.loop, self, self._house.buffer, self._house.ends)
        wire.read(READ_BYTES)
        work = self._dial(wire, self._port.wanted(lane), self._choices(lane))
        task = self._house.tasks.start(work, "connect to a node", lambda _error: self.abort())
        self._dialing[wire] = task
        task.add_done_callback(lambda _task: self._dialing.pop(wire))
        return wire

    def _choices(self, lane: int) -> dict[str, Callable[[], Awaitable[Dialed]]]:
        """How to connect to each of the nodes of which any will do, by their names for the log."""
        dialer, port = self._house.dialer, self._port
        if lane == BROKER:
            return {str(each): partial(dialer.broker, each) for each in port.brokers()}
        dial = partial(dialer.coordinator, client=self.peer, ours=self._ours)
        return {f"our node {each.node_id}": partial(dial, each) for each in port.coordinators()}

    async def _dial(
        self, wire: Wire, wanted: str, choices: Mapping[str, Callable[[], Awaitable[Dialed]]]
    ) -> None:
        """Connect to the first that can be reached."""
        for name, dial in choices.items():
            try:
                sock, preface = await dial()
            except (OSError, ValueError) as error:  # of a name that can be none, ValueError
                self._house.dialer.failed(name, error)
            else:
                self._house.dialer.reached(name, wanted)
                wire.connected(sock, preface)
                return
        if not choices:
            self._house.dialer.missing(wanted)
        wire.abort()
        if not self._over:
            self._lane_ended(self._lane_of(wire))

    # --- the end ---

    def finish(self) -> None:
        """Close every side, once what was written to it has left; a side that is being connected to takes it, too."""
        if self._close():
            for wire in self._wires():
                wire.end()
            self._stop_dialing()
            self._count()

    def abort(self) -> None:
        """Close every side at once."""
        self._close()
        self._is_counted = False
        self._house.kept.forget(self)
        for wire in self._wires():
            wire.abort()
        self._stop_dialing()

    def _stop_dialing(self) -> None:
        for wire, task in self._dialing.items():
            if wire.is_gone:
                task.cancel()

    def _close(self) -> bool:
        if self._over:
            return False
        self._over = True
        self._later.clear()
        self.session.end()
        self._leave()
        return True


def _endpoint(name: object) -> Endpoint | None:
    """The address of a TCP socket, as `getpeername` and `getsockname` give it."""
    return Endpoint(str(name[0]), int(name[1])) if isinstance(name, tuple) else None
