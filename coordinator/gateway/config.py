# SPDX-License-Identifier: Apache-2.0
"""The configuration that a gateway process gets once, at its start."""

from dataclasses import dataclass
from pathlib import Path

from coordinator.config import Address
from coordinator.config.settings import GATEWAY_NODE_ID
from coordinator.gateway.address_book import PORT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Plain values, out of the settings of the same names."""

    host: str
    """What clients get to see."""
    port_base: int
    """The port of a broker is its id more."""
    bind_host: str = "127.0.0.1"
    """Where the ports are bound."""
    max_connections: int
    max_connections_per_ip: int
    idle_ms: int
    """connections.max.idle.ms"""
    request_bytes_max: int
    """socket.request.max.bytes"""
    kept_bytes_max: int = 256 * 1024 * 1024
    """connections.unsent.max.bytes: what all connections of the process may keep."""
    unread_ms_max: int = 60_000
    """connections.unread.max.ms"""
    message_bytes_max: int = 1024 * 1024
    """message.max.bytes of our nodes, by which requests of groups may be longer."""
    connect_timeout_ms: int = 10_000
    """How long a connection to a broker may take, with its TLS handshake."""
    unreachable_timeout_ms: int = 10_000
    """gateway.unreachable.timeout.ms"""
    authorization_cache_ms: int = 5_000
    certificate: Path | None = None
    """PEM: what is shown to clients. With it they speak TLS."""
    key: Path | None = None
    sni_pattern: str | None = None
    """`broker-{id}.kafka.example`: one port for all, known apart by the names that clients ask for in TLS."""
    sni_port: int = 0
    asks_for_login: bool = False
    """Whether the brokers take no request of a client that has not logged in."""
    upstream_tls: bool = False
    upstream_ca: Path | None = None
    """PEM: who vouches for the brokers; None for whom the system trusts."""
    upstream_names_checked: bool = True
    """Whether a broker's certificate has to have the name under which it is reached."""

    def place(self, node_id: int) -> Address | None:
        """Where clients reach the broker with this id; None where its port would be none, or its id is one of ours."""
        if not 0 <= node_id < GATEWAY_NODE_ID:
            return None
        if self.sni_pattern is not None:
            return Address(self.sni_pattern.replace("{id}", str(node_id)), self.sni_port)
        port = self.port_base + node_id
        return Address(self.host, port) if 0 < port <= PORT_MAX else None
