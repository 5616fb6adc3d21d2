# SPDX-License-Identifier: Apache-2.0
"""A connection that a gateway opens for a client; it begins with a PROXY header, which names the client."""

import asyncio
from typing import Final, cast

from coordinator.net.connection import Connection
from coordinator.net.connection_limits import OURSELVES
from coordinator.net.server import Server
from coordinator.telemetry.logs import get_logger
from protocol.errors import ProtocolError
from protocol.proxy_header import Endpoint, ProxyHeader, decode_proxy_header

log = get_logger("connection")

HEADER_WITHIN_S: Final = 10.0
"""The time within which a gateway has to send the PROXY header, in seconds."""
GATEWAY: Final = Endpoint(OURSELVES, 0)
"""The client's name in the log for requests of the gateway itself."""


class ProxiedConnection(asyncio.Protocol):
    """Reads the PROXY header, then hands the socket to a Connection; a socket without a header is closed."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._read = b""
        self._transport: asyncio.Transport | None = None
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the PROXY header, for a limited time."""
        self._transport = cast(asyncio.Transport, transport)
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(HEADER_WITHIN_S, self._refuse, "no PROXY header in time")

    def data_received(self, data: bytes) -> None:
        """Read more of the header, whose length is bounded."""
        self._read += data
        try:
            found = decode_proxy_header(self._read)
        except ProtocolError as error:
            self._server.stats.malformed_requests += 1
            self._refuse(str(error))
            return
        if found is not None:
            self._hand_over(*found)

    def _hand_over(self, header: ProxyHeader, end: int) -> None:
        transport, rest = self._transport, self._read[end:]
        assert transport is not None, "data without a connection"
        self._forget()
        connection = Connection(self._server)
        transport.set_protocol(cast(asyncio.BaseProtocol, connection))
        client = header.source or GATEWAY
        peer = f"[{client.host}]:{client.port}" if ":" in client.host else f"{client.host}:{client.port}"
        connection.accept(transport, client.host, peer)
        if rest:
            connection.data_received(rest)

    def _refuse(self, reason: str) -> None:
        if self._transport is not None:
            log.info("closing a private connection", reason=reason)
            self._transport.abort()
            self._forget()

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self._transport = None
        self._read = b""

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection that has ended before its header."""
        self._forget()
