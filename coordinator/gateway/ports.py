# SPDX-License-Identifier: Apache-2.0
"""The ports of a gateway: one for each broker, and one for each node of ours.

Every process of a gateway listens on all of them. A port stays bound when its broker is gone, so that clients which
know it find their way back; until there is a broker with its id again, they are closed as by a machine that is down.
"""

import asyncio
from collections.abc import Callable
from socket import socket
from typing import Final, TypeAlias

from coordinator.config import Address
from coordinator.gateway.book import Book, OurNode
from coordinator.gateway.ways import BROKER, Routes
from coordinator.runtime.sockets import send_at_once
from coordinator.telemetry.logs import get_logger
from protocol.proxy_header import Endpoint

log = get_logger("gateway")

ACCEPTED_AT_ONCE: Final = 64
PAUSE_S: Final = 0.5
"""How long no connection is accepted when the process has no descriptors left."""

Shuffle = Callable[[list[Address]], list[Address]]
Accept: TypeAlias = "Callable[[socket, Endpoint], None]"


class BrokerPort:
    """Where clients find a broker; a port's nodes come in the order in which to try them."""

    def __init__(self, book: Book, routes: Routes, node_id: int) -> None:
        self._book = book
        self.routes = routes
        self.node_id = node_id

    def brokers(self) -> list[Address]:
        """The broker with this id, unless it is gone."""
        address = self._book.brokers.get(self.node_id)
        return [] if address is None else [address]

    def wanted(self, lane: int) -> str:
        """What a lane leads to, in words."""
        return f"broker {self.node_id}" if lane == BROKER else "any node of ours"

    def coordinators(self) -> list[OurNode]:
        """Any node of ours knows who coordinates a group."""
        return list(self._book.nodes.values())


class OurPort:
    """Where clients find a node of ours."""

    def __init__(self, book: Book, routes: Routes, node_id: int, shuffle: Shuffle) -> None:
        self._book = book
        self._shuffle = shuffle
        self.routes = routes
        self.node_id = node_id

    def brokers(self) -> list[Address]:
        """All of them: any will do, and not all clients should ask the same one."""
        return self._shuffle(list(self._book.brokers.values()))

    def wanted(self, lane: int) -> str:
        """What a lane leads to, in words."""
        return "any broker" if lane == BROKER else f"our node {self.node_id}"

    def coordinators(self) -> list[OurNode]:
        """This node, unless it is gone."""
        node = self._book.nodes.get(self.node_id)
        return [] if node is None else [node]


Port: TypeAlias = BrokerPort | OurPort


class Listening:
    """A socket that listens, and what becomes of those who connect."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket, accept: Accept) -> None:
        self._loop = loop
        self._sock = sock
        self._accept = accept
        self._resume: asyncio.TimerHandle | None = None
        loop.add_reader(sock.fileno(), self._readable)

    def _readable(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, name = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.error("no connection can be accepted", reason=str(error))
                self._loop.remove_reader(self._sock.fileno())
                self._resume = self._loop.call_later(PAUSE_S, self._listen_again)
                return
            send_at_once(sock)
            self._accept(sock, Endpoint(str(name[0]), int(name[1])))

    def _listen_again(self) -> None:
        self._resume = None
        self._loop.add_reader(self._sock.fileno(), self._readable)

    @property
    def port(self) -> int:
        """The number of the port."""
        return int(self._sock.getsockname()[1])

    def close(self) -> None:
        """Accept no more connections."""
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
