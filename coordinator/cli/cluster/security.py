# SPDX-License-Identifier: Apache-2.0
"""The TLS settings and login for a cluster, from a file with Kafka's own property names.

Certificates and keys are PEM, as Kafka takes them since 2.7 (KIP-651), in files or in the properties themselves. A
property that asks for something that is not supported here is an error; properties that are about other things are
ignored, as by Kafka's tools.
"""

import re
import socket
import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from coordinator.cli.cluster.properties import read_properties
from coordinator.cli.errors import EXIT_USAGE, CommandError

if TYPE_CHECKING:
    from kafka.net.sasl.abc import SaslMechanism

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_JAAS_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")
_JAAS_OPTION: Final = re.compile(r'(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


class Security(msgspec.Struct, frozen=True):
    """The protection of a connection: plaintext or TLS, and the user; `mechanism` is empty without a login."""

    tls: ssl.SSLContext | None = None
    mechanism: str = ""
    username: str = ""
    password: str = ""

    def wrap_in_tls_if_configured(self, plain: socket.socket, host: str) -> socket.socket:
        """Return the socket, wrapped in TLS if configured. Raises OSError (ssl.SSLError if TLS fails)."""
        if self.tls is None:
            return plain
        try:
            return self.tls.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise

    def make_sasl_mechanism(self) -> "SaslMechanism":
        """Return kafka-python's SASL mechanism, which makes the messages of the login."""
        from kafka.net.sasl import get_sasl_mechanism

        made: SaslMechanism = get_sasl_mechanism(self.mechanism)(
            sasl_mechanism=self.mechanism,
            sasl_plain_username=self.username,
            sasl_plain_password=self.password,
        )
        return made


PLAINTEXT: Final = Security()


def read_security(path: Path) -> Security:
    """Read the TLS settings and login in a --command-config file. Raises CommandError that names file and property."""
    properties = read_properties(path)
    try:
        return build_security(properties)
    except CommandError as error:
        raise CommandError(f"{path}: {error}", EXIT_USAGE) from None


def build_security(properties: Mapping[str, str]) -> Security:
    """Return the TLS settings and login in a Kafka client's properties. Raises CommandError that names the property."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise CommandError(f"security.protocol {protocol}: expected {', '.join(PROTOCOLS)}")
    tls = _tls(properties) if protocol.endswith("SSL") else None
    if not protocol.startswith("SASL"):
        return Security(tls)
    mechanism = properties.get("sasl.mechanism", "GSSAPI")
    if mechanism not in MECHANISMS:
        raise CommandError(f"sasl.mechanism {mechanism}: expected {', '.join(MECHANISMS)}")
    username, password = _login(properties.get("sasl.jaas.config", ""))
    return Security(tls, mechanism, username, password)


def _login(jaas: str) -> tuple[str, str]:
    """Return the user name and password in a JAAS configuration. Raises CommandError if one is missing."""
    if not any(module in jaas for module in _JAAS_MODULES):
        raise CommandError(f"sasl.jaas.config: expected one with {' or '.join(_JAAS_MODULES)}")
    options = {
        name: re.sub(r"\\(.)", r"\1", quoted) if quoted else bare
        for name, quoted, bare in _JAAS_OPTION.findall(jaas)
    }
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise CommandError(f"sasl.jaas.config: it has no {missing[0]}")
    return options["username"], options["password"]


def _tls(properties: Mapping[str, str]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=_trusted(properties))
        _identify(context, properties)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError, as is a missing file
        raise CommandError(f"ssl: {error}") from None
    if not properties.get("ssl.endpoint.identification.algorithm", "https"):
        context.check_hostname = False
    return context


def _trusted(properties: Mapping[str, str]) -> str | None:
    """Return the certificates to trust, None for the authorities that the system trusts."""
    location = properties.get("ssl.truststore.location")
    if "ssl.truststore.certificates" in properties or location is None:
        return properties.get("ssl.truststore.certificates")
    return _pem(properties, "ssl.truststore", location)


def _identify(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    """Load our certificate and key, for a server that wants a certificate."""
    chain = properties.get("ssl.keystore.certificate.chain")
    location = properties.get("ssl.keystore.location")
    password = properties.get("ssl.key.password")
    if chain is not None:
        pem = f"{chain}\n{properties.get('ssl.keystore.key', '')}"
    elif location is not None:
        pem = _pem(properties, "ssl.keystore", location)
    else:
        return
    with tempfile.NamedTemporaryFile(
        "w", suffix=".pem"
    ) as file:  # mode 0600; Python takes keys from files alone
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name, password=password)


def _pem(properties: Mapping[str, str], store: str, location: str) -> str:
    kind = properties.get(f"{store}.type", "JKS").upper()
    if kind != "PEM":
        raise CommandError(
            f"{store}.type {kind}: only PEM can be read; "
            f"openssl and keytool convert to it (keytool -exportcert -rfc), and set {store}.type=PEM"
        )
    return Path(location).read_text(encoding="ascii")
