# SPDX-License-Identifier: Apache-2.0
"""Back-pressure: what a client can make the server keep for it has a bound, whatever it sends or leaves unread."""

import asyncio
import tracemalloc
from pathlib import Path

import pytest

from coordinator.net.replies import REPLIES_WAITING_MAX
from tests.net import requests
from tests.net.edge import Client, Edge, settle

DELAY_MS = 3_000
QUEUED_BYTES_MAX = 64 * 1024
MIB = 1 << 20
ASKED = 200
"""So many requests come in one chunk; an event loop reads up to 256 KiB at a time, some 6,000 of them."""


@pytest.fixture
def edge(tmp_path: Path) -> Edge:
    """Flushes end when the test says so, and a first join waits DELAY_MS."""
    return Edge(
        tmp_path,
        flush_by_itself=False,
        initial_rebalance_delay_ms=DELAY_MS,
        queued_bytes_max=QUEUED_BYTES_MAX,
    )


async def big_group(edge: Edge) -> int:
    """A group whose offsets take some 80 KB in an answer; returns how many bytes."""
    client = edge.connect()
    client.send(
        requests.commit("big", {partition: partition for partition in range(20)}, metadata="x" * 4_000)
    )
    await settle()
    edge.flush()
    client.send(requests.fetch_offsets("big", 2))
    return len(client.answers()[-1])


def fetches() -> list[bytes]:
    """Fetches of that group, whose answers together are far more than a connection may owe."""
    return [requests.fetch_offsets("big", number) for number in range(1, ASKED + 1)]


async def test_a_client_that_pipelines_behind_a_join_is_read_no_further(edge: Edge) -> None:
    client = edge.connect()
    client.send(requests.join("g", correlation_id=1, version=3))
    asked = 1
    while not client.transport.paused:
        asked += 1
        client.send(requests.api_versions(asked))
        assert asked * len(requests.api_versions()) < 2 * QUEUED_BYTES_MAX

    edge.timers.advance(DELAY_MS)
    await settle()

    assert client.correlation_ids() == list(range(1, asked + 1))
    assert not client.transport.paused


async def test_a_client_that_reads_nothing_is_read_no_further(edge: Edge) -> None:
    client = edge.connect()
    client.transport.reads = False
    number = 0
    while not client.transport.paused:
        number += 1
        client.send(requests.api_versions(number))
        assert client.transport.unsent_bytes < MIB

    client.transport.drain()
    await settle()

    assert not client.transport.paused
    assert client.correlation_ids() == list(range(1, number + 1))


async def test_many_requests_with_long_answers_are_answered_as_fast_as_the_client_reads(edge: Edge) -> None:
    answer_bytes = await big_group(edge)
    client = edge.connect()
    client.transport.reads = False
    client.send(*fetches())
    await settle()
    assert client.transport.unsent_bytes_max < 2 * MIB + answer_bytes
    assert client.transport.paused

    answered: list[int] = []
    for _ in range(10 * ASKED):
        if len(answered) == ASKED:
            break
        client.transport.drain()
        client.transport.reads = False
        await settle()
        answered += client.correlation_ids()
        assert client.transport.unsent_bytes_max < 2 * MIB + answer_bytes
    assert answered == list(range(1, ASKED + 1))


async def test_many_long_answers_that_wait_for_the_disk_are_bounded(edge: Edge) -> None:
    answer_bytes = await big_group(edge)
    writer, client = edge.connect(), edge.connect()
    writer.send(requests.commit("big", {0: 1}))
    client.send(*fetches())  # none of it may be answered before the flush
    await settle()
    assert client.connection.has_unparked_work
    assert owed_bytes(client) < 2 * MIB + answer_bytes
    answered: list[int] = []
    edge.flush()
    for _ in range(10 * ASKED):
        if len(answered) == ASKED:
            break
        await settle()
        answered += client.correlation_ids()
    assert answered == list(range(1, ASKED + 1))
    assert not client.transport.paused


def owed_bytes(client: Client) -> int:
    """The bytes of answers that wait."""
    return sum(len(reply.frame or b"") for reply in client.connection._replies.queue)


async def test_many_short_answers_that_wait_for_the_disk_are_bounded(edge: Edge) -> None:
    client = edge.connect()
    client.send(requests.commit("g", {0: 1}, 1))
    frame = requests.commit("g", {0: 1}, 2)
    asked = 1
    while not client.transport.paused:
        client.send(frame)
        asked += 1
        assert asked <= REPLIES_WAITING_MAX
    edge.flush()
    await settle()
    assert len(client.answers()) == asked
    assert not client.transport.paused


async def test_a_client_that_does_not_read_holds_up_nobody_else(edge: Edge) -> None:
    await big_group(edge)
    deaf, other = edge.connect(), edge.connect()
    deaf.transport.reads = False
    deaf.send(*fetches())
    for number in range(1, 50):
        other.send(requests.commit("g", {0: number}, number))
        edge.flush()
        assert other.correlation_ids() == [number]
        await settle()


async def test_a_join_is_answered_to_a_client_that_reads_late(edge: Edge) -> None:
    await big_group(edge)
    client = edge.connect()
    client.transport.reads = False
    client.send(
        *(requests.fetch_offsets("big", number) for number in range(1, 9)),
        requests.join("g", correlation_id=9, version=3),
        requests.api_versions(10),
    )
    for _ in range(20):
        client.transport.drain()
        client.transport.reads = False
        await settle()
        edge.timers.advance(DELAY_MS)
        await settle()
    client.transport.drain()
    assert client.correlation_ids() == list(range(1, 11))


async def test_what_is_announced_and_never_sent_takes_no_memory(edge: Edge) -> None:
    client = edge.connect()
    tracemalloc.start()
    try:
        client.send((edge.server.request_bytes_max).to_bytes(4, "big"))
        client.send(b"12345")
        assert tracemalloc.get_traced_memory()[1] < edge.server.request_bytes_max // 4
    finally:
        tracemalloc.stop()
    assert not client.transport.closed


async def test_a_closed_connection_whose_peer_reads_nothing_does_not_linger(edge: Edge) -> None:
    client = edge.connect()
    client.transport.reads = False
    client.send(requests.api_versions(1))
    client.connection.close()
    await settle()
    assert client.connection in edge.server.connections, "closed before the peer could read what was written"

    edge.server.linger_s = 0.0
    other = edge.connect()
    other.transport.reads = False
    other.send(requests.api_versions(1), requests.framed(b"?"))
    await asyncio.sleep(0)
    await settle()
    assert other.transport.aborted
    assert other.connection not in edge.server.connections
