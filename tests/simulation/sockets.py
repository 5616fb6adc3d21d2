# SPDX-License-Identifier: Apache-2.0
"""Sockets in memory that do not block, over the connections of the simulated network."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Self

from coordinator.config import Address
from tests.simulation.loop import SimulatedLoop
from tests.simulation.network import Listener, Network, Port

INBOX_BYTES_MAX: Final = 64 * 1024
"""Received bytes from which a socket takes no more until they are read."""
SEND_BYTES_MAX: Final = 32 * 1024
"""The most that one call sends."""
PIECES_SHARE: Final = 0.1
"""How many of the calls send or receive less than they could."""
FIRST_DESCRIPTOR: Final = 1_000

Call = Callable[[], object]


@dataclass(slots=True, eq=False)
class _Watched:
    """Who waits for a socket."""

    sock: "SimulatedSocket | ListeningSocket"
    reader: Call | None = None
    writer: Call | None = None
    is_due: bool = False


class Sockets:
    """The sockets of all processes; calls those who wait for one, each turn while it is ready."""

    def __init__(self, network: Network, seed: int) -> None:
        self.network = network
        self.rng = random.Random(f"{seed}/sockets")
        self._loop: SimulatedLoop = network.loop
        self._watched: dict[int, _Watched] = {}
        self._count = FIRST_DESCRIPTOR

    # --- what a machine gives ---

    def unconnected(self, _family: int) -> Any:
        """A socket that is still to be connected."""
        return SimulatedSocket(self)

    def bind_shared(self, address: Address) -> Any:
        """A socket that listens."""
        return ListeningSocket(self, address)

    # --- what a loop does ---

    def watch(self, fd: int, *, reader: Call | None = None, writer: Call | None = None) -> None:
        """Call these while the socket is ready."""
        watched = self._watched[fd]
        watched.reader, watched.writer = reader or watched.reader, writer or watched.writer
        self.changed(fd)

    def unwatch(self, fd: int, *, reader: bool = False, writer: bool = False) -> bool:
        """Call these no longer; whether that was done before."""
        watched = self._watched.get(fd)
        if watched is None:
            return False
        was = (reader and watched.reader is not None) or (writer and watched.writer is not None)
        watched.reader = None if reader else watched.reader
        watched.writer = None if writer else watched.writer
        return was

    async def until_ready(self, fd: int, *, to_write: bool = False) -> None:
        """Wait until the socket can be read, or written."""
        ready: asyncio.Future[None] = self._loop.create_future()

        def call() -> None:
            if not ready.done():
                ready.set_result(None)

        self.watch(fd, **{"writer" if to_write else "reader": call})
        try:
            await ready
        finally:
            self.unwatch(fd, reader=not to_write, writer=to_write)

    # --- what sockets do ---

    def added(self, sock: "SimulatedSocket | ListeningSocket") -> int:
        """The number of a new socket."""
        self._count += 1
        self._watched[self._count] = _Watched(sock)
        return self._count

    def removed(self, fd: int) -> None:
        """A socket is closed."""
        self._watched.pop(fd, None)

    def changed(self, fd: int) -> None:
        """A socket may be ready now."""
        watched = self._watched.get(fd)
        if watched is not None and not watched.is_due and _calls(watched):
            watched.is_due = True
            self._loop.call_soon(self._call, watched, fd, context=watched.sock.process.context)

    def _call(self, watched: _Watched, fd: int) -> None:
        watched.is_due = False
        for call in _calls(watched):
            if self._watched.get(fd) is watched and call in (watched.reader, watched.writer):
                call()
        self.changed(fd)

    def part_of(self, count: int) -> int:
        """How many of so many bytes one call takes."""
        return self.rng.randrange(1, count) if count > 1 and self.rng.random() < PIECES_SHARE else count


def _calls(watched: _Watched) -> list[Call]:
    ready = []
    if watched.reader is not None and watched.sock.is_readable:
        ready.append(watched.reader)
    if watched.writer is not None and watched.sock.is_writable:
        ready.append(watched.writer)
    return ready


class SimulatedSocket(asyncio.Protocol):
    """A stream socket, connected or not yet."""

    def __init__(self, sockets: Sockets) -> None:
        self.process = sockets.network.process()
        self._sockets = sockets
        self._fd = sockets.added(self)
        self._transport: Any = None
        self._inbox = bytearray()
        self._is_paused = False
        self._is_full = False
        self._has_ended = False
        self._error: Exception | None = None

    # --- as a socket ---

    def fileno(self) -> int:
        return self._fd

    def setblocking(self, _flag: bool) -> None:
        """It never blocks."""

    def setsockopt(self, *_: object) -> None:
        """There is nothing to set."""

    def getsockname(self) -> tuple[str, int]:
        return "10.0.0.2", self._fd

    def connect(self, port: Port) -> None:
        """Connect. Raises ConnectionRefusedError."""
        self._sockets.network.dial(port, self)

    def recv(self, count: int) -> bytes:
        """Up to so many bytes, none at the end. Raises BlockingIOError while there are none."""
        if self._inbox:
            size = self._sockets.part_of(min(count, len(self._inbox)))
            data = bytes(self._inbox[:size])
            del self._inbox[:size]
            if self._is_paused and not self._inbox:
                self._is_paused = False
                self._transport.resume_reading()
            return data
        if self._error is not None:
            raise self._error
        if not self._has_ended:
            raise BlockingIOError
        return b""

    def recv_into(self, buffer: memoryview) -> int:
        data = self.recv(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Send some of the bytes. Raises BlockingIOError while the peer takes none, and BrokenPipeError."""
        if self._error is not None or self._transport is None or self._transport.is_closing():
            raise BrokenPipeError
        if self._is_full:
            raise BlockingIOError
        size = self._sockets.part_of(min(len(data), SEND_BYTES_MAX))
        self._transport.write(bytes(data[:size]))
        return size

    def shutdown(self, _how: int) -> None:
        """Let the peer see the end. Raises BrokenPipeError."""
        if self._transport is None or self._transport.is_closing():
            raise BrokenPipeError
        self._transport.write_eof()

    def close(self) -> None:
        self._sockets.removed(self._fd)
        if self._transport is not None:
            self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- as what waits for a socket sees it ---

    @property
    def is_readable(self) -> bool:
        return bool(self._inbox) or self._has_ended or self._error is not None

    @property
    def is_writable(self) -> bool:
        return self._transport is not None and not self._is_full

    # --- as the network sees it ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._inbox += data
        if len(self._inbox) > INBOX_BYTES_MAX and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
        self._sockets.changed(self._fd)

    def eof_received(self) -> bool:
        self._has_ended = True
        self._sockets.changed(self._fd)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._error, self._has_ended, self._is_full = exc, True, False
        self._sockets.changed(self._fd)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._sockets.changed(self._fd)


class ListeningSocket:
    """A socket that listens; those who connect wait in it."""

    def __init__(self, sockets: Sockets, address: Address) -> None:
        self.process = sockets.network.process()
        self.is_writable = False
        self._sockets = sockets
        self._address = address
        self._fd = sockets.added(self)
        self._waiting: deque[tuple[SimulatedSocket, tuple[str, int]]] = deque()
        self._listener = Listener(self.process, self._connected)
        sockets.network.listeners[address.port] = self._listener

    def _connected(self) -> asyncio.Protocol:
        sock = SimulatedSocket(self._sockets)
        self._waiting.append((sock, ("10.0.0.1", sock.fileno())))
        self._sockets.changed(self._fd)
        return sock

    @property
    def is_readable(self) -> bool:
        return bool(self._waiting)

    def fileno(self) -> int:
        return self._fd

    def getsockname(self) -> tuple[str, int]:
        return self._address.host, self._address.port

    def accept(self) -> tuple[SimulatedSocket, tuple[str, int]]:
        """The oldest that waits. Raises BlockingIOError."""
        if not self._waiting:
            raise BlockingIOError
        return self._waiting.popleft()

    def close(self) -> None:
        self._sockets.removed(self._fd)
        listeners = self._sockets.network.listeners
        if listeners.get(self._address.port) is self._listener:
            del listeners[self._address.port]
