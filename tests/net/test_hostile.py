# SPDX-License-Identifier: Apache-2.0
"""A real process among clients that send nonsense: it stays up, others notice nothing, memory does not grow."""

import random
from collections.abc import Iterator
from contextlib import suppress

import pytest

from protocol.apis import ApiKey
from tests.net import nonsense, requests
from tests.net.process import Peer, Watch, resident_kib
from tests.net.requests import EVERY_REQUEST
from tests.support.apis import SUPPORTED
from tests.support.missing import skip_or_fail
from tests.support.raw import create_topic
from tests.support.service import Service, serving

GROWTH_KIB_MAX = 16 * 1024
"""More than the heap breathes by itself, and far less than what the tests would leave behind in a leak."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One process for all that follows: it has to outlive it."""
    settings: dict[str, str | int] = {
        "group.initial.rebalance.delay.ms": 0,
        "offsets.topic.num.partitions": 5,
        "auto.create.topics.enable": "false",
        "socket.request.max.bytes": 4 << 20,
        "log.flush": "os",
    }
    with serving(tmp_path_factory.mktemp("hostile"), settings) as service:
        create_topic(service.bootstrap, requests.TOPIC, 100)
        create_topic(service.bootstrap, requests.OTHER_TOPIC, 100)
        pid = service.pid
        yield service
        assert service.pid == pid
        service.terminate()
        assert "Traceback" not in service.log_text()


@pytest.fixture
def watch(service: Service) -> Iterator[Watch]:
    with Watch(service) as watch:
        yield watch


def attack(service: Service, data: bytes) -> None:
    """Send this on a connection of its own; the server may close whenever it likes."""
    with suppress(ConnectionError), Peer(service) as peer:
        peer.send(data)


def closes(service: Service, data: bytes) -> None:
    with Peer(service) as peer:
        peer.send(data)
        assert peer.is_closed()


def grown_kib(service: Service, before: int | None) -> int:
    after = resident_kib(service)
    if before is None or after is None:
        skip_or_fail("this system does not tell how much memory a process has")
    return after - before


@pytest.mark.parametrize("make", nonsense.EVERY_KIND)
def test_nonsense(service: Service, watch: Watch, make: nonsense.Make) -> None:
    rng = nonsense.generator()
    for _ in range(200):
        attack(service, make(rng))
    assert watch.is_alive()


def test_requests_cut_short(service: Service, watch: Watch) -> None:
    """Every byte of every request is in test_malformed.py; here some of them, through a socket."""
    rng = nonsense.generator()
    for asked in EVERY_REQUEST:
        body = requests.sample_request(asked.api, asked.version)[4:]
        closes(service, requests.framed(body[: rng.randrange(1, len(body))]))


def test_versions_and_apis_that_are_not_served(service: Service, watch: Watch) -> None:
    for api, versions in SUPPORTED.items():
        if api is not ApiKey.API_VERSIONS:
            for version in (-1, versions.min - 1, versions.max + 1):
                closes(service, requests.framed(requests.header(api, version) + bytes(40)))
    for unknown in (requests.NOT_SERVED, 24, 999, -7):
        closes(service, requests.framed(requests.header(unknown, 0) + bytes(40)))


@pytest.mark.parametrize("length", [0, -1, -(1 << 31), (4 << 20) + 1, (1 << 31) - 1])
def test_lengths_that_cannot_be(service: Service, watch: Watch, length: int) -> None:
    closes(service, length.to_bytes(4, "big", signed=True))
    with Peer(service) as peer:  # the requests before it are answered
        peer.send(requests.api_versions(5), length.to_bytes(4, "big", signed=True))
        assert peer.receive()[:4] == b"\0\0\0\5"
        assert peer.is_closed()


def test_what_is_announced_and_never_sent_takes_no_memory(service: Service, watch: Watch) -> None:
    before = resident_kib(service)
    peers = [Peer(service) for _ in range(100)]
    for peer in peers:
        peer.send((4 << 20).to_bytes(4, "big") + b"x" * 100)
    with Peer(service) as last:
        last.ask(requests.api_versions())
    assert grown_kib(service, before) < GROWTH_KIB_MAX  # all of it would be 400 MiB
    for peer in peers:
        peer.__exit__()


def test_text_that_is_not_utf_8(service: Service, watch: Watch) -> None:
    with Peer(service) as peer:
        peer.ask(requests.commit("gXY", {0: 7}, version=2).replace(b"gXY", b"g\xff\xfe"))
        frame = peer.ask(requests.fetch_offsets("g\ufffd\ufffd"))
        (topic,) = requests.answer(ApiKey.OFFSET_FETCH, 7, frame).topics
        assert topic.partitions[0].committed_offset == 7


def test_memory_does_not_grow_with_what_was_refused(service: Service, watch: Watch) -> None:
    rng = nonsense.generator(1)

    def much() -> None:
        for _ in range(30):
            attack(service, requests.framed(rng.randbytes(100_000)))
            attack(service, requests.framed(requests.header(ApiKey.JOIN_GROUP, 9) + rng.randbytes(100_000)))
            attack(service, rng.randbytes(50_000))
            name = f"{rng.getrandbits(64):030}" * 1_000
            with suppress(ConnectionError), Peer(service) as peer:
                peer.ask(requests.fetch_offsets(name))
                peer.ask(requests.heartbeat(name, name, 1))

    much()
    before = resident_kib(service)
    for _ in range(4):
        much()
    assert grown_kib(service, before) < GROWTH_KIB_MAX  # what was sent is over 30 MB


def test_a_client_that_never_reads(service: Service, watch: Watch) -> None:
    """Its small requests ask for long answers; neither may pile up."""
    with Peer(service) as writer:
        for start in (0, 50):
            offsets = dict.fromkeys(range(start, start + 50), 1)
            writer.ask(requests.commit("big", offsets, metadata="x" * 4_000))
    before = resident_kib(service)
    with Peer(service) as deaf:
        deaf.shrink_receive_buffer()
        fetches = requests.fetch_offsets("big") * 20_000  # all their answers would be 8 GB
        taken = deaf.send_what_is_taken(fetches, 0.5)
        assert taken > 0
        with Peer(service) as other:
            for _ in range(20):  # turns of the event loop, in which the other one's requests could be handled
                other.ask(requests.api_versions())
        assert grown_kib(service, before) < 2 * GROWTH_KIB_MAX


def test_a_client_that_pipelines_behind_a_join_without_end(service: Service, watch: Watch) -> None:
    before = resident_kib(service)
    with Peer(service) as first, Peer(service) as second:
        first.ask(requests.join("parked", version=3, rebalance_ms=60_000, session_ms=60_000))
        second.send(requests.join("parked", version=3, rebalance_ms=60_000, session_ms=60_000))
        taken = second.send_what_is_taken(requests.heartbeat("parked", "m", 1) * 1_000_000, 0.5)
        assert taken < 40 << 20, "the server reads on although it can handle nothing"
        assert grown_kib(service, before) < 2 * GROWTH_KIB_MAX


def test_many_connections_that_come_and_go(service: Service, watch: Watch) -> None:
    def much() -> None:
        for _ in range(500):
            with Peer(service) as peer:
                peer.send(requests.api_versions()[: random.Random(7).randrange(9)])

    much()
    before = resident_kib(service)
    much()
    assert grown_kib(service, before) < GROWTH_KIB_MAX // 4
