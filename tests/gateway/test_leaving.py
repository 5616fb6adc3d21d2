# SPDX-License-Identifier: Apache-2.0
"""What was read whole of a client that is gone is carried out; what it may do is still asked."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import pack

from coordinator.config import Address
from coordinator.gateway.address_book import OurNode
from coordinator.gateway.buffer_budget import COUNTED_FROM_BYTES
from coordinator.gateway.relay import Relay
from coordinator.gateway.session import PROBE_BYTES
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.kafka_python_messages import DeleteGroupsRequest, DescribeGroupsRequest
from protocol.newtypes import GroupId, MemberId, Offset
from tests.gateway.rig import OUR_ID, Peer, Rig, asked, housed
from tests.gateway.test_gate import ALLOWED, DENIED, heartbeat_of_nobody, topic_may_be_read
from tests.gateway.test_relay import FETCH, HEARTBEAT, proxied
from tests.partitions.running import eventually
from tests.support.idle import idle

LONG_METADATA = "m" * (COUNTED_FROM_BYTES + 4_000)
JOIN = asked(
    ApiKey.JOIN_GROUP,
    5,
    JoinGroupRequest(
        group_id=GroupId("g"), protocols=[JoinGroupRequestProtocol("range", LONG_METADATA.encode())]
    ),
)
ONE_AND_A_HALF = 3 * len(LONG_METADATA) // 2
BEAT = asked(ApiKey.HEARTBEAT, 3, HEARTBEAT, 8)


def commit(metadata: str = "") -> bytes:
    """A commit, with its length."""
    row = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=Offset(7), committed_metadata=metadata
    )
    topics = [OffsetCommitRequestTopic(name="t", partitions=[row])]
    request = OffsetCommitRequest(group_id=GroupId("g"), member_id=MemberId(""), topics=topics)
    return asked(ApiKey.OFFSET_COMMIT, 8, request, 7)


async def resets(rig: Rig, client: Peer, broker: Peer, fetched: bytes) -> Relay:
    """The client closes with RST; the gateway sees that, since the broker answers something to it."""
    (relay,) = rig.gateway.relays
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
    client.abort()
    broker.answer(fetched, bytes(10))
    await eventually(lambda: not relay.has_client, "the gateway to see that the client is gone")
    return relay


async def leaving(rig: Rig, sent: bytes) -> tuple[Peer, Peer, Relay]:
    """A client that is gone while the broker is asked about its first request."""
    client = await rig.client(OUR_ID)
    name = client.writer.get_extra_info("sockname")
    fetch = asked(ApiKey.FETCH, 4, FETCH, 5)
    client.send(fetch + sent)
    broker = await rig.broker.peer()
    assert await broker.frame() == fetch[4:]
    relay = await resets(rig, client, broker, fetch[4:])
    assert (relay.peer.host, relay.peer.port) == name
    return client, broker, relay


async def test_a_commit_of_a_client_that_is_gone_is_carried_out_once_it_may_be(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        client, broker, relay = await leaving(rig, commit() + BEAT)
        assert relay in rig.gateway.relays, "it counts as a connection"
        await heartbeat_of_nobody(broker, ALLOWED)
        await topic_may_be_read(broker, "t")
        node = await proxied(rig, client)
        assert await node.frame() == commit()[4:]
        assert await node.frame() == BEAT[4:], "and what was read behind it"
        assert await node.ended()
        await eventually(lambda: not rig.gateway.relays, "the end of the connection")


async def test_what_a_client_that_is_gone_may_not_do_is_not_done(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        _, broker, _ = await leaving(rig, commit())
        await heartbeat_of_nobody(broker, DENIED)
        await topic_may_be_read(broker, "t")
        await eventually(lambda: not rig.gateway.relays, "the end of the connection")
        assert rig.coordinator.accepted == 0


async def test_a_request_of_which_something_is_refused_does_not_wait_for_its_answer(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        groups = ["denied", "allowed"]
        several = asked(ApiKey.DELETE_GROUPS, 0, DeleteGroupsRequest(groups_names=groups), 6)
        client, broker, _ = await leaving(rig, several + BEAT)
        for error in (DENIED, ErrorCode.NONE):
            question = await broker.frame()
            broker.answer(question, pack(">hii", error, 0, 0))
        await heartbeat_of_nobody(broker, ALLOWED)
        node = await proxied(rig, client)
        left = asked(ApiKey.DELETE_GROUPS, 0, DeleteGroupsRequest(groups_names=["allowed"]), 6)
        assert await node.frame() == left[4:]
        assert await node.frame() == BEAT[4:]
        assert await node.ended()


async def test_what_a_client_that_is_gone_has_only_asked_for_is_dropped(tmp_path: Path) -> None:
    described = asked(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=["g"]), 6)
    async with housed(tmp_path, gate=None) as rig:
        await leaving(rig, described)
        await eventually(lambda: not rig.gateway.relays, "the end of the connection")
        assert rig.coordinator.accepted == 0
    async with housed(tmp_path, gate=None) as rig:
        client, broker, _ = await leaving(rig, BEAT + described + BEAT)
        await heartbeat_of_nobody(broker, ALLOWED)
        node = await proxied(rig, client)
        assert [await node.frame(), await node.frame()] == [BEAT[4:]] * 2
        assert await node.ended()


async def test_a_client_that_closes_while_its_request_waits_is_seen_to_be_gone(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        client = await rig.client(OUR_ID)
        client.send(commit())
        broker = await rig.broker.peer()
        await client.close()
        (relay,) = rig.gateway.relays
        await eventually(lambda: not relay.has_client, "the gateway to see that the client is gone")
        await heartbeat_of_nobody(broker, ALLOWED)
        await topic_may_be_read(broker, "t")
        assert await (await proxied(rig, client)).frame() == commit()[4:]


async def test_of_a_client_whose_request_waits_only_a_little_more_is_read(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        client = await rig.client(OUR_ID)
        client.send(BEAT)
        await rig.broker.peer()
        (relay,) = rig.gateway.relays
        client.send(BEAT * 100_000)
        await eventually(lambda: relay.session.kept_bytes > PROBE_BYTES, "a little to be read")
        await idle()
        assert relay.session.kept_bytes < len(BEAT) + 2 * PROBE_BYTES


async def test_what_is_kept_of_clients_that_are_gone_counts_and_goes_where_there_is_no_room(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, gate=None, kept_bytes_max=ONE_AND_A_HALF) as rig:
        _, _, first = await leaving(rig, commit(LONG_METADATA))
        assert rig.gateway.buffer_budget.total_bytes >= len(LONG_METADATA)
        await leaving(rig, commit(LONG_METADATA))
        assert rig.gateway.closed["room"] == 1
        assert first not in rig.gateway.relays
        assert len(LONG_METADATA) <= rig.gateway.buffer_budget.total_bytes <= ONE_AND_A_HALF


async def test_a_broker_that_never_says_what_a_client_that_is_gone_may_do_is_not_waited_for(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, gate=None, unread_ms_max=100) as rig:
        await leaving(rig, commit())
        await eventually(lambda: not rig.gateway.relays, "the end of the connection")
        assert rig.gateway.closed["unread"] == 1


@contextmanager
def accepting_late() -> Iterator[socket.socket]:
    """A server with no place for one who connects, until it accepts those before."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, socket.socket() as first:
        first.connect(server.getsockname())
        server.setblocking(False)
        yield server


async def test_a_node_that_is_still_being_connected_to_gets_the_requests_of_a_client_that_is_gone(
    tmp_path: Path,
) -> None:
    with accepting_late() as server:
        async with housed(tmp_path, gate=None) as rig:
            address = Address("127.0.0.1", rig.gateway.ports_by_node_id[OUR_ID])
            private = Address(*server.getsockname())
            rig.gateway.set_our_nodes({OUR_ID: OurNode(OUR_ID, address, private)})
            client = await rig.client(OUR_ID)
            fetch = asked(ApiKey.FETCH, 4, FETCH, 5)
            client.send(commit())
            broker = await rig.broker.peer()
            await heartbeat_of_nobody(broker, ALLOWED)
            await topic_may_be_read(broker, "t", ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            await client.frame()  # refused, so that permissions are known and no node is connected to
            client.send(fetch + JOIN + BEAT)
            assert await broker.frame() == fetch[4:]
            (relay,) = rig.gateway.relays
            await eventually(lambda: relay.waiting_bytes >= len(JOIN + BEAT), "the requests to be passed on")
            await resets(rig, client, broker, fetch[4:])
            await eventually(lambda: not rig.gateway.relays, "the end of the client's connection")
            assert rig.gateway.buffer_budget.total_bytes >= len(JOIN), "it counts until it has left"
            loop = asyncio.get_running_loop()
            another, _ = await loop.sock_accept(server)
            another.close()
            accepted, _ = await loop.sock_accept(server)
            node = Peer(*await asyncio.open_connection(sock=accepted))
            sent = JOIN + BEAT
            assert await node.reader.readexactly(len(sent)) == sent
            assert await node.ended()
            await node.close()
            await eventually(lambda: rig.gateway.buffer_budget.total_bytes == 0, "the end of what was kept")
