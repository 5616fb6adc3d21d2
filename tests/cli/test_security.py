# SPDX-License-Identifier: Apache-2.0
"""Clusters with TLS and passwords: what a file of Kafka's client properties says, and what comes of it."""

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.cli.cluster.properties import parse_properties, read_properties
from coordinator.cli.cluster.security import Security, build_security
from coordinator.cli.errors import CommandError
from tests.cli.conftest import Command
from tests.kafka.cluster import PROTOCOLS, USERS, KafkaCluster
from tests.support.tls import TestAuthority

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def jaas(mechanism: str, user: str, password: str) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    name = f"org.apache.kafka.common.security.{module}"
    return f'{name} required username="{user}" password="{password}";'


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One broker with all listeners."""
    cluster = KafkaCluster(tmp_path_factory.mktemp("secure"), protocols=PROTOCOLS)
    try:
        cluster.start()
        cluster.create_topic("there", 2)
        yield cluster
    finally:
        cluster.close()


def properties(kafka: KafkaCluster, protocol: str, mechanism: str = "", password: str = "") -> dict[str, str]:
    given = {"security.protocol": protocol}
    if "SSL" in protocol:
        given |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(kafka.ca)}
    if mechanism:
        login = jaas(mechanism, "alice", password or USERS["alice"])
        given |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    return given


def written(path: Path, given: dict[str, str]) -> str:
    path.write_text("# for tools\n" + "".join(f"{name}={value}\n" for name, value in given.items()))
    return str(path)


@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_cluster_that_asks_for_a_password(
    groupkeeper: Command, kafka: KafkaCluster, tmp_path: Path, protocol: str, mechanism: str
) -> None:
    file = written(tmp_path / "client.properties", properties(kafka, protocol, mechanism))
    at = ("--bootstrap", kafka.bootstrap(protocol), "--command-config", file)
    assert [each["topic"] for each in groupkeeper("topics", "list", "there", "--json", *at).json] == ["there"]
    assert groupkeeper("groups", "list", *at).exit_code == 0
    wrong = written(tmp_path / "wrong.properties", properties(kafka, protocol, mechanism, "guessed"))
    refused = groupkeeper("topics", "list", *at[:2], "--command-config", wrong)
    assert refused.exit_code == 1
    assert f"groupkeeper: {at[1]} refused the user: " in refused.stderr
    assert "guessed" not in refused.stderr


@pytest.mark.kafka
def test_a_cluster_with_tls(groupkeeper: Command, kafka: KafkaCluster, tmp_path: Path) -> None:
    given = properties(kafka, "SSL")
    at = ("topics", "describe", "there", "--bootstrap", kafka.bootstrap("SSL"), "--command-config")
    assert groupkeeper(*at, written(tmp_path / "file", given)).exit_code == 0
    inline = {
        "security.protocol": "ssl",
        "ssl.truststore.certificates": kafka.ca.read_text().replace("\n", "\\n\\\n"),
    }
    assert groupkeeper(*at, written(tmp_path / "inline", inline)).exit_code == 0
    strange = groupkeeper(*at, written(tmp_path / "strange", {"security.protocol": "SSL"}))
    assert strange.exit_code == 1
    assert f"cannot connect to {kafka.bootstrap('SSL')}: TLS: CERTIFICATE_VERIFY_FAILED" in strange.stderr
    plain = groupkeeper(*at[:5], "--timeout", "5")
    assert plain.exit_code == 1, "a listener of TLS does not answer in the clear"


@pytest.mark.kafka
def test_a_mechanism_that_the_cluster_does_not_have(
    groupkeeper: Command, kafka: KafkaCluster, tmp_path: Path
) -> None:
    file = written(tmp_path / "file", properties(kafka, "SASL_PLAINTEXT", "PLAIN"))
    ran = groupkeeper("groups", "list", "--bootstrap", kafka.bootstrap(), "--command-config", file)
    assert (ran.exit_code, ran.stderr.count("\n")) == (1, 1)


# --- TLS ---


def shown_certificate(server: ssl.SSLContext, client: Security, host: str = "localhost") -> str:
    """The common name in the certificate that a client shows a server. Raises OSError as the client does."""
    names: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            try:
                with server.wrap_socket(connection, server_side=True) as secured:
                    shown: Any = secured.getpeercert()
                    names.append(dict(pair for (pair,) in shown["subject"])["commonName"])
                    secured.sendall(b".")
            except OSError:  # the client has given up: that is what a test looks at
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with client.wrap_in_tls_if_configured(
                socket.create_connection(listener.getsockname(), timeout=120), host
            ) as secured:
                secured.recv(1)
        finally:
            thread.join()
    return names[0]


@pytest.mark.process
def test_our_certificate_is_shown_and_the_server_s_is_looked_at(tmp_path: Path) -> None:
    authority = TestAuthority(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate))
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_cert_chain(*authority.issue("server", "localhost"))
    trust = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    store = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(authority.key_store("admin"))}
    assert shown_certificate(server, build_security({**trust, **store})) == "admin"
    certificate, key = authority.issue("inline")
    chain = {"ssl.keystore.certificate.chain": certificate.read_text(), "ssl.keystore.key": key.read_text()}
    assert shown_certificate(server, build_security({**trust, **chain})) == "inline"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shown_certificate(server, build_security({**trust, **store}), "127.0.0.1.example")
    anywhere = {**trust, **store, "ssl.endpoint.identification.algorithm": ""}
    assert shown_certificate(server, build_security(anywhere), "127.0.0.1.example") == "admin"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"security.protocol": "TLS"}, "security.protocol TLS: expected PLAINTEXT"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "sasl.mechanism GSSAPI: expected PLAIN"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config: expected one with"),
        (
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": "x.PlainLoginModule",
            },
            "sasl.jaas.config: it has no username",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/x.jks"},
            "ssl.truststore.type JKS: only PEM",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/x.p12", "ssl.keystore.type": "PKCS12"},
            "ssl.keystore.type PKCS12: only PEM",
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.location": "/no/such", "ssl.keystore.type": "PEM"},
            "ssl: .*No such file",
        ),
        ({"security.protocol": "SSL", "ssl.truststore.certificates": "no PEM"}, "ssl: "),
    ],
)
def test_what_cannot_be_done_is_refused_by_its_name(
    groupkeeper: Command, tmp_path: Path, given: dict[str, str], reason: str
) -> None:
    with pytest.raises(CommandError, match=reason):
        build_security(given)
    path = tmp_path / "client.properties"
    ran = groupkeeper("groups", "list", "--command-config", written(path, given))
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert str(path) in ran.stderr


def test_a_file_that_is_not_there_is_a_mistake(groupkeeper: Command, tmp_path: Path) -> None:
    ran = groupkeeper("groups", "list", "--command-config", str(tmp_path / "none"))
    assert ran == (2, "", f"groupkeeper: {tmp_path / 'none'}: No such file or directory\n")


def test_a_login_is_read_as_jaas_writes_it() -> None:
    login = 'x.ScramLoginModule required\n username = "a b" password="p\\"w;=" serviceName=kafka;'
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": login,
    }
    assert build_security(given) == Security(None, "SCRAM-SHA-256", "a b", 'p"w;=')
    bare = "x.PlainLoginModule required username=alice password=secret;"
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": bare}
    assert build_security(given) == Security(None, "PLAIN", "alice", "secret")


# --- property files ---


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1\nb = 2\nc:3\nd 4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# a=1\n  ! b=2\n\n   \nc=3", {"c": "3"}),
        ("a=one \\\n   two \\\n   three\nb=\\\\\nc=4", {"a": "one two three", "b": "\\", "c": "4"}),
        ("a\\ b\\==x\\=y=z", {"a b=": "x=y=z"}),
        ("a=\\u0041\\t.\\n", {"a": "A\t.\n"}),
        ("a=1\r\nb=2\ra=3", {"a": "3", "b": "2"}),
        ("alone\nempty=\n", {"alone": "", "empty": ""}),
        ("a=end\\", {"a": "end"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert parse_properties(text) == found


def test_a_byte_order_mark_is_no_part_of_the_first_property(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_bytes(b"\xef\xbb\xbfsasl.mechanism=PLAIN\n")
    assert read_properties(file) == {"sasl.mechanism": "PLAIN"}


@given(st.text(max_size=200))
def test_no_text_is_too_strange_for_the_reader_of_properties(text: str) -> None:
    assert all(isinstance(value, str) for value in parse_properties(text).values())
