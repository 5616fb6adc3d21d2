# SPDX-License-Identifier: Apache-2.0
"""Requests share each turn of the event loop, whatever was sent ahead and on however many connections."""

import asyncio
from pathlib import Path

from coordinator.net.fair_queue import IDLE_NS, TURN_NS, FairQueue
from tests.groups.harness import FakeClock
from tests.net import requests
from tests.net.edge import Client, Edge, settle

ONE_A_TURN = 0
"""The time of a turn is over at once, so that one request is handled in each."""


def ask(client: Client, *numbers: int) -> None:
    client.send(*map(requests.api_versions, numbers))


async def test_what_one_connection_has_sent_ahead_takes_several_turns_and_is_answered_in_order(
    tmp_path: Path,
) -> None:
    edge = Edge(tmp_path, turn_ns=ONE_A_TURN)
    client = edge.connect()
    ask(client, *range(10))
    answered: list[list[int]] = []
    for _ in range(11):
        await asyncio.sleep(0)
        answered.append(client.correlation_ids())
    assert [each for each in answered if each] == [[number] for number in range(10)]
    assert client.connection.is_idle


async def test_connections_take_turns(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=ONE_A_TURN)
    clients = [edge.connect() for _ in range(3)]
    for client in clients:
        ask(client, 1, 2, 3)
    answered: list[int] = []
    for _ in range(3):
        await asyncio.sleep(0)
        answered = [a + len(client.answers()) for a, client in zip(answered or [0] * 3, clients, strict=True)]
    assert min(answered) == 1  # each has had its turn, though the first ones wanted more
    await settle()
    assert [len(client.answers()) + a for a, client in zip(answered, clients, strict=True)] == [3, 3, 3]


async def test_who_asks_in_plenty_comes_after_who_asks_once(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=ONE_A_TURN)
    greedy = [edge.connect() for _ in range(20)]
    for client in greedy:
        ask(client, *range(1, 31))
    for _ in range(21):
        await asyncio.sleep(0)
    assert all(client.answers() for client in greedy)
    modest = edge.connect()
    ask(modest, 1)
    await asyncio.sleep(0)
    assert modest.correlation_ids() == [1]


async def test_what_comes_in_behind_what_waits_stays_behind_it(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=ONE_A_TURN)
    client = edge.connect()
    ask(client, 1, 2)
    await asyncio.sleep(0)
    ask(client, 3)
    await settle()
    assert client.correlation_ids() == [1, 2, 3]


async def test_a_turn_with_time_left_handles_all_at_once(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    client = edge.connect()
    ask(client, 1, 2, 3)
    assert client.correlation_ids() == [1, 2, 3]


class Clock:
    """Stands still until it is moved."""

    now_ns = 1_000_000_000

    def __call__(self) -> int:
        return self.now_ns


async def test_a_request_now_and_then_makes_no_detour(tmp_path: Path) -> None:
    """Nothing goes through the backlog, and no turn of the loop is asked for."""
    edge = Edge(tmp_path)
    clock = Clock()
    edge.server.fair_queue = FairQueue(clock)
    client = edge.connect()
    for number, pause_ns in enumerate(
        (1_000_000, 11_000_000, 5_000_000_000, 2_000_000, 9_000_000, 9_000_000)
    ):
        clock.now_ns += pause_ns
        ask(client, number)
        assert client.correlation_ids() == [number]


async def test_a_turn_that_is_used_up_has_no_time_before_the_loop_has_turned(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    clock = Clock()
    edge.server.fair_queue = FairQueue(clock)
    client, other = edge.connect(), edge.connect()
    ask(client, 1)
    edge.server.fair_queue.handled_ns = clock.now_ns = (
        clock.now_ns + TURN_NS
    )  # handling it took the whole turn
    ask(other, 1)
    clock.now_ns += 2 * IDLE_NS  # something else goes on for a while in the same turn
    ask(client, 2)
    assert other.correlation_ids() == []
    assert client.correlation_ids() == [1]
    await settle()
    assert other.correlation_ids() == [1]
    assert client.correlation_ids() == [2]


async def test_a_full_backlog_that_waits_for_its_turn_stops_reading_and_starts_it_again(
    tmp_path: Path,
) -> None:
    edge = Edge(tmp_path, turn_ns=ONE_A_TURN, queued_bytes_max=100)
    client = edge.connect()
    ask(client, *range(20))
    assert client.transport.paused
    for _ in range(21):
        await asyncio.sleep(0)
    assert not client.transport.paused
    assert client.correlation_ids() == list(range(20))


async def test_a_connection_that_goes_away_leaves_the_turn_to_the_others(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=ONE_A_TURN)
    gone, stays = edge.connect(), edge.connect()
    ask(gone, 1, 2)
    ask(stays, 1, 2)
    await gone.drop()
    assert gone.answers() == []
    assert stays.correlation_ids() == [1, 2]


async def test_an_error_in_one_does_not_keep_the_others_waiting() -> None:
    loop = asyncio.get_running_loop()
    told: list[object] = []
    loop.set_exception_handler(lambda _loop, context: told.append(context["exception"]))
    turns = FairQueue(FakeClock().nanos)
    went_on: list[int] = []

    def fail() -> None:
        raise ValueError

    turns.go_on_later(fail)
    turns.go_on_later(lambda: went_on.append(1))
    await settle()
    assert went_on == [1]
    assert isinstance(told[0], ValueError)


async def test_long_requests_that_come_in_at_once_are_read_in_several_turns(tmp_path: Path) -> None:
    """Where many connections send a megabyte each, taking it in would be one long turn."""
    edge = Edge(tmp_path)
    clock = Clock()
    edge.server.fair_queue = FairQueue(clock)
    clients = [edge.connect() for _ in range(25)]
    frame = requests.commit("g", {0: 5}, 7, metadata="m" * 4_000)
    for client in clients:
        client.send(frame[:3_000])
        clock.now_ns += TURN_NS // 20
    assert [client.transport.paused for client in clients] == [False] * 20 + [True] * 5
    await settle()
    assert not any(client.transport.paused for client in clients)
    for client in clients:
        client.send(frame[3_000:])
    await settle()
    edge.flush()
    assert [client.correlation_ids() for client in clients] == [[7]] * 25
