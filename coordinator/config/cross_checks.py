# SPDX-License-Identifier: Apache-2.0
"""Checks that settings fit together, after each has been checked alone. Each mistake is reported in one line."""

from collections.abc import Mapping
from typing import Final

from coordinator.config.settings import GATEWAY_NODE_ID, INT_MAX, Settings
from coordinator.config.values import ConfigError

PORT_MAX: Final = 65_535
BROKERS: Final = 1_000
"""Ports from `gateway.port.base` on that are kept for brokers; a cluster whose ids are higher uses more."""


_DEFAULTS: Final = Settings()


def check_together(settings: Settings, origins: Mapping[str, str]) -> None:
    """Raise ConfigError for the first mistake; `origins` maps each given setting to the place where it was written."""
    _Checks(settings, origins).all()


class _Checks:
    def __init__(self, settings: Settings, origins: Mapping[str, str]) -> None:
        self._settings = settings
        self._origins = origins

    def _shown(self, key: str) -> str:
        value = getattr(self._settings, key.replace(".", "_"))
        shown = f"{key} = {value}" if value is not None else f"no {key}"
        return f"{shown} ({self._origins.get(key, 'its default')})"

    def all(self) -> None:
        """Check all settings against each other."""
        self._session_timeouts()
        self._ports()
        if self._settings.is_gateway:
            self._login()
            self._gateway_addresses()
            self._gateway_tls()
        else:
            self._no_gateway()
            self._advertised_address()

    def _session_timeouts(self) -> None:
        settings = self._settings
        if settings.group_min_session_timeout_ms > settings.group_max_session_timeout_ms:
            low, high = (
                self._shown("group.min.session.timeout.ms"),
                self._shown("group.max.session.timeout.ms"),
            )
            raise ConfigError(f"{low} is more than {high}")

    def _ports(self) -> None:
        settings = self._settings
        for key in ("listen", "advertise", "metrics.listen"):
            address = getattr(settings, key.replace(".", "_"))
            if address and address.port and address.port + self._count(key) - 1 > PORT_MAX:
                raise ConfigError(f"{self._shown(key)} leaves no ports for {self._shown('workers')}")

    def _count(self, key: str) -> int:
        """Return the number of ports from this address on: gateways have metrics, too."""
        settings = self._settings
        gateways = settings.gateway_workers if settings.is_gateway and key == "metrics.listen" else 0
        return settings.workers + gateways

    def _advertised_address(self) -> None:
        settings = self._settings
        setting = "advertise" if settings.advertise else "listen"
        if (settings.advertise or settings.listen).is_wildcard:
            shown = self._shown(setting)
            raise ConfigError(f"clients cannot connect to {shown}: set advertise to the HOST:PORT they use")

    def _no_gateway(self) -> None:
        """Raise if a gateway has lost its cluster's address: it must not become a node by itself, open to everybody."""
        for key in self._origins:
            of_gateway = key.startswith(("gateway.", "upstream."))
            attribute = key.replace(".", "_")
            if of_gateway and getattr(self._settings, attribute) != getattr(_DEFAULTS, attribute):
                raise ConfigError(f"{self._shown(key)} needs upstream.bootstrap.servers")

    def _login(self) -> None:
        settings = self._settings
        protocol, mechanism = settings.upstream_security_protocol, settings.upstream_sasl_mechanism
        if protocol.startswith("SASL_") != (mechanism is not None):
            pair = f"{self._shown('upstream.security.protocol')} and {self._shown('upstream.sasl.mechanism')}"
            raise ConfigError(f"{pair} do not fit: a mechanism goes with SASL_PLAINTEXT or SASL_SSL")
        if mechanism == "OAUTHBEARER":
            self._needs("upstream.sasl.mechanism", "upstream.sasl.oauthbearer.token.file")
        elif mechanism is not None:
            self._needs("upstream.sasl.mechanism", "upstream.sasl.username")
            self._needs("upstream.sasl.mechanism", "upstream.sasl.password.file")

    def _needs(self, key: str, needed: str) -> None:
        if getattr(self._settings, needed.replace(".", "_")) is None:
            raise ConfigError(f"{self._shown(key)} needs {needed}")

    def _gateway_addresses(self) -> None:
        settings = self._settings
        if settings.gateway_advertised_host in ("", "0.0.0.0", "::"):  # noqa: S104 - recognised here, not bound to
            raise ConfigError(
                "clients cannot connect to every address: set gateway.host to the host they use"
            )
        if not settings.listen.port:
            shown = self._shown("listen")
            raise ConfigError(f"{shown}: a gateway's processes share their ports, so these need numbers")
        if settings.node_id + settings.workers > INT_MAX - GATEWAY_NODE_ID:
            raise ConfigError(
                f"{self._shown('node.id')} is too large for a gateway, which adds {GATEWAY_NODE_ID}"
            )
        brokers = range(settings.gateway_port_base, settings.gateway_port_base + BROKERS)
        for key in ("listen", "metrics.listen"):
            address = getattr(settings, key.replace(".", "_"))
            if address and any(address.port + index in brokers for index in range(self._count(key))):
                shown, base = self._shown(key), self._shown("gateway.port.base")
                raise ConfigError(f"{shown} is among the {BROKERS} ports of brokers from {base}")

    def _gateway_tls(self) -> None:
        settings = self._settings
        if settings.gateway_ssl_certificate_location is not None:
            self._needs("gateway.ssl.certificate.location", "gateway.ssl.key.location")
        if settings.gateway_ssl_key_location is not None:
            self._needs("gateway.ssl.key.location", "gateway.ssl.certificate.location")
        if settings.gateway_sni_pattern is None:
            return
        self._needs("gateway.sni.pattern", "gateway.ssl.certificate.location")
        host = settings.gateway_sni_pattern
        if host.count("{id}") != 1 or not _is_host_name(host.replace("{id}", "1")):
            shown = self._shown("gateway.sni.pattern")
            raise ConfigError(f"{shown} is no host name with one {{id}}, such as broker-{{id}}.kafka.example")


def _is_host_name(text: str) -> bool:
    labels = text.split(".")
    return len(text) <= 253 and all(
        label and label.isascii() and label.replace("-", "").replace("_", "").isalnum() for label in labels
    )
