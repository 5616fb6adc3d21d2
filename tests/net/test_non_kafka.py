# SPDX-License-Identifier: Apache-2.0
"""Clients of other protocols, and producers: each hears what is wrong, and the log says so."""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol.apis import ApiKey
from tests.net import requests
from tests.net.edge import Edge
from tests.support.log_lines import LogLines
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

TLS = "this looks like TLS; only plaintext is served here"
HTTP = "this looks like HTTP; metrics are on the port of metrics.listen"
ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("strangers")) as service:
        yield service
        assert "Traceback" not in service.log_text()


def wait_for_line(service: Service, event: str, **fields: Any) -> dict[str, Any]:
    """The first line of the log with this event and these fields, once it is there."""

    def found() -> dict[str, Any] | None:
        for line in service.log_text().splitlines():
            if line.startswith("{"):
                logged: dict[str, Any] = json.loads(line)
                if logged["event"] == event and fields.items() <= logged.items():
                    return logged
        return None

    return wait_until(found, what=lambda: f"{event} {fields} in:\n{service.log_text()}")


def test_a_client_of_tls_hears_an_alert_and_the_log_says_tls(service: Service) -> None:
    context = ssl.create_default_context()
    with (
        socket.create_connection(("127.0.0.1", service.port), timeout=120) as plain,
        pytest.raises(ssl.SSLError, match=r"(?i)handshake.failure"),
    ):
        context.wrap_socket(plain, server_hostname="localhost")
    wait_for_line(service, "closing a connection that breaks the protocol", reason=TLS)


@pytest.mark.parametrize("method", METHODS)
def test_a_client_of_http_hears_where_it_is(service: Service, method: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
    try:
        connection.request(method, "/metrics")
        answer = connection.getresponse()
        said = answer.read().decode()
    finally:
        connection.close()
    assert (answer.status, answer.getheader("Connection")) == (400, "close")
    if method != "HEAD":
        assert (
            "serves Kafka's protocol and no HTTP; metrics, /health and /ready have a port of their own"
            in said
        )
    wait_for_line(service, "closing a connection that breaks the protocol", reason=HTTP)


def reasons(lines: LogLines) -> list[str]:
    """Why connections were closed, of which all lines are but that of the topics that an edge begins with."""
    return [fields["reason"] for _, event, fields in lines.lines if event != "topics created"]


@pytest.mark.parametrize(
    ("data", "reason", "answer"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", TLS, ALERT),
        (b"\x16\x03\x03\xff", TLS, ALERT),
        (b"GET / HTTP/1.1\r\n\r\n", HTTP, b"HTTP/1.1 400 "),
        (b"\x16\x02\x01\x02\x00", "a frame of 369230082 bytes; the limit is 1048576", b""),
        (b"SSH-2.0-OpenSSH\r\n", "a frame of 1397966893 bytes; the limit is 1048576", b""),
        (b"\x80\x00\x00\x00", "a frame of -2147483648 bytes", b""),
    ],
)
@pytest.mark.parametrize("whole", [True, False], ids=["at once", "byte by byte"])
async def test_only_what_is_known_is_named(
    tmp_path: Path, lines: LogLines, *, data: bytes, reason: str, answer: bytes, whole: bool
) -> None:
    edge = Edge(tmp_path)
    client = edge.connect()
    for piece in [data] if whole else [data[at : at + 1] for at in range(len(data))]:
        client.send(piece)
    assert client.transport.closed
    assert client.transport.sent[: len(answer)] == answer
    assert bool(client.transport.sent) == bool(answer)
    assert reasons(lines) == [reason]
    assert edge.stats.malformed_requests + edge.stats.oversized_requests == 1


async def test_what_was_asked_before_is_answered_first(tmp_path: Path) -> None:
    edge = Edge(tmp_path, flush_by_itself=False)
    client = edge.connect()
    client.send(requests.commit("g", {0: 1}, 1), b"\x16\x03\x01\x02\x00")
    assert (client.transport.closed, bytes(client.transport.sent)) == (False, b"")
    edge.flush()
    assert client.transport.closed
    assert client.transport.sent.endswith(ALERT)
    assert (
        client.transport.sent[4:8] == b"\0\0\0\1"
    )  # behind the length of the answer: which request it is for


async def test_a_client_that_wants_to_authenticate_is_named(tmp_path: Path, lines: LogLines) -> None:
    edge = Edge(tmp_path)
    edge.connect().send(requests.framed(requests.header(ApiKey.SASL_HANDSHAKE, 1) + b"\0\5PLAIN"))
    (reason,) = reasons(lines)
    assert reason.endswith("; there is no authentication here")
