# SPDX-License-Identifier: Apache-2.0
"""The settings `upstream.*`: the cluster's addresses, and how a node authenticates."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from coordinator.config import Address, ConfigError, Settings

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
ReadFile = Callable[[Path], bytes]
"""Returns the whole content of a file; raises OSError."""

GATEWAY_NODE_ID_FIRST: Final = 1_000_000
"""The ids of a gateway's own nodes start here: brokers of real clusters have smaller ones."""


@dataclass(frozen=True, slots=True)
class UpstreamConfig:
    """The settings of the connection to the cluster; times are in milliseconds."""

    bootstrap_servers: tuple[Address, ...]
    security_protocol: SecurityProtocol = "PLAINTEXT"
    sasl_mechanism: SaslMechanism | None = None
    sasl_username: str | None = None
    sasl_password_file: Path | None = None
    sasl_oauthbearer_token_file: Path | None = None
    ssl_ca_location: Path | None = None
    ssl_endpoint_identification: bool = True
    request_timeout_ms: int = 30_000

    def __post_init__(self) -> None:
        """Raise ConfigError, in one line that names the setting, for settings that cannot work with any cluster."""
        if not self.bootstrap_servers:
            raise ConfigError("upstream.bootstrap.servers: no HOST:PORT in it")
        if self.uses_sasl:
            self._check_sasl()

    @property
    def uses_sasl(self) -> bool:
        """True if the node has to authenticate."""
        return self.security_protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def uses_tls(self) -> bool:
        """True if connections to brokers are encrypted."""
        return self.security_protocol in ("SSL", "SASL_SSL")

    def _check_sasl(self) -> None:
        if self.sasl_mechanism is None:
            raise ConfigError(f"upstream.sasl.mechanism: {self.security_protocol} needs one")
        if self.sasl_mechanism == "OAUTHBEARER":
            if self.sasl_oauthbearer_token_file is None:
                raise ConfigError("upstream.sasl.oauthbearer.token.file: OAUTHBEARER needs it")
            return
        if not self.sasl_username:
            raise ConfigError(f"upstream.sasl.username: {self.sasl_mechanism} needs it")
        if self.sasl_password_file is None:
            raise ConfigError(f"upstream.sasl.password.file: {self.sasl_mechanism} needs it")


def config_from(settings: Settings) -> UpstreamConfig:
    """Return the cluster's part of a node's settings, which must have `upstream.bootstrap.servers`."""
    assert settings.upstream_bootstrap_servers is not None, "no gateway"
    return UpstreamConfig(
        settings.upstream_bootstrap_servers,
        security_protocol=settings.upstream_security_protocol,
        sasl_mechanism=settings.upstream_sasl_mechanism,
        sasl_username=settings.upstream_sasl_username,
        sasl_password_file=settings.upstream_sasl_password_file,
        sasl_oauthbearer_token_file=settings.upstream_sasl_oauthbearer_token_file,
        ssl_ca_location=settings.upstream_ssl_ca_location,
        ssl_endpoint_identification=settings.upstream_ssl_endpoint_identification,
        request_timeout_ms=settings.upstream_request_timeout_ms,
    )
