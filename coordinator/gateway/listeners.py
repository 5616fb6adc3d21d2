# SPDX-License-Identifier: Apache-2.0
"""Accepts the clients of a gateway: binds its ports, limits the connections, and does TLS with SNI."""

import errno
import ssl
from functools import partial
from socket import socket
from typing import Final

from coordinator.config import Address
from coordinator.gateway.address_book import OurNode
from coordinator.gateway.config import GatewayConfig
from coordinator.gateway.offload import Offloader
from coordinator.gateway.offsets_topic_read_guard import OffsetsTopicReadGuard
from coordinator.gateway.ports import BrokerPort, OurNodePort, Port, PortListener
from coordinator.gateway.relay import RelayContext
from coordinator.gateway.routes import ApiRoutes
from coordinator.gateway.routing_types import AfterLogin, Ask
from coordinator.gateway.tls import SniNodeFinder, make_context_for_clients
from coordinator.host_resources import HostResources
from coordinator.net.connection_limits import ConnectionQuotas
from coordinator.runtime.tls_handshake import shake_hands
from coordinator.telemetry.logs import get_logger
from protocol.proxy_header import Endpoint

log = get_logger("gateway")

NAMES: Final = -1
"""The place, instead of a node's id, of the one port on which clients name the node in TLS (SNI)."""


class Listeners:
    """The ports of one gateway process."""

    def __init__(
        self,
        context: RelayContext,
        machine: HostResources,
        config: GatewayConfig,
        gate: Ask,
        offloader: Offloader,
        after_login: AfterLogin,
    ) -> None:
        """Prepare the ports, without binding them. Raises ValueError for a certificate that cannot be used."""
        self._context = context
        self._machine = machine
        self._config = config
        offsets_topic = OffsetsTopicReadGuard(context.book, offloader, machine.clock.mono_ms, after_login)
        self._broker_routes, self._our_routes = (
            ApiRoutes(
                context.book,
                gate,
                offloader,
                ours=ours,
                message_bytes_max=config.message_bytes_max,
                offsets_topic=offsets_topic,
                after_login=after_login,
            )
            for ours in (False, True)
        )
        self._admission = ConnectionQuotas(config.max_connections, config.max_connections_per_ip)
        self.accepted = 0
        """The number of clients that were accepted, including those whose handshake failed."""
        self.refused = 0
        """The number of clients that were refused because of a limit."""
        self._listening: dict[int, PortListener] = {}  # by the node's id
        self._tls = make_context_for_clients(config)
        self._names: SniNodeFinder | None = None
        if config.sni_pattern is not None and self._tls is not None:
            self._names = SniNodeFinder(config.sni_pattern, self._tls)

    @property
    def ports_by_node_id(self) -> dict[int, int]:
        """The numbers of the ports, by the ids of the nodes that clients reach on them."""
        return {node_id: listening.port for node_id, listening in self._listening.items()}

    def listen_for_broker(self, node_id: int) -> None:
        """Bind the broker's port, unless that was done before; a port that cannot be bound is logged."""
        place = self._config.client_address_for(node_id)
        if place is None:
            log.error("a broker's id is too high for a port of its own", broker=node_id)
            return
        try:
            self._listen(node_id, place.port)
        except OSError as error:  # the other brokers are served all the same
            log.error("cannot listen on the port of a broker", broker=node_id, reason=str(error))

    def listen_for_our_node(self, node: OurNode) -> None:
        """Bind the port of a node of ours, unless that was done before. Raises OSError."""
        self._listen(node.node_id, node.address.port)

    def _listen(self, node_id: int, number: int) -> None:
        place = node_id
        if self._names is not None:
            place, number = NAMES, self._config.sni_port
        if place not in self._listening:
            # The system would not refuse it, as all processes share the ports.
            if number and number in self.ports_by_node_id.values():
                raise OSError(errno.EADDRINUSE, f"port {number} is that of another node")
            sock = self._machine.bind_shared(Address(self._config.bind_host, number))
            accept = partial(self._accepted, None if place == NAMES else self._port(place))
            self._listening[place] = PortListener(self._context.loop, sock, accept)

    def _port(self, node_id: int) -> Port:
        if node_id in self._context.book.nodes:
            return OurNodePort(self._context.book, self._our_routes, node_id, self._shuffled)
        return BrokerPort(self._context.book, self._broker_routes, node_id)

    def _shuffled(self, addresses: list[Address]) -> list[Address]:
        return sorted(addresses, key=lambda _: self._machine.random_bytes(8))

    def close(self) -> None:
        """Accept no more clients."""
        for listening in self._listening.values():
            listening.close()
        self._listening.clear()

    # --- clients ---

    def _accepted(self, port: Port | None, sock: socket, peer: Endpoint) -> None:
        if not self._admission.admit(peer.host):
            self.refused += 1
            sock.close()
            return
        self.accepted += 1
        if self._tls is not None:
            try:
                sock.getpeername()  # if that fails, wrapping would lose the descriptor
                wrapped = self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
            except OSError:  # the client is gone again
                sock.close()
                self.release_client_admission(peer)
            else:
                self._context.tasks.start(self._shake_hands(port, wrapped, peer), "TLS handshake")
        else:
            assert port is not None, "without TLS there are no names"
            self._context.start_client_relay(port, sock, peer)

    async def _shake_hands(self, port: Port | None, sock: ssl.SSLSocket, peer: Endpoint) -> None:
        is_let_in = False
        try:
            await shake_hands(self._context.loop, sock, self._config.connect_timeout_ms / 1000)
            wanted = port or self._asked(sock)
            if wanted is not None:
                self._context.start_client_relay(wanted, sock, peer)
                is_let_in = True
        except OSError as error:
            log.info("a TLS handshake has failed", peer=f"{peer.host}:{peer.port}", reason=str(error))
        finally:
            if not is_let_in:
                sock.close()
                self.release_client_admission(peer)

    def _asked(self, sock: ssl.SSLSocket) -> Port | None:
        """Return the port of the node that the client has named; None, without a hint, for an unknown name."""
        node_id = None if self._names is None else self._names.requested_node_id(sock)
        return None if node_id is None else self._port(node_id)

    def release_client_admission(self, peer: Endpoint) -> None:
        """Stop counting an accepted client, because it has left."""
        self._admission.leave(peer.host)
