# SPDX-License-Identifier: Apache-2.0
"""What clients and brokers can make a gateway keep, and how long they can keep it busy, whatever they send."""

from collections import Counter
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from coordinator.authorization.permissions import Operation, Permission, ResourceType
from coordinator.config import Address
from coordinator.gateway.address_book import DISCOVERED_MAX
from coordinator.gateway.buffer_budget import COUNTED_FROM_BYTES, BufferBudget
from coordinator.gateway.client_request_reader import ASKED_BYTES_AT_ONCE
from coordinator.gateway.cluster_authorizer import (
    REMEMBERED_ALWAYS,
    REMEMBERED_IN_ALL_MAX,
    REMEMBERED_MAX,
    CachedPermissionTotal,
    ConnectionPermissionCache,
)
from coordinator.gateway.pipelines import ANSWERS_BYTES_MAX, REWRITTEN_AT_ONCE
from coordinator.gateway.routing_types import BROKER, COORDINATOR, LENGTH_BYTES, ClientSession
from coordinator.gateway.session import READ_BYTES, Session
from protocol.apis import ApiKey
from protocol.bounds import REMEMBERED_NAME_MAX
from protocol.compiled_struct import copy_with_fields
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.kafka_python_messages import FetchRequest
from protocol.metadata_head import ListedBroker
from protocol.newtypes import GroupId, MemberId
from tests.gateway.peers import ANSWERED, OPAQUE, REWRITTEN, RecordedIO, TestRoutes, answer, expected, request
from tests.gateway.rig import BROKER_ID, OUR_ID, OURS_AT, Rig, asked, housed, passes
from tests.gateway.test_long_requests import LONG, Gate, described
from tests.gateway.test_relay import proxied
from tests.partitions.running import eventually
from tests.support.log_lines import LogLines

FETCH = asked(ApiKey.FETCH, 4, FetchRequest(version=4, topics=[], forgotten_topics_data=[]))
KIB = 1024


def test_answers_that_were_made_here_and_wait_are_not_more_than_a_bound() -> None:
    io, routes = RecordedIO(), TestRoutes()
    session = Session(io, routes, 1 << 20)
    session.receive_from_client(memoryview(request(OPAQUE, 0, b"which is answered late")))
    sent = b"".join(request(ANSWERED, number, bytes(3 * KIB)) for number in range(1, 200))
    most = 0
    for start in range(0, len(sent), 64 * KIB):
        if not session.wants_requests:
            break
        session.receive_from_client(memoryview(sent[start : start + 64 * KIB]))
        while io.calls:
            io.call()
        most = max(most, session.kept_bytes)
    assert not session.wants_requests
    assert ANSWERS_BYTES_MAX < most < ANSWERS_BYTES_MAX + 80 * KIB
    session.receive_from_pipeline(BROKER, memoryview(answer(0, b"now")))
    assert session.kept_bytes < most
    while io.calls:
        io.call()
    assert len(io.client) > ANSWERS_BYTES_MAX


def test_after_long_requests_others_have_their_turn() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    content = bytes(ASKED_BYTES_AT_ONCE)
    session.receive_from_client(
        memoryview(b"".join(request(ANSWERED, number, content) for number in range(3)))
    )
    said = [io.writes]
    while io.calls:
        io.call()
        said.append(io.writes)
    assert said == [1, 2, 3]


def test_after_many_answers_that_are_rewritten_others_have_their_turn() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    count = 2 * REWRITTEN_AT_ONCE + 1
    session.receive_from_client(
        memoryview(b"".join(request(REWRITTEN, number, b"some") for number in range(count)))
    )
    session.receive_from_pipeline(
        BROKER, memoryview(b"".join(answer(number, b"some") for number in range(count)))
    )
    said = [io.writes]
    while io.calls:
        assert not session.should_read_responses(BROKER)
        io.call()
        said.append(io.writes)
    assert said == [REWRITTEN_AT_ONCE, 2 * REWRITTEN_AT_ONCE, count]
    assert session.should_read_responses(BROKER)
    assert bytes(io.client) == b"".join(expected(REWRITTEN, number, b"some") for number in range(count))


def test_an_answer_in_small_pieces_is_looked_at_a_few_times() -> None:
    io, routes = RecordedIO(), TestRoutes()
    looked: list[int] = []
    rewrite = routes.found[
        next(key for key, each in routes.found.items() if each.api_key == REWRITTEN)
    ].rewrite
    assert rewrite is not None

    def looking(session: ClientSession, frame: bytes) -> Any:
        looked.append(len(frame))
        return rewrite(session, frame)

    routes.found = {
        key: copy_with_fields(each, rewrite=each.rewrite and looking) for key, each in routes.found.items()
    }
    session = Session(io, routes, 1 << 20)
    content = bytes(3_000)
    session.receive_from_client(memoryview(request(REWRITTEN, 1, b"") + request(REWRITTEN, 2, b"")))
    sent = answer(1, content) + answer(2, b"next")
    for start in range(0, len(sent), 5):
        session.receive_from_pipeline(BROKER, memoryview(sent[start : start + 5]))
        session.go_on()
    assert bytes(io.client) == expected(REWRITTEN, 1, content) + expected(REWRITTEN, 2, b"next")
    assert len(looked) < 20, looked
    assert session.kept_bytes == 0


def decisions(count: int, length: int = 10) -> dict[Permission, ErrorCode]:
    """As a broker says them of so many groups."""
    return {
        Permission(ResourceType.GROUP, Operation.READ, str(number).rjust(length)): ErrorCode.NONE
        for number in range(count)
    }


def test_permissions_for_groups_with_long_names_are_not_remembered() -> None:
    known = ConnectionPermissionCache()
    known.remember(decisions(10, REMEMBERED_NAME_MAX + 1), 1)
    assert not known.decisions
    known.remember(decisions(10, REMEMBERED_NAME_MAX), 1)
    assert len(known.decisions) == 10


def test_all_connections_together_remember_a_bounded_number_of_permissions_and_each_some() -> None:
    in_all = CachedPermissionTotal()
    connections = [
        ConnectionPermissionCache(counted=in_all) for _ in range(2 * REMEMBERED_IN_ALL_MAX // REMEMBERED_MAX)
    ]
    for known in connections:
        known.remember(decisions(REMEMBERED_MAX), 1)
    assert in_all.count == sum(len(known.decisions) for known in connections) == REMEMBERED_IN_ALL_MAX
    late = connections[-1]
    assert not late.decisions
    late.remember(decisions(REMEMBERED_ALWAYS), 1)
    assert len(late.decisions) == REMEMBERED_ALWAYS
    for known in connections:
        known.clear()
    assert in_all.count == 0


class Keeping:
    """A connection that may be closed."""

    peer_name = "a client"

    def __init__(self) -> None:
        self.aborted = False

    def abort(self) -> None:
        """It is closed."""
        self.aborted = True


def test_who_keeps_something_for_the_longest_time_is_closed_where_there_is_no_room() -> None:
    closed: Counter[str] = Counter()
    kept = BufferBudget(4 * COUNTED_FROM_BYTES, closed)
    first, second, third = Keeping(), Keeping(), Keeping()
    kept.set_bytes_closing_excess(first, COUNTED_FROM_BYTES)
    kept.set_bytes_closing_excess(second, COUNTED_FROM_BYTES - 1)
    kept.set_bytes_closing_excess(third, COUNTED_FROM_BYTES)
    kept.set_bytes_closing_excess(first, 2 * COUNTED_FROM_BYTES)
    assert kept.total_bytes == 3 * COUNTED_FROM_BYTES
    kept.set_bytes_closing_excess(second, 2 * COUNTED_FROM_BYTES)
    assert (first.aborted, second.aborted, third.aborted) == (True, False, False)
    assert kept.total_bytes == 3 * COUNTED_FROM_BYTES
    kept.forget(second)
    kept.set_bytes_closing_excess(third, 0)
    assert (kept.total_bytes, closed["room"]) == (0, 1)


async def test_half_requests_of_many_clients_take_no_more_than_the_budget_and_a_member_goes_on(
    tmp_path: Path,
) -> None:
    budget = 2 * READ_BYTES
    async with housed(tmp_path, kept_bytes_max=budget) as rig:
        member = await rig.client(OUR_ID)
        beat = asked(
            ApiKey.HEARTBEAT,
            3,
            HeartbeatRequest(group_id=GroupId("g"), generation_id=1, member_id=MemberId("m")),
        )
        member.send(beat)
        node = await proxied(rig, member)
        half = pack(">ihhi", 200 * KIB, ApiKey.DESCRIBE_GROUPS, 0, 1) + bytes(190 * KIB)
        attackers = [await rig.client(OUR_ID) for _ in range(8)]
        for attacker in attackers:
            attacker.send(half)
        await eventually(lambda: rig.gateway.closed["room"] >= 5, "attackers to be closed")
        assert rig.gateway.buffer_budget.total_bytes <= budget
        assert sum(relay.waiting_bytes for relay in rig.gateway.relays) <= budget + 8 * COUNTED_FROM_BYTES
        await node.frame()
        node.answer(beat[4:], bytes(6))
        await member.frame()


async def test_once_what_was_kept_is_gone_its_memory_is_given_back(tmp_path: Path) -> None:
    async with housed(tmp_path, unread_ms_max=1_000) as rig:  # it is looked ten times as often
        attacker = await rig.client(OUR_ID)
        attacker.send(pack(">ihhi", 200 * KIB, ApiKey.DESCRIBE_GROUPS, 0, 1) + bytes(190 * KIB))
        await eventually(lambda: rig.gateway.buffer_budget.most_bytes > 0, "half a request to be kept")
        await attacker.close()
        await eventually(lambda: rig.gateway.buffer_budget.most_bytes == 0, "its memory to be given back")


async def test_a_client_that_takes_nothing_of_its_answers_is_closed(tmp_path: Path) -> None:
    async with housed(tmp_path, unread_ms_max=100) as rig:
        client = await rig.client()
        broker = await rig.broker.peer()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        client.send(FETCH)
        await broker.frame()
        broker.answer(FETCH[4:], bytes(64 * KIB * KIB))
        await eventually(lambda: rig.gateway.closed["unread"] == 1, "the client to be closed")
        await eventually(lambda: not rig.gateway.relays, "the end of the connection")


async def test_a_stopped_gateway_leaves_no_socket_of_a_client_that_was_gone(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        client = await rig.client()
        await rig.broker.peer()
        (relay,) = rig.gateway.relays
        await client.close()
        await eventually(lambda: not rig.gateway.relays, "the client to be gone")
        assert not relay.has_closed_all_sockets, "the broker may take its time"
        await rig.gateway.stop()
        assert relay.has_closed_all_sockets


async def test_answers_that_name_ever_new_brokers_bind_a_bounded_number_of_ports(tmp_path: Path) -> None:
    async with housed(tmp_path) as rig:
        rig.gateway.stop_accepting()
        book = rig.gateway.book
        moved = [
            book.register_and_translate_broker(ListedBroker(number, "127.0.0.1", 1, None))
            for number in range(2, 2 + 2 * DISCOVERED_MAX)
        ]
        assert sum(each is not None for each in moved) == DISCOVERED_MAX
        assert len(book.brokers) == 1 + DISCOVERED_MAX
        rig.gateway.set_brokers_and_listen(rig.gateway.book.brokers)
        assert book.register_and_translate_broker(ListedBroker(10_000, "127.0.0.1", 1, None)) is not None, (
            "the supervisor knows them now"
        )


@pytest.mark.parametrize("node_id", [-1, 1_000_000, 2_147_483_647])
async def test_a_broker_with_an_id_that_brokers_do_not_have_is_left_out(tmp_path: Path, node_id: int) -> None:
    named: dict[str, Any] = {"sni_pattern": "broker-{id}.example", "sni_port": 1}
    for chosen in ({}, named):
        config = Rig(tmp_path, passes, **chosen).config
        assert config.client_address_for(node_id) is None
        assert config.client_address_for(BROKER_ID) is not None


async def test_a_broker_does_not_get_the_port_of_a_node_of_ours(tmp_path: Path, lines: LogLines) -> None:
    async with housed(tmp_path) as rig:
        rig.gateway.set_brokers_and_listen({OURS_AT: Address("127.0.0.1", rig.broker.port)})
        assert OURS_AT not in rig.gateway.ports_by_node_id
        (line,) = lines.fields("cannot listen on the port of a broker")
        assert "is that of another node" in line["reason"]


def test_a_long_request_that_waits_counts() -> None:
    process = Gate()
    client = process.client()
    client.send(LONG)
    assert client.session.kept_bytes == len(LONG) - LENGTH_BYTES
    process.settle(client)
    assert client.session.kept_bytes == len(LONG) - LENGTH_BYTES
    (question,) = client.sent(BROKER)
    client.answer(BROKER, described(question, frozenset()))
    process.settle(client)
    assert client.sent(COORDINATOR)
    assert client.session.kept_bytes == 0
