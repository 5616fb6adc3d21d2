# SPDX-License-Identifier: Apache-2.0
"""The configuration that a gateway process gets once, at its start."""

from dataclasses import dataclass
from pathlib import Path

from coordinator.config import Address
from coordinator.config.settings import GATEWAY_NODE_ID
from coordinator.gateway.address_book import PORT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """The settings that one gateway process needs, taken from the settings of the node."""

    host: str
    """The host name in the addresses that clients get."""
    port_base: int
    """The base of the brokers' ports: the port of a broker is this plus its id."""
    bind_host: str = "127.0.0.1"
    """The address to which the ports are bound."""
    max_connections: int
    max_connections_per_ip: int
    idle_ms: int
    """The value of connections.max.idle.ms."""
    request_bytes_max: int
    """The value of socket.request.max.bytes."""
    kept_bytes_max: int = 256 * 1024 * 1024
    """connections.unsent.max.bytes: the limit of bytes that all connections of the process may hold."""
    unread_ms_max: int = 60_000
    """The value of connections.unread.max.ms."""
    message_bytes_max: int = 1024 * 1024
    """message.max.bytes of our nodes, by which requests about groups may be longer."""
    connect_timeout_ms: int = 10_000
    """The time within which a connection to a broker has to be made, with its TLS handshake."""
    unreachable_timeout_ms: int = 10_000
    """The value of gateway.unreachable.timeout.ms."""
    authorization_cache_ms: int = 5_000
    certificate: Path | None = None
    """The certificate in PEM that clients get; with it they use TLS."""
    key: Path | None = None
    sni_pattern: str | None = None
    """The names of nodes (`broker-{id}.kafka.example`) for which clients ask in TLS (SNI) if one port serves all."""
    sni_port: int = 0
    asks_for_login: bool = False
    """True if the brokers accept no request of a client that has not logged in."""
    upstream_tls: bool = False
    upstream_ca: Path | None = None
    """The authorities in PEM that certify the brokers; None for those that the system trusts."""
    upstream_names_checked: bool = True
    """True if a broker's certificate has to contain the name under which the broker is reached."""

    def client_address_for(self, node_id: int) -> Address | None:
        """Return the address at which clients reach a broker; None if it has no valid port or one of our ids."""
        if not 0 <= node_id < GATEWAY_NODE_ID:
            return None
        if self.sni_pattern is not None:
            return Address(self.sni_pattern.replace("{id}", str(node_id)), self.sni_port)
        port = self.port_base + node_id
        return Address(self.host, port) if 0 < port <= PORT_MAX else None
