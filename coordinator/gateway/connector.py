# SPDX-License-Identifier: Apache-2.0
"""Connects a gateway to brokers and to the private sockets of our nodes."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from socket import socket
from typing import Final, NamedTuple, TypeAlias

from coordinator.config import Address
from coordinator.gateway.address_book import OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.tls import make_context_for_brokers
from coordinator.runtime.sockets import STREAM, UNIX, set_nonblocking_and_nodelay
from coordinator.runtime.tls_handshake import shake_hands
from coordinator.telemetry.incidents import Incidents
from coordinator.telemetry.logs import get_logger
from protocol.proxy_header import Endpoint, ProxyHeader, encode_proxy_header

log = get_logger("gateway")

Unconnected: TypeAlias = "Callable[[int], socket]"

NOT_THERE: Final = "there is no address for it"
NOTHING: Final = "nothing is there to connect to"


class SocketWithPreface(NamedTuple):
    """A connected socket, and the bytes that are to be sent first."""

    sock: socket
    preface: bytes = b""


class Connector:
    """Makes the connections of one gateway process."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, config: GatewayConfig, unconnected: Unconnected
    ) -> None:
        """Prepare connections. Raises ValueError if the certificates of the brokers' authority cannot be used."""
        self._loop = loop
        self._timeout_s = config.connect_timeout_ms / 1000
        self._unconnected = unconnected
        self._tls = make_context_for_brokers(config)
        self._incidents = Incidents(log, lambda: int(loop.time() * 1000), "warning")
        self.failures = 0
        """The number of connections that could not be made."""

    def note_failed_connection(self, name: str, error: Exception) -> None:
        """Count a connection that could not be made, and log it once and then each minute."""
        self.failures += 1
        reason = str(error) or type(error).__name__
        self._incidents.log_repeated_failure(name, "cannot connect", to=name, reason=reason)

    def note_no_node_to_connect(self, wanted: str) -> None:
        """Count a connection that has no node to connect to, and log it once and then each minute."""
        self.failures += 1
        self._incidents.log_repeated_failure((NOTHING, wanted), NOTHING, wanted=wanted)

    def log_reconnection(self, name: str, wanted: str) -> None:
        """Log the recovery of `name` and of `wanted`, if connections to them failed before."""
        self._incidents.end_incident(name, "can connect again", to=name)
        self._incidents.end_incident((NOTHING, wanted), "can connect again", wanted=wanted)

    async def connect_to_broker(self, address: Address) -> SocketWithPreface:
        """Connect to a broker, with TLS if that is configured. Raises OSError."""
        sock = await self._connect_to(address)
        if self._tls is None:
            return SocketWithPreface(sock)
        wrapped = self._tls.wrap_socket(sock, server_hostname=address.host, do_handshake_on_connect=False)
        try:
            await shake_hands(self._loop, wrapped, self._timeout_s)
        except BaseException:
            wrapped.close()
            raise
        return SocketWithPreface(wrapped)

    async def connect_to_our_node(
        self, node: OurNode, client: Endpoint | None, ours: Endpoint | None
    ) -> SocketWithPreface:
        """Connect to a node of ours on behalf of `client`, which has connected to `ours`. Raises OSError."""
        if isinstance(node.private, Path):
            sock = await self._connect(UNIX, str(node.private))
            return SocketWithPreface(sock, encode_proxy_header(ProxyHeader(source=client, destination=ours)))
        return SocketWithPreface(await self._connect_to(node.private))

    async def _connect_to(self, address: Address) -> socket:
        async with asyncio.timeout(self._timeout_s):  # TimeoutError is an OSError
            found = await self._loop.getaddrinfo(*address, type=STREAM)
            failure = OSError(NOT_THERE)
            for family, _, _, _, target in found:
                try:
                    sock = await self._connect(family, target)
                except OSError as error:
                    failure = error
                else:
                    set_nonblocking_and_nodelay(sock)
                    return sock
            raise failure

    async def _connect(self, family: int, target: object) -> socket:
        sock = self._unconnected(family)
        try:
            await self._loop.sock_connect(sock, target)  # type: ignore[arg-type]
        except BaseException:
            sock.close()
            raise
        return sock
