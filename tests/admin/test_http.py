# SPDX-License-Identifier: Apache-2.0
"""The HTTP listener: what it refuses, how long it waits, and what many scrapes cost."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.exposition import choose_encoder

from coordinator.admin import guard, metrics_page
from coordinator.admin.admin_server import names_loopback
from coordinator.admin.metrics_page import MetricsEndpoint
from tests.groups.harness import FakeClock
from tests.partitions.running import Running, eventually, node
from tests.support.log_lines import LogLines

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", metrics=True) as running:
        yield running


def guarded(running: Running) -> guard.Guard:
    assert running.app.admin is not None
    return running.app.admin.guard


async def connect(running: Running) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert running.app.serving is not None
    assert running.app.serving.metrics is not None
    port = int(running.app.serving.metrics.rsplit(":", 1)[1].partition("/")[0])
    return await asyncio.open_connection("127.0.0.1", port)


async def ask(running: Running, request: str) -> bytes:
    """Everything that is answered to one request, until the server closes."""
    reader, writer = await connect(running)
    writer.write(request.replace("\n", "\r\n").encode())
    answer = await reader.read()
    writer.close()
    return answer


async def status(running: Running, path: str = "/health", host: str = "localhost") -> int:
    answer = await ask(running, f"GET {path} HTTP/1.1\nHost: {host}\nConnection: close\n\n")
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "sent",
    [
        "GET /metrics HTTP/9.9\n\n",
        f"GET /{'a' * 20_000} HTTP/1.1\n\n",
        "GET /metrics HTTP/1.1\nHost: localhost\nAuthorization: Bearer se\0cret\n\n",
        "POST /metrics HTTP/1.1\nHost: localhost\nContent-Length: -5\n\n",
    ],
)
async def test_what_is_no_http_has_a_line_without_a_traceback_and_without_what_was_sent(
    running: Running, lines: LogLines, caplog: pytest.LogCaptureFixture, sent: str
) -> None:
    assert (await ask(running, sent)).startswith(b"HTTP/1.0 400 ")
    (refused,) = lines.fields("refusing a request that is not HTTP")
    assert refused["reason"]
    assert not any(part in refused["reason"] for part in ("aaa", "cret", "-5", "9.9"))
    assert not caplog.records


def page_of(running: Running) -> MetricsEndpoint:
    """The page of metrics of a node that has one."""
    assert running.app.admin is not None
    return running.app.admin.page


def waiting_for(event: asyncio.Event) -> Callable[[], Awaitable[None]]:
    """Goes before a collection, and ends when the event comes."""

    async def wait() -> None:
        await event.wait()

    return wait


async def nothing() -> None: ...


class LargePage(MetricsEndpoint):
    """One that no socket takes at once."""

    async def get(self, accept: str) -> tuple[bytes, str]:
        return bytes(64 << 20), "text/plain"


# --- connections ---


async def test_a_peer_that_sends_no_whole_request_is_given_up(running: Running) -> None:
    guarded(running).request_s = 0.05
    for started in (b"", b"GET /heal", b"GET /health HTTP/1.1\r\nHost: loc"):
        reader, writer = await connect(running)
        writer.write(started)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
    await eventually(lambda: not guarded(running).connections, "all to be forgotten")


async def test_a_connection_that_is_kept_open_has_as_long_again(running: Running) -> None:
    guarded(running).request_s = 3_600.0
    reader, writer = await connect(running)
    deadlines = []
    for _ in range(3):
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b'"alive"}')
        (connection,) = guarded(running).connections.values()
        assert connection.clock is not None
        deadlines.append(connection.clock.when())
    assert deadlines == sorted(set(deadlines))
    writer.close()


async def test_nobody_is_given_up_while_we_owe_the_answer(running: Running) -> None:
    guarded(running).request_s = 0.02
    go_on = asyncio.Event()
    page_of(running).prepare = waiting_for(go_on)
    asked = asyncio.create_task(status(running, "/metrics"))
    await eventually(lambda: running.app.admin.page.collections, "the request")  # type: ignore[union-attr]
    (connection,) = guarded(running).connections.values()
    assert connection.clock is None
    go_on.set()
    assert await asked == 200


async def test_a_peer_that_does_not_read_its_answer_is_given_up(running: Running) -> None:
    assert running.app.admin is not None
    running.app.admin.page = LargePage(CollectorRegistry(), nothing, FakeClock().nanos)
    guarded(running).request_s = 0.05
    _, writer = await connect(running)
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await eventually(lambda: running.app.admin.guard.connections, "the connection")  # type: ignore[union-attr]
    await eventually(lambda: not guarded(running).connections, "it to be given up")
    writer.close()


async def test_a_peer_that_asks_on_without_an_answer_is_given_up(running: Running) -> None:
    page_of(running).prepare = waiting_for(asyncio.Event())
    reader, writer = await connect(running)
    request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    writer.write(request)
    await eventually(lambda: running.app.admin.page.collections, "the first one")  # type: ignore[union-attr]
    writer.write(request * 100)
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    await eventually(lambda: not guarded(running).connections, "it to be given up")
    writer.close()


async def test_so_many_connections_and_the_oldest_that_asks_nothing_goes(running: Running) -> None:
    held = [await connect(running) for _ in range(guard.CONNECTIONS_MAX)]
    await eventually(lambda: len(guarded(running).connections) == guard.CONNECTIONS_MAX, "all")
    for _ in range(10):
        assert await status(running) == 200
        assert len(guarded(running).connections) <= guard.CONNECTIONS_MAX
    reader, _ = held[0]
    assert await reader.read() == b"", "the first one made room"
    for _, writer in held:
        writer.close()


async def test_kafka_clients_are_served_beside_800_half_requests(running: Running) -> None:
    held = [await connect(running) for _ in range(800)]
    for _, writer in held:
        writer.write(b"GET /metrics HTTP/1.1\r\n")
    client = await running.client()
    await client.commit("g", 0, 1)
    assert await client.fetch("g") == {0: 1}
    assert len(guarded(running).connections) <= guard.CONNECTIONS_MAX
    for _, writer in held:
        writer.close()


# --- requests ---


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9308", "127.0.0.1", "127.9.9.9:1", "[::1]:9308", ""]
)
def test_hosts_of_loopback(host: str) -> None:
    assert names_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["example.org", "localhost.example.org", "127.0.0.1.example.org", "192.168.0.1:9308", "[fe80::1]", "["],
)
async def test_another_host_is_refused_on_loopback(running: Running, host: str) -> None:
    assert not names_loopback(host)
    assert await status(running, host=host) == 403
    assert await status(running, "/metrics", host=host) == 403


async def test_a_name_is_as_good_as_another_where_it_listens_elsewhere(running: Running) -> None:
    assert running.app.admin is not None
    running.app.admin._only_loopback = False
    assert await status(running, host="node.example.org") == 200


async def test_a_body_is_not_read(running: Running) -> None:
    begun = "GET /health HTTP/1.1\nHost: localhost\nContent-Length: 100000000\n\nx"
    answer = await ask(running, begun)
    assert answer.startswith(b"HTTP/1.1 413 ")
    chunked = "POST /metrics HTTP/1.1\nHost: localhost\nTransfer-Encoding: chunked\n\n5\nabcde\n"
    assert (await ask(running, chunked)).startswith(b"HTTP/1.1 413 ")


async def test_other_methods_are_refused(running: Running) -> None:
    answer = await ask(running, "DELETE /health HTTP/1.1\nHost: localhost\nConnection: close\n\n")
    assert answer.startswith(b"HTTP/1.1 405 ")


# --- scrapes ---


async def test_scrapes_at_the_same_time_share_one_collection(running: Running) -> None:
    assert running.app.admin is not None
    page = running.app.admin.page
    go_on = asyncio.Event()
    page.prepare = waiting_for(go_on)
    asked = [asyncio.create_task(status(running, "/metrics")) for _ in range(50)]
    waiting = guarded(running).connections
    await eventually(lambda: [c.clock for c in waiting.values()].count(None) == 50, "all requests")
    await eventually(lambda: page.collections == 1, "the first of them to begin")
    go_on.set()
    assert await asyncio.gather(*asked) == [200] * 50
    assert page.collections == 1
    assert await status(running, "/metrics") == 200
    assert page.collections == 2, "what comes later is collected anew"


@pytest.mark.parametrize("accept", ["*/*", OPENMETRICS])
async def test_a_scrape_in_slices_is_what_it_is_in_one_piece(accept: str) -> None:
    registry = CollectorRegistry()
    for number in range(41):
        counter = Counter(f"counter_{number}", "Counts.", ["label"], registry=registry)
        counter.labels("a").inc(number)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    body, content_type = await MetricsEndpoint(registry, nothing, FakeClock().nanos, slice_ns=0).get(accept)
    turning.cancel()
    encode, expected_type = choose_encoder(accept)
    assert (body, content_type) == (encode(registry), expected_type)
    assert turns >= 41 // metrics_page.FAMILIES_AT_A_TIME


async def test_a_failed_collection_is_told_to_who_asked_and_the_next_one_is_made(running: Running) -> None:
    assert running.app.admin is not None

    async def fail() -> None:
        raise RuntimeError

    page = page_of(running)
    prepare, page.prepare = page.prepare, fail
    assert await status(running, "/metrics") == 500
    page.prepare = prepare
    assert await status(running, "/metrics") == 200
