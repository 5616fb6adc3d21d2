# SPDX-License-Identifier: Apache-2.0
"""What aiohttp leaves open: how many connections there may be, and for how long one may take for a request.

Each connection takes a descriptor that the Kafka listener could use, whether or not its peer ever says anything.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

CONNECTIONS_MAX: Final = 64
REQUEST_S: Final = 30.0
"""For so long a peer may send its next request, and for so long again read the answer to it."""


class Guard:
    """Makes the protocols of a listener, and ends those that take too long."""

    def __init__(self, make_handler: Callable[[], asyncio.Protocol]) -> None:
        self._make_handler = make_handler
        self.request_s = REQUEST_S
        self.connections: dict[asyncio.BaseTransport, GuardedConnection] = {}

    def __call__(self) -> asyncio.BaseProtocol:
        """The protocol of a new connection."""
        return GuardedConnection(self, self._make_handler())

    def make_room(self) -> bool:
        """Whether there may be one more connection; ends the one whose peer has owed us a request for longest."""
        if len(self.connections) < CONNECTIONS_MAX:
            return True
        waiting = [each for each in self.connections.values() if each.clock is not None]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda each: each.clock.when() if each.clock else 0.0)
        oldest.forget()
        oldest.abort()
        return True

    def began(self, transport: asyncio.BaseTransport | None) -> None:
        """A request has come whole: its answer is ours to give, however long that takes."""
        if transport is not None and (connection := self.connections.get(transport)) is not None:
            connection.stop_clock()

    def answered(self, transport: asyncio.BaseTransport | None) -> None:
        """It is answered: the peer's time begins anew."""
        if transport is not None and (connection := self.connections.get(transport)) is not None:
            connection.start_clock()

    def close(self) -> None:
        """End all connections."""
        for connection in list(self.connections.values()):
            connection.abort()


class GuardedConnection(asyncio.Protocol):
    """Hands everything on to aiohttp's handler of the connection."""

    def __init__(self, guard: Guard, handler: asyncio.Protocol) -> None:
        self._guard = guard
        self._handler = handler
        self._transport: asyncio.Transport | None = None
        self.clock: asyncio.TimerHandle | None = None
        self._admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the socket, unless there are too many."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit from it
        if not self._guard.make_room():
            self._transport.abort()
            return
        self._admitted = True
        self._guard.connections[transport] = self
        self.start_clock()
        self._handler.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the socket."""
        if self._admitted:
            self.forget()
            self._handler.connection_lost(exc)

    def forget(self) -> None:
        """It does not count any more."""
        self.stop_clock()
        if self._transport is not None:
            self._guard.connections.pop(self._transport, None)

    def data_received(self, data: bytes) -> None:
        """Hand it on; a peer that asks again before it has its answer is ended, as aiohttp would queue all of it."""
        if not self._admitted:
            return
        if self.clock is None:
            self.abort()
        else:
            self._handler.data_received(data)

    def eof_received(self) -> None:
        """Hand it on."""
        if self._admitted:
            self._handler.eof_received()

    def pause_writing(self) -> None:
        """The peer does not read."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._handler.resume_writing()

    def start_clock(self) -> None:
        """Give the peer `Guard.request_s` from now."""
        self.stop_clock()
        self.clock = asyncio.get_running_loop().call_later(self._guard.request_s, self.abort)

    def stop_clock(self) -> None:
        """Nothing is expected of the peer."""
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()
