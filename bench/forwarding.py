# SPDX-License-Identifier: Apache-2.0
"""What a gateway costs: the same bytes from and to one real Kafka broker, directly, through haproxy, and through us.

The driver speaks raw frames, so that it costs little itself: fetches of a megabyte of 1 KB records, over and over from
the page cache, on several connections; and one record of 1 KB at a time, produced (acks=1) and fetched, in turns over
all ways, so that what else the machine does hits all of them alike.
"""

import argparse
import selectors
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse
from kafka.protocol.producer.produce import ProduceRequest, ProduceResponse
from kafka.record.default_records import DefaultRecordBatchBuilder

from bench import wire
from bench.cluster import Address, Peer, Unprepared
from bench.kafka import Kafka
from bench.procstat import tree_cpu_s
from bench.servers import HOST, Groupkeeper, free_ports, tied_to_us
from bench.wire import Api, Call

FETCH: Final = Api("Fetch", FetchRequest, FetchResponse)
PRODUCE: Final = Api("Produce", ProduceRequest, ProduceResponse)
FETCH_VERSION: Final = 11
PRODUCE_VERSION: Final = 8

LARGE: Final = "forwarded-large"
SMALL: Final = "forwarded-small"
RECORD_BYTES: Final = 1_000
RECORDS_IN_BATCH: Final = 64
FETCH_BYTES: Final = 1 << 20
FILLED_BYTES: Final = 64 << 20
CONNECTIONS: Final = 4
BUFFER_BYTES: Final = 1 << 20
TIMEOUT_S: Final = 30.0
MISSING: Final = "is not installed (Debian's package haproxy)"
HAPROXY: Final = """\
global
    nbthread 1
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen broker
    bind {here}
    server broker {there}
"""


class Way(NamedTuple):
    """How the broker is reached, and the process whose CPU that costs; None for the direct way."""

    name: str
    address: Address
    pid: int | None


class Streamed(NamedTuple):
    """What came through in a time, and what it cost."""

    name: str
    mb_per_s: float
    cpu_s_per_gb: float | None


class Asked(NamedTuple):
    """Medians of one request at a time, in milliseconds."""

    name: str
    produce_ms: float
    fetch_ms: float


def main(arguments: Sequence[str]) -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m bench forwarding",
        description="What a gateway costs, beside haproxy and no proxy at all.",
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="of fetching, on each way and in each run")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--requests", type=int, default=2_000, help="of one record, on each way")
    options = parser.parse_args(arguments)
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="groupkeeper-bench-") as work:
        broker = stack.enter_context(Kafka("Kafka", Path(work) / "kafka"))
        broker.start()
        _fill(broker.address)
        ways = [
            Way("directly", broker.address, None),
            stack.enter_context(_haproxy(Path(work), broker.address)),
            stack.enter_context(_gateway(Path(work), broker.address)),
        ]
        streams = [_stream(way, options.seconds) for _ in range(options.runs) for way in ways]
        _print_streams(ways, streams)
        _print_asked(_ask(ways, options.requests))
    return 0


# --- the ways


@contextmanager
def _haproxy(work: Path, broker: Address) -> Iterator[Way]:
    program = shutil.which("haproxy")
    if program is None:
        raise Unprepared(f"haproxy {MISSING}")
    here = Address(HOST, free_ports(1)[0])
    config = work / "haproxy.cfg"
    config.write_text(HAPROXY.format(here=here, there=broker))
    process = subprocess.Popen(tied_to_us([program, "-db", "-f", str(config)]), stderr=subprocess.DEVNULL)
    try:
        _wait_for(here)
        yield Way("haproxy", here, process.pid)
    finally:
        process.kill()
        process.wait()


@contextmanager
def _gateway(work: Path, broker: Address) -> Iterator[Way]:
    base = _base_port()
    settings = {"upstream.bootstrap.servers": str(broker), "gateway.port.base": str(base)}
    with Groupkeeper("Groupkeeper", work / "groupkeeper", settings) as server:
        server.start()
        here = Address(HOST, base + 1)  # the broker's id is 1
        _wait_for(here)
        yield Way("Groupkeeper", here, server.pid)


def _base_port() -> int:
    """A port below one that is free, which will be the broker's."""
    return free_ports(1)[0] - 1


def _wait_for(address: Address) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(address) == 0:
                return
        time.sleep(0.01)
    raise Unprepared(f"nothing listens on {address}")


# --- requests


def _batch(records: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for number in range(records):
        builder.append(number, int(time.time() * 1000), None, bytes(RECORD_BYTES), [])
    return bytes(builder.build())


def _produce(topic: str, records: int) -> Call:
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=_batch(records))
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    request = ProduceRequest(transactional_id=None, acks=1, timeout_ms=10_000, topic_data=[data])
    return wire.encode(PRODUCE, PRODUCE_VERSION, request)


def _fetch(topic: str, size: int) -> Call:
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0, current_leader_epoch=-1, fetch_offset=0, log_start_offset=-1, partition_max_bytes=size
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=100,
        min_bytes=1,
        max_bytes=size,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )
    return wire.encode(FETCH, FETCH_VERSION, request)


def _fill(broker: Address) -> None:
    with Peer(broker, TIMEOUT_S) as peer:
        for topic, count in ((LARGE, FILLED_BYTES // (RECORDS_IN_BATCH * RECORD_BYTES)), (SMALL, 1)):
            _create(peer, topic)
            call = _produce(topic, RECORDS_IN_BATCH if topic == LARGE else 1)
            for _ in range(count):
                call.decode_good(peer.ask(call))


def _create(peer: Peer, topic: str) -> None:
    request = wire.CREATE_TOPICS.request
    made = request.CreatableTopic(
        name=topic, num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    call = wire.encode(wire.CREATE_TOPICS, 2, request(topics=[made], timeout_ms=10_000, validate_only=False))
    call.decode_good(peer.ask(call))
    asked = wire.METADATA.request
    metadata = wire.encode(wire.METADATA, 4, asked(topics=[asked.MetadataRequestTopic(name=topic)]))
    deadline = time.monotonic() + TIMEOUT_S
    while wire.error_codes(metadata.decode(peer.ask(metadata))):
        if time.monotonic() > deadline:
            raise Unprepared(f"the topic {topic} has no leader")
        time.sleep(0.02)


# --- measuring


def _stream(way: Way, seconds: float) -> Streamed:
    """Fetch a megabyte over and over on some connections."""
    call = _fetch(LARGE, FETCH_BYTES)
    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(CONNECTIONS):
            sock = stack.enter_context(socket.create_connection(way.address, TIMEOUT_S))
            sock.sendall(call.frame)
            selector.register(sock, selectors.EVENT_READ, _Reader(sock, call.frame))
        _read_for(selector, 0.5)
        cpu_s, began = _cpu_s(way), time.perf_counter()
        size = _read_for(selector, seconds)
        took, used = time.perf_counter() - began, _cpu_s(way)
    cost = None if cpu_s is None or used is None else (used - cpu_s) / (size / 1e9)
    return Streamed(way.name, size / 1e6 / took, cost)


class _Reader:
    """One connection: reads answers to their ends, and asks again."""

    def __init__(self, sock: socket.socket, frame: bytes) -> None:
        self._sock = sock
        self._frame = frame
        self._buffer = memoryview(bytearray(BUFFER_BYTES))
        self._left = 0

    def read(self) -> int:
        """Read once; returns how many bytes came. Raises Unprepared."""
        size = self._sock.recv_into(self._buffer)
        if not size:
            raise Unprepared("a connection was closed")
        if self._left == 0:
            # The length comes first, and whole: a server writes it with what follows.
            self._left = 4 + int.from_bytes(self._buffer[:4], "big")
        self._left -= size
        if self._left == 0:
            self._sock.sendall(self._frame)
        return size


def _read_for(selector: selectors.BaseSelector, seconds: float) -> int:
    total, deadline = 0, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        for key, _ in selector.select(1.0):
            total += key.data.read()
    return total


def _cpu_s(way: Way) -> float | None:
    return None if way.pid is None else tree_cpu_s(way.pid)


def _ask(ways: Sequence[Way], requests: int) -> list[Asked]:
    """One request at a time, over each way in turn."""
    produced: dict[str, list[float]] = {way.name: [] for way in ways}
    fetched: dict[str, list[float]] = {way.name: [] for way in ways}
    produce, fetch = _produce(SMALL, 1), _fetch(SMALL, 1)
    with ExitStack() as stack:
        peers = [(way.name, stack.enter_context(Peer(way.address, TIMEOUT_S))) for way in ways]
        for _ in range(requests):
            for name, peer in peers:
                produced[name].append(_timed(peer, produce))
                fetched[name].append(_timed(peer, fetch))
    return [
        Asked(way.name, *(statistics.median(times[way.name]) for times in (produced, fetched)))
        for way in ways
    ]


def _timed(peer: Peer, call: Call) -> float:
    began = time.perf_counter()
    peer.ask(call)
    return (time.perf_counter() - began) * 1000


# --- the tables


def _print_streams(ways: Sequence[Way], streams: Sequence[Streamed]) -> None:
    by_way = {way.name: [each for each in streams if each.name == way.name] for way in ways}
    costs = {
        name: statistics.median(cost)
        for name, found in by_way.items()
        if (cost := [each.cpu_s_per_gb for each in found if each.cpu_s_per_gb is not None])
    }
    print("| fetches of 1 MB | MB/s | CPU s per GB | of haproxy's |")
    print("|---|--:|--:|--:|")
    for name, found in by_way.items():
        rate = statistics.median(each.mb_per_s for each in found)
        shown = f"{costs[name]:.2f} | {costs[name] / costs['haproxy']:.2f}" if name in costs else " | "
        print(f"| {name} | {rate:,.0f} | {shown} |")
    print()


def _print_asked(asked: Sequence[Asked]) -> None:
    print("| one record at a time | produce p50 ms | added | fetch p50 ms | added |")
    print("|---|--:|--:|--:|--:|")
    direct = asked[0]
    for each in asked:
        added = each.produce_ms - direct.produce_ms, each.fetch_ms - direct.fetch_ms
        print(
            f"| {each.name} | {each.produce_ms:.2f} | {added[0]:.2f} | {each.fetch_ms:.2f} | {added[1]:.2f} |"
        )
