# SPDX-License-Identifier: Apache-2.0
"""A gateway's sockets: what it opens for whom, how full and closed sides are passed on, and who is let in."""

import asyncio
import gc
import socket
from itertools import pairwise
from pathlib import Path
from struct import pack

import pytest

from bench.ports import free_port_run
from coordinator.config import Address
from coordinator.gateway.connector import NOTHING
from coordinator.gateway.gateway import REASONS, ConnectionCounts
from coordinator.gateway.session import READ_BYTES
from coordinator.gateway.socket_stream import ENDS_AT_ONCE
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.kafka_python_messages import (
    DescribeGroupsRequest,
    DescribeLogDirsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
    find_request_and_response_classes,
)
from protocol.metadata_head import ListedBroker
from protocol.newtypes import GroupId, MemberId
from protocol.proxy_header import Endpoint, decode_proxy_header
from tests.gateway.rig import BROKER_ID, OUR_ID, OURS_AT, Peer, Rig, asked, housed, read_request
from tests.gateway.test_rewriting import frame_of
from tests.partitions.running import eventually
from tests.protocol.schemas import Values, sample
from tests.support.log_lines import captured

FETCH = FetchRequest(version=4, topics=[], forgotten_topics_data=[])
LIST_OFFSETS = ListOffsetsRequest(version=1, topics=[])
HEARTBEAT = HeartbeatRequest(group_id=GroupId("g"), generation_id=1, member_id=MemberId("m"))
MIB = 1024 * 1024


async def stopped(rig: Rig, sender: Peer, bytes_max: int = READ_BYTES) -> None:
    """Wait until the gateway keeps something back; see that this is little, however much there is to come."""
    (relay,) = rig.gateway.relays
    await eventually(lambda: relay.waiting_bytes > 0, "a side that is full")
    for _ in range(200):
        await asyncio.sleep(0)
        assert relay.waiting_bytes <= bytes_max
    assert sender.writer.transport.get_write_buffer_size() > 0


async def proxied(rig: Rig, client: Peer) -> Peer:
    """The connection to the coordinator that was opened for this client."""
    peer = await rig.coordinator.peer()
    found = None
    read = b""
    while found is None:
        read += await peer.reader.readexactly(1)
        found = decode_proxy_header(read)
    name = client.writer.get_extra_info("sockname")
    assert found[0].source == Endpoint(*name[:2])
    return peer


async def test_what_passes_comes_and_goes_as_it_is(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        sent = asked(ApiKey.FETCH, 4, FETCH, 5)
        client.send(sent)
        assert await broker.frame() == sent[4:]
        broker.answer(sent[4:], bytes(range(256)) * 8192)
        assert await client.frame() == pack(">i", 5) + bytes(range(256)) * 8192


async def test_requests_of_groups_reach_our_node_on_behalf_of_the_client(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        sent = asked(ApiKey.HEARTBEAT, 3, HEARTBEAT, 9)
        client.send(sent)
        node = await proxied(rig, client)
        assert await node.frame() == sent[4:]
        node.answer(sent[4:], b"\0\0\0\0\0\0")
        assert await client.frame() == pack(">i", 9) + bytes(6)


async def test_a_broker_coordinates_no_group(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        answer = await client.ask(ApiKey.HEARTBEAT, 3, HEARTBEAT)
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
        assert (await client.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(states_filter=[]))).groups == []


async def test_our_nodes_have_one_log_dir_with_nothing_in_it(tmp_path: Path) -> None:
    """Java's clients take a node without any for one that refuses to say (CLUSTER_AUTHORIZATION_FAILED)."""
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        answer = await client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
        (only,) = answer.results
        assert (answer.error_code, only.error_code, only.log_dir, only.topics) == (0, 0, "no-records", [])


async def test_coordinators_of_groups_are_found_at_our_nodes_and_others_at_the_broker(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        of_group, of_transaction = (
            asked(
                ApiKey.FIND_COORDINATOR,
                4,
                FindCoordinatorRequest(key_type=kind, coordinator_keys=["k"]),
                kind,
            )
            for kind in (0, 1)
        )
        client.send(of_group + of_transaction)
        node = await proxied(rig, client)
        assert read_request(await node.frame()).key_type == 0
        assert read_request(await broker.frame()).key_type == 1
        found: Values = {
            "key": "k",
            "node_id": 1,
            "host": "secret",
            "port": 1,
            "error_code": 0,
            "error_message": "",
        }
        answer = frame_of(ApiKey.FIND_COORDINATOR, {"throttle_time_ms": 0, "coordinators": [found]}, 4)
        broker.send(answer[:4] + pack(">i", 1) + answer[8:])
        node.send(answer[:4] + pack(">i", 0) + answer[8:])
        assert b"secret" in await client.frame(), "our node names its own addresses"
        assert b"gateway.example" in await client.frame()


async def test_a_coordinator_that_cannot_be_reached_does_not_end_the_connection_to_a_broker(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path) as rig:
        rig.coordinator.stop()
        (tmp_path / "private.sock").unlink(missing_ok=True)
        client = await rig.client()
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=["k"])
        answer: FindCoordinatorResponse = await client.ask(ApiKey.FIND_COORDINATOR, 4, request)
        assert answer.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (await client.ask(ApiKey.HEARTBEAT, 3, HEARTBEAT)).error_code == ErrorCode.NOT_COORDINATOR


async def test_a_node_of_ours_that_is_gone_ends_its_clients(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        client.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT))
        node = await proxied(rig, client)
        await node.close()
        assert await client.ended()


async def test_either_side_that_closes_closes_the_other(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        client.send(asked(ApiKey.FETCH, 4, FETCH))
        await broker.frame()
        await client.close()
        assert await broker.ended()
        client = await rig.client()
        broker = await rig.broker.peer()
        await broker.close()
        assert await client.ended()
        assert len(rig.gateway.relays) == 1, "it counts until the client has closed, too"
        await client.close()
        await eventually(lambda: not rig.gateway.relays, "the end of all connections")


async def test_what_a_broker_said_before_it_closed_reaches_the_client(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        sent = asked(ApiKey.FETCH, 4, FETCH)
        client.send(sent)
        await broker.frame()
        broker.answer(sent[4:], bytes(8 * MIB))
        await broker.close()
        assert len(await client.frame()) == 4 + 8 * MIB
        assert await client.ended()


async def test_what_a_producer_sent_before_it_closed_reaches_the_broker(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        sent = asked(ApiKey.PRODUCE, 9, ProduceRequest(acks=0, topic_data=[]))
        client.send(sent * 1000)
        await client.close()
        for _ in range(1000):
            assert await broker.frame() == sent[4:]
        assert await broker.ended()


async def test_a_client_that_does_not_read_stops_its_broker(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        sent = asked(ApiKey.FETCH, 4, FETCH)
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(sent)
        await broker.frame()
        broker.answer(sent[4:], bytes(64 * MIB))
        await stopped(rig, broker)
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await client.frame()) == 4 + 64 * MIB


async def test_a_broker_that_does_not_read_stops_its_client(tmp_path: Path) -> None:
    async with housed(tmp_path, request_bytes_max=100 * MIB) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        broker.writer.transport.pause_reading()  # type: ignore[attr-defined]
        head = asked(ApiKey.LIST_OFFSETS, 1, LIST_OFFSETS)[4:]
        client.send(pack(">i", len(head) + 64 * MIB) + head + bytes(64 * MIB))
        await stopped(rig, client)
        broker.writer.transport.resume_reading()  # type: ignore[attr-defined]
        assert len(await broker.frame()) == len(head) + 64 * MIB


async def test_what_is_not_there_has_one_line_however_many_ask_for_it(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        rig.gateway.set_brokers_and_listen({})
        rig.gateway.set_our_nodes({})
        with captured() as lines:
            for node_id in (BROKER_ID, OUR_ID) * 3:
                client = await rig.client(node_id)
                client.send(
                    asked(ApiKey.HEARTBEAT, 3, HEARTBEAT) + asked(ApiKey.LIST_OFFSETS, 1, LIST_OFFSETS)
                )
                assert await client.ended()
            rig.gateway.set_brokers_and_listen({BROKER_ID: Address("127.0.0.1", rig.broker.port)})
            await rig.client(BROKER_ID)
            await eventually(lambda: lines.fields("can connect again"), "the line that it is back")
        wanted = [fields["wanted"] for fields in lines.fields(NOTHING)]
        assert sorted(wanted) == ["any broker", f"broker {BROKER_ID}", f"our node {OUR_ID}"]
        (back,) = lines.fields("can connect again")
        assert (back["wanted"], back["times"]) == (f"broker {BROKER_ID}", 3)


async def test_a_broker_that_an_answer_names_has_its_port_before_the_client_hears_of_it(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        sent = asked(ApiKey.METADATA, 9, MetadataRequest(topics=None))
        client.send(sent)
        await broker.frame()
        message = sample(find_request_and_response_classes(ApiKey.METADATA)[1]._struct, 9)
        message["brokers"] = [
            {"node_id": 7, "host": "127.0.0.1", "port": rig.broker.port, "rack": None},
            {"node_id": BROKER_ID, "host": "elsewhere", "port": 1, "rack": None},
        ]
        frame = frame_of(ApiKey.METADATA, message, 9)
        broker.send(frame[:4] + sent[8:12] + frame[8:])
        await client.frame()
        assert rig.gateway.ports_by_node_id[7] == rig.base + 7
        await rig.client(7)
        await rig.broker.peer()
        assert rig.gateway.book.brokers[BROKER_ID].host == "127.0.0.1", (
            "of one that was known the supervisor says where"
        )


async def test_a_broker_that_is_gone_keeps_its_port_and_closes(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        rig.gateway.set_brokers_and_listen({2: Address("127.0.0.1", rig.broker.port)})
        gone = await rig.client(BROKER_ID)
        assert await gone.ended()
        rig.gateway.set_brokers_and_listen({BROKER_ID: Address("127.0.0.1", rig.broker.port)})
        back = await rig.client(BROKER_ID)
        broker = await rig.broker.peer()
        back.send(asked(ApiKey.FETCH, 4, FETCH))
        assert await broker.frame()


async def test_a_broker_that_cannot_be_reached_closes(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        rig.broker.stop()
        assert await (await rig.client()).ended()


async def test_our_node_finds_another_broker_where_one_is_down(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            down = Address("127.0.0.1", unused.getsockname()[1])
            up = Address("127.0.0.1", rig.broker.port)
            rig.gateway.set_brokers_and_listen({**dict.fromkeys(range(2, 10), down), BROKER_ID: up})
            client = await rig.client(OUR_ID)
            sent = asked(ApiKey.FETCH, 4, FETCH)
            client.send(sent)
            assert await (await rig.broker.peer()).frame() == sent[4:]


async def test_a_broker_that_is_gone_is_counted_and_has_one_line_until_it_is_back(tmp_path: Path) -> None:
    with captured() as lines:
        async with housed(tmp_path) as rig:
            address = Address("127.0.0.1", free_port_run(1))
            rig.gateway.set_brokers_and_listen({BROKER_ID: address})
            for _ in range(3):
                assert await (await rig.client()).ended()
            assert rig.gateway.counts.unreached == 3
            assert lines.events.count("cannot connect") == 1
            with socket.create_server(("127.0.0.1", address.port)):
                await rig.client()
                await eventually(lambda: lines.fields("can connect again"), "a connection")
    (over,) = lines.fields("can connect again")
    assert (over["to"], over["times"]) == (str(address), 3)


async def test_there_are_no_more_connections_than_allowed(tmp_path: Path) -> None:
    async with housed(tmp_path, max_connections_per_ip=2) as rig:
        first, second = await rig.client(), await rig.client(OUR_ID)
        await rig.broker.peer()
        assert await (await rig.client()).ended()
        assert rig.gateway.counts == ConnectionCounts(
            open=2, accepted=2, refused=1, unreached=0, closed=dict.fromkeys(REASONS, 0)
        )
        await second.close()
        await eventually(lambda: len(rig.gateway.relays) == 1, "one connection")
        third = await rig.client()
        await rig.broker.peer()
        assert (await third.ask(ApiKey.HEARTBEAT, 3, HEARTBEAT)).error_code == ErrorCode.NOT_COORDINATOR
        await first.close()


async def test_no_port_is_bound_any_more_once_nobody_is_to_come(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        rig.gateway.stop_accepting()
        rig.gateway.book.register_and_translate_broker(
            ListedBroker(BROKER_ID + 1, "127.0.0.1", rig.broker.port, None)
        )
        assert rig.gateway.book.brokers.keys() == {BROKER_ID, BROKER_ID + 1}
        assert rig.gateway.ports_by_node_id == {}


async def test_who_asks_nothing_for_long_is_closed(tmp_path: Path) -> None:
    async with housed(tmp_path, idle_ms=100) as rig:
        assert await (await rig.client(OUR_ID)).ended()


async def test_who_waits_for_an_answer_is_not_idle(tmp_path: Path) -> None:
    async with housed(tmp_path, idle_ms=100) as rig:
        waits = await rig.client()
        sent = asked(ApiKey.FETCH, 4, FETCH)
        waits.send(sent)
        broker = await rig.broker.peer()
        await broker.frame()
        assert await (await rig.client(OUR_ID)).ended(), "one who came later, and asks nothing"
        broker.answer(sent[4:], b"at last")
        assert (await waits.frame())[4:] == b"at last"


async def test_who_speaks_another_protocol_is_told(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        client.send(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert (await client.reader.read()).startswith(b"HTTP/1.1 400")


async def test_a_port_too_high_for_a_broker_is_no_reason_to_fail(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        rig.gateway.set_brokers_and_listen(
            {BROKER_ID: Address("127.0.0.1", rig.broker.port), 60_000: Address("h", 1)}
        )
        assert set(rig.gateway.ports_by_node_id) == {BROKER_ID, OUR_ID}
        assert rig.gateway.ports_by_node_id[OUR_ID] == rig.base + OURS_AT


@pytest.mark.slow
@pytest.mark.gate
async def test_of_many_connections_that_close_at_once_so_many_end_before_others_have_their_turn(
    tmp_path: Path,
) -> None:
    count = 2 * ENDS_AT_ONCE + 50
    async with housed(tmp_path, max_connections=count, max_connections_per_ip=count) as rig:
        address = ("127.0.0.1", rig.gateway.ports_by_node_id[BROKER_ID])
        clients = [socket.create_connection(address) for _ in range(count)]
        await eventually(lambda: len(rig.gateway.relays) == count, "all to be let in")
        await eventually(lambda: rig.broker.accepted == count, "their connections to the broker")
        for client in clients:
            client.close()
        left = [count]
        while left[-1]:
            await asyncio.sleep(0)
            left.append(len(rig.gateway.relays))
        assert max(before - after for before, after in pairwise(left)) == ENDS_AT_ONCE


async def test_a_connection_that_is_over_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client(OUR_ID)
        client.send(asked(ApiKey.FETCH, 4, FETCH) + asked(ApiKey.HEARTBEAT, 3, HEARTBEAT))
        broker = await rig.broker.peer()
        await broker.frame()
        await (await proxied(rig, client)).frame()
        number = id(next(iter(rig.gateway.relays)))  # a compiled object has no weak references
        gc.disable()
        try:
            await client.close()
            await eventually(lambda: number not in map(id, gc.get_objects()), "the connection to be freed")
        finally:
            gc.enable()


async def test_a_client_that_reads_no_answers_of_the_gateway_itself_is_read_no_further(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        groups = [str(number % 10) for number in range(200)]
        sent = asked(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=groups)) * 100
        for _ in range(200):
            client.send(sent)
        await stopped(rig, client, 2 * READ_BYTES)  # of requests and of answers
