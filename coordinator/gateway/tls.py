# SPDX-License-Identifier: Apache-2.0
"""TLS on both sides of a gateway: what it shows its clients, whom it believes in the cluster, and names for nodes."""

import re
import ssl
from typing import Any, Final
from weakref import WeakKeyDictionary

from coordinator.gateway.config import GatewayConfig

ID: Final = "{id}"
"""Stands in `gateway.sni.pattern` for the id of a node."""


def client_context(config: GatewayConfig) -> ssl.SSLContext | None:
    """What clients are shown; None where they speak without TLS.

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


def broker_context(config: GatewayConfig) -> ssl.SSLContext | None:
    """Whom to believe among the brokers; None where they are spoken to without TLS.

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


class ServerNames:
    """Tells connections apart by the name that a client asks for in TLS (SNI)."""

    def __init__(self, pattern: str, context: ssl.SSLContext) -> None:
        """Handshakes of this context that ask for a name not like `pattern` fail."""
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
        """The id of the node with this name; None for other names."""
        found = self._like.fullmatch(name)
        return None if found is None else int(found[1])

    def asked(self, sock: ssl.SSLSocket) -> int | None:
        """The id of the node that a client asked for; None where it asked for nobody."""
        return self._asked.get(sock)
