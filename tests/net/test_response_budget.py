# SPDX-License-Identifier: Apache-2.0
"""All connections together have a budget for answers that are not taken, and peers that do not read are closed."""

import asyncio
from pathlib import Path

import pytest

from coordinator.api import offset_fetch
from coordinator.net import long_requests, response_budget
from coordinator.net.response_budget import CHECK_INTERVAL_MS, OVER_MS_MAX
from tests.net import requests
from tests.net.edge import Client, Edge, settle
from tests.support.log_lines import LogLines

MIB = 1 << 20
BUDGET_BYTES = 2 * MIB
UNREAD_MS_MAX = 60_000
PARTITIONS = 60
"""With some 4 KB of metadata each: an answer of 240 KB."""


@pytest.fixture
async def edge(tmp_path: Path) -> Edge:
    edge = Edge(tmp_path, unsent_bytes_max=BUDGET_BYTES, unread_ms_max=UNREAD_MS_MAX)
    commit(edge, "big", PARTITIONS)
    commit(edge, "bigger", PARTITIONS + 20)
    return edge


def commit(edge: Edge, group: str, partitions: int) -> None:
    client = edge.connect()
    client.send(requests.commit(group, dict.fromkeys(range(partitions), 1), metadata="x" * 4_000))


def deaf(edge: Edge, group: str = "big", number: int = 1) -> Client:
    """A client that asks for all offsets of a group so often and reads nothing."""
    client = edge.connect()
    client.transport.reads = False
    client.send(*(requests.fetch_offsets(group, each) for each in range(1, number + 1)))
    return client


def unsent_bytes(clients: list[Client]) -> int:
    return sum(client.transport.unsent_bytes + client.connection._unsent.answers_bytes for client in clients)


async def check(edge: Edge, times: int = 1) -> None:
    """Let so many intervals pass, with a look at the connections after each."""
    for _ in range(times):
        edge.clock.passed_ms += CHECK_INTERVAL_MS
        edge.budget.close_stuck_readers(edge.clock.mono_ms())
        await settle()


async def test_many_connections_that_never_read_hold_no_more_than_the_budget(edge: Edge) -> None:
    clients = [deaf(edge) for _ in range(60)]
    await settle()
    answer_bytes = clients[0].transport.unsent_bytes
    assert answer_bytes > 200_000
    assert BUDGET_BYTES < unsent_bytes(clients) <= BUDGET_BYTES + answer_bytes
    assert edge.budget.total_bytes == unsent_bytes(clients)
    assert edge.stats.limit_refusals[response_budget.SETTING] > 0


async def test_members_go_on_while_the_budget_is_used_up(edge: Edge) -> None:
    clients = [deaf(edge) for _ in range(60)]
    member = edge.connect()
    member.send(requests.commit("g", {0: 1}, 1), requests.api_versions(2))
    assert member.correlation_ids() == [1, 2]
    member.send(requests.fetch_offsets("g", 3), requests.commit("g", {0: 2}, 4))
    assert member.correlation_ids() == [3, 4], "it is known to be short"
    member.send(requests.fetch_offsets("big", 5), requests.commit("g", {0: 2}, 6))
    assert member.correlation_ids() == [], "its answer is long"
    for client in clients:
        client.transport.drain()
    await settle()
    assert member.correlation_ids() == [5, 6]
    assert all(client.correlation_ids() == [1] for client in clients), "nobody was closed"
    assert edge.budget.total_bytes == 0


async def test_while_it_is_used_up_those_that_read_nothing_are_closed_the_largest_first(
    edge: Edge, lines: LogLines
) -> None:
    small = [deaf(edge) for _ in range(4)]
    large = [deaf(edge, "bigger") for _ in range(4)]
    waiting = edge.connect()
    waiting.send(requests.fetch_offsets("g", 1))
    assert edge.budget.over
    await check(edge, 3)
    assert waiting.correlation_ids() == [1]
    assert any(client.transport.aborted for client in large)
    assert not any(client.transport.aborted for client in small)
    assert edge.stats.connections_unread_closed == len(lines.of("warning"))
    left = [client for client in (*small, *large) if not client.transport.aborted]
    assert edge.budget.total_bytes == unsent_bytes(left) <= BUDGET_BYTES


async def test_what_a_slow_peer_takes_lets_those_go_on_who_wait(edge: Edge) -> None:
    """It is seen at the next check, though the peer's transport is still full."""
    slow = [deaf(edge) for _ in range(10)]
    waiting = edge.connect()
    waiting.send(requests.fetch_offsets("big", 1))
    assert edge.budget.over
    assert waiting.correlation_ids() == []
    for client in slow:
        client.transport.unsent_bytes = min(client.transport.unsent_bytes, 70_000)
    await check(edge)
    assert waiting.correlation_ids() == [1]
    assert edge.budget.total_bytes == unsent_bytes([*slow, waiting]) <= BUDGET_BYTES


async def test_who_takes_a_little_again_and_again_is_closed_as_well_in_the_end(edge: Edge) -> None:
    clients = [deaf(edge) for _ in range(60)]
    await settle()
    slow = [client for client in clients if client.transport.unsent_bytes]
    waiting = [client for client in clients if not client.transport.unsent_bytes]
    for passed_ms in range(0, 2 * OVER_MS_MAX, CHECK_INTERVAL_MS):
        for client in slow:
            client.transport.unsent_bytes -= 1
        await check(edge)
        if passed_ms < OVER_MS_MAX - CHECK_INTERVAL_MS:
            assert not any(client.transport.aborted for client in slow), passed_ms
    assert any(client.transport.aborted for client in slow)
    assert any(client.transport.unsent_bytes for client in waiting), "others have had their turn"


async def test_a_peer_that_takes_nothing_for_long_is_closed_though_there_is_room(edge: Edge) -> None:
    client = deaf(edge)
    await check(edge, UNREAD_MS_MAX // CHECK_INTERVAL_MS)
    assert not client.transport.aborted
    client.transport.unsent_bytes -= 1
    await check(edge, UNREAD_MS_MAX // CHECK_INTERVAL_MS)
    assert not client.transport.aborted, "it has taken something meanwhile"
    await check(edge)
    assert client.transport.aborted
    assert edge.budget.total_bytes == 0


async def test_nothing_is_owed_to_connections_that_are_gone(tmp_path: Path) -> None:
    """Whatever waited: for the disk, in the transport, or in the backlog."""
    edge = Edge(tmp_path, unsent_bytes_max=BUDGET_BYTES, flush_by_itself=False)
    writer = edge.connect()
    commit(edge, "big", PARTITIONS)
    await settle()
    edge.flush()
    for_the_peer = deaf(edge, number=20)
    writer.send(requests.commit("big", {0: 2}))
    for_the_disk = edge.connect()
    for_the_disk.send(*(requests.fetch_offsets("big", each) for each in range(20)))
    await settle()
    assert all(
        (for_the_disk.connection._unsent.answers_bytes, for_the_peer.transport.unsent_bytes, edge.budget.over)
    )
    assert edge.budget.total_bytes == unsent_bytes([writer, for_the_peer, for_the_disk])
    for client in (writer, for_the_peer, for_the_disk):
        await client.drop()
    assert edge.budget.total_bytes == 0
    assert not edge.budget.over


async def test_few_long_answers_are_made_together_and_none_while_the_budget_is_used_up(
    tmp_path: Path,
) -> None:
    """What is made in slices is in no budget before it is whole."""
    edge = Edge(tmp_path, unsent_bytes_max=BUDGET_BYTES, turn_ns=0)
    edge.server.long_requests.short_shares = 2
    commit(edge, "big", PARTITIONS)
    commit(edge, "big-2", PARTITIONS)
    edge.connect().send(requests.commit("small", dict.fromkeys(range(100), 1)))
    groups = ["big", "big-2", *["small"] * (offset_fetch.MANY_OFFSETS // 100)]
    await settle()
    clients = [edge.connect() for _ in range(60)]
    together = 0
    for client in clients:
        client.transport.reads = False
        client.send(requests.fetch_groups(*groups))
    for _ in range(20_000):
        await asyncio.sleep(0)
        together = max(together, len(edge.server.long_requests))
        if edge.budget.over and not edge.server.long_requests:
            break
    answer_bytes = max(client.transport.unsent_bytes for client in clients)
    assert together == long_requests.LONG_AT_ONCE
    assert answer_bytes > 400_000
    assert BUDGET_BYTES < edge.budget.total_bytes <= BUDGET_BYTES + long_requests.LONG_AT_ONCE * answer_bytes
    await settle()  # which ends, as those that wait do so without a share of every turn
    gone = [client for client in clients if not client.transport.unsent_bytes][::2]
    for client in gone:
        await client.drop()
    left = [client for client in clients if client not in gone]
    for client in left:
        client.transport.drain()
    for _ in range(20_000):
        await asyncio.sleep(0)
        left = [client for client in left if client.correlation_ids() != [1]]
    assert left == []
    assert edge.budget.total_bytes == 0
