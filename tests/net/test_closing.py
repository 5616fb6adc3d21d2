# SPDX-License-Identifier: Apache-2.0
"""What was read whole before a connection closed is carried out, if it changes something; what is not whole is not."""

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.api import private
from coordinator.api.table import load_declared_apis
from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    CreateTopicsRequest,
    DeleteGroupsRequest,
    FetchRequest,
    ListGroupsRequest,
    MetadataRequest,
)
from protocol.newtypes import GroupId
from tests.net import requests
from tests.net.edge import Client, Edge, settle
from tests.net.test_long_commits import committed, create, request, rows, wide
from tests.net.test_slices import SMALL_BATCH, many_groups, until_appended
from tests.partitions.running import eventually, node
from tests.support.apis import APIS
from tests.support.groups import classic

A_STEP_A_TURN: Final = 0
PRIVATE: Final = {api.key: api for api in load_declared_apis(private)}
READS: Final = {
    ApiKey.API_VERSIONS,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,  # it is refused
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_OFFSETS,
    ApiKey.OFFSET_FETCH,
    ApiKey.PRODUCE,  # no records are kept here
}
CHANGES: Final = [key for key in APIS if key not in READS and key is not ApiKey.METADATA]

Close = Callable[[Client], Any]


async def peer_is_gone(client: Client) -> None:
    await client.drop()


async def closed_by_us(client: Client) -> None:
    client.connection.close()
    await settle()


async def aborted_by_us(client: Client) -> None:
    client.connection.abort()
    await settle()


CLOSES: Final = [peer_is_gone, closed_by_us, aborted_by_us]


def handled(edge: Edge, key: ApiKey) -> int:
    return edge.stats.apis[key].handled


def sample(key: ApiKey) -> bytes:
    return requests.sample_request(key, APIS[key].versions.max)


@pytest.fixture
def edge(tmp_path: Path) -> Edge:
    """A node on which a join waits for a while."""
    return Edge(tmp_path, initial_rebalance_delay_ms=3_000)


def parked_join() -> bytes:
    return requests.join("waits", version=3)


def waiting_fetch() -> bytes:
    kind: Any = FetchRequest
    topic = kind.FetchTopic
    part = topic.FetchPartition(
        version=11, partition=0, fetch_offset=0, partition_max_bytes=1, current_leader_epoch=-1
    )
    return requests.request(
        ApiKey.FETCH,
        11,
        kind(
            version=11,
            max_wait_ms=500,
            min_bytes=1,
            topics=[topic(version=11, topic=requests.TOPIC, partitions=[part])],
        ),
    )


def test_every_api_says_whether_it_changes_something() -> None:
    assert {key for key, api in APIS.items() if api.changes is False} == READS
    assert {key for key, api in APIS.items() if api.changes is True} == set(CHANGES)
    assert {key for key, api in PRIVATE.items() if api.changes is not True} == {ApiKey.LOCATE_GROUPS}
    assert {key for key, api in APIS.items() if api.waits_for_members} == {
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
    }


@pytest.mark.parametrize("discards", [True, False])
def test_to_ask_where_groups_are_changes_something_only_if_readings_are_discarded(discards: bool) -> None:
    api = PRIVATE[ApiKey.LOCATE_GROUPS]
    assert callable(api.changes)
    assert api.changes(api.schema.request(version=0, group_ids=[], discard_readings=discards)) is discards


@pytest.mark.parametrize(
    ("names", "allowed", "expected"),
    [(["t"], True, True), (["t"], False, False), ([], True, False), (None, True, False)],
)
def test_a_metadata_request_changes_something_where_it_may_create_topics(
    names: list[str] | None, allowed: bool, expected: bool
) -> None:
    kind: Any = MetadataRequest.MetadataRequestTopic
    topics = None if names is None else [kind(version=9, name=name) for name in names]
    changes = APIS[ApiKey.METADATA].changes
    assert callable(changes)
    asked = MetadataRequest(version=9, topics=topics, allow_auto_topic_creation=allowed)
    assert changes(asked) is expected


@pytest.mark.parametrize("close", CLOSES, ids=lambda close: close.__name__)
@pytest.mark.parametrize("ahead", [parked_join, waiting_fetch], ids=lambda ahead: ahead.__name__)
@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name.lower())
async def test_what_stands_behind_a_parked_request_is_carried_out_if_it_changes_something(
    edge: Edge, key: ApiKey, ahead: Callable[[], bytes], close: Close
) -> None:
    client = edge.connect()
    client.send(ahead())
    await settle()
    before = handled(edge, key)
    client.send(sample(key))
    assert handled(edge, key) == before
    await close(client)
    edge.thread.run_all()
    await settle()
    assert handled(edge, key) - before == (key in CHANGES or key is ApiKey.METADATA)
    assert client.answers() == []
    assert edge.server.connections == set()
    assert edge.budget.total_bytes == 0


async def test_a_leave_behind_a_parked_join_is_carried_out_at_once(edge: Edge) -> None:
    """A Java consumer does so in `close(0)`."""
    client, other = edge.connect(), edge.connect()
    client.send(requests.join("g", version=4))
    await settle()
    member_id = requests.answer(ApiKey.JOIN_GROUP, 4, client.answers()[0]).member_id
    client.send(requests.join("g", version=4, member_id=member_id))
    other.send(requests.join("g", version=3))
    await settle()
    client.send(requests.leave("g", member_id))
    await settle()
    group = classic(edge.manager, "g")
    assert group is not None
    assert len(group.members) == 2
    await client.drop()
    assert len(group.members) == 1


async def test_they_are_carried_out_in_their_order(edge: Edge) -> None:
    client = edge.connect()
    client.send(parked_join())
    await settle()
    client.send(*[requests.commit("g", {0: offset}) for offset in range(1, 200)])
    await client.drop()
    assert committed(edge) == {(requests.TOPIC, 0): 199}


async def test_a_commit_waits_for_the_topic_that_was_asked_for_before_it(edge: Edge) -> None:
    client = edge.connect()
    kind = CreateTopicsRequest.CreatableTopic
    topic = kind(version=5, name="new", num_partitions=1, replication_factor=1, assignments=[], configs=[])
    client.send(
        requests.request(
            ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest(version=5, topics=[topic], timeout_ms=1_000)
        ),
        request([hot.OffsetCommitRequestTopic(name="new", partitions=rows(1))]),
    )
    await settle()
    await client.drop()
    assert edge.manager.find(GroupId("g")) is None
    assert len(edge.server.connections) == 1, "it is not over yet"
    edge.thread.run_all()
    await settle()
    assert committed(edge) == {("new", 0): 1}
    assert edge.server.connections == set()


async def test_a_request_whose_last_byte_is_missing_is_not_carried_out(edge: Edge) -> None:
    client = edge.connect()
    client.send(parked_join())
    await settle()
    client.send(requests.commit("g", {0: 1})[:-1])
    await client.drop()
    assert edge.manager.find(GroupId("g")) is None


async def test_what_came_before_bytes_that_break_the_protocol_is_carried_out_and_nothing_behind(
    edge: Edge,
) -> None:
    client = edge.connect()
    client.send(parked_join())
    await settle()
    broken = requests.framed(b"\x00\x08\x00\x08" + bytes(3))
    client.send(requests.commit("g", {0: 1}), broken, requests.commit("g", {0: 2}))
    await client.drop()
    assert committed(edge) == {(requests.TOPIC, 0): 1}
    assert edge.server.connections == set()


# --- long requests ---


@pytest.mark.parametrize("close", CLOSES, ids=lambda close: close.__name__)
@pytest.mark.parametrize("turns", [0, 1, 5, 20, 40, 100])
async def test_a_long_commit_is_stored_whole_whenever_its_connection_closes(
    tmp_path: Path, turns: int, close: Close
) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    create(edge, {"wide": 9_000})
    client = edge.connect()
    client.send(request(wide()), requests.commit("g", {0: 7}))
    for _ in range(turns):
        await asyncio.sleep(0)
    await close(client)
    assert committed(edge) == {
        **{("wide", index): index + 1 for index in range(9_000)},
        (requests.TOPIC, 0): 7,
    }
    assert edge.server.connections == set()
    assert edge.budget.total_bytes == 0


@pytest.mark.parametrize("turns", range(4))
async def test_a_long_join_holds_nothing_back(tmp_path: Path, turns: int) -> None:
    """Whether it is parked before its connection closes, or after, when it is decoded."""
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, initial_rebalance_delay_ms=3_000)
    client = edge.connect()
    client.send(
        requests.join("waits", version=3, metadata=bytes(100_000)),
        requests.join("waits", version=3, metadata=bytes(100_000)),
        requests.commit("g", {0: 1}),
    )
    for _ in range(turns):
        await asyncio.sleep(0)
    await client.drop()
    assert committed(edge) == {(requests.TOPIC, 0): 1}
    group = classic(edge.manager, "waits")
    assert group is not None
    assert len(group.members) == 2
    assert edge.server.connections == set()
    assert edge.budget.total_bytes == 0


async def test_a_deletion_in_steps_goes_on_to_its_end(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, batch_bytes_max=SMALL_BATCH)
    many_groups(edge, 3, offsets=1_000)
    client = edge.connect()
    message = DeleteGroupsRequest(version=2, groups_names=["g0", "g1", "g2"])
    client.send(requests.request(ApiKey.DELETE_GROUPS, 2, message))
    await until_appended(edge)
    await client.drop()
    assert list(edge.manager.current_groups()) == []


async def test_a_long_read_is_dropped_also_while_it_is_decoded(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN)
    client = edge.connect()
    kind: Any = MetadataRequest.MetadataRequestTopic
    topics = [kind(version=9, name=f"topic-{number}") for number in range(1_000)]
    asked = MetadataRequest(version=9, topics=topics, allow_auto_topic_creation=False)
    client.send(requests.request(ApiKey.METADATA, 9, asked), requests.commit("g", {0: 1}))
    await asyncio.sleep(0)
    await client.drop()
    assert handled(edge, ApiKey.METADATA) == 0
    assert committed(edge) == {(requests.TOPIC, 0): 1}
    assert edge.server.connections == set()


# --- memory and time ---


async def test_what_is_left_to_do_counts_into_the_budget_and_does_not_wait_for_it(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, unsent_bytes_max=1_000)
    create(edge, {"wide": 9_000})
    client, other = edge.connect(), edge.connect()
    frames = [request(wide()), *[requests.commit("g", {0: offset}) for offset in range(50)]]
    client.send(*frames)
    assert edge.budget.total_bytes == 0
    client.transport.closed = True
    client.transport.lost(None)
    assert edge.budget.total_bytes == sum(len(frame) - 4 for frame in frames)
    assert edge.budget.over
    other.send(requests.request(ApiKey.LIST_GROUPS, 4, ListGroupsRequest(version=4)))
    await asyncio.sleep(0)
    assert other.answers() == [], "others wait for the budget"
    await settle()
    assert committed(edge)[requests.TOPIC, 0] == 49
    assert not edge.budget.over
    assert len(other.answers()) == 1


async def test_work_that_waits_for_the_budget_goes_on_once_its_connection_is_closed(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, batch_bytes_max=SMALL_BATCH, unsent_bytes_max=1_000)
    many_groups(edge, 1, offsets=3_000)
    client = edge.connect()
    message = DeleteGroupsRequest(version=2, groups_names=["g0"])
    client.send(requests.request(ApiKey.DELETE_GROUPS, 2, message))
    await until_appended(edge)
    edge.budget.add_unsent_bytes(2_000)
    await settle()
    assert list(edge.manager.current_groups()) != [], "it waits"
    await client.drop()
    assert list(edge.manager.current_groups()) == []
    assert edge.budget.total_bytes == 2_000


async def test_others_are_served_between(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, initial_rebalance_delay_ms=3_000)
    client, other = edge.connect(), edge.connect()
    client.send(parked_join())
    await settle()
    client.send(*[requests.commit("g", {0: offset}) for offset in range(500)])
    client.transport.closed = True
    client.transport.lost(None)
    for _ in range(10):
        await asyncio.sleep(0)
    other.send(requests.commit("other", {0: 1}))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(other.answers()) == 1
    assert committed(edge)[requests.TOPIC, 0] < 100
    await settle()
    assert committed(edge)[requests.TOPIC, 0] == 499


async def test_a_connection_keeps_its_place_until_all_is_carried_out(tmp_path: Path) -> None:
    """Else one address could have more to be done than its connections may ask."""
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, initial_rebalance_delay_ms=3_000, per_address_max=1)
    client = edge.connect()
    client.send(parked_join())
    await settle()
    client.send(*[requests.commit("g", {0: offset}) for offset in range(100)])
    client.transport.closed = True
    client.transport.lost(None)
    assert edge.server.has_unparked_work
    refused = edge.connect()
    assert refused.transport.aborted
    await settle()
    assert not edge.server.has_unparked_work
    assert not edge.connect().transport.aborted


async def test_a_node_that_ends_drops_what_is_left(tmp_path: Path) -> None:
    edge = Edge(tmp_path, initial_rebalance_delay_ms=3_000)
    client = edge.connect()
    client.send(parked_join())
    await settle()
    client.send(requests.commit("g", {0: 1}))
    client.connection.drop_requests_and_close()
    await settle()
    assert edge.manager.find(GroupId("g")) is None
    assert edge.server.connections == set()
    assert edge.budget.total_bytes == 0


async def test_a_closed_connection_without_anything_to_do_leaves_at_once(tmp_path: Path) -> None:
    edge = Edge(tmp_path)
    client = edge.connect()
    client.send(requests.commit("g", {0: 1}))
    assert [frame[:4] for frame in client.answers()] == [b"\x00\x00\x00\x01"]
    client.transport.closed = True
    client.transport.lost(None)
    assert edge.server.connections == set()


async def test_a_closed_connection_ends_where_a_flush_of_its_requests_fails(tmp_path: Path) -> None:
    edge = Edge(tmp_path, turn_ns=A_STEP_A_TURN, flush_by_itself=False)
    create(edge, {"wide": 9_000})
    client = edge.connect()
    client.send(request(wide()), requests.commit("g", {0: 7}))
    await asyncio.sleep(0)
    await client.drop()
    edge.fail_flush()
    await settle()
    assert edge.server.connections == set()
    assert edge.budget.total_bytes == 0
    assert edge.stats.errors[ApiKey.OFFSET_COMMIT, ErrorCode.NOT_COORDINATOR] == 0, "nobody was answered"


# --- real sockets ---

PARTITIONS: Final = range(100)


def with_reset(sock: socket.socket) -> None:
    """Close with RST: what the peer has not read yet is lost."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


@pytest.mark.parametrize("close", [socket.socket.close, with_reset], ids=["fin", "rst"])
async def test_what_was_sent_before_a_socket_closes_is_stored_whole(
    tmp_path: Path, close: Callable[[socket.socket], None]
) -> None:
    """With FIN all of it; with RST as much as was read, of each request all or nothing."""
    loop = asyncio.get_running_loop()
    async with node(tmp_path, group_initial_rebalance_delay_ms=3_600_000) as running:
        asker = await running.client()
        for number in range(20):
            sock = socket.create_connection(("127.0.0.1", running.port))
            sock.setblocking(False)
            await loop.sock_sendall(
                sock,
                requests.join(f"waits-{number}", version=3)
                + requests.commit(f"long-{number}", dict.fromkeys(PARTITIONS, 1), metadata="m" * 400)
                + requests.commit(f"short-{number}", dict.fromkeys(PARTITIONS, 1)),
            )
            close(sock)
        assert running.app.server is not None
        stats, connections = running.app.stats, running.app.server.connections
        await eventually(
            lambda: stats.connections_accepted == 21 and len(connections) == 1, "all of it to be carried out"
        )
        stored = [
            len(await asker.fetch(f"{kind}-{number}")) for number in range(20) for kind in ("long", "short")
        ]
        if close is not with_reset:
            assert stored == [len(PARTITIONS)] * 40
        assert set(stored) <= {0, len(PARTITIONS)}
