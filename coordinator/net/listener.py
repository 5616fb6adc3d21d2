# SPDX-License-Identifier: Apache-2.0
"""Listening for Kafka clients."""

import asyncio
import socket
from typing import Final, cast

from coordinator.config import Address
from coordinator.net.connection import Connection, Server

BACKLOG: Final = 1024


def bind(address: Address) -> socket.socket:
    """A socket that listens on `address`. Raises OSError with the address in its text."""
    infos = socket.getaddrinfo(
        address.host or None, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, target = infos[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(target)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
    return sock


class Listener:
    """Accepts connections on a socket that listens already."""

    def __init__(self, loop: asyncio.AbstractEventLoop, server: Server, sock: socket.socket) -> None:
        self._loop = loop
        self._server = server
        self._sock = sock
        self._listening: asyncio.Server | None = None

    async def start(self) -> None:
        """Serve whoever connects, and whoever waits in the socket's queue."""
        self._listening = await self._loop.create_server(self._connect, sock=self._sock, backlog=BACKLOG)

    def _connect(self) -> asyncio.BaseProtocol:
        return cast(asyncio.BaseProtocol, Connection(self._server))

    def stop_accepting(self) -> None:
        """Take no new connections; those that are open stay."""
        if self._listening is not None:
            self._listening.close()
