# SPDX-License-Identifier: Apache-2.0
"""Every way into a cluster, and every way of not getting in, in one line that names the setting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bench.ports import free_ports
from coordinator.config import Address, ConfigError
from coordinator.upstream.cluster import UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.errors import (
    OtherCluster,
    Unreachable,
    UnreadableCredentials,
    UpstreamAuthenticationFailed,
    UpstreamError,
    UpstreamIsOurselves,
    UpstreamLacksApiVersion,
    UpstreamNotKafka,
    UpstreamTimeout,
)
from protocol.apis import ApiKey, VersionRange
from protocol.headers import encode_response
from protocol.message_codecs import find_message_codec
from tests.kafka.cluster import MECHANISMS, USERS, KafkaCluster, unsecured_token
from tests.upstream.servers import servers

pytestmark = pytest.mark.kafka


def settings_for(kafka: KafkaCluster, tmp_path: Path, protocol: str, mechanism: str | None) -> dict[str, Any]:
    """What a user writes to get in as alice."""
    settings: dict[str, Any] = {
        "bootstrap_servers": servers(kafka.bootstrap(protocol)),
        "security_protocol": protocol,
        "request_timeout_ms": 10_000,
    }
    if "SSL" in protocol:
        settings["ssl_ca_location"] = kafka.ca
    if mechanism == "OAUTHBEARER":
        token = tmp_path / "token"
        token.write_text(unsecured_token("alice") + "\n")
        settings |= {"sasl_mechanism": mechanism, "sasl_oauthbearer_token_file": token}
    elif mechanism is not None:
        password = tmp_path / "password"
        password.write_text(USERS["alice"] + "\n")
        settings |= {"sasl_mechanism": mechanism, "sasl_username": "alice", "sasl_password_file": password}
    return settings


async def connects(settings: dict[str, Any], **more: Any) -> UpstreamCluster:
    """Connect and close again."""
    cluster = UpstreamCluster(UpstreamConfig(**settings), read=Path.read_bytes, **more)
    try:
        await cluster.connect()
    finally:
        await cluster.close()
    return cluster


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
async def test_every_mechanism(kafka: KafkaCluster, tmp_path: Path, protocol: str, mechanism: str) -> None:
    cluster = await connects(settings_for(kafka, tmp_path, protocol, mechanism))
    assert set(cluster.brokers) == {1}
    assert cluster.brokers[1].address == Address.parse(kafka.address(1, protocol))
    assert cluster.cluster_id


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
async def test_without_credentials(kafka: KafkaCluster, tmp_path: Path, protocol: str) -> None:
    cluster = await connects(settings_for(kafka, tmp_path, protocol, None))
    assert set(cluster.brokers) == {1}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_a_wrong_password(kafka: KafkaCluster, tmp_path: Path, mechanism: str) -> None:
    settings = settings_for(kafka, tmp_path, "SASL_PLAINTEXT", mechanism)
    settings["sasl_password_file"].write_text("guess")
    await refused(settings, UpstreamAuthenticationFailed, "upstream.sasl.username: ", "uthentication failed")


async def test_a_token_that_has_expired(kafka: KafkaCluster, tmp_path: Path) -> None:
    settings = settings_for(kafka, tmp_path, "SASL_PLAINTEXT", "OAUTHBEARER")
    settings["sasl_oauthbearer_token_file"].write_text(unsecured_token("alice", -10))
    await refused(
        settings, UpstreamAuthenticationFailed, "upstream.sasl.oauthbearer.token.file: ", "refuses the node"
    )


@pytest.mark.parametrize(
    ("listener", "spoken", "setting"),
    [
        ("PLAINTEXT", "SSL", "upstream.security.protocol: "),
        ("PLAINTEXT", "SASL_PLAINTEXT", "upstream.security.protocol: "),
        ("SSL", "PLAINTEXT", "upstream.security.protocol: "),
        ("SASL_PLAINTEXT", "PLAINTEXT", "upstream.security.protocol: "),
        ("SASL_SSL", "SASL_PLAINTEXT", "upstream.security.protocol: "),
    ],
)
async def test_another_security_protocol_than_the_listeners(
    kafka: KafkaCluster, tmp_path: Path, listener: str, spoken: str, setting: str
) -> None:
    settings = settings_for(kafka, tmp_path, spoken, "PLAIN" if "SASL" in spoken else None)
    settings["bootstrap_servers"] = servers(kafka.bootstrap(listener))
    await refused(settings, UpstreamError, setting)


async def test_a_certificate_of_an_unknown_authority(kafka: KafkaCluster, tmp_path: Path) -> None:
    settings = settings_for(kafka, tmp_path, "SSL", None)
    settings["ssl_ca_location"] = None
    await refused(settings, UpstreamAuthenticationFailed, "upstream.ssl.ca.location: ", "not trusted")


async def test_a_certificate_for_another_name(kafka: KafkaCluster, tmp_path: Path) -> None:
    settings = settings_for(kafka, tmp_path, "SSL", None)
    port = settings["bootstrap_servers"][0].port
    settings["bootstrap_servers"] = (Address("127.0.0.2", port),)
    await refused(settings, UpstreamError, "127.0.0.2")


async def test_files_that_are_not_there(kafka: KafkaCluster, tmp_path: Path) -> None:
    settings = settings_for(kafka, tmp_path, "SASL_PLAINTEXT", "PLAIN")
    settings["sasl_password_file"] = tmp_path / "nowhere"
    await refused(settings, UnreadableCredentials, "upstream.sasl.password.file: cannot read ")
    settings = settings_for(kafka, tmp_path, "SSL", None)
    settings["ssl_ca_location"] = tmp_path / "nowhere"
    await refused(settings, ConfigError, "upstream.ssl.ca.location: cannot read ")


async def test_one_server_of_several_is_enough(kafka: KafkaCluster, tmp_path: Path) -> None:
    (nothing,) = free_ports(1)
    settings = settings_for(kafka, tmp_path, "PLAINTEXT", None)
    settings["bootstrap_servers"] = (Address("127.0.0.1", nothing), *settings["bootstrap_servers"])
    assert set((await connects(settings)).brokers) == {1}


async def test_another_cluster_than_before(kafka: KafkaCluster, tmp_path: Path) -> None:
    settings = settings_for(kafka, tmp_path, "PLAINTEXT", None)
    await refused(settings, OtherCluster, "upstream.bootstrap.servers: ", "another", cluster_id="another")


async def test_ourselves(kafka: KafkaCluster, tmp_path: Path) -> None:
    settings = settings_for(kafka, tmp_path, "PLAINTEXT", None)
    (server,) = settings["bootstrap_servers"]
    for ours in (server, Address("localhost", server.port), Address("0.0.0.0", server.port)):
        await refused(settings, UpstreamIsOurselves, "upstream.bootstrap.servers: ", "this node", ours=[ours])


# --- what is no Kafka: servers of our own ---


async def refused(settings: dict[str, Any], kind: type[Exception], *texts: str, **more: Any) -> None:
    """The connection fails with that error, in one line with these texts."""
    with pytest.raises(kind) as error:
        await connects(settings, **more)
    said = str(error.value)
    assert "\n" not in said
    assert all(text in said for text in texts), said


def plain(port: int, **more: Any) -> dict[str, Any]:
    return {"bootstrap_servers": (Address("127.0.0.1", port),), "request_timeout_ms": 3_000, **more}


async def test_nothing_is_there() -> None:
    (port,) = free_ports(1)
    await refused(plain(port), Unreachable, "upstream.bootstrap.servers: ", f"127.0.0.1:{port}", "refused")


async def test_a_name_that_nobody_knows() -> None:
    settings = {"bootstrap_servers": (Address("no.such.host.invalid", 9092),), "request_timeout_ms": 3_000}
    await refused(settings, Unreachable, "upstream.bootstrap.servers: ", "no.such.host.invalid:9092")


async def test_a_web_server() -> None:
    async with serving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        await refused(
            plain(port), UpstreamNotKafka, "upstream.bootstrap.servers: ", "does not speak Kafka's protocol"
        )


async def test_what_never_answers() -> None:
    async with serving(None) as port:
        await refused(plain(port, request_timeout_ms=300), UpstreamTimeout, "upstream.request.timeout.ms: ")


async def test_a_broker_that_is_too_old() -> None:
    async with old_broker({ApiKey.METADATA: VersionRange(0, 9)}) as port:
        await refused(
            plain(port),
            UpstreamLacksApiVersion,
            "upstream.bootstrap.servers: ",
            "METADATA",
            "0 to 9",
            "10 or newer",
        )


async def test_a_gateway_before_the_cluster() -> None:
    from coordinator.cluster_requests.request import NEEDED

    async with old_broker(NEEDED, node_id=1_000_001) as port:
        await refused(plain(port), UpstreamIsOurselves, "upstream.bootstrap.servers: ", "gateway")


@asynccontextmanager
async def serving(greeting: bytes | None) -> AsyncIterator[int]:
    """A server that answers the first bytes with others and closes, or with None says nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        if greeting is not None:
            writer.write(greeting)
        else:
            await reader.read()
        writer.close()

    async with _server(serve) as port:
        yield port


@asynccontextmanager
async def old_broker(offers: Any, node_id: int = 1) -> AsyncIterator[int]:
    """Answers ApiVersions with these apis, and Metadata with one broker."""
    from protocol.kafka_python_messages import ApiVersionsResponse, MetadataResponse

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = writer.get_extra_info("sockname")[1]
        while head := await reader.read(4):
            frame = await reader.readexactly(int.from_bytes(head, "big"))
            key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
            answer: Any
            if key == ApiKey.API_VERSIONS:
                kind = ApiVersionsResponse.ApiVersion
                keys = [kind(api_key=api, min_version=v.min, max_version=v.max) for api, v in offers.items()]
                keys.append(kind(api_key=18, min_version=0, max_version=0))
                answer = ApiVersionsResponse(error_code=0, api_keys=keys, throttle_time_ms=0)
            else:
                broker = MetadataResponse.MetadataResponseBroker(
                    node_id=node_id, host="127.0.0.1", port=port, rack=None
                )
                answer = MetadataResponse(
                    throttle_time_ms=0, brokers=[broker], cluster_id="c", controller_id=1, topics=[]
                )
            codec = find_message_codec(key, version)
            flexible = codec.flexible and key != ApiKey.API_VERSIONS
            correlation_id = int.from_bytes(frame[4:8], "big")
            writer.write(encode_response(correlation_id, codec.encode_response(answer), flexible))
        writer.close()

    async with _server(serve) as port:
        yield port


@asynccontextmanager
async def _server(serve: Any) -> AsyncIterator[int]:
    writers: list[asyncio.StreamWriter] = []

    async def kept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(kept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
