# SPDX-License-Identifier: Apache-2.0
"""TLS towards clients and towards brokers, and nodes that are told apart by the names that clients ask for."""

import asyncio
import socket
import ssl
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from bench.ports import free_ports
from coordinator.config import Address
from coordinator.gateway.gateway import Gateway
from coordinator.host_resources import real_machine
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    FetchRequest,
    ListOffsetsRequest,
    MetadataRequest,
    find_request_and_response_classes,
)
from tests.gateway.rig import BROKER_ID, OUR_ID, Peer, Rig, asked, housed
from tests.gateway.test_relay import HEARTBEAT, MIB
from tests.gateway.test_rewriting import frame_of
from tests.protocol.schemas import sample
from tests.support.tls import TestAuthority

PATTERN = "broker-{id}.kafka.example"
FETCH = FetchRequest(version=4, topics=[], forgotten_topics_data=[])


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    """Who signs the certificates here."""
    return TestAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def shown(authority: TestAuthority) -> tuple[Path, Path]:
    """What the gateway shows."""
    return authority.issue("gateway", "*.kafka.example")


def trusting(authority: TestAuthority) -> ssl.SSLContext:
    """What a client believes."""
    return ssl.create_default_context(cafile=str(authority.certificate))


async def connect(rig: Rig, port: int, context: ssl.SSLContext, name: str) -> Peer:
    """A client that asks for this name."""
    return Peer(
        *await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name, limit=1 << 20)
    )


async def test_large_answers_and_requests_pass_through_tls(
    tmp_path: Path, authority: TestAuthority, shown: tuple[Path, Path]
) -> None:
    certificate, key = shown
    async with housed(tmp_path, certificate=certificate, key=key, request_bytes_max=100 * MIB) as rig:
        client = await connect(
            rig, rig.gateway.ports_by_node_id[BROKER_ID], trusting(authority), "a.kafka.example"
        )
        broker = await rig.broker.peer()
        head = asked(ApiKey.LIST_OFFSETS, 1, ListOffsetsRequest(version=1, topics=[]))[4:]
        body = bytes(range(256)) * 4096 * 8
        client.send((len(head) + len(body)).to_bytes(4, "big") + head + body)
        assert await broker.frame() == head + body
        broker.answer(head, body * 2)
        assert (await client.frame())[4:] == body * 2
        await client.close()
        assert await broker.ended()


async def test_clients_without_tls_are_closed_where_there_is_a_certificate(
    tmp_path: Path, shown: tuple[Path, Path]
) -> None:
    certificate, key = shown
    async with housed(tmp_path, certificate=certificate, key=key) as rig:
        client = await rig.client()
        client.send(asked(ApiKey.FETCH, 4, FETCH))
        assert await client.ended()


async def test_who_does_not_shake_hands_makes_room_for_others(
    tmp_path: Path, shown: tuple[Path, Path]
) -> None:
    certificate, key = shown
    chosen: dict[str, Any] = {"certificate": certificate, "key": key, "connect_timeout_ms": 50}
    chosen["max_connections"] = 1
    async with housed(tmp_path, **chosen) as rig:
        for _ in range(3):
            silent = await rig.client()
            assert await silent.ended()


async def test_one_port_serves_all_nodes_by_their_names(
    tmp_path: Path, authority: TestAuthority, shown: tuple[Path, Path]
) -> None:
    certificate, key = shown
    (port,) = free_ports(1)
    sni: dict[str, Any] = {"sni_pattern": PATTERN, "sni_port": port, "certificate": certificate, "key": key}
    async with housed(tmp_path, **sni) as rig:
        assert set(rig.gateway.ports_by_node_id.values()) == {port}
        context = trusting(authority)
        broker_client = await connect(rig, port, context, PATTERN.replace("{id}", str(BROKER_ID)))
        answer = await broker_client.ask(ApiKey.HEARTBEAT, 3, HEARTBEAT)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        broker = await rig.broker.peer()
        sent = asked(ApiKey.METADATA, 9, MetadataRequest(topics=None), 5)
        broker_client.send(sent)
        await broker.frame()
        message = sample(find_request_and_response_classes(ApiKey.METADATA)[1]._struct, 9)
        message["brokers"] = [{"node_id": 7, "host": "real", "port": 1, "rack": None}]
        frame = frame_of(ApiKey.METADATA, message, 9)
        broker.send(frame[:4] + sent[8:12] + frame[8:])
        assert b"broker-7.kafka.example" in await broker_client.frame()
        our_client = await connect(rig, port, context, PATTERN.replace("{id}", str(OUR_ID)))
        our_client.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT))
        await rig.coordinator.peer()
        gone = await connect(rig, port, context, PATTERN.replace("{id}", "9"))
        assert await gone.ended()
        for client in (broker_client, our_client, gone):
            await client.close()


@pytest.mark.parametrize("name", ["other.kafka.example", "broker-x.kafka.example"])
async def test_names_of_nobody_are_refused(
    tmp_path: Path, authority: TestAuthority, shown: tuple[Path, Path], name: str
) -> None:
    certificate, key = shown
    (port,) = free_ports(1)
    sni: dict[str, Any] = {"sni_pattern": PATTERN, "sni_port": port, "certificate": certificate, "key": key}
    async with housed(tmp_path, **sni) as rig:
        with pytest.raises(ssl.SSLError, match="unrecognized name"):
            await connect(rig, port, trusting(authority), name)


async def test_brokers_are_believed_by_their_certificate(tmp_path: Path, authority: TestAuthority) -> None:
    certificate, key = authority.issue("broker")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    async with housed(tmp_path, upstream_tls=True, upstream_ca=authority.certificate) as rig:
        await rig.broker.speak_tls(context)
        rig.gateway.set_brokers_and_listen({BROKER_ID: Address("localhost", rig.broker.port)})
        client = await rig.client()
        broker = await rig.broker.peer()
        sent = asked(ApiKey.FETCH, 4, FETCH)
        client.send(sent)
        assert await broker.frame() == sent[4:]
        broker.answer(sent[4:], bytes(8 * MIB))
        assert len(await client.frame()) == 4 + 8 * MIB
        await client.close()
        assert await broker.ended()


@pytest.mark.parametrize("names_checked", [True, False])
async def test_a_broker_with_another_name_is_not_believed_unless_names_do_not_count(
    tmp_path: Path, authority: TestAuthority, names_checked: bool
) -> None:
    certificate, key = authority.issue("elsewhere", "elsewhere.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    chosen: dict[str, Any] = {"upstream_ca": authority.certificate, "upstream_names_checked": names_checked}
    async with housed(tmp_path, upstream_tls=True, **chosen) as rig:
        await rig.broker.speak_tls(context)
        rig.gateway.set_brokers_and_listen({BROKER_ID: Address("localhost", rig.broker.port)})
        client = await rig.client()
        if names_checked:
            assert await client.ended()
        else:
            client.send(asked(ApiKey.FETCH, 4, FETCH))
            assert await (await rig.broker.peer()).frame()


@pytest.mark.parametrize(
    ("chosen", "setting"),
    [
        ({"certificate": Path("nowhere.pem")}, "gateway.ssl.certificate.location"),
        ({"upstream_tls": True, "upstream_ca": Path("nowhere.pem")}, "upstream.ssl.ca.location"),
    ],
)
async def test_a_file_that_cannot_be_used_is_told_with_its_setting(
    tmp_path: Path, chosen: dict[str, Any], setting: str
) -> None:
    config = Rig(tmp_path, **chosen).config
    with pytest.raises(ValueError, match=f"{setting}.*nowhere.pem.*No such file"):
        Gateway(config, asyncio.get_running_loop(), real_machine())


async def test_clients_that_are_gone_before_they_are_let_in_leave_their_places(
    tmp_path: Path, authority: TestAuthority, shown: tuple[Path, Path]
) -> None:
    certificate, key = shown
    async with housed(tmp_path, certificate=certificate, key=key, max_connections=2) as rig:
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", rig.gateway.ports_by_node_id[BROKER_ID])) as gone:
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))  # a reset
        port = rig.gateway.ports_by_node_id[BROKER_ID]
        client = await connect(rig, port, trusting(authority), "a.kafka.example")
        answer = await client.ask(ApiKey.HEARTBEAT, 3, HEARTBEAT)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        broker = await rig.broker.peer()
        await client.close()
        assert await broker.ended()
