# SPDX-License-Identifier: Apache-2.0
"""Connections in memory: bytes arrive late, in any pieces, in order, and not at all once an end is gone."""

import asyncio
import errno
import os
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context
from pathlib import Path
from typing import Any, Final, NamedTuple

from coordinator.config import Address
from tests.simulation.loop import PROCESS, Process, SimulatedLoop

HIGH_WATER = 64 * 1024
"""Unread bytes from which a transport asks its protocol to write no more."""


END: Final = b""
"""In the place of bytes: no more will come."""
OUTSIDE: Final = Context()
"""For what belongs to no process."""


class Lost(Exception):
    """The connection is gone, or there is no listener."""


Port = int | str
"""Where somebody listens: a number, or the path of a socket."""


class BoundSocket:
    """Stands for a socket that listens."""

    def __init__(self, host: str, port: Port) -> None:
        self._host = host
        self._port = port

    def getsockname(self) -> tuple[str, Port]:
        return self._host, self._port

    def close(self) -> None:
        """Nothing was taken."""


class Listener(NamedTuple):
    """Who listens on a port."""

    process: Process
    factory: Callable[[], asyncio.Protocol]


class Listening:
    """What `create_server` gives."""

    def __init__(self, network: "Network", port: Port) -> None:
        self._network = network
        self._port = port

    def close(self) -> None:
        self._network.listeners.pop(self._port, None)


class Network:
    """All listeners and connections; latencies are drawn for each connection apart, so none depends on another's."""

    def __init__(self, loop: SimulatedLoop, seed: int) -> None:
        self.loop = loop
        self.listeners: dict[Port, Listener] = {}
        self.open: dict[int, ServerEnd] = {}
        self.dialed: dict[int, DialedEnd] = {}
        """Connections that a process has made."""
        self.greeting = b""
        """What every connection begins with."""
        self._seed = seed
        self._count = 0
        self._nameless = Process(loop, "nameless")
        """In the place of a process, for what was started in none."""

    def bind(self, address: Address) -> Any:
        return BoundSocket(address.host, address.port)

    def bind_private(self, path: Path) -> Any:
        return BoundSocket("", str(path))

    def listen(self, sock: BoundSocket, factory: Callable[[], asyncio.Protocol]) -> Listening:
        port = sock.getsockname()[1]
        self.listeners[port] = Listener(self.process(), factory)
        return Listening(self, port)

    def process(self) -> Process:
        """The process that runs now."""
        return PROCESS.get() or self._nameless

    def connect(self, port: Port) -> "ClientEnd":
        """A connection to who listens on `port`. Raises Lost."""
        listener = self.listeners.get(port)
        if listener is None:
            raise Lost("connection refused")
        rng = self._chance()
        client = ClientEnd(self, rng, self._count)
        client.server = self.open[self._count] = ServerEnd(self, rng, client, listener)
        if self.greeting:
            client.send(self.greeting)
        return client

    def dial(self, port: Port, protocol: asyncio.Protocol) -> "DialedEnd":
        """A connection of the process that runs now. Raises ConnectionRefusedError."""
        listener = self.listeners.get(port)
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        rng = self._chance()
        client = self.dialed[self._count] = DialedEnd(self, rng, self._count, protocol)
        client.server = self.open[self._count] = ServerEnd(self, rng, client, listener)
        protocol.connection_made(client)
        return client

    def _chance(self) -> random.Random:
        """That of a new connection."""
        self._count += 1
        return random.Random(f"{self._seed}/{self._count}")

    def cut(self, process: Process) -> None:
        """A process has ended: its connections are gone with it."""
        for port in [port for port, each in self.listeners.items() if each.process is process]:
            del self.listeners[port]
        for number in [number for number, end in self.open.items() if end.process is process]:
            self.open.pop(number).vanish()
        for number in [number for number, each in self.dialed.items() if each.process is process]:
            self.dialed.pop(number).server.dropped()

    def cut_all(self, port: int) -> None:
        """Who listened there is gone; so are all connections."""
        self.listeners.pop(port, None)
        for number in sorted(self.open):
            self.open.pop(number).vanish()


class _Pipe:
    """One direction: calls `deliver` with what was sent, later and in order, in the context of who receives it."""

    def __init__(
        self,
        loop: SimulatedLoop,
        rng: random.Random,
        deliver: Callable[[bytes], None],
        context: Context,
    ) -> None:
        self._loop = loop
        self._rng = rng
        self._deliver = deliver
        self._context = context
        self._last = 0.0

    def send(self, data: bytes) -> None:
        rng = self._rng
        if len(data) > 1 and rng.random() < 0.05:
            cut = rng.randrange(1, len(data))
            self._one(data[:cut])
            data = data[cut:]
        self._one(data)

    def _one(self, data: bytes) -> None:
        latency = self._rng.expovariate(2_000)  # half a millisecond
        if self._rng.random() < 0.002:
            latency += self._rng.random() * 2
        self._last = max(self._last + 1e-7, self._loop.time() + latency)
        self._loop.call_at(self._last, self._deliver, data, context=self._context)


class _ProcessEnd(asyncio.Transport):
    """The transport of a process: what has come and waits to be read, and how much of what it sent is unread."""

    def __init__(self, network: Network, process: Process, number: int) -> None:
        super().__init__()
        self.number = number
        self.process = process
        self.protocol: Any
        self.gone = False
        self._network = network
        self._inbox: deque[bytes] = deque()
        self._unread = 0
        self._reading = True
        self._full = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self._soon(self._feed)

    def is_closing(self) -> bool:
        return self.gone

    # what the network does

    def arrived(self, data: bytes) -> None:
        """Bytes from the other end."""
        if not self.gone:
            self._inbox.append(data)
            self._feed()

    def was_read(self, size: int) -> None:
        """The other end has read so many bytes."""
        self._unread -= size
        if self._full and self._unread <= HIGH_WATER // 4 and not self.gone:
            self._full = False
            self._soon(self._resume)

    def _has_sent(self, size: int) -> None:
        self._unread += size
        if self._unread > HIGH_WATER and not self._full:
            self._full = True
            self.protocol.pause_writing()

    def _resume(self) -> None:
        if not self.gone:
            self.protocol.resume_writing()

    def _soon(self, call: Callable[..., None], *arguments: Any) -> None:
        """Call what belongs to the process."""
        self._network.loop.call_soon(call, *arguments, context=self.process.context)

    def _feed(self) -> None:
        """Give what has come to the protocol, as far as it reads."""
        raise NotImplementedError


class ServerEnd(_ProcessEnd):
    """The node's transport of one connection."""

    def __init__(
        self, network: Network, rng: random.Random, client: "ClientEnd | DialedEnd", listener: Listener
    ) -> None:
        super().__init__(network, listener.process, client.number)
        self.client = client
        self._factory = listener.factory
        self._to_client = _Pipe(network.loop, rng, client.arrived, client.context)
        self._soon(self._made)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("10.0.0.1", self.number) if name == "peername" else default

    # what the node's connection does

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.gone:
            return
        self.client.written(bytes(data))
        self._to_client.send(bytes(data))
        self._has_sent(len(data))

    def get_write_buffer_size(self) -> int:
        return self._unread if self.client.stalled else 0

    def write_eof(self) -> None:
        """Let the client see the end, behind all that was written."""
        self._to_client.send(END)

    def close(self) -> None:
        self._end(None)

    def abort(self) -> None:
        self._end(None)

    # what the network does

    def vanish(self) -> None:
        """The process ended: the client sees the connection reset, the node sees nothing."""
        if not self.gone:
            self.gone = True
            self.client.lost()

    def dropped(self) -> None:
        """The client is gone."""
        self._soon(self._end, ConnectionResetError())

    def _made(self) -> None:
        self.protocol = self._factory()
        self.protocol.connection_made(self)

    def _feed(self) -> None:
        while self._reading and self._inbox and not self.gone:
            data = self._inbox.popleft()
            if data:
                self.protocol.data_received(data)
                self.client.was_read(len(data))
            elif not self.protocol.eof_received():
                self._end(None)

    def _end(self, error: Exception | None) -> None:
        if self.gone:
            return
        self.gone = True
        self._network.open.pop(self.number, None)
        self._soon(self.protocol.connection_lost, error)
        self.client.lost()


class ClientEnd:
    """The client's end: whole frames come out of `receive`."""

    def __init__(self, network: Network, rng: random.Random, number: int) -> None:
        self.number = number
        self.context = OUTSIDE
        self.server: ServerEnd
        self.stalled = False
        self.closed = False
        self.repeats = False
        """Whether all that is sent is sent twice."""
        self.is_at_once = False
        """Whether all that is sent from now on arrives as soon as the process runs; nothing else may be under way."""
        self.on_answer: Callable[[int, bytes], None] = lambda _number, _frame: None
        """Called with each answer, and its number, at the moment when the node sends it."""
        self._loop = network.loop
        self._rng = rng
        self._to_server: _Pipe | None = None
        self._unread = 0
        self._on_read: Callable[[], None] | None = None
        self._sent = bytearray()
        self._bytes = bytearray()
        self._untaken = 0
        self._frames: deque[bytes] = deque()
        self._waiting: asyncio.Future[None] | None = None

    def send(self, data: bytes) -> None:
        """Send bytes. Raises Lost."""
        if self.closed:
            raise Lost("closed")
        sent = data * 2 if self.repeats else data
        self._unread += len(sent)
        context = self.server.process.context
        if self.is_at_once:
            self._loop.call_soon(self._deliver, sent, context=context)
            return
        if self._to_server is None:
            self._to_server = _Pipe(self._loop, self._rng, self._deliver, context)
        self._to_server.send(sent)

    def when_read(self, call: Callable[[], None]) -> None:
        """Call this, on behalf of no process, once the node has read all that was sent."""
        self._on_read = call

    def was_read(self, size: int) -> None:
        """The node has read so many bytes."""
        self._unread -= size
        if self._on_read is not None and not self._unread:
            call, self._on_read = self._on_read, None
            self._loop.call_soon(call, context=OUTSIDE)

    def written(self, data: bytes) -> None:
        """The node sends this."""
        sent = self._sent
        sent += data
        while len(sent) >= 8 and len(sent) >= (size := int.from_bytes(sent[:4], "big") + 4):
            self.on_answer(int.from_bytes(sent[4:8], "big"), bytes(sent[4:size]))
            del sent[:size]

    async def receive(self, timeout_s: float) -> bytes:
        """The next frame. Raises Lost, also when none comes in time."""
        deadline = self._loop.time() + timeout_s
        while not self._frames:
            left = deadline - self._loop.time()
            if self.closed or left <= 0:
                self.drop()
                raise Lost("closed" if self.closed else "no answer in time")
            self._waiting = self._loop.create_future()
            timer = self._loop.call_later(left, self._wake)
            await self._waiting
            timer.cancel()
        return self._frames.popleft()

    def stall(self) -> None:
        """Read nothing from now on."""
        self.stalled = True

    def go_on(self) -> None:
        """Read again."""
        self.stalled = False
        self._cut_frames()

    def drop(self) -> None:
        """Close without a word."""
        if not self.closed:
            self.closed = True
            self.server.dropped()
            self._wake()

    def arrived(self, data: bytes) -> None:
        if not data:
            self.drop()
            return
        self._bytes += data
        self._untaken += len(data)
        if not self.stalled:
            self._cut_frames()

    def lost(self) -> None:
        self.closed = True
        self._wake()

    def _deliver(self, data: bytes) -> None:
        if not self.server.gone:
            self.server.arrived(data)

    def _cut_frames(self) -> None:
        self.server.was_read(self._untaken)
        self._untaken = 0
        buffer = self._bytes
        while len(buffer) >= 4 and len(buffer) >= (size := int.from_bytes(buffer[:4], "big") + 4):
            self._frames.append(bytes(buffer[4:size]))
            del buffer[:size]
        if self._frames:
            self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class DialedEnd(_ProcessEnd):
    """The transport of a process that has connected to another one."""

    def __init__(
        self, network: Network, rng: random.Random, number: int, protocol: asyncio.BaseProtocol
    ) -> None:
        super().__init__(network, network.process(), number)
        self.context = self.process.context
        self.server: ServerEnd
        self.stalled = False
        self.protocol = protocol
        self._rng = rng
        self._to_server: _Pipe | None = None

    # what the process does

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.gone or not data:
            return
        self._pipe().send(bytes(data))
        self._has_sent(len(data))

    def write_eof(self) -> None:
        """Let the server see the end, behind all that was written."""
        self._pipe().send(END)

    def get_write_buffer_size(self) -> int:
        return self._unread

    def close(self) -> None:
        """Close; what was written still arrives."""
        if not self.gone:
            self.write_eof()
            self._end(None)

    def abort(self) -> None:
        if not self.gone:
            self.server.dropped()
            self._end(None)

    # what the network does

    def written(self, data: bytes) -> None:
        """The server sends this."""

    def lost(self) -> None:
        """The server is gone."""
        if not self.gone:
            self._end(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def _pipe(self) -> _Pipe:
        if self._to_server is None:
            context = self.server.process.context
            self._to_server = _Pipe(self._network.loop, self._rng, self._deliver, context)
        return self._to_server

    def _deliver(self, data: bytes) -> None:
        if not self.server.gone:
            self.server.arrived(data)

    def _feed(self) -> None:
        while self._reading and self._inbox and not self.gone:
            data = self._inbox.popleft()
            if data:
                self.server.was_read(len(data))
                self.protocol.data_received(data)
            elif not self.protocol.eof_received():
                self.close()

    def _end(self, error: Exception | None) -> None:
        self.gone = True
        self._network.dialed.pop(self.number, None)
        self._soon(self.protocol.connection_lost, error)
