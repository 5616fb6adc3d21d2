# SPDX-License-Identifier: Apache-2.0
"""A gateway process: its ports, and the connections that come to them."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from socket import socket
from typing import Final, NamedTuple

from coordinator.config import Address
from coordinator.gateway.beside import Beside
from coordinator.gateway.book import Book, OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.dialing import Dialer
from coordinator.gateway.entrance import Entrance
from coordinator.gateway.new_topics import NewTopics
from coordinator.gateway.ports import BrokerPort
from coordinator.gateway.relay import Port, Relay
from coordinator.gateway.rights import Adopt, Rights, all_are_ours
from coordinator.gateway.routes import Gate
from coordinator.gateway.wire import Buffer
from coordinator.machine import Machine
from coordinator.telemetry.logs import get_logger
from protocol.proxy_header import Endpoint

log = get_logger("gateway")

IDLE_CHECKS: Final = 10
"""So often within the idle time it is looked who has been idle for all of it."""

Discovered = Callable[[int, Address], None]


class Counts(NamedTuple):
    """What a gateway's process has had to do with clients, since it began but for `open`."""

    open: int
    accepted: int
    refused: int
    unreached: int


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

        Raises ValueError where a file of certificates cannot be used.
        """
        self.loop = loop
        self._config = config
        self._discovered = discovered
        self.buffer = Buffer()
        self.book = Book(config.place, self._discover)
        self.dialer = Dialer(loop, config, machine.unconnected)
        self.request_bytes_max = config.request_bytes_max
        self.relays: set[Relay] = set()
        """The connections that are open."""
        self._beside = Beside(lambda: machine.thread(loop, "groupkeeper-gate"))
        self.new_topics = NewTopics(loop.time, loop.call_later)
        """Topics that clients name here for the first time."""
        if gate is None:
            clock, cache_ms = machine.clock, config.authorization_cache_ms
            gate = Rights(clock.mono_ms, cache_ms, self._beside, adopt, self.new_topics.settle).gate
        self._entrance = Entrance(self, machine, config, gate, self._beside)
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
                self._entrance.listen_for_broker(node_id)

    def set_nodes(self, nodes: Mapping[int, OurNode]) -> None:
        """These are our nodes now. Raises OSError where a port of one cannot be had."""
        self.book.set_nodes(nodes)
        if self._started:
            for node in nodes.values():
                self._entrance.listen_for_node(node)

    # --- the life of the process ---

    def start(self) -> None:
        """Listen on all ports. Raises OSError where one of our own nodes' cannot be had."""
        self._started = True
        for node in self.nodes.values():
            self._entrance.listen_for_node(node)
        for node_id in self.brokers:
            self._entrance.listen_for_broker(node_id)
        self._check_idle()

    def stop_accepting(self) -> None:
        """Accept no more connections; those that are open go on."""
        self._started = False
        self._entrance.close()

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
        self._beside.close()

    @property
    def ports(self) -> dict[int, int]:
        """Where it listens, by the id of the node that clients find there."""
        return self._entrance.ports

    @property
    def counts(self) -> Counts:
        """Connections: open now, taken, refused because of a limit, and those of ours that could not be made."""
        entrance = self._entrance
        return Counts(len(self.relays), entrance.accepted, entrance.refused, self.dialer.failures)

    def _discover(self, node_id: int, address: Address) -> None:
        log.info("an answer names an unknown broker", broker=node_id, address=str(address))
        if self._started:
            self._entrance.listen_for_broker(node_id)
        if self._discovered is not None:
            self._discovered(node_id, address)

    # --- connections ---

    def let_in(self, port: Port, sock: socket, peer: Endpoint) -> None:
        """Serve a client that has connected."""
        relay = Relay(self, port, sock, peer)
        self.relays.add(relay)
        if isinstance(port, BrokerPort):
            relay.open_broker()

    def gone(self, relay: Relay) -> None:
        """This connection is over."""
        if relay in self.relays:
            self.relays.discard(relay)
            self._entrance.left(relay.peer)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Run this until it ends, or the gateway does."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _check_idle(self) -> None:
        idle_s = self._config.idle_ms / 1000
        since_s = self.loop.time() - idle_s
        idle = [relay for relay in self.relays if relay.last_active_s < since_s and relay.session.is_idle]
        for relay in idle:
            relay.finish()
        self._idle_check = self.loop.call_later(idle_s / IDLE_CHECKS, self._check_idle)
