# SPDX-License-Identifier: Apache-2.0
"""The private socket of a worker behind a gateway: who may come, and as whom."""

import asyncio
import stat
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from bench.ports import free_ports
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.cli.moving.private_nodes_client import PrivateNodes
from coordinator.cluster_requests.model import TopicPartition, TransferredOffset
from coordinator.config import Address
from coordinator.migration.model import CHANGED, ClusterReading
from coordinator.runtime.sockets import private_socket_path
from coordinator.start_error import CannotStart
from coordinator.topology.gateway_view import UpstreamState
from coordinator.workers import messages
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.kafka_python_messages import DescribeGroupsRequest
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, MemberId, Offset
from protocol.proxy_header import (
    HEAD_BYTES,
    REST_BYTES_MAX,
    SIGNATURE,
    Endpoint,
    ProxyHeader,
    encode_proxy_header,
)
from tests.net import requests
from tests.partitions.running import Client, eventually
from tests.workers.test_partition_orders import Played, group_of, played_worker

NODE = 1_000_001
GROUP = group_of(0)
CLIENT = Endpoint("192.0.2.7", 40_123)
PLACE, OFFSET = TopicPartition(requests.TOPIC, 0), TransferredOffset(7, 3, "m")
HEADER = encode_proxy_header(ProxyHeader(CLIENT, Endpoint("192.0.2.1", 9092)))


def private_worker(data_dir: Path, node_id: int = NODE, **chosen: Any) -> AbstractAsyncContextManager[Played]:
    return played_worker(
        data_dir,
        node_id=node_id,
        listen=Address("127.0.0.1", free_ports(1)[0]),
        upstream_bootstrap_servers=(Address("kafka", 9092),),
        gateway_adopt="off",
        group_initial_rebalance_delay_ms=0,
        **chosen,
    )


async def serve_group(played: Played) -> None:
    played.lead(0)
    await played.all_loaded()


async def described_hosts(client: Client) -> list[str]:
    """The hosts of the group's members."""
    answer = await client.ask(
        requests.request(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=[GROUP]))
    )
    response = find_message_codec(ApiKey.DESCRIBE_GROUPS, 0).decode_response(answer, 4)
    return [member.client_host for member in response.groups[0].members]


async def test_a_member_has_the_address_that_its_gateway_tells(tmp_path: Path) -> None:
    async with private_worker(tmp_path) as played:
        await serve_group(played)
        client = await played.private_client(HEADER)
        await client.join_alone(GROUP)
        assert await described_hosts(client) == ["/192.0.2.7"]
        assert [connection.peer for connection in connections(played)] == ["192.0.2.7:40123"]


def connections(played: Played) -> list[Any]:
    assert played.app.server is not None
    return list(played.app.server.connections)


async def test_a_header_may_come_in_pieces_and_with_requests_behind_it(tmp_path: Path) -> None:
    async with private_worker(tmp_path) as played:
        await serve_group(played)
        commit = requests.commit(GROUP, {0: 5})
        for cut in range(1, len(HEADER) + 20, 7):
            everything = HEADER + commit
            client = await played.private_client(everything[:cut])
            await asyncio.sleep(0)
            client.send(everything[cut:])
            await client.receive()
            assert await client.fetch(GROUP) == {0: 5}


async def test_a_gateway_may_speak_for_itself(tmp_path: Path) -> None:
    async with private_worker(tmp_path) as played:
        await serve_group(played)
        client = await played.private_client(encode_proxy_header(ProxyHeader()))
        assert await client.commit(GROUP, 0, 1) is ErrorCode.NONE


@pytest.mark.parametrize(
    "greeting",
    [
        requests.commit(GROUP, {0: 5}),
        SIGNATURE + b"\x31\x11\0\0",
        HEADER[:12] + b"\x21\x11" + (REST_BYTES_MAX + 1).to_bytes(2, "big"),
    ],
    ids=["none", "another version", "too long"],
)
async def test_without_a_header_a_connection_is_closed(tmp_path: Path, greeting: bytes) -> None:
    async with private_worker(tmp_path) as played:
        await serve_group(played)
        client = await played.private_client(greeting)
        await client.until_closed()
        assert played.app.stats.malformed_requests == 1
        assert played.app.stats.connections_accepted == 0
        assert played.app.stats.offset_commits == 0


async def test_a_connection_that_ends_in_its_header_is_forgotten(tmp_path: Path) -> None:
    async with private_worker(tmp_path) as played:
        await serve_group(played)
        client = await played.private_client(HEADER[:HEAD_BYTES])
        await client.close()
        other = await played.private_client(HEADER)
        assert await other.commit(GROUP, 0, 1) is ErrorCode.NONE
        assert played.app.stats.connections_accepted == 1


async def test_limits_go_by_the_clients_address(tmp_path: Path) -> None:
    async with private_worker(tmp_path, max_connections_per_ip=1) as played:
        await serve_group(played)
        client = await played.private_client(HEADER)
        assert await client.commit(GROUP, 0, 1) is ErrorCode.NONE
        refused = await played.private_client(HEADER)
        await refused.until_closed()
        elsewhere = ProxyHeader(Endpoint("192.0.2.8", 1), Endpoint("192.0.2.1", 9092))
        other = await played.private_client(encode_proxy_header(elsewhere))
        assert await other.commit(GROUP, 0, 2) is ErrorCode.NONE
        await client.close()
        await eventually(lambda: len(connections(played)) == 1, "the end of a connection")
        again = await played.private_client(HEADER)
        assert await again.commit(GROUP, 0, 3) is ErrorCode.NONE


async def test_what_gateways_ask_for_themselves_counts_for_no_address(tmp_path: Path) -> None:
    async with private_worker(tmp_path, max_connections_per_ip=1, max_connections=2) as played:
        await serve_group(played)
        client = await played.private_client(HEADER)
        assert await client.commit(GROUP, 0, 1) is ErrorCode.NONE
        for offset in range(2, 5):  # several at once, also where no more clients may come
            own = await played.private_client(encode_proxy_header(ProxyHeader()))
            assert await own.commit(GROUP, 0, offset) is ErrorCode.NONE
        assert len(connections(played)) == 4
        refused = await played.private_client(HEADER)
        await refused.until_closed()


async def test_the_clusters_own_offsets_topic_is_known_by_its_id(tmp_path: Path) -> None:
    async with private_worker(tmp_path) as played:
        await serve_group(played)
        store, seen = played.node.topics.replica, (b"c" * 16, 60)
        ours = store.catalogue.offsets_topic.id
        topics = list(store.catalogue.snapshot_topics())
        store.queue_message(messages.AllTopicsPiece(1, topics, is_first=True, is_last=False))
        played.node.apply_upstream_state(UpstreamState(offsets_topic=seen), 1)  # while all topics come anew
        store.queue_message(messages.AllTopicsPiece(1, [], is_first=False, is_last=True))
        played.node.apply_upstream_state(UpstreamState(offsets_topic=seen), 1)
        found = store.catalogue.by_id(seen[0])
        assert found is not None
        assert (found.name, found.partitions) == (OFFSETS_TOPIC, 60)
        assert store.catalogue.get(OFFSETS_TOPIC) is found is store.catalogue.offsets_topic
        assert store.catalogue.by_id(ours) is None
        assert list(store.catalogue.snapshot_topics()) == topics
        client = await played.private_client(HEADER)
        committed = offsets_commit(seen[0], 59)
        assert [
            each.error_code for each in (await client_answer(client, committed)).topics[0].partitions
        ] == [0]


def offsets_commit(topic_id: bytes, partition: int) -> bytes:
    """A commit of one who reads `__consumer_offsets`, in the version that names topics by id."""
    rows = [OffsetCommitRequestPartition(partition_index=partition, committed_offset=Offset(5))]
    topic = OffsetCommitRequestTopic(topic_id=topic_id, partitions=rows)
    request = OffsetCommitRequest(group_id=GroupId(GROUP), member_id=MemberId(""), topics=[topic])
    return requests.request(ApiKey.OFFSET_COMMIT, 10, request)


async def client_answer(client: Client, frame: bytes) -> Any:
    return find_message_codec(ApiKey.OFFSET_COMMIT, 10).decode_response(await client.ask(frame), 5)


async def test_the_socket_is_this_users_alone_and_takes_the_place_of_an_old_one(tmp_path: Path) -> None:
    path = private_socket_path(tmp_path, NODE)
    path.parent.mkdir(mode=0o755)
    path.write_text("of a process that was killed")
    async with private_worker(tmp_path) as played:
        await serve_group(played)
        assert stat.S_ISSOCK(path.stat().st_mode)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert played.app.serving is not None
        assert played.app.serving.listen == played.app.settings.listen  # where the gateway listens
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*played.app.serving.listen)


async def test_a_path_too_long_for_a_socket_is_one_line(tmp_path: Path) -> None:
    data_dir = tmp_path / ("x" * 100)
    data_dir.mkdir()
    with pytest.raises(CannotStart, match=r"data\.dir: cannot listen on .*choose a shorter data\.dir$"):
        async with private_worker(data_dir):
            pass


async def test_a_command_moves_a_group_over_the_private_socket(tmp_path: Path) -> None:
    """Every request of moving a group, as the commands send it; they block, so they have a thread."""
    async with private_worker(tmp_path, 1) as played:  # which the view names
        await serve_group(played)
        with PrivateNodes(tmp_path, 10.0) as nodes:
            moved = await asyncio.to_thread(asyncio.run, move_there_and_back(nodes))
        assert moved == [0, ErrorCode.NONE, ErrorCode.NONE, {PLACE: OFFSET}, CHANGED, ErrorCode.NONE, False]


async def move_there_and_back(nodes: PrivateNodes) -> list[Any]:
    group = GroupId(GROUP)
    owned = await nodes.find_ownership(group)
    taken = await nodes.adopt(group, ClusterReading({PLACE: OFFSET}, owned.epoch, owned.asked_ms))
    steps: list[Any] = [taken.taken - 1]
    steps.append(await nodes.check_give_back(group))
    steps.append(await nodes.close_for_give_back(group))
    await nodes.reopen_group(group)
    steps.append(await nodes.fetch_all_offsets(group))
    steps.append(await nodes.remove_group_if_unchanged(group, {}))
    steps.append(await nodes.remove_group_if_unchanged(group, {PLACE: OFFSET}))
    steps.append((await nodes.find_ownership(group)).is_adopted)
    return steps
