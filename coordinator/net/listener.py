# SPDX-License-Identifier: Apache-2.0
"""Listens for Kafka clients, or, on a private socket, for gateways that connect on behalf of clients."""

import asyncio
import socket
from typing import cast

from coordinator.net.connection import Connection
from coordinator.net.proxied_connection import ProxiedConnection
from coordinator.net.server import Server
from coordinator.runtime.sockets import BACKLOG


class Listener:
    """Accepts connections on a socket that listens already; `is_private` if the socket is for gateways."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        server: Server,
        sock: socket.socket,
        *,
        is_private: bool = False,
    ) -> None:
        self._loop = loop
        self._server = server
        self._sock = sock
        self._is_private = is_private
        self._listening: asyncio.Server | None = None

    async def start_accepting(self) -> None:
        """Accept new clients from now on, and those that wait in the queue of the socket."""
        if self._is_private:
            self._listening = await self._loop.create_unix_server(
                self._connect_privately, sock=self._sock, backlog=BACKLOG
            )
        else:
            self._listening = await self._loop.create_server(self._connect, sock=self._sock, backlog=BACKLOG)

    def _connect(self) -> asyncio.BaseProtocol:
        return cast(asyncio.BaseProtocol, Connection(self._server))

    def _connect_privately(self) -> asyncio.BaseProtocol:
        return ProxiedConnection(self._server)

    def stop_accepting(self) -> None:
        """Accept no new connections; open ones stay."""
        if self._listening is not None:
            self._listening.close()
