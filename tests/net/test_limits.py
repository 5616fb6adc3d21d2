# SPDX-License-Identifier: Apache-2.0
"""The limits of a real process: connections in all and by address, idle time, size of a request."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.net import requests
from tests.net.process import Peer
from tests.support.service import Service
from tests.support.waiting import wait_until

pytestmark = pytest.mark.process

Start = Callable[..., Service]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a service with these settings, dots for underscores."""
    services: list[Service] = []

    def start(**settings: int) -> Service:
        chosen: dict[str, str | int] = {"offsets.topic.num.partitions": 2}
        chosen.update({key.replace("_", "."): value for key, value in settings.items()})
        services.append(Service(tmp_path / f"service-{len(services)}", chosen))
        services[-1].start()
        return services[-1]

    yield start
    for service in services:
        service.close()


def serves(peer: Peer) -> bool:
    """Whether the connection was taken; it is closed at once when it was not."""
    try:
        return peer.ask(requests.api_versions())[:4] == b"\0\0\0\1"
    except ConnectionError:
        return False


def admitted(service: Service) -> Peer:
    """A connection, once there is room: that one has gone the server notices a moment later."""

    def attempt() -> Peer | None:
        peer = Peer(service)
        if serves(peer):
            return peer
        peer.__exit__()
        return None

    return wait_until(attempt, what="room for a connection")


@pytest.mark.parametrize("setting", ["max_connections", "max_connections_per_ip"])
def test_connections_beyond_the_limit_are_closed_and_the_others_stay(start: Start, setting: str) -> None:
    service = start(**{setting: 3})
    with ExitStack() as stack:
        peers = [stack.enter_context(admitted(service)) for _ in range(3)]
        for _ in range(5):
            with Peer(service) as refused:
                assert not serves(refused)
        assert all(serves(peer) for peer in peers)
        peers.pop().__exit__()
        peers.append(stack.enter_context(admitted(service)))
        with Peer(service) as refused:
            assert not serves(refused)
        assert all(serves(peer) for peer in peers)


def test_a_connection_that_asks_nothing_is_closed_and_one_that_waits_is_not(start: Start) -> None:
    service = start(connections_max_idle_ms=300, group_initial_rebalance_delay_ms=60_000)
    with Peer(service) as idle, Peer(service) as waiting, Peer(service) as half:
        assert serves(idle)
        waiting.send(requests.join("g", version=3))
        half.send(requests.api_versions()[:5])
        assert idle.is_closed()
        assert half.is_closed()
        service.terminate()  # answers the join, on a connection that was open all the time
        assert waiting.receive()[:4] == b"\0\0\0\1"


def test_a_connection_that_asks_now_and_then_is_kept(start: Start) -> None:
    service = start(connections_max_idle_ms=1_000)
    with Peer(service) as idle, Peer(service) as busy:
        assert serves(idle)

        def idle_has_gone() -> bool:
            assert serves(busy), "closed although it asks all the time"
            return idle.has_been_closed()

        wait_until(idle_has_gone, what="the idle connection to be closed")


def test_a_request_may_be_as_long_as_the_limit_and_no_longer(start: Start) -> None:
    limit = 50_000
    service = start(socket_request_max_bytes=limit)
    body = requests.api_versions()[4:]
    with Peer(service) as peer:
        assert peer.ask(requests.framed(body + bytes(limit - len(body))))[:4] == b"\0\0\0\1"
        assert serves(peer)
        peer.send((limit + 1).to_bytes(4, "big"))
        assert peer.is_closed()
