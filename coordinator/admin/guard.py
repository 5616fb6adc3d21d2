# SPDX-License-Identifier: Apache-2.0
"""Limits that aiohttp does not have: the number of connections, and the time that a peer may take for a request.

Each connection takes a descriptor that the Kafka listener could use, even if its peer never sends anything.
"""

import asyncio
from collections.abc import Callable
from typing import Final, cast

CONNECTIONS_MAX: Final = 64
REQUEST_S: Final = 30.0
"""The seconds that a peer has to send its next request, and again to read the response."""


class Guard:
    """Makes the protocols of a listener, and ends connections whose peers take too long."""

    def __init__(self, make_handler: Callable[[], asyncio.Protocol]) -> None:
        self._make_handler = make_handler
        self.request_s = REQUEST_S
        self.connections: dict[asyncio.BaseTransport, GuardedConnection] = {}

    def __call__(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection."""
        return GuardedConnection(self, self._make_handler())

    def make_room(self) -> bool:
        """Return whether one more connection fits; at the limit, end the one that has waited longest for a request."""
        if len(self.connections) < CONNECTIONS_MAX:
            return True
        waiting = [each for each in self.connections.values() if each.clock is not None]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda each: each.clock.when() if each.clock else 0.0)
        oldest.forget()
        oldest.abort()
        return True

    def stop_connection_clock(self, transport: asyncio.BaseTransport | None) -> None:
        """Stop a connection's clock: its request is complete, and the response may take any time."""
        if transport is not None and (connection := self.connections.get(transport)) is not None:
            connection.stop_clock()

    def restart_clock_after_response(self, transport: asyncio.BaseTransport | None) -> None:
        """Restart a connection's clock, because its request is answered."""
        if transport is not None and (connection := self.connections.get(transport)) is not None:
            connection.start_clock()

    def close(self) -> None:
        """End all connections at once."""
        for connection in list(self.connections.values()):
            connection.abort()


class GuardedConnection(asyncio.Protocol):
    """A connection that passes its events on to aiohttp's handler, unless a limit ends it."""

    def __init__(self, guard: Guard, handler: asyncio.Protocol) -> None:
        self._guard = guard
        self._handler = handler
        self._transport: asyncio.Transport | None = None
        self.clock: asyncio.TimerHandle | None = None
        self._admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the socket, unless there are too many connections."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's does not inherit from it
        if not self._guard.make_room():
            self._transport.abort()
            return
        self._admitted = True
        self._guard.connections[transport] = self
        self.start_clock()
        self._handler.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and notify the handler."""
        if self._admitted:
            self.forget()
            self._handler.connection_lost(exc)

    def forget(self) -> None:
        """Stop the clock, and no longer count the connection."""
        self.stop_clock()
        if self._transport is not None:
            self._guard.connections.pop(self._transport, None)

    def data_received(self, data: bytes) -> None:
        """Pass the data on; end the connection if data comes before the response, as aiohttp would queue all of it."""
        if not self._admitted:
            return
        if self.clock is None:
            self.abort()
        else:
            self._handler.data_received(data)

    def eof_received(self) -> None:
        """Pass the end of the input on."""
        if self._admitted:
            self._handler.eof_received()

    def pause_writing(self) -> None:
        """Notify the handler that the peer does not read."""
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        """Notify the handler that the peer reads again."""
        self._handler.resume_writing()

    def start_clock(self) -> None:
        """End the connection `Guard.request_s` from now, unless the clock is stopped before."""
        self.stop_clock()
        self.clock = asyncio.get_running_loop().call_later(self._guard.request_s, self.abort)

    def stop_clock(self) -> None:
        """Stop the clock, because the peer need not do anything."""
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()
