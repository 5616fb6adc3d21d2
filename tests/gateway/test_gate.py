# SPDX-License-Identifier: Apache-2.0
"""What has to be so before a request reaches a coordinator: rights, asked as the client, and that its group is ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordinator.authorization.authorizer import ALLOW_ALL
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.cluster_authorizer import QUERIES_AT_ONCE, ClusterAuthorizers
from coordinator.gateway.permission_gate import OF_MEMBERS, PermissionGate
from coordinator.gateway.routes import ApiRoutes
from coordinator.gateway.routing_types import BROKER, COORDINATOR, TakeoverRequester
from coordinator.gateway.session import Session
from coordinator.runtime.promise import Promise
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.frozen_struct import FrozenStruct
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.kafka_python_messages import DeleteGroupsRequest, FindCoordinatorRequest
from protocol.newtypes import GroupId, MemberId, Offset
from tests.gateway.peers import AT_ONCE, RecordedIO
from tests.gateway.rig import OUR_ID, Peer, Rig, asked, housed, read_request
from tests.gateway.test_relay import HEARTBEAT, proxied
from tests.gateway.test_rewriting import frame_of
from tests.net.requests import EVERY_REQUEST, Request, answer, build, join, sample_request, sample_values
from tests.partitions.running import eventually

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
    broker.answer(question, error.to_bytes(2, "big", signed=True))


async def test_what_a_client_may_do_is_asked_on_its_own_connection_and_remembered(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        client = await rig.client(OUR_ID)
        sent = asked(ApiKey.HEARTBEAT, 3, HEARTBEAT)
        client.send(sent)
        broker = await rig.broker.peer()
        await heartbeat_of_nobody(broker, ALLOWED)
        node = await proxied(rig, client)
        for _ in range(3):  # once, and twice more without a question
            assert await node.frame() == sent[4:]
            node.answer(sent[4:], bytes(6))
            await client.frame()
            client.send(sent)


async def test_what_a_client_may_not_do_reaches_no_coordinator(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None, authorization_cache_ms=0) as rig:
        client = await rig.client(OUR_ID)
        client.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT) * 2)
        broker = await rig.broker.peer()
        for _ in range(2):  # each time, where nothing is remembered
            await heartbeat_of_nobody(broker, DENIED)
            assert int.from_bytes((await client.frame())[8:10], "big") == DENIED
        assert rig.coordinator.accepted == 0


async def test_what_the_broker_cannot_tell_is_not_allowed_and_asked_again(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        client = await rig.client(OUR_ID)
        client.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT) * 2)
        broker = await rig.broker.peer()
        for error in (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.REQUEST_TIMED_OUT):
            await heartbeat_of_nobody(broker, int(error))
            assert int.from_bytes((await client.frame())[8:10], "big", signed=True) == error
        assert rig.coordinator.accepted == 0


class Adopting(FrozenStruct, frozen=True):
    """Takes groups over when the test says so."""

    waiting: list[tuple[str, Callable[[ErrorCode], None]]]

    async def adopt(self, group: str, requester: TakeoverRequester) -> ErrorCode:
        """Not yet."""
        promise: Promise[ErrorCode] = Promise(requester.wake)
        self.waiting.append((group, promise.resolve))
        return await promise


async def join_before_adoption(rig: Rig, adopting: Adopting) -> tuple[Peer, bytes]:
    """A client whose JoinGroup waits for its group."""
    client = await rig.client(OUR_ID)
    sent = join("g", version=3)
    client.send(sent)
    await heartbeat_of_nobody(await rig.broker.peer(), ALLOWED)
    await eventually(lambda: adopting.waiting, "the question whether the group is ours")
    assert adopting.waiting[0][0] == "g"
    return client, sent


async def test_a_request_waits_until_its_group_is_ours(tmp_path: Path) -> None:
    adopting = Adopting([])
    async with housed(tmp_path, gate=None, adopt=adopting.adopt) as rig:
        client, sent = await join_before_adoption(rig, adopting)
        adopting.waiting[0][1](ErrorCode.NONE)
        node = await proxied(rig, client)
        assert await node.frame() == sent[4:]
        assert len(adopting.waiting) == 1


async def test_a_request_of_a_group_that_cannot_be_ours_hears_why(tmp_path: Path) -> None:
    adopting = Adopting([])
    async with housed(tmp_path, gate=None, adopt=adopting.adopt) as rig:
        client, _ = await join_before_adoption(rig, adopting)
        adopting.waiting[0][1](ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        joined = answer(ApiKey.JOIN_GROUP, 3, await client.frame())
        assert joined.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_client_that_leaves_while_it_waits_is_forgotten(tmp_path: Path) -> None:
    adopting = Adopting([])
    async with housed(tmp_path, gate=None, adopt=adopting.adopt) as rig:
        client, _ = await join_before_adoption(rig, adopting)
        await client.close()
        adopting.waiting[0][1](ErrorCode.NONE)
        await eventually(lambda: not rig.gateway.relays, "the end of the connection")
        adopting.waiting[0][1](ErrorCode.NONE)


@pytest.mark.parametrize(
    "request_",
    [
        *(request for request in EVERY_REQUEST if request.api in OF_MEMBERS),
        *(request for request in EVERY_REQUEST if request.api is ApiKey.OFFSET_COMMIT),
    ],
    ids=str,
)
def test_a_request_of_a_member_takes_no_group_over(request_: Request) -> None:
    """The sample of a commit has a generation."""
    adopting = Adopting([])
    assert sent_on(sample_request(*request_), adopting) == sample_request(*request_)
    assert not adopting.waiting


@pytest.mark.parametrize(
    "request_",
    [each for each in EVERY_REQUEST if each.api in (ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT)],
    ids=str,
)
def test_a_join_and_a_commit_without_a_generation_wait_for_their_group(request_: Request) -> None:
    values = sample_values(*request_)
    if "generation_id_or_member_epoch" in values:
        values["generation_id_or_member_epoch"] = -1
    adopting = Adopting([])
    assert sent_on(build(*request_, values), adopting) == b""
    assert [group for group, _ in adopting.waiting] == [values["group_id"]]


def sent_on(frame: bytes, adopting: Adopting) -> bytes:
    """What a coordinator of ours gets of a request whose client may do everything."""
    gate = PermissionGate(lambda _session: ALLOW_ALL, AT_ONCE, adopting.adopt).handle_request
    book = AddressBook(lambda _: None, lambda *_: None)
    io = RecordedIO()
    routes = ApiRoutes(book, gate, AT_ONCE, ours=True, message_bytes_max=1 << 20)
    Session(io, routes, 1 << 20).receive_from_client(memoryview(frame))
    return bytes(io.pipelines[COORDINATOR])


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


async def topic_may_be_read(broker: Peer, name: str, error: int = 0) -> None:
    """Answer the question what may be done with a topic."""
    question = await topic_is(broker, 8, {"name": name, "error_code": error, "authorized_operations": {3, 8}})
    (topic,) = question.topics
    assert topic.name == name


async def topic_is(broker: Peer, version: int, topic: dict[str, Any]) -> Any:
    """Answer a question about a topic with this, and return the question."""
    question = await broker.frame()
    assert key_of(question) == ApiKey.METADATA
    metadata = {
        "throttle_time_ms": 0,
        "brokers": [],
        "cluster_id": None,
        "controller_id": 1,
        "topics": [{"is_internal": False, "partitions": [], **topic}],
        "authorized_operations": None,
    }
    frame = frame_of(ApiKey.METADATA, metadata, version)
    broker.send(frame[:4] + question[4:8] + frame[8:])
    return read_request(question)


async def test_what_may_be_done_with_a_topic_is_remembered_whether_it_is_there_or_not(tmp_path: Path) -> None:
    async with housed(tmp_path, gate=None) as rig:
        client = await rig.client(OUR_ID)
        client.send(commit_to("none"))
        broker = await rig.broker.peer()
        await heartbeat_of_nobody(broker, ALLOWED)
        await topic_may_be_read(broker, "none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        node = await proxied(rig, client)
        await node.frame()
        client.send(commit_to("none"))
        await node.frame()


async def test_an_id_that_the_broker_does_not_have_is_refused_and_asked_about_again(tmp_path: Path) -> None:
    """Our nodes may have the topic already, and what may be done with it is not known."""
    async with housed(tmp_path, gate=None) as rig:
        client = await rig.client(OUR_ID)
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=Offset(1))
        commit = OffsetCommitRequest(
            group_id=GroupId("g"),
            topics=[OffsetCommitRequestTopic(topic_id=bytes(15) + b"t", partitions=[partition])],
        )
        broker: Peer | None = None
        topic = {"name": None, "topic_id": UUID(int=ord("t")), "authorized_operations": {3, 8}}
        for error in (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            client.send(asked(ApiKey.OFFSET_COMMIT, 10, commit))
            if broker is None:
                broker = await rig.broker.peer()
                await heartbeat_of_nobody(broker, ALLOWED)
            await topic_is(broker, 12, topic | {"error_code": int(error)})
            assert int(error).to_bytes(2, "big") in await client.frame()
        assert rig.coordinator.accepted == 0


async def test_a_request_that_names_nothing_reaches_no_coordinator_before_the_broker_has_answered(
    tmp_path: Path,
) -> None:
    async with housed(tmp_path, gate=None) as rig:
        client = await rig.client(OUR_ID)
        empty = FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=[])
        client.send(asked(ApiKey.FIND_COORDINATOR, 4, empty))
        broker = await rig.broker.peer()
        assert key_of(await broker.frame()) == ApiKey.METADATA
        await broker.close()  # as a broker does where nobody has logged in
        assert await client.ended()
        assert rig.coordinator.accepted == 0


def frames(data: bytearray) -> list[bytes]:
    """Take the whole frames out of what was sent."""
    found = []
    while data:
        end = 4 + int.from_bytes(data[:4], "big")
        found.append(bytes(data[:end]))
        del data[:end]
    return found


def test_of_many_groups_some_are_asked_about_at_a_time() -> None:
    groups = [f"group {number}" for number in range(5 * QUERIES_AT_ONCE)]
    routes = ApiRoutes(
        AddressBook(lambda _: None, lambda *_: None),
        PermissionGate(
            ClusterAuthorizers(lambda: 0, 1000, AT_ONCE).get_client_authorizer, AT_ONCE
        ).handle_request,
        AT_ONCE,
        ours=True,
        message_bytes_max=1 << 20,
    )
    io = RecordedIO()
    session = Session(io, routes, 1 << 20)
    session.receive_from_client(
        memoryview(asked(ApiKey.DELETE_GROUPS, 0, DeleteGroupsRequest(groups_names=groups)))
    )
    under_way = frames(io.pipelines[BROKER])
    questions = 0
    while under_way:
        assert len(under_way) <= QUERIES_AT_ONCE
        questions += 1
        body = bytes(2) + bytes(4) + bytes(4)  # no error, no throttling, no topics
        session.receive_from_pipeline(
            BROKER, memoryview((4 + len(body)).to_bytes(4, "big") + under_way.pop(0)[8:12] + body)
        )
        under_way += frames(io.pipelines[BROKER])
    assert questions == len(groups)
    (passed,) = frames(io.pipelines[COORDINATOR])
    assert read_request(passed[4:]).groups_names == groups
