# SPDX-License-Identifier: Apache-2.0
"""A node offers what it is given, and nothing else, whatever is declared."""

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.api.table import Capabilities, load_declared_apis
from protocol.apis import ApiKey, VersionRange
from protocol.errors import Truncated, UnsupportedVersion
from protocol.headers import pack_api_key_and_version
from tests.net import requests
from tests.net.edge import Edge, settle
from tests.support.apis import APIS

FEW = Capabilities(
    [
        APIS[ApiKey.API_VERSIONS],
        APIS[ApiKey.PRODUCE],
        replace(APIS[ApiKey.HEARTBEAT], versions=VersionRange(1, 3)),
    ]
)
"""What a node offers that does not serve everything."""


async def test_api_versions_tells_what_the_node_offers(tmp_path: Path) -> None:
    client = Edge(tmp_path, capabilities=FEW).connect()
    client.send(requests.api_versions(1))
    (frame,) = client.answers()
    told = requests.answer(ApiKey.API_VERSIONS, 0, frame).api_keys
    assert [(each.api_key, each.min_version, each.max_version) for each in told] == [
        (ApiKey.PRODUCE, 0, 13),  # v0 to v2 are offered and not served (KAFKA-18659)
        (ApiKey.HEARTBEAT, 1, 3),
        (ApiKey.API_VERSIONS, 0, 5),
    ]


@pytest.mark.parametrize(
    ("key", "version", "is_served"),
    [
        (ApiKey.HEARTBEAT, 1, True),
        (ApiKey.HEARTBEAT, 3, True),
        (ApiKey.HEARTBEAT, 0, False),
        (ApiKey.HEARTBEAT, 4, False),
        (ApiKey.PRODUCE, 0, False),
        (ApiKey.LIST_GROUPS, 3, False),
    ],
)
async def test_what_a_node_does_not_offer_ends_the_connection(
    tmp_path: Path, key: ApiKey, version: int, is_served: bool
) -> None:
    edge = Edge(tmp_path, capabilities=FEW)
    client = edge.connect()
    body = requests.sample_request(key, max(version, APIS[key].versions.min))[8:]
    client.send(requests.framed(key.to_bytes(2, "big") + version.to_bytes(2, "big") + body))
    await settle()
    assert (client.transport.closed, bool(client.answers())) == (not is_served, is_served)
    assert edge.stats.unsupported_requests == (not is_served)


def test_a_request_is_routed_by_its_first_four_bytes() -> None:
    everything = Capabilities(load_declared_apis())
    for api in APIS.values():
        for version in range(api.versions.min, api.versions.max + 1):
            frame = requests.header(api.key, version)
            handled = everything.get_api_for_frame(frame[:4])
            assert handled is everything.routes[pack_api_key_and_version(api.key, version)]
            assert (handled.key, handled.flexible) == (api.key, version >= api.schema.first_flexible)
    for short in (b"", b"\0", b"\0\x0c\0"):
        with pytest.raises(Truncated):
            everything.get_api_for_frame(short)
    with pytest.raises(UnsupportedVersion):
        everything.get_api_for_frame(requests.header(ApiKey.HEARTBEAT, 5))


def test_every_version_that_is_declared_is_in_the_schema() -> None:
    for api in load_declared_apis():
        assert api.schema.versions.min <= api.versions.min <= api.versions.max <= api.schema.versions.max
