# SPDX-License-Identifier: Apache-2.0
"""What several answers or requests share is the same after every handler has seen it.

The messages of members are frozen (protocol/hot). Those of kafka-python are not, so what is kept of them is compared
with what is made anew.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import protocol.compiled_struct
from coordinator.api import fetch_partition_results, metadata
from protocol import hot
from protocol.apis import ApiKey
from protocol.compiled_struct import FieldsValue, fields_as_dict
from protocol.headers import decode_request_header, pack_api_key_and_version
from protocol.message_codecs import find_message_codec
from tests.net import requests
from tests.net.edge import Edge, settle
from tests.support.apis import SUPPORTED
from tests.support.log_lines import LogLines

INDEX, OFFSET = 7, 1_234
OTHERWISE: dict[str, Any] = {
    "name": requests.TOPIC,
    "topic": requests.TOPIC,
    "group_id": "shared",
    "partition": INDEX,
    "partition_index": INDEX,
    "partition_indexes": [INDEX],
    "fetch_offset": OFFSET,
    "replica_id": -1,
    "current_leader_epoch": -1,
    "session_id": 0,
    "session_epoch": -1,
    "forgotten_topics_data": [],
    "isolation_level": 0,
    "generation_id_or_member_epoch": -1,
    "member_id": "",
    "group_instance_id": None,
}
"""Values of fields with which a request is not refused before it comes to anything that is shared."""


@pytest.fixture
def edge(tmp_path: Path, lines: LogLines) -> Iterator[Edge]:
    yield Edge(tmp_path)
    assert lines.of("exception", "error", "critical") == []


def meaningful(values: Any, topic_id: Any) -> Any:
    """The values of a request, with those of OTHERWISE in their places."""
    if isinstance(values, dict):
        chosen = {**OTHERWISE, "topic_id": topic_id}
        return {
            name: chosen[name] if name in chosen else meaningful(value, topic_id)
            for name, value in values.items()
        }
    if isinstance(values, list):
        return [meaningful(value, topic_id) for value in values]
    return values


def frame(edge: Edge, request: requests.Request) -> bytes:
    topic = edge.node.catalogue.get(requests.TOPIC)
    assert topic is not None
    values = meaningful(requests.sample_values(request.api, request.version), topic.uuid)
    if request.api is ApiKey.METADATA:
        values["topics"] = [{"name": requests.TOPIC, "topic_id": UUID(int=0)}]
    return requests.build(request.api, request.version, values)


async def everything_asked(edge: Edge) -> Any:
    """Send every version of every api some times over, each to a connection of its own; returns what repeats them."""
    connections = []
    for _ in range(3):
        for request in requests.EVERY_REQUEST:
            client = edge.connect()
            data = frame(edge, request)
            client.send(data, data)
            connections.append((request, data[4:], client.connection))
        edge.thread.run_all()
        edge.timers.advance(1_000)
        await settle()
    return connections


def as_new(cached: Any, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
    """What a cache holds for these arguments, put there by a handler, and the same made anew."""
    misses = cached.cache_info().misses
    kept = cached(*args, **kwargs)
    assert cached.cache_info().misses == misses, f"no handler has asked for {args} {kwargs}"
    return kept.to_dict(), cached.__wrapped__(*args, **kwargs).to_dict()


async def test_answers_that_are_shared_are_as_they_were_made(edge: Edge) -> None:
    fetch_partition_results.make_empty_result.cache_clear()
    metadata._partition.cache_clear()
    await everything_asked(edge)

    topic = edge.node.catalogue.get(requests.TOPIC)
    assert topic is not None
    leader = edge.node.cluster.leader(topic, INDEX)
    for version in range(SUPPORTED[ApiKey.METADATA].min, SUPPORTED[ApiKey.METADATA].max + 1):
        kept, new = as_new(metadata._partition, INDEX, leader, version)
        assert kept == new
    for version in range(SUPPORTED[ApiKey.FETCH].min, SUPPORTED[ApiKey.FETCH].max + 1):
        kept, new = as_new(fetch_partition_results.make_empty_result, INDEX, OFFSET, version, committed=False)
        assert kept == new


async def test_requests_that_are_shared_are_as_they_were_read(edge: Edge) -> None:
    seen = set()
    for request, body, connection in await everything_asked(edge):
        for shared in connection._request_cache.requests.values():
            codec = find_message_codec(request.api, request.version)
            _, pos = decode_request_header(body, codec.flexible)
            assert codec.encode_request(shared) == body[pos:]
            seen.add(request)
    repeated = {
        request
        for request in requests.EVERY_REQUEST
        if edge.server.routes[pack_api_key_and_version(*request)].repeats
    }
    assert seen == repeated
    assert {request.api for request in repeated} == {ApiKey.HEARTBEAT, ApiKey.OFFSET_FETCH}


@pytest.mark.parametrize("name", [name for name in hot.__all__ if name != "SCHEMAS"])
def test_no_field_of_a_member_s_message_can_be_set(name: str) -> None:
    message: FieldsValue = getattr(hot, name)()
    if protocol.compiled_struct.__file__.endswith(".py"):  # not compiled: mypy sees to it
        source = inspect.getsource(type(message))
        # one with an underscore is read through a property, which compiled refuses to be set as well
        assert set(re.findall(r"self\._?(\w+): Final = ", source)) == set(fields_as_dict(message))
        return
    for field, value in fields_as_dict(message).items():
        with pytest.raises(AttributeError):
            setattr(message, field, value)
