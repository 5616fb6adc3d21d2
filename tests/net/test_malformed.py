# SPDX-License-Identifier: Apache-2.0
"""Bytes that are no requests: each ends its own connection and nothing else, and no handler stumbles over any."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.net import nonsense, requests
from tests.net.edge import Client, Edge, settle
from tests.protocol.schemas import Case, ReferenceEncoder, sample, variable_fields
from tests.support.apis import FRAME_BYTES_MAX, SUPPORTED
from tests.support.log_lines import LogLines

ROUNDS = 3_000
every_api = pytest.mark.parametrize("api", SUPPORTED, ids=lambda api: api.name)


@pytest.fixture
def edge(tmp_path: Path, lines: LogLines) -> Iterator[Edge]:
    """A node that, when the test ends, has had no trouble of its own and still serves."""
    edge = Edge(tmp_path, initial_rebalance_delay_ms=3_000)
    yield edge
    assert lines.of("exception", "error", "critical") == []


def still_serves(edge: Edge) -> None:
    client = edge.connect()
    client.send(requests.api_versions(77), requests.commit("healthy", {0: 1}, 78))
    assert client.correlation_ids() == [77, 78]


def versions(api: ApiKey) -> range:
    return range(SUPPORTED[api].min, SUPPORTED[api].max + 1)


async def everything_is_answered(edge: Edge) -> None:
    """Let the disk and the time pass that requests may wait for."""
    for _ in range(3):
        edge.thread.run_all()
        edge.timers.advance(40_000)
        await settle()


async def refused(edge: Edge, data: bytes) -> None:
    """The connection that sent this was closed without an answer."""
    client = edge.connect()
    client.send(data)
    await settle()
    assert client.transport.closed, f"left open after {data!r}"
    assert client.answers() == []
    assert edge.server.connections == set()


@every_api
async def test_a_request_cut_at_any_byte_closes_its_connection(edge: Edge, api: ApiKey) -> None:
    cuts = 0
    for version in versions(api):
        whole = requests.sample_request(api, version)[4:]
        for end in range(1, len(whole)):
            await refused(edge, requests.framed(whole[:end]))
        cuts += len(whole) - 1
    assert edge.stats.malformed_requests + edge.stats.unsupported_requests == cuts
    still_serves(edge)


@every_api
async def test_bytes_after_the_body_are_ignored(edge: Edge, api: ApiKey) -> None:
    for version in versions(api):
        plain, padded = edge.connect(), edge.connect()
        whole = requests.sample_request(api, version)[4:]
        plain.send(requests.framed(whole))
        padded.send(requests.framed(whole + b"\xff" * 9))
        await everything_is_answered(edge)
        assert len(plain.answers()) == len(padded.answers()) == 1, f"version {version}"
        assert not padded.transport.closed


@every_api
async def test_null_where_there_must_be_a_value_closes_the_connection(edge: Edge, api: ApiKey) -> None:
    for version in versions(api):
        case = Case(api, "request", version)
        for field in variable_fields(case.schema, version):
            if field.nullable_for_version_q(version):
                continue
            is_string = field.type_str == "string" and not field.is_array()
            null = b"\0" if case.flexible else b"\xff" * (2 if is_string else 4)
            encoder = ReferenceEncoder(version, flexible=case.flexible, instead={id(field): null})
            body = encoder.encode(case.schema, sample(case.schema, version))
            await refused(edge, requests.framed(requests.header(api, version) + body))
    still_serves(edge)


def unserved() -> Iterator[tuple[int, int]]:
    """Api keys and versions that are not served; ApiVersions answers all of its versions."""
    for api, versions in SUPPORTED.items():
        if api != ApiKey.API_VERSIONS:
            yield from (
                (api, version) for version in (-32_768, -1, versions.min - 1, versions.max + 1, 32_767)
            )
    for unknown in set(range(-2, 100)) - set(SUPPORTED):
        yield from ((unknown, version) for version in (0, 3, 9))
    yield from ((32_767, 0), (-32_768, 0))


async def test_unknown_apis_and_versions_close_their_connections(edge: Edge) -> None:
    for api, version in unserved():
        await refused(edge, requests.framed(requests.header(api, version) + b"\0" * 64))
    assert edge.stats.unsupported_requests > 200
    still_serves(edge)


@pytest.mark.parametrize("version", [-32_768, -1, 6, 99, 32_767])
async def test_any_version_of_api_versions_is_answered_with_those_that_are_served(
    edge: Edge, version: int
) -> None:
    client = edge.connect()
    client.send(requests.framed(requests.header(ApiKey.API_VERSIONS, version, 5)))
    (frame,) = client.answers()
    response = requests.answer(ApiKey.API_VERSIONS, 0, frame)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    served = [(key.api_key, key.min_version, key.max_version) for key in response.api_keys]
    assert served == [(ApiKey.API_VERSIONS, *SUPPORTED[ApiKey.API_VERSIONS])]
    client.send(requests.api_versions(6))
    assert client.correlation_ids() == [6]


@pytest.mark.parametrize("length", [0, -1, -(1 << 31), (1 << 20) + 1, (1 << 31) - 1])
async def test_a_frame_of_an_impossible_length_closes_the_connection_at_once(edge: Edge, length: int) -> None:
    await refused(edge, length.to_bytes(4, "big", signed=True))
    still_serves(edge)


async def test_the_largest_frame_is_taken(edge: Edge) -> None:
    client = edge.connect()
    body = requests.header(ApiKey.API_VERSIONS, 0, 5)
    frame = requests.framed(body + bytes(FRAME_BYTES_MAX[ApiKey.API_VERSIONS] - len(body)))
    for start in range(0, len(frame), 1 << 16):
        client.send(frame[start : start + (1 << 16)])
    await settle()
    assert client.correlation_ids() == [5]


# --- random input, the same each time ---


@pytest.mark.parametrize("make", nonsense.EVERY_KIND)
async def test_random_input_ends_no_more_than_its_own_connection(
    edge: Edge, make: Callable[[random.Random], bytes]
) -> None:
    """No handler raises, no other connection closes, and a group that works goes on working."""
    rng = nonsense.generator()
    healthy = Healthy(edge)
    await healthy.start()
    for number in range(ROUNDS):
        client = edge.connect()
        client.send(make(rng))
        if rng.random() < 0.2:
            client.send(make(rng))
        edge.thread.run_all()
        if number % 10 == 0:
            await healthy.work()
        if not client.transport.closed:
            await client.drop()
    edge.timers.advance(5_000)
    await settle()
    await healthy.work()
    assert edge.server.connections == {healthy.client.connection}


class Healthy:
    """A member of a group that heartbeats and commits while others misbehave."""

    def __init__(self, edge: Edge) -> None:
        self.edge = edge
        self.client: Client = edge.connect()
        self.member_id = ""
        self.offset = 0

    async def start(self) -> None:
        self.client.send(requests.join("healthy-group", version=3))
        self.edge.timers.advance(3_000)
        await settle()
        joined = requests.answer(ApiKey.JOIN_GROUP, 3, self.client.answers()[0])
        assert joined.error_code == ErrorCode.NONE
        self.member_id = joined.member_id
        self.client.send(
            requests.sync("healthy-group", self.member_id, 1, assignments={self.member_id: b"all"})
        )
        await settle()
        assert requests.answer(ApiKey.SYNC_GROUP, 4, self.client.answers()[0]).assignment == b"all"

    async def work(self) -> None:
        self.offset += 1
        self.client.send(
            requests.heartbeat("healthy-group", self.member_id, 1, 1),
            requests.commit("healthy-group", {3: self.offset}, 2, member_id=self.member_id, generation=1),
            requests.fetch_offsets("healthy-group", 3),
        )
        await settle()
        beat, committed, fetched = self.client.answers()
        assert requests.answer(ApiKey.HEARTBEAT, 4, beat).error_code == ErrorCode.NONE
        (topic,) = requests.answer(ApiKey.OFFSET_COMMIT, 8, committed).topics
        assert topic.partitions[0].error_code == ErrorCode.NONE
        (topic,) = requests.answer(ApiKey.OFFSET_FETCH, 7, fetched).topics
        assert topic.partitions[0].committed_offset == self.offset


# --- names that are no text ---


async def test_a_group_id_that_is_not_utf_8_is_a_name_with_replacement_characters(edge: Edge) -> None:
    client = edge.connect()
    bad, good = b"g\xff\xfe", "g\ufffd\ufffd"
    sent = requests.commit("gXY", {0: 7}, 1, version=2).replace(b"gXY", bad)
    client.send(sent, requests.fetch_offsets(good, 2))
    _, fetched = client.answers()
    (topic,) = requests.answer(ApiKey.OFFSET_FETCH, 7, fetched).topics
    assert topic.partitions[0].committed_offset == 7
