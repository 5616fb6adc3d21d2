# SPDX-License-Identifier: Apache-2.0
"""TLS on both sides of a gateway: its own certificate, the authorities of the brokers, and names for nodes."""

import re
import ssl
from typing import Any, Final
from weakref import WeakKeyDictionary

from coordinator.gateway.config import GatewayConfig

ID: Final = "{id}"
"""The part of `gateway.sni.pattern` that stands for the id of a node."""


def make_context_for_clients(config: GatewayConfig) -> ssl.SSLContext | None:
    """Return the TLS context for clients, or None if they use no TLS.

    Raises ValueError, with the setting, for files that cannot be used.
    """
    if config.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    key = config.key or config.certificate
    try:
        context.load_cert_chain(config.certificate, config.key)
    except (OSError, ValueError) as error:
        names = "gateway.ssl.certificate.location and gateway.ssl.key.location"
        raise ValueError(f"{names}: cannot use {config.certificate} with {key}: {_reason(error)}") from error
    return context


def make_context_for_brokers(config: GatewayConfig) -> ssl.SSLContext | None:
    """Return the TLS context for brokers, or None if they use no TLS.

    Raises ValueError, with the setting, for a file that cannot be used.
    """
    if not config.upstream_tls:
        return None
    try:
        context = ssl.create_default_context(cafile=config.upstream_ca)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"upstream.ssl.ca.location: cannot use {config.upstream_ca}: {_reason(error)}"
        ) from error
    context.check_hostname = config.upstream_names_checked
    return context


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


class SniNodeFinder:
    """Finds the node of a connection by the name that a client asks for in TLS (SNI)."""

    def __init__(self, pattern: str, context: ssl.SSLContext) -> None:
        """Let handshakes of this context fail if they ask for a name that does not match `pattern`."""
        before, _, after = pattern.partition(ID)
        self._like = re.compile(f"{re.escape(before)}([0-9]{{1,10}}){re.escape(after)}", re.IGNORECASE)
        self._asked: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        context.sni_callback = self._check

    def _check(self, sock: Any, name: str | None, _context: ssl.SSLContext) -> int | None:
        node_id = self.node_id(name or "")
        if node_id is None:
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        self._asked[sock] = node_id
        return None

    def node_id(self, name: str) -> int | None:
        """Return the id of the node with this name, or None for other names."""
        found = self._like.fullmatch(name)
        return None if found is None else int(found[1])

    def requested_node_id(self, sock: ssl.SSLSocket) -> int | None:
        """Return the id of the node that a client asked for, or None if it asked for none."""
        return self._asked.get(sock)
