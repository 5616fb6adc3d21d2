# SPDX-License-Identifier: Apache-2.0
"""The ports of a gateway: one for each broker, and one for each node of ours.

Every process of a gateway listens on all of them. A port stays bound when its broker is gone, so that its clients can
come back; until a broker has that id again, the gateway closes their connections at once.
"""

import asyncio
from collections.abc import Callable
from socket import socket
from typing import Final, TypeAlias

from coordinator.config import Address
from coordinator.gateway.address_book import AddressBook, OurNode
from coordinator.gateway.routing_types import BROKER, Routes
from coordinator.runtime.sockets import set_nonblocking_and_nodelay
from coordinator.telemetry.logs import get_logger
from protocol.proxy_header import Endpoint

log = get_logger("gateway")

ACCEPTED_AT_ONCE: Final = 64
PAUSE_S: Final = 0.5
"""The seconds for which no connection is accepted after the process has run out of descriptors."""

Shuffle = Callable[[list[Address]], list[Address]]
Accept: TypeAlias = "Callable[[socket, Endpoint], None]"


class BrokerPort:
    """The port of a broker; it lists the nodes that its connections can lead to, in the order in which to try them."""

    def __init__(self, book: AddressBook, routes: Routes, node_id: int) -> None:
        self._book = book
        self.routes = routes
        self.node_id = node_id

    def broker_addresses_to_try(self) -> list[Address]:
        """Return the address of the broker with this id, or nothing if it is gone."""
        address = self._book.brokers.get(self.node_id)
        return [] if address is None else [address]

    def describe_target_nodes(self, pipeline: int) -> str:
        """Describe the nodes that a pipeline can lead to, for the log."""
        return f"broker {self.node_id}" if pipeline == BROKER else "any node of ours"

    def our_nodes_to_try(self) -> list[OurNode]:
        """Return all our nodes: any of them can answer FindCoordinator."""
        return list(self._book.nodes.values())


class OurNodePort:
    """The port of a node of ours."""

    def __init__(self, book: AddressBook, routes: Routes, node_id: int, shuffle: Shuffle) -> None:
        self._book = book
        self._shuffle = shuffle
        self.routes = routes
        self.node_id = node_id

    def broker_addresses_to_try(self) -> list[Address]:
        """Return all brokers in random order, so that clients spread over them."""
        return self._shuffle(list(self._book.brokers.values()))

    def describe_target_nodes(self, pipeline: int) -> str:
        """Describe the nodes that a pipeline can lead to, for the log."""
        return "any broker" if pipeline == BROKER else f"our node {self.node_id}"

    def our_nodes_to_try(self) -> list[OurNode]:
        """Return this node, or nothing if it is gone."""
        node = self._book.nodes.get(self.node_id)
        return [] if node is None else [node]


Port: TypeAlias = BrokerPort | OurNodePort


class PortListener:
    """A listening socket, which passes on the connections that it accepts."""

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
            set_nonblocking_and_nodelay(sock)
            self._accept(sock, Endpoint(str(name[0]), int(name[1])))

    def _listen_again(self) -> None:
        self._resume = None
        self._loop.add_reader(self._sock.fileno(), self._readable)

    @property
    def port(self) -> int:
        """The number of the port to which the socket is bound."""
        return int(self._sock.getsockname()[1])

    def close(self) -> None:
        """Accept no more connections."""
        if self._resume is not None:
            self._resume.cancel()
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
