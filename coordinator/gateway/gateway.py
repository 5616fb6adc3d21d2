# SPDX-License-Identifier: Apache-2.0
"""A gateway process: its ports, and the connections that come to them."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from socket import socket
from typing import Final

from coordinator.config import Address
from coordinator.gateway.book import Book, OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.dialing import Dialer
from coordinator.gateway.ports import BrokerPort, Listening, OurPort
from coordinator.gateway.relay import Port, Relay
from coordinator.gateway.rights import Adopt, Rights, all_are_ours
from coordinator.gateway.routes import Gate, PortRoutes
from coordinator.gateway.wire import Buffer
from coordinator.machine import Machine
from coordinator.net.limits import Admission
from coordinator.telemetry.logs import get_logger
from protocol.proxy_header import Endpoint

log = get_logger("gateway")

IDLE_CHECKS: Final = 10
"""So often within the idle time it is looked who has been idle for all of it."""

Discovered = Callable[[int, Address], None]


class Gateway:
    """One process of a gateway; `brokers` and `nodes` are what its supervisor says there is."""

    def __init__(
        self,
        config: GatewayConfig,
        loop: asyncio.AbstractEventLoop,
        machine: Machine,
        *,
        adopt: Adopt = all_are_ours,
        gate: Gate | None = None,
        discovered: Discovered | None = None,
    ) -> None:
        """`adopt` makes groups ours before they are spoken of, `discovered` hears of a broker that an answer names and
        that was not known. A `gate` stands in the place of the one that asks the cluster for rights.

        Raises OSError where a file of certificates cannot be used.
        """
        self.loop = loop
        self._config = config
        self._machine = machine
        self._discovered = discovered
        self.buffer = Buffer()
        self.book = Book(config.place, self._discover)
        self.dialer = Dialer(loop, config, machine.unconnected)
        self.request_bytes_max = config.request_bytes_max
        self.relays: set[Relay] = set()
        """The connections that are open."""
        gate = gate or Rights(machine.clock.mono_ms, config.authorization_cache_ms, adopt).gate
        self._broker_routes = PortRoutes(self.book, gate, ours=False)
        self._our_routes = PortRoutes(self.book, gate, ours=True)
        self._admission = Admission(config.max_connections, config.max_connections_per_ip)
        self._listening: dict[int, Listening] = {}  # by the node's id
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle_check: asyncio.TimerHandle | None = None
        self._started = False

    # --- what the supervisor says ---

    @property
    def brokers(self) -> Mapping[int, Address]:
        """The brokers that are known, by id."""
        return self.book.brokers

    @property
    def nodes(self) -> Mapping[int, OurNode]:
        """Our nodes, by id."""
        return self.book.nodes

    def set_brokers(self, brokers: Mapping[int, Address]) -> None:
        """These are the brokers now. Ports of those that are gone stay."""
        self.book.set_brokers(brokers)
        if self._started:
            for node_id in brokers:
                self._listen_for_broker(node_id)

    def set_nodes(self, nodes: Mapping[int, OurNode]) -> None:
        """These are our nodes now. Raises OSError where a port of one cannot be had."""
        self.book.set_nodes(nodes)
        if self._started:
            for node in nodes.values():
                self._listen_for_node(node)

    # --- the life of the process ---

    def start(self) -> None:
        """Listen on all ports. Raises OSError where one of our own nodes' cannot be had."""
        self._started = True
        for node in self.nodes.values():
            self._listen_for_node(node)
        for node_id in self.brokers:
            self._listen_for_broker(node_id)
        self._check_idle()

    def stop_accepting(self) -> None:
        """Accept no more connections; those that are open go on."""
        self._started = False
        for listening in self._listening.values():
            listening.close()
        self._listening.clear()

    async def stop(self) -> None:
        """Accept no more connections, and close all that there are."""
        self.stop_accepting()
        if self._idle_check is not None:
            self._idle_check.cancel()
        for relay in list(self.relays):
            relay.abort()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def ports(self) -> dict[int, int]:
        """Where it listens, by the id of the node that clients find there."""
        return {node_id: listening.port for node_id, listening in self._listening.items()}

    def _discover(self, node_id: int, address: Address) -> None:
        log.info("an answer names a broker that was not known", broker=node_id, address=str(address))
        self._listen_for_broker(node_id)
        if self._discovered is not None:
            self._discovered(node_id, address)

    def _listen_for_broker(self, node_id: int) -> None:
        place = self._config.place(node_id)
        if place is None:
            log.error("there is no port for a broker with so high an id", broker=node_id)
            return
        port = BrokerPort(self.book, self._broker_routes, node_id)
        try:
            self._listen(port, place.port)
        except OSError as error:  # the others are served all the same
            log.error("the port of a broker cannot be had", broker=node_id, reason=str(error))

    def _listen_for_node(self, node: OurNode) -> None:
        shuffle = _shuffler(self._machine.random_bytes)
        self._listen(OurPort(self.book, self._our_routes, node.node_id, shuffle), node.address.port)

    def _listen(self, port: Port, number: int) -> None:
        if port.node_id not in self._listening:
            sock = self._machine.bind_shared(Address(self._config.bind_host, number))
            self._listening[port.node_id] = Listening(self.loop, sock, port, self._accepted)

    # --- connections ---

    def _accepted(self, port: Port, sock: socket, peer: Endpoint) -> None:
        if not self._admission.admit(peer.host):
            sock.close()
            return
        relay = Relay(self, port, sock, peer)
        self.relays.add(relay)
        if isinstance(port, BrokerPort):
            relay.open_broker()

    def gone(self, relay: Relay) -> None:
        """This connection is over."""
        if relay in self.relays:
            self.relays.discard(relay)
            self._admission.leave(relay.peer.host)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run this until it ends, or the gateway does."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _check_idle(self) -> None:
        idle_s = self._config.idle_ms / 1000
        since_s = self.loop.time() - idle_s
        for relay in [relay for relay in self.relays if relay.last_active_s < since_s]:
            relay.finish()
        self._idle_check = self.loop.call_later(idle_s / IDLE_CHECKS, self._check_idle)


def _shuffler(random_bytes: Callable[[int], bytes]) -> Callable[[list[Address]], list[Address]]:
    def shuffle(addresses: list[Address]) -> list[Address]:
        return sorted(addresses, key=lambda _: random_bytes(8))

    return shuffle
