# SPDX-License-Identifier: Apache-2.0
"""ApiVersions v4 and v5 through a gateway: a broker is asked in a version that it has, and ids are checked here."""

from pathlib import Path
from typing import Any, Final

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import decode_request_header
from protocol.kafka_python_messages import ApiVersionsRequest, ApiVersionsResponse, SaslHandshakeRequest
from protocol.message_codecs import find_message_codec
from tests.gateway.rig import BROKER_ID, OUR_ID, Peer, Rig, asked, housed, read_request

KEY: Final = ApiKey.API_VERSIONS
CLUSTER_ID: Final = "5L6g3nShT-eMCtK--X86sw"
BOTH: Final = pytest.mark.parametrize("node_id", [BROKER_ID, OUR_ID])
VERSIONS: Final = pytest.mark.parametrize("version", [4, 5])


def request(cluster_id: str | None = None, node_id: int = -1, name: str = "client") -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client_software_name=name, client_software_version="1", cluster_id=cluster_id, node_id=node_id
    )


async def play_broker(broker: Peer, newest: int) -> list[int]:
    """Answer as a broker whose newest version of ApiVersions this is; returns the versions that were asked."""
    seen = []
    while True:
        frame = await broker.frame()
        version = int.from_bytes(frame[2:4], "big")
        seen.append(version)
        _, pos = decode_request_header(frame, version >= 3)
        assert (frame[pos:] == b"\x07client\x021\x00") if version >= 3 else (frame[pos:] == b"")
        error = ErrorCode.NONE if version <= newest else ErrorCode.UNSUPPORTED_VERSION
        told = version if version <= newest else 0
        offer = ApiVersionsResponse.ApiVersion(
            version=told, api_key=int(KEY), min_version=0, max_version=newest
        )
        # Before Kafka 2.4 a refusal tells no range.
        keys = [] if error and newest < 3 else [offer]
        response = ApiVersionsResponse(version=told, error_code=int(error), api_keys=keys)
        broker.answer(frame, find_message_codec(KEY, told).encode_response(response))
        if error is ErrorCode.NONE:
            return seen


async def answered(rig: Rig, client: Peer, version: int, wanted: ApiVersionsRequest) -> Any:
    """The answer that a client gets where a broker has v4."""
    client.send(asked(KEY, version, wanted, correlation_id=77))
    await play_broker(await rig.broker.peer(), 4)
    return await read(client, version)


async def read(client: Peer, version: int) -> Any:
    frame = await client.frame()
    assert frame[:4] == (77).to_bytes(4, "big")
    return find_message_codec(KEY, version).decode_response(frame, 4)


@BOTH
@VERSIONS
@pytest.mark.parametrize(
    ("newest", "versions"), [(5, [4]), (4, [4]), (3, [4, 3]), (2, [4, 0])], ids=["4.4", "4.3", "3.7", "2.3"]
)
async def test_a_broker_is_asked_in_a_version_that_it_has(
    tmp_path: Path, node_id: int, version: int, newest: int, versions: list[int]
) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(node_id)
        client.send(asked(KEY, version, request(), correlation_id=77))
        assert await play_broker(await rig.broker.peer(), newest) == versions
        response = await read(client, version)
        ranges = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
        assert (response.error_code, ranges[KEY]) == (0, (0, 5)), "whatever the broker has"
        assert ranges[ApiKey.OFFSET_COMMIT] == (2, 10)


@BOTH
@pytest.mark.parametrize(
    ("cluster_id", "meant", "error"),
    [
        (CLUSTER_ID, 0, ErrorCode.NONE),
        (CLUSTER_ID, 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("another", 0, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", 0, ErrorCode.REBOOTSTRAP_REQUIRED),
    ],
)
async def test_who_means_another_node_is_told_so(
    tmp_path: Path, node_id: int, cluster_id: str, meant: int, error: ErrorCode
) -> None:
    async with housed(tmp_path) as rig:
        rig.gateway.book.cluster_id = CLUSTER_ID
        response = await answered(rig, await rig.client(node_id), 5, request(cluster_id, node_id + meant))
        assert (response.error_code, bool(response.api_keys)) == (error, not error)


async def test_a_cluster_whose_id_is_not_known_yet_is_taken_for_what_is_meant(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        response = await answered(rig, await rig.client(), 5, request("any", BROKER_ID))
        assert response.error_code == ErrorCode.NONE
        response = await answered(rig, await rig.client(), 5, request("any", OUR_ID))
        assert response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED


@BOTH
@pytest.mark.parametrize(
    "wrong", [request(CLUSTER_ID), request(None, 1), request(name="no_name")], ids=["cluster", "node", "name"]
)
async def test_what_is_invalid_is_refused_without_a_broker(
    tmp_path: Path, node_id: int, wrong: ApiVersionsRequest
) -> None:
    """And does not count as the one ApiVersions that a broker answers before a login."""
    async with housed(tmp_path, asks_for_login=True) as rig:
        client = await rig.client(node_id)
        client.send(asked(KEY, 5, wrong, correlation_id=77))
        assert (await read(client, 5)).error_code == ErrorCode.INVALID_REQUEST


async def test_before_a_login_it_is_not_checked_who_is_meant(tmp_path: Path) -> None:
    """As in SaslServerAuthenticator; and where a broker closes the connection, that is what happens."""
    async with housed(tmp_path, asks_for_login=True) as rig:
        rig.gateway.book.cluster_id = CLUSTER_ID
        wrong = request("another", BROKER_ID)
        client = await rig.client()
        client.send(asked(KEY, 5, wrong, correlation_id=77))
        broker = await rig.broker.peer()
        await play_broker(broker, 4)
        assert (await read(client, 5)).error_code == ErrorCode.NONE
        client.send(asked(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")))
        handshake = await broker.frame()
        assert read_request(handshake).mechanism == "PLAIN"
        broker.answer(handshake, bytes([0, 0, 0, 0, 0, 1, 0, 5]) + b"PLAIN")
        await client.frame()
        client.send(asked(KEY, 5, wrong, correlation_id=77))
        await play_broker(broker, 4)
        assert (await read(client, 5)).error_code == ErrorCode.REBOOTSTRAP_REQUIRED
        client.send(asked(KEY, 5, wrong, correlation_id=77))
        await broker.frame()
        broker.abort()
        assert await client.ended()
