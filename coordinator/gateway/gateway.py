# SPDX-License-Identifier: Apache-2.0
"""One process of a gateway: its ports, and the connections of clients."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from socket import socket
from typing import Final, NamedTuple

from coordinator.config import Address
from coordinator.gateway.address_book import AddressBook, OurNode
from coordinator.gateway.buffer_budget import BufferBudget
from coordinator.gateway.cluster_authorizer import ClusterAuthorizers
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.connector import Connector
from coordinator.gateway.listeners import Listeners
from coordinator.gateway.offload import Offloader
from coordinator.gateway.permission_gate import (
    Adopt,
    AnswerAbsent,
    PermissionGate,
    adopt_nothing,
    answer_no_absent_groups,
)
from coordinator.gateway.ports import BrokerPort, Port
from coordinator.gateway.relay import Relay
from coordinator.gateway.routing_types import Ask, leave_handler_unwrapped
from coordinator.gateway.session import READ_BYTES
from coordinator.gateway.socket_stream import EndedStreamCloser
from coordinator.host_resources import HostResources
from coordinator.runtime.allocator import trim_heap
from coordinator.runtime.garbage import free_interpreter_caches
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from protocol.proxy_header import Endpoint

log = get_logger("gateway")

REASONS: Final = ("protocol", "unread", "room", "idle", "fault")
"""The reasons for which a connection is closed."""
CHECKS: Final = 10
"""The number of checks within the time after which an idle or unread connection is closed."""
GONE_S: Final = 30.0
"""The seconds for which the requests of a client that is gone may wait for the cluster."""

Discovered = Callable[[int, Address], None]


class ConnectionCounts(NamedTuple):
    """The connections of a process: `open` now, the others since its start."""

    open: int
    accepted: int
    refused: int
    unreached: int
    closed: Mapping[str, int]
    """The connections that were closed, by the reason."""


class Gateway:
    """One process of a gateway; its supervisor sets the brokers and the nodes."""

    def __init__(
        self,
        config: GatewayConfig,
        loop: asyncio.AbstractEventLoop,
        machine: HostResources,
        *,
        adopt: Adopt = adopt_nothing,
        answer_absent: AnswerAbsent = answer_no_absent_groups,
        gate: Ask | None = None,
        discovered: Discovered | None = None,
    ) -> None:
        """Prepare the process, without listening yet.

        `adopt` takes a group over, and `answer_absent` answers requests about groups that are not here. `discovered` is
        called with each unknown broker that a response names. A `gate` replaces the one that asks the cluster for
        permissions.

        Raises ValueError if a file of certificates cannot be used.
        """
        self.loop = loop
        self._config = config
        self._discovered = discovered
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.ends = EndedStreamCloser(loop)
        self.book = AddressBook(config.client_address_for, self._discover)
        self.connector = Connector(loop, config, machine.unconnected)
        self.request_bytes_max = config.request_bytes_max
        self.closed: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        """The number of connections that this process has closed, by the reason."""
        self.buffer_budget = BufferBudget(config.kept_bytes_max, self.closed)
        self.relays: set[Relay] = set()
        """The open connections."""
        self._left: set[Relay] = set()
        """The connections whose client is gone, and whose other sockets are not closed yet."""
        self.offloader = Offloader(lambda: machine.thread(loop, "groupkeeper-gate"))
        cache_ms = config.authorization_cache_ms
        authorizers = ClusterAuthorizers(machine.clock.mono_ms, cache_ms, self.offloader)
        if gate is None:
            gate = PermissionGate(
                authorizers.get_client_authorizer, self.offloader, adopt, answer_absent
            ).handle_request
        after_login = authorizers.wrap_with_login_check if config.asks_for_login else leave_handler_unwrapped
        self._listeners = Listeners(self, machine, config, gate, self.offloader, after_login)
        self.tasks = Tasks()
        self._check_timer: asyncio.TimerHandle | None = None
        self._started = False

    # --- called by the supervisor ---

    def set_brokers_and_listen(self, brokers: Mapping[int, Address]) -> None:
        """Replace the brokers, and listen on the ports of new ones; the ports of old ones stay bound."""
        self.book.set_brokers(brokers)
        if self._started:
            for node_id in brokers:
                self._listeners.listen_for_broker(node_id)

    def set_our_nodes(self, nodes: Mapping[int, OurNode]) -> None:
        """Replace our nodes, and listen on the ports of new ones. Raises OSError if a port cannot be bound."""
        self.book.set_our_nodes(nodes)
        if self._started:
            for node in nodes.values():
                self._listeners.listen_for_our_node(node)

    # --- the life of the process ---

    def start(self) -> None:
        """Listen on all ports. Raises OSError if the port of a node of ours cannot be bound."""
        self._started = True
        for node in self.book.nodes.values():
            self._listeners.listen_for_our_node(node)
        for node_id in self.book.brokers:
            self._listeners.listen_for_broker(node_id)
        self._check()

    def stop_accepting(self) -> None:
        """Accept no more connections; open ones go on."""
        self._started = False
        self._listeners.close()

    async def stop(self) -> None:
        """Accept no more connections, and close all open ones."""
        self.stop_accepting()
        if self._check_timer is not None:
            self._check_timer.cancel()
        for relay in [*self.relays, *self._left]:
            relay.abort()
        await self.tasks.close()
        self.offloader.close()

    @property
    def is_listening(self) -> bool:
        """True if clients can connect."""
        return self._started

    @property
    def ports_by_node_id(self) -> dict[int, int]:
        """The numbers of the ports, by the ids of the nodes that clients reach on them."""
        return self._listeners.ports_by_node_id

    @property
    def counts(self) -> ConnectionCounts:
        """The numbers of connections: open, accepted, refused at a limit, not made to a node, and closed."""
        listeners = self._listeners
        return ConnectionCounts(
            len(self.relays), listeners.accepted, listeners.refused, self.connector.failures, self.closed
        )

    def _discover(self, node_id: int, address: Address) -> None:
        log.info("an answer names an unknown broker", broker=node_id, address=str(address))
        if self._started:
            self._listeners.listen_for_broker(node_id)
        if self._discovered is not None:
            self._discovered(node_id, address)

    # --- connections ---

    def start_client_relay(self, port: Port, sock: socket, peer: Endpoint) -> None:
        """Serve a client that has connected."""
        relay = Relay(self, port, sock, peer)
        self.relays.add(relay)
        if isinstance(port, BrokerPort):
            relay.open_broker()

    def note_client_closed(self, relay: Relay) -> None:
        """Stop counting a connection as open, because its client is gone."""
        self.relays.discard(relay)
        self._left.add(relay)
        self._listeners.release_client_admission(relay.peer)

    def forget_relay(self, relay: Relay) -> None:
        """Forget a connection, as all its sockets are closed."""
        self._left.discard(relay)

    def _check(self) -> None:
        """Close connections that were idle or unread for too long, and return freed memory to the system."""
        now_s = self.loop.time()
        idle_s, unread_s = self._config.idle_ms / 1000, self._config.unread_ms_max / 1000
        for relay in list(self.relays):
            limit_s = unread_s if relay.has_client else min(unread_s, GONE_S)
            if relay.measure_unread_s(now_s) >= limit_s:
                self.closed["unread"] += 1
                log.warning("closing a connection that does not read its answers", peer=relay.peer_name)
                relay.abort()
            elif relay.measure_idle_s(now_s) >= idle_s and relay.session.is_idle:
                self.closed["idle"] += 1
                relay.finish()
        if self.offloader.has_run or self.buffer_budget.most_bytes:
            self.offloader.has_run, self.buffer_budget.most_bytes = False, self.buffer_budget.total_bytes
            if not self.buffer_budget.total_bytes:  # else a collection walks through all decoded requests
                free_interpreter_caches()
            self.offloader.submit_with_callback(trim_heap)
        self._check_timer = self.loop.call_later(min(idle_s, unread_s) / CHECKS, self._check)
