# SPDX-License-Identifier: Apache-2.0
"""What has to be so before a request reaches a coordinator: rights, asked as the client, and that its group is ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coordinator.gateway.book import Book
from coordinator.gateway.new_topics import KNOWN_S, WAIT_S, NewTopics
from coordinator.gateway.rights import QUESTIONS_AT_ONCE, Rights
from coordinator.gateway.routes import PortRoutes
from coordinator.gateway.session import Session
from coordinator.gateway.ways import BROKER, COORDINATOR
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.messages import DeleteGroupsRequest, FindCoordinatorRequest
from protocol.names import GroupId, MemberId, Offset
from protocol.structs import Frozen
from tests.gateway.house import OUR_ID, House, Peer, asked, housed, read_request
from tests.gateway.peers import AT_ONCE, Outside
from tests.gateway.test_relay import HEARTBEAT, proxied
from tests.gateway.test_rewriting import frame_of
from tests.partitions.running import eventually
from tests.support.idle import idle

ALLOWED = int(ErrorCode.UNKNOWN_MEMBER_ID)
"""What a broker says to a heartbeat of nobody where the group may be read."""
DENIED = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)


def key_of(frame: bytes) -> int:
    """The api of a request."""
    return int.from_bytes(frame[:2], "big")


async def heartbeat_of_nobody(broker: Peer, error: int) -> None:
    """Answer the question whether the group may be read."""
    question = await broker.frame()
    assert key_of(question) == ApiKey.HEARTBEAT
    assert read_request(question).member_id == ""
    broker.answer(question, error.to_bytes(2, "big"))


async def test_what_a_client_may_do_is_asked_on_its_own_connection_and_remembered(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as house:
        client = await house.client(OUR_ID)
        sent = asked(ApiKey.HEARTBEAT, 3, HEARTBEAT)
        client.send(sent)
        broker = await house.broker.peer()
        await heartbeat_of_nobody(broker, ALLOWED)
        node = await proxied(house, client)
        for _ in range(3):  # once, and twice more without a question
            assert await node.frame() == sent[4:]
            node.answer(sent[4:], bytes(6))
            await client.frame()
            client.send(sent)


async def test_what_a_client_may_not_do_reaches_no_coordinator(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None, authorization_cache_ms=0) as house:
        client = await house.client(OUR_ID)
        client.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT) * 2)
        broker = await house.broker.peer()
        for _ in range(2):  # each time, where nothing is remembered
            await heartbeat_of_nobody(broker, DENIED)
            assert int.from_bytes((await client.frame())[8:10], "big") == DENIED
        assert house.coordinator.accepted == 0


class Adopting(Frozen, frozen=True):
    """Takes groups over when the test says so."""

    waiting: list[tuple[list[str], Callable[[ErrorCode], None]]]

    def adopt(self, groups: list[str], done: Callable[[ErrorCode], None]) -> bool:
        """Not yet."""
        self.waiting.append((groups, done))
        return False


async def heartbeat_before_adoption(house: House, adopting: Adopting) -> tuple[Peer, bytes]:
    """A client whose heartbeat waits for its group."""
    client = await house.client(OUR_ID)
    sent = asked(ApiKey.HEARTBEAT, 3, HEARTBEAT)
    client.send(sent)
    await heartbeat_of_nobody(await house.broker.peer(), ALLOWED)
    await eventually(lambda: adopting.waiting, "the question whether the group is ours")
    assert adopting.waiting[0][0] == ["g"]
    return client, sent


async def test_a_request_waits_until_its_group_is_ours(tmp_path: Path) -> None:
    adopting = Adopting([])
    async with housed(tmp_path, gate=None, adopt=adopting.adopt) as house:
        client, sent = await heartbeat_before_adoption(house, adopting)
        adopting.waiting[0][1](ErrorCode.NONE)
        node = await proxied(house, client)
        assert await node.frame() == sent[4:]
        assert len(adopting.waiting) == 1


async def test_a_request_of_a_group_that_cannot_be_ours_hears_why(tmp_path: Path) -> None:
    adopting = Adopting([])
    async with housed(tmp_path, gate=None, adopt=adopting.adopt) as house:
        client, _ = await heartbeat_before_adoption(house, adopting)
        adopting.waiting[0][1](ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        answer = await client.frame()
        assert int.from_bytes(answer[8:10], "big") == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_client_that_leaves_while_it_waits_is_forgotten(tmp_path: Path) -> None:
    adopting = Adopting([])
    async with housed(tmp_path, gate=None, adopt=adopting.adopt) as house:
        client, _ = await heartbeat_before_adoption(house, adopting)
        await client.close()
        adopting.waiting[0][1](ErrorCode.NONE)
        await eventually(lambda: not house.gateway.relays, "the end of the connection")
        adopting.waiting[0][1](ErrorCode.NONE)


def commit_to(topic: str, *partitions: int) -> bytes:
    """A commit of a standalone consumer, with its length."""
    rows = [
        OffsetCommitRequestPartition(
            partition_index=each, committed_offset=Offset(7), committed_metadata=None
        )
        for each in partitions
    ]
    commit = OffsetCommitRequest(
        group_id=GroupId("g"),
        member_id=MemberId(""),
        topics=[OffsetCommitRequestTopic(name=topic, partitions=rows)],
    )
    return asked(ApiKey.OFFSET_COMMIT, 8, commit)


def at_once(house: House, named: list[Any], partitions: int = 1) -> Callable[[Any], None]:
    """A supervisor that answers at once: all topics have so many partitions."""

    def ask(topics: Any) -> None:
        named.append(topics)
        found = {topic: (count, partitions) for topic, count in topics.items()}
        house.gateway.loop.call_soon(house.gateway.new_topics.looked_for, found)

    return ask


async def topic_may_be_read(broker: Peer, name: str, error: int = 0) -> None:
    """Answer the question what may be done with a topic."""
    question = await broker.frame()
    (topic,) = read_request(question).topics
    assert (key_of(question), topic.name) == (ApiKey.METADATA, name)
    said = {
        "error_code": error,
        "name": name,
        "is_internal": False,
        "partitions": [],
        "authorized_operations": {3, 8},
    }
    metadata = {
        "throttle_time_ms": 0,
        "brokers": [],
        "cluster_id": None,
        "controller_id": 1,
        "topics": [said],
        "authorized_operations": None,
    }
    frame = frame_of(ApiKey.METADATA, metadata, 8)
    broker.send(frame[:4] + question[4:8] + frame[8:])


async def test_a_topic_that_is_named_for_the_first_time_is_waited_for(tmp_path: Path) -> None:
    named: list[Any] = []
    async with housed(tmp_path, gate=None) as house:
        house.gateway.new_topics.ask = named.append
        clients = []
        for _ in range(2):
            client = await house.client(OUR_ID)
            client.send(commit_to("new"))
            broker = await house.broker.peer()
            await heartbeat_of_nobody(broker, ALLOWED)
            await topic_may_be_read(broker, "new")
            clients.append(client)
            await eventually(lambda: named, "the supervisor to be told")
        await idle()
        assert named == [{"new": 0}], "once for both"
        assert house.coordinator.accepted == 0
        house.gateway.new_topics.looked_for({"new": (0, 1)})
        for client in clients:
            await (await proxied(house, client)).frame()


async def test_a_topic_that_the_broker_does_not_have_is_not_waited_for_and_asked_about_again(
    tmp_path: Path,
) -> None:
    named: list[Any] = []
    async with housed(tmp_path, gate=None) as house:
        house.gateway.new_topics.ask = named.append
        client = await house.client(OUR_ID)
        client.send(commit_to("none"))
        broker = await house.broker.peer()
        await heartbeat_of_nobody(broker, ALLOWED)
        await topic_may_be_read(broker, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        node = await proxied(house, client)
        await node.frame()
        assert named == []
        client.send(commit_to("none"))  # somebody has made it meanwhile
        await topic_may_be_read(broker, "none")
        await eventually(lambda: named, "the supervisor to be told")
        assert named == [{"none": 0}]


class Clock:
    """What NewTopics needs of an event loop."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        self.calls.append((self.now_s + seconds, call))

    def passes(self, seconds: float) -> None:
        self.now_s += seconds
        due = [call for at_s, call in self.calls if at_s <= self.now_s]
        self.calls = [each for each in self.calls if each[0] > self.now_s]
        for call in due:
            call()


def test_topics_are_waited_for_only_so_long_and_known_for_a_while() -> None:
    clock = Clock()
    topics = NewTopics(lambda: clock.now_s, clock.later)
    asked: list[Any] = []
    done: list[str] = []
    topics.ask = asked.append
    assert not topics.settle(["a", "b", "a"], {}, lambda: done.append("first"))
    assert not topics.settle(["b", b"id"], {}, lambda: done.append("second"))
    assert asked == [{"a": 0, "b": 0}, {b"id": 0}]
    topics.looked_for({"a": (0, 1), "b": (0, 1)})
    assert done == ["first"]
    clock.passes(WAIT_S)
    assert done == ["first", "second"], "it goes on all the same"
    topics.looked_for({b"id": (0, 1)})
    assert done == ["first", "second"]
    assert topics.settle(["a", b"id"], {}, lambda: done.append("third"))
    clock.passes(KNOWN_S)
    assert not topics.settle(["a"], {}, lambda: done.append("fourth")), "it may be another one by now"


def test_partitions_beyond_those_that_are_known_are_waited_for_and_not_asked_about_for_a_while() -> None:
    clock = Clock()
    topics = NewTopics(lambda: clock.now_s, clock.later)
    asked: list[Any] = []
    done: list[str] = []
    topics.ask = asked.append
    assert not topics.settle([], {"a": 3, b"id": 1}, lambda: done.append("first"))
    assert not topics.settle([], {"a": 3}, lambda: done.append("second"))
    assert not topics.settle(["a"], {"a": 5}, lambda: done.append("third"))
    assert asked == [{"a": 3, b"id": 1}, {"a": 5}]
    topics.looked_for({"a": (3, 4), b"id": (1, 1)})
    assert sorted(done) == ["first", "second"]
    assert topics.settle([], {"a": 4, b"id": 1}, lambda: done.append("never"))
    topics.looked_for({"a": (5, 4)})
    assert done[2:] == ["third"]
    assert topics.settle([], {"a": 5}, lambda: done.append("never")), "there is no such partition"
    assert topics.settle([], {"a": 600}, lambda: done.append("never"))
    clock.passes(KNOWN_S)
    assert topics.settle([], {"a": 4}, lambda: done.append("never")), "they stay known"
    assert not topics.settle([], {"a": 6}, lambda: done.append("fourth"))
    clock.passes(WAIT_S)
    assert done[3:] == ["fourth"], "it goes on all the same"


async def test_a_commit_to_a_partition_that_was_just_added_waits_for_it(tmp_path: Path) -> None:
    """Though nothing is asked of its topic, as what may be done with that is known."""
    named: list[Any] = []
    async with housed(tmp_path, gate=None) as house:
        house.gateway.new_topics.ask = at_once(house, named, partitions=3)
        client = await house.client(OUR_ID)
        client.send(commit_to("t", 0, 2, 1))
        broker = await house.broker.peer()
        await heartbeat_of_nobody(broker, ALLOWED)
        await topic_may_be_read(broker, "t")
        node = await proxied(house, client)
        await node.frame()
        client.send(commit_to("t", 1))
        await node.frame()
        assert named == [{"t": 3}]
        house.gateway.new_topics.ask = named.append
        client.send(commit_to("t", 0, 5))
        await eventually(lambda: len(named) == 2, "the supervisor to be told")
        assert named[1] == {"t": 6}
        handled = house.coordinator.accepted
        await idle()
        assert house.coordinator.accepted == handled
        house.gateway.new_topics.looked_for({"t": (6, 6)})
        await node.frame()


async def test_a_partition_of_a_topic_that_the_cluster_does_not_have_is_not_waited_for(
    tmp_path: Path,
) -> None:
    named: list[Any] = []
    async with housed(tmp_path, gate=None) as house:
        house.gateway.new_topics.ask = named.append
        client = await house.client(OUR_ID)
        client.send(commit_to("none", 7))
        broker = await house.broker.peer()
        await heartbeat_of_nobody(broker, ALLOWED)
        await topic_may_be_read(broker, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await (await proxied(house, client)).frame()
    assert named == []


async def test_topics_that_are_named_for_the_first_time_are_told(tmp_path: Path) -> None:
    named: list[Any] = []
    async with housed(tmp_path, gate=None) as house:
        house.gateway.new_topics.ask = at_once(house, named)
        for _ in range(2):
            client = await house.client(OUR_ID)
            client.send(commit_to("new"))
            broker = await house.broker.peer()
            await heartbeat_of_nobody(broker, ALLOWED)
            await topic_may_be_read(broker, "new")
            await (await proxied(house, client)).frame()
    assert named == [{"new": 0}]


async def test_a_topic_of_a_group_that_is_known_is_told_too(tmp_path: Path) -> None:
    named: list[Any] = []
    async with housed(tmp_path, gate=None) as house:
        house.gateway.new_topics.ask = at_once(house, named)
        client = await house.client(OUR_ID)
        client.send(commit_to("first"))
        broker = await house.broker.peer()
        await heartbeat_of_nobody(broker, ALLOWED)
        await topic_may_be_read(broker, "first")
        node = await proxied(house, client)
        await node.frame()
        client.send(commit_to("second"))  # of its group nothing is asked again
        await topic_may_be_read(broker, "second")
        await node.frame()
    assert named == [{"first": 0}, {"second": 0}]


async def test_a_request_that_names_nothing_reaches_no_coordinator_before_the_broker_has_answered(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, gate=None) as house:
        client = await house.client(OUR_ID)
        empty = FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=[])
        client.send(asked(ApiKey.FIND_COORDINATOR, 4, empty))
        broker = await house.broker.peer()
        assert key_of(await broker.frame()) == ApiKey.METADATA
        await broker.close()  # as a broker does where nobody has logged in
        assert await client.ended()
        assert house.coordinator.accepted == 0


def frames(data: bytearray) -> list[bytes]:
    """Take the whole frames out of what was sent."""
    found = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        found.append(bytes(data[:end]))
        del data[:end]
    return found


def test_of_many_groups_some_are_asked_about_at_a_time() -> None:
    groups = [f"group {number}" for number in range(5 * QUESTIONS_AT_ONCE)]
    routes = PortRoutes(
        Book(lambda _: None, lambda *_: None),
        Rights(lambda: 0, 1000, AT_ONCE).gate,
        AT_ONCE,
        ours=True,
        message_bytes_max=1 << 20,
    )
    outside = Outside()
    session = Session(outside, routes, 1 << 20)
    session.requested(memoryview(asked(ApiKey.DELETE_GROUPS, 0, DeleteGroupsRequest(groups_names=groups))))
    under_way = frames(outside.lanes[BROKER])
    questions = 0
    while under_way:
        assert len(under_way) <= QUESTIONS_AT_ONCE
        questions += 1
        body = bytes(2) + bytes(4) + bytes(4)  # no error, no throttling, no topics
        session.answered(
            BROKER, memoryview((4 + len(body)).to_bytes(4, "big") + under_way.pop(0)[8:12] + body)
        )
        under_way += frames(outside.lanes[BROKER])
    assert questions == len(groups)
    (passed,) = frames(outside.lanes[COORDINATOR])
    assert read_request(passed[4:]).groups_names == groups
