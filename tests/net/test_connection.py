# SPDX-License-Identifier: Apache-2.0
"""One connection: answers in the order of their requests, whatever each of them waits for."""

import gc
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coordinator.api import fetch
from coordinator.groups.classic.state import GroupState
from coordinator.groups.outcome import Instant
from coordinator.net.connection import Connection
from protocol import hot
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeGroupsRequest, FetchRequest
from protocol.newtypes import GroupId, MemberId
from storage.format.records import GroupMetadataRecord
from tests.groups.harness import FakeClock
from tests.net import requests
from tests.net.edge import Client, Edge, settle
from tests.support.calls import calls_of
from tests.support.groups import classic

DELAY_MS = 3_000


@pytest.fixture
def edge(tmp_path: Path) -> Edge:
    """Flushes end when the test says so, and a first join waits DELAY_MS."""
    return Edge(tmp_path, flush_by_itself=False, initial_rebalance_delay_ms=DELAY_MS)


def describe(group: str, correlation_id: int) -> bytes:
    message = DescribeGroupsRequest(groups=[group], include_authorized_operations=False)
    return requests.request(ApiKey.DESCRIBE_GROUPS, 5, message, correlation_id)


async def end_join(edge: Edge) -> None:
    """Let the initial delay pass, so that a join that waits is answered."""
    edge.timers.advance(DELAY_MS)
    await settle()


# --- order ---


async def test_requests_in_one_chunk_are_answered_in_order_and_in_one_write(edge: Edge) -> None:
    client = edge.connect()
    client.send(*(requests.api_versions(number) for number in range(1, 6)))
    assert client.correlation_ids() == [1, 2, 3, 4, 5]
    assert client.transport.writes == 1


async def test_a_request_may_come_byte_by_byte(edge: Edge) -> None:
    client = edge.connect()
    data = requests.api_versions(1) + requests.fetch_offsets("g", 2)
    for byte in data:
        client.send(bytes([byte]))
    assert client.correlation_ids() == [1, 2]


async def test_chunks_may_end_anywhere(edge: Edge) -> None:
    data = b"".join(requests.fetch_offsets("g", number) for number in range(1, 4))
    for cut in range(len(data) + 1):
        client = edge.connect()
        client.send(data[:cut])
        client.send(data[cut:])
        assert client.correlation_ids() == [1, 2, 3], f"cut at {cut}"


async def test_requests_behind_a_join_wait_for_it_and_see_what_it_did(edge: Edge) -> None:
    client = edge.connect()
    client.send(
        requests.api_versions(1),
        requests.join("g", correlation_id=2, version=3),
        describe("g", 3),
        requests.api_versions(4),
    )
    assert client.correlation_ids() == [1]
    group = classic(edge.manager, "g")
    assert group is not None
    assert group.state is GroupState.PREPARING_REBALANCE

    await end_join(edge)

    joined, described, last = client.answers()
    assert requests.answer(ApiKey.JOIN_GROUP, 3, joined).generation_id == 1
    (seen,) = requests.answer(ApiKey.DESCRIBE_GROUPS, 5, described).groups
    assert seen.group_state == "CompletingRebalance"  # handled at once it would have been PreparingRebalance
    assert int.from_bytes(last[:4], "big") == 4


async def test_what_arrives_while_a_join_waits_is_kept_in_order(edge: Edge) -> None:
    client = edge.connect()
    client.send(requests.join("g", correlation_id=1, version=3))
    for number in range(2, 6):
        client.send(requests.api_versions(number))
        assert client.correlation_ids() == []
    await end_join(edge)
    assert client.correlation_ids() == [1, 2, 3, 4, 5]
    client.send(requests.api_versions(6))
    assert client.correlation_ids() == [6]


async def test_a_join_behind_a_join_waits_for_its_own_turn(edge: Edge) -> None:
    client = edge.connect()
    client.send(
        requests.join("a", correlation_id=1, version=3),
        requests.api_versions(2),
        requests.join("b", correlation_id=3, version=3),
        requests.api_versions(4),
    )
    await end_join(edge)
    assert client.correlation_ids() == [1, 2]
    assert classic(edge.manager, "b") is not None
    await end_join(edge)
    assert client.correlation_ids() == [3, 4]


async def test_a_request_that_arrives_between_the_answer_to_a_join_and_its_leaving_is_in_order(
    edge: Edge,
) -> None:
    client = edge.connect()
    client.send(requests.join("g", correlation_id=1, version=3))
    edge.timers.advance(DELAY_MS)  # answered, but what follows runs with the loop's next turn
    client.send(requests.api_versions(2))
    await settle()
    assert client.correlation_ids() == [1, 2]


async def test_another_connection_does_not_wait_for_a_join(edge: Edge) -> None:
    waiting, other = edge.connect(), edge.connect()
    waiting.send(requests.join("g", correlation_id=1, version=3))
    other.send(requests.api_versions(7), requests.fetch_offsets("other", 8))
    assert other.correlation_ids() == [7, 8]
    assert waiting.correlation_ids() == []


async def test_replies_wait_for_their_flush_but_later_requests_are_handled(edge: Edge) -> None:
    client, other = edge.connect(), edge.connect()
    client.send(
        requests.api_versions(1),
        requests.commit("g", {0: 10}, 2),
        requests.api_versions(3),
        requests.commit("g", {1: 11}, 4),
    )
    assert client.correlation_ids() == [1]
    assert len(edge.commits) == 2, "the second commit waited for the flush of the first"
    other.send(requests.api_versions(9))
    assert other.correlation_ids() == [9]

    edge.flush()

    assert client.correlation_ids() == [2, 3, 4]


async def test_each_reply_waits_for_its_own_flush(edge: Edge) -> None:
    client = edge.connect()
    client.send(requests.commit("g", {0: 1}, 1))
    edge.begin_flush()  # the flush of the first commit is under way while the second comes
    client.send(requests.commit("g", {0: 2}, 2), requests.api_versions(3))

    edge.end_flush()
    assert client.correlation_ids() == [1]

    edge.flush()
    assert client.correlation_ids() == [2, 3]


async def test_a_read_waits_for_what_it_saw_and_another_group_does_not(edge: Edge) -> None:
    writer, reader = edge.connect(), edge.connect()
    writer.send(requests.commit("g", {0: 5}, 1))
    reader.send(requests.fetch_offsets("other", 1))
    assert reader.correlation_ids() == [1]
    reader.send(requests.fetch_offsets("g", 2))
    assert reader.correlation_ids() == []
    edge.flush()
    assert writer.correlation_ids() == [1]
    assert reader.correlation_ids() == [2]


async def test_a_join_behind_a_commit_that_waits_for_the_disk(edge: Edge) -> None:
    client = edge.connect()
    client.send(
        requests.commit("g", {0: 1}, 1),
        requests.join("h", correlation_id=2, version=3),
        requests.api_versions(3),
    )
    await end_join(edge)
    assert client.correlation_ids() == []
    edge.flush()
    await settle()
    assert client.correlation_ids() == [1, 2, 3]


# --- failures ---


async def test_after_a_failed_flush_exactly_the_replies_that_waited_for_it_say_so(edge: Edge) -> None:
    client, other = edge.connect(), edge.connect()
    client.send(
        requests.commit("g", {0: 1, 1: 2}, 1), requests.api_versions(2), requests.fetch_offsets("g", 3)
    )
    other.send(requests.api_versions(1))
    assert other.correlation_ids() == [1]

    edge.fail_flush()
    client.send(requests.api_versions(4))  # behind those
    await settle()

    committed, versions, fetched, after = client.answers()
    errors = [
        partition.error_code
        for partition in requests.answer(ApiKey.OFFSET_COMMIT, 8, committed).topics[0].partitions
    ]
    assert errors == [ErrorCode.NOT_COORDINATOR] * 2
    assert requests.answer(ApiKey.API_VERSIONS, 0, versions).error_code == ErrorCode.NONE
    assert requests.answer(ApiKey.OFFSET_FETCH, 7, fetched).error_code == ErrorCode.NOT_COORDINATOR
    assert after[:4] == (4).to_bytes(4, "big")
    assert not client.transport.closed
    client.send(requests.api_versions(5))
    assert client.correlation_ids() == [5]
    assert edge.budget.total_bytes == 0


async def test_after_a_failed_flush_a_parked_request_gets_one_answer(edge: Edge) -> None:
    """Its group may answer it, too, before its refusal is written."""
    client = edge.connect()
    client.send(requests.join("g", version=3))
    await settle()
    ctx = client.connection._parked
    assert ctx is not None
    ctx.add_ticket(edge.writer.append([GroupMetadataRecord(GroupId("other"), None)]))
    edge.fail_flush()
    ctx.answer_parked_request(
        hot.JoinGroupResponse(
            error_code=ErrorCode.UNKNOWN_MEMBER_ID, member_id=MemberId(""), protocol_name=None
        )
    )
    await settle()
    (frame,) = client.answers()
    assert requests.answer(ApiKey.JOIN_GROUP, 3, frame).error_code == ErrorCode.NOT_COORDINATOR
    assert edge.budget.total_bytes == 0


class BrokenClock(FakeClock):
    """Fails where a handler wants to know the time."""

    def now(self) -> Instant:
        raise RuntimeError


async def test_a_handler_that_fails_is_answered_and_the_connection_goes_on(edge: Edge) -> None:
    client = edge.connect()
    clock, edge.node.group_access.clock = edge.node.group_access.clock, BrokenClock()
    client.send(requests.commit("g", {0: 1}, 1))
    edge.node.group_access.clock = clock
    (answer,) = client.answers()
    (topic,) = requests.answer(ApiKey.OFFSET_COMMIT, 8, answer).topics
    assert topic.partitions == [hot.OffsetCommitResponsePartition(0, ErrorCode.UNKNOWN_SERVER_ERROR)]
    client.send(requests.api_versions(2))
    assert client.correlation_ids() == [2]


# --- clients that go ---


async def test_a_join_whose_client_is_gone_still_takes_part(edge: Edge) -> None:
    gone, stays = edge.connect(), edge.connect()
    gone.send(requests.join("g", correlation_id=1, version=3))
    stays.send(requests.join("g", correlation_id=1, version=3))
    await gone.drop()
    await end_join(edge)  # the second of them has prolonged the delay
    await end_join(edge)
    group = classic(edge.manager, "g")
    assert group is not None
    assert len(group.members) == 2
    assert stays.correlation_ids() == [1]


async def test_a_client_that_leaves_before_the_flush_disturbs_nobody(edge: Edge) -> None:
    gone, stays = edge.connect(), edge.connect()
    gone.send(requests.commit("g", {0: 1}, 1))
    stays.send(requests.commit("g", {0: 2}, 1))
    await gone.drop()
    edge.flush()
    assert stays.correlation_ids() == [1]
    assert edge.server.connections == {stays.connection}


def alive() -> int:
    """How many connections the garbage collector cannot get rid of."""
    gc.collect()
    return sum(type(thing) is Connection for thing in gc.get_objects())


async def drop_while_parked(edge: Edge, group: str) -> None:
    client = edge.connect()
    client.send(requests.join(group, version=3), requests.api_versions(2))
    assert client.correlation_ids() == []
    await client.drop()


async def drop_while_flushing(edge: Edge, group: str) -> None:
    client = edge.connect()
    client.send(requests.commit(group, {0: 1}))
    await client.drop()
    edge.flush()


async def break_protocol(edge: Edge, group: str) -> None:
    client = edge.connect()
    client.send(requests.commit(group, {0: 1}), requests.framed(b"?"))
    edge.flush()
    await settle()
    assert client.transport.closed


async def break_header(edge: Edge, group: str) -> None:
    client = edge.connect()
    client.send(requests.framed(requests.header(requests.NOT_SERVED, 0)))
    await settle()
    assert client.transport.closed


Leave = Callable[[Edge, str], Awaitable[None]]


@pytest.mark.parametrize("leave", [drop_while_parked, drop_while_flushing, break_protocol])
async def test_nothing_is_kept_of_connections_that_are_gone(edge: Edge, leave: Leave) -> None:
    before = alive()
    for number in range(20):
        await leave(edge, f"g{number}")
    edge.timers.advance(DELAY_MS)
    edge.flush()
    await settle()
    assert alive() == before
    assert edge.server.connections == set()
    assert edge.server.admission.total == 0


async def cut_length(edge: Edge, group: str) -> None:
    client = edge.connect()
    client.send(requests.commit(group, {0: 1}), b"\xff\xff\xff\xff")
    edge.flush()
    await settle()
    assert client.transport.closed


@pytest.mark.parametrize(
    "leave", [drop_while_parked, drop_while_flushing, break_protocol, cut_length, break_header]
)
async def test_connections_that_are_gone_need_no_garbage_collector(edge: Edge, leave: Leave) -> None:
    """It comes rarely, and every one of them may hold megabytes."""
    before = alive()
    gc.disable()
    try:
        for number in range(20):
            await leave(edge, f"g{number}")
        edge.timers.advance(DELAY_MS)
        edge.flush()
        await settle()
        assert sum(type(thing) is Connection for thing in gc.get_objects()) == before
    finally:
        gc.enable()


# --- breaking the protocol ---


def is_answered_and_closed(client: Client, wanted: list[int]) -> None:
    assert client.correlation_ids() == wanted
    assert client.transport.closed


BAD = {
    "no header": requests.framed(b"\x00"),
    "an api that is not served": requests.framed(requests.header(requests.NOT_SERVED, 0)),
    "half a body": requests.framed(requests.header(ApiKey.HEARTBEAT, 0) + b"\x00\x05g"),
    "a negative length": b"\xff\xff\xff\xff",
    "a length of zero": b"\x00\x00\x00\x00",
    "a length above the limit": b"\x7f\xff\xff\xff",
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_what_was_asked_before_a_bad_request_is_still_answered(edge: Edge, bad: bytes) -> None:
    """Kafka takes one request at a time, so it has answered before it sees the bad one."""
    client, other = edge.connect(), edge.connect()
    client.send(requests.api_versions(1), requests.api_versions(2), bad, requests.api_versions(3))
    is_answered_and_closed(client, [1, 2])
    other.send(requests.api_versions(1))
    assert other.correlation_ids() == [1]


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_what_waits_for_the_disk_before_a_bad_request_is_still_answered(edge: Edge, bad: bytes) -> None:
    client = edge.connect()
    client.send(requests.commit("g", {0: 1}, 1), bad)
    assert client.correlation_ids() == []
    edge.flush()
    await settle()
    is_answered_and_closed(client, [1])


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
@pytest.mark.parametrize("later", [False, True], ids=["same chunk", "later chunk"])
async def test_a_bad_request_behind_a_join_ends_the_connection_after_the_join(
    edge: Edge, bad: bytes, later: bool
) -> None:
    client = edge.connect()
    before = [requests.join("g", correlation_id=1, version=3), requests.api_versions(2)]
    if later:
        client.send(*before)
        client.send(bad)
    else:
        client.send(*before, bad)
    await end_join(edge)
    is_answered_and_closed(client, [1, 2])


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_nothing_that_follows_a_bad_request_is_handled(edge: Edge, bad: bytes) -> None:
    client = edge.connect()
    client.send(requests.api_versions(1), bad, requests.commit("g", {0: 1}, 2))
    client.send(requests.commit("g", {0: 1}, 3))
    assert edge.commits == []


async def test_a_long_poll_of_a_client_that_is_gone_is_dropped(tmp_path: Path) -> None:
    """Nothing is kept of it, and nothing is done for it when its time is over."""
    edge = Edge(tmp_path)
    gone, stays = edge.connect(), edge.connect()
    with calls_of("_answer", fetch) as made:
        for client in (gone, stays):
            client.send(poll())
        assert len(made) == 2
        await gone.drop()
        edge.timers.advance(60_000)
        await settle()
        assert len(made) == 3
    assert len(stays.answers()) == 1


def poll() -> bytes:
    partition = FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    message = FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1,
        isolation_level=0,
        topics=[FetchRequest.FetchTopic(topic=requests.TOPIC, partitions=[partition])],
    )
    return requests.request(ApiKey.FETCH, 4, message)
