# SPDX-License-Identifier: Apache-2.0
"""What becomes of each api: everything that a broker offers was thought of, and nothing else has a way in."""

from pathlib import Path
from typing import Final

import pytest

from coordinator.gateway import answers
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.routes import FORWARDED, ApiRoutes
from protocol.apis import ApiKey
from protocol.consumer_group_messages import ConsumerGroupHeartbeatRequest
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader, encode_request_header, pack_api_key_and_version
from protocol.kafka_python_messages import (
    ApiVersionsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    SaslHandshakeRequest,
)
from protocol.message_codecs import find_message_codec
from tests.gateway.peers import AT_ONCE
from tests.gateway.rig import BROKER_ID, OUR_ID, Peer, asked, housed, passes
from tests.gateway.whole import Whole
from tests.support.raw import RawConnection

MIB: Final = 1024 * 1024
TOPIC: Final = 2
BROKER: Final = 4
SET, DELETE = 0, 1
"""Kinds of resources that have settings."""
NOT_OFFERED: Final = {
    ApiKey.ADD_OFFSETS_TO_TXN: "the transaction's end would not reach our groups",
    ApiKey.TXN_OFFSET_COMMIT: "as above",
    ApiKey.CONSUMER_GROUP_DESCRIBE: "groups of KIP-848 are not coordinated here",
    ApiKey.ADD_RAFT_VOTER: "for those who run the cluster, at the cluster",
    ApiKey.REMOVE_RAFT_VOTER: "as above",
    ApiKey.UNREGISTER_CONTROLLER: "as above",
    **{
        key: "share and streams groups are not coordinated here"
        for key in ApiKey
        if key.name.startswith(("SHARE_", "STREAMS_")) or "_SHARE_GROUP_" in key.name
    },
}


def routes(*, ours: bool) -> ApiRoutes:
    """Of one kind of port, where all is allowed."""
    book = AddressBook(lambda _: None, lambda *_: None)
    return ApiRoutes(book, passes, AT_ONCE, ours=ours, message_bytes_max=MIB)


@pytest.mark.kafka
@pytest.mark.slow
def test_every_api_of_a_broker_has_a_way_or_a_reason_for_none(whole: Whole) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    with RawConnection(whole.cluster.address(1)) as connection:
        theirs = {each.api_key: each for each in connection.call(request, 4).api_keys}
    with RawConnection(f"127.0.0.1:{whole.broker_port(1)}") as connection:
        told = {each.api_key: each for each in connection.call(request, 4).api_keys}
    with RawConnection(whole.bootstrap) as connection:
        told_by_ours = {each.api_key for each in connection.call(request, 4).api_keys}
    assert set(theirs) - set(told) == set(map(int, NOT_OFFERED))
    assert told_by_ours == set(told) - {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    for key, offer in told.items():
        assert offer.max_version <= theirs[key].max_version, f"api {key}"
    assert told[ApiKey.FETCH].max_version == 15
    assert told[ApiKey.PRODUCE].min_version == 0


@pytest.mark.parametrize("ours", [False, True])
def test_each_version_that_is_offered_has_a_way(ours: bool) -> None:
    port = routes(ours=ours)
    for offered in (port.offered.forwarded, port.offered.here):
        for key, versions in offered.items():
            assert all(
                pack_api_key_and_version(key, each) in port.found
                for each in range(versions.min, versions.max + 1)
            ), key


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("key", [*sorted(NOT_OFFERED), 30_001, 30_002, 30_003, 30_004])
def test_what_is_not_offered_has_no_way_in(ours: bool, key: int) -> None:
    port = routes(ours=ours)
    assert all(port.found.get(pack_api_key_and_version(key, version)) is None for version in range(20))
    assert port.find_unknown_version_route(key, 0) is None


def test_requests_of_groups_may_be_as_long_as_our_nodes_take_them() -> None:
    book = AddressBook(lambda _: None, lambda *_: None)
    port = ApiRoutes(book, passes, AT_ONCE, ours=True, message_bytes_max=100 * MIB)
    for api in answers.COORDINATED:
        found = port.found[pack_api_key_and_version(api.key, api.versions.max)]
        assert found.bytes_max == api.frame.frame_limit_bytes(100 * MIB)


def test_what_passes_is_no_group_api() -> None:
    assert not {api.key for api in (*answers.COORDINATED, *answers.REFUSED)} & set(FORWARDED)


@pytest.mark.parametrize("node_id", [BROKER_ID, OUR_ID])
@pytest.mark.parametrize("version", [0, 1])
async def test_a_heartbeat_of_kip_848_is_refused_on_every_port(
    tmp_path: Path, node_id: int, version: int
) -> None:
    """Neither the broker nor our node answers in this test."""
    async with housed(tmp_path) as rig:
        client = await rig.client(node_id)
        request = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
        answer = await client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("node_id", [BROKER_ID, OUR_ID])
async def test_newer_api_versions_are_answered_in_version_0(
    tmp_path_factory: pytest.TempPathFactory, node_id: int
) -> None:
    async with housed(tmp_path_factory.mktemp("house")) as rig:
        client = await rig.client(node_id)
        header = RequestHeader(ApiKey.API_VERSIONS, 9, 5, "newer")
        frame = encode_request_header(header, flexible=True) + b"what is to come"
        client.send(len(frame).to_bytes(4, "big") + frame)
        answer = await client.frame()
        assert answer[:4] == (5).to_bytes(4, "big")
        assert int.from_bytes(answer[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
        assert answer[6:] == bytes([0, 0, 0, 1, 0, 18, 0, 0, 0, 5]), "it, and the versions of it"


@pytest.mark.parametrize(("mechanism", "error"), [("GSSAPI", 33), ("PLAIN", 0)])
async def test_kerberos_is_refused_in_the_handshake(tmp_path: Path, mechanism: str, error: int) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(BROKER_ID)
        broker: Peer = await rig.broker.peer()
        sent = asked(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=mechanism))
        client.send(sent)
        assert await broker.frame() == sent[4:]
        broker.answer(sent[4:], bytes([0, 0, 0, 0, 0, 2, 0, 5]) + b"PLAIN" + bytes([0, 6]) + b"GSSAPI")
        answer = await client.frame()
        assert answer[4:] == bytes([0, error, 0, 0, 0, 1, 0, 5]) + b"PLAIN"


def settings_of(*resources: tuple[int, str]) -> bytes:
    """A DescribeConfigs of these resources, by type and name, with its length."""
    make = DescribeConfigsRequest.DescribeConfigsResource
    named = [
        make(version=1, resource_type=kind, resource_name=name, configuration_keys=None)
        for kind, name in resources
    ]
    request = DescribeConfigsRequest(
        version=1, resources=named, include_synonyms=False, include_documentation=False
    )
    return asked(ApiKey.DESCRIBE_CONFIGS, 1, request)


async def test_a_node_of_ours_has_no_settings_for_tools_that_ask_every_node(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        client.send(settings_of((BROKER, str(OUR_ID))))
        answer = await client.frame()
        (result,) = find_message_codec(ApiKey.DESCRIBE_CONFIGS, 1).decode_response(answer, 4).results
        told = (result.error_code, result.resource_type, result.resource_name, result.configs)
        assert told == (0, BROKER, str(OUR_ID), [])


@pytest.mark.parametrize(
    ("operations", "error"),
    [([DELETE], 0), ([DELETE, DELETE], 0), ([SET], ErrorCode.INVALID_REQUEST), ([DELETE, SET], 42)],
    ids=["one goes", "two go", "one is set", "one goes, one is set"],
)
async def test_only_to_take_settings_of_a_node_of_ours_away_succeeds(
    tmp_path: Path, operations: list[int], error: int
) -> None:
    """kafka-reassign-partitions --verify ends throttles at every node, and leaves them where one node refuses."""
    make = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        make.AlterableConfig(version=1, name=f"setting-{number}", config_operation=operation, value="1")
        for number, operation in enumerate(operations)
    ]
    resource = make(version=1, resource_type=BROKER, resource_name=str(OUR_ID), configs=configs)
    request = IncrementalAlterConfigsRequest(version=1, resources=[resource], validate_only=False)
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        client.send(asked(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request))
        answer = await client.frame()
        (result,) = (
            find_message_codec(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1).decode_response(answer, 5).responses
        )
        assert (result.error_code, result.resource_type, result.resource_name) == (error, BROKER, str(OUR_ID))
        assert (result.error_message or "").startswith(f"{OUR_ID} is a node of a gateway" if error else "")


@pytest.mark.parametrize(
    "resources",
    [
        [(BROKER, str(BROKER_ID))],
        [(BROKER, str(OUR_ID)), (TOPIC, "t")],
        [(TOPIC, str(OUR_ID))],
        [(TOPIC, "t" * 200)] * 50,
        [],
    ],
    ids=["a broker", "a topic beside ours", "a topic with our number", "many topics", "nothing"],
)
async def test_other_settings_are_asked_of_a_broker(tmp_path: Path, resources: list[tuple[int, str]]) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        sent = settings_of(*resources)
        client.send(sent)
        broker: Peer = await rig.broker.peer()
        assert await broker.frame() == sent[4:]
        broker.answer(sent[4:], bytes(8))
        assert (await client.frame())[4:] == bytes(8)
