# SPDX-License-Identifier: Apache-2.0
"""Requests about groups of which some are at the cluster, between a client, a node and brokers that are played."""

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest

from coordinator.api.private.locate_groups import API as LOCATE_GROUPS
from coordinator.authorization.authorizer import ALLOW_ALL
from coordinator.cluster_requests.request import ClusterRequest
from coordinator.config import Address
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.cluster_groups import AT_A_TIME, LACKING, NOT_ASKED, ClusterGroupAnswerer
from coordinator.gateway.offload import Offloader
from coordinator.gateway.permission_gate import PermissionGate
from coordinator.gateway.routes import ApiRoutes
from coordinator.gateway.routing_types import COORDINATOR, LENGTH_BYTES
from coordinator.gateway.session import Session
from coordinator.runtime.tasks import Tasks
from coordinator.upstream.aiokafka_request import UpstreamResponse, choose_version
from coordinator.upstream.batched_group_requests import BatchedGroupRequester
from coordinator.upstream.cluster import UpstreamBroker, UpstreamCluster
from coordinator.upstream.config import UpstreamConfig
from coordinator.upstream.errors import Unreachable, UpstreamNotKafka
from protocol.apis import ApiKey, VersionRange
from protocol.client_frames import decode_answer
from protocol.errors import ErrorCode
from protocol.headers import decode_request_header, encode_response, has_flexible_response_header
from protocol.hot.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    MetadataResponse,
)
from protocol.message_codecs import find_message_codec
from protocol.newtypes import GroupId, Offset
from tests.gateway.peers import RecordedIO
from tests.gateway.rig import asked
from tests.gateway.test_gate import frames
from tests.gateway.test_long_requests import OUR_REFERENCES, HandThread
from tests.support.idle import idle
from tests.support.log_lines import captured

ADDRESS: Final = Address("127.0.0.1", 1)
NOT_COORDINATOR: Final = int(ErrorCode.NOT_COORDINATOR)
NOT_AVAILABLE: Final = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
HERE, THERE = "Stable", "Empty"
"""The states of groups in the answers of our node and of brokers."""
TOPIC_ID: Final = bytes(range(16))
MESSAGES_FROM: Final = 3
"""DeleteGroups has error messages."""
OTHER_ID: Final = bytes(range(1, 17))


class Cluster(UpstreamCluster):
    """Three brokers that have every group; group "<n>..." is coordinated by broker n."""

    def __init__(self, **newest: int) -> None:
        """`newest` has the newest version of some apis."""
        super().__init__(UpstreamConfig((ADDRESS,)), read=_read)
        self.brokers = {each: UpstreamBroker(each, "h", 1, None) for each in (1, 2, 3)}
        self.newest = {ApiKey[name]: version for name, version in newest.items()}
        self.asked: list[tuple[int | None, ApiKey, Sequence[str]]] = []
        self.errors: dict[str, list[int]] = {}
        """The errors that a group's coordinators answer with next."""
        self.failing: dict[ApiKey, Exception] = {}
        self.garbage: dict[ApiKey, bytes] = {}
        """What is answered next in place of a response."""
        self.left_out: set[str] = set()
        """Groups about which the next answer says nothing."""
        self.meanwhile: Callable[[], None] = lambda: None
        """Called while a broker is asked."""
        self.topic_error = 0
        self.deleted: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def send_request(
        self, question: ClusterRequest[Any], *, node_id: int | None = None
    ) -> UpstreamResponse:
        api = question.api
        newest = self.newest.get(api, codec_versions(api))
        version = choose_version(ADDRESS, api, VersionRange(0, newest), question.versions)
        codec = find_message_codec(api, version)
        request = codec.decode_request(codec.encode_request(question.build(version)), 0)
        self.asked.append((node_id, api, names_in(request)))
        await self.may_answer.wait()
        if api is not ApiKey.FIND_COORDINATOR:
            self.meanwhile()
        if api in self.failing:
            raise self.failing.pop(api)
        answer = self.garbage.pop(api, None) or codec.encode_response(self._answer(api, version, request))
        return UpstreamResponse(api, version, answer, 0)

    def _answer(self, api: ApiKey, version: int, request: Any) -> Any:
        if api is ApiKey.FIND_COORDINATOR:
            return FindCoordinatorResponse(
                coordinators=[self._coordinator(n) for n in request.coordinator_keys]
            )
        if api is ApiKey.METADATA:
            return metadata(version)
        if api is ApiKey.OFFSET_FETCH:
            return OffsetFetchResponse(
                groups=[
                    fetched(each, 1, self._error(each.group_id), self.topic_error) for each in request.groups
                ]
            )
        if api is ApiKey.DELETE_GROUPS:
            self.deleted += request.groups_names
            reason = "a plug-in says no" if version >= MESSAGES_FROM else None
            return deletions(request.groups_names, self._error, reason)
        named = [name for name in request.groups if name not in self.left_out]
        self.left_out.clear()
        return descriptions(named, THERE, version, self._error)

    def _coordinator(self, name: str) -> Any:
        kind = FindCoordinatorResponse.Coordinator
        error = self._error(f"find {name}")
        return kind(key=name, node_id=-1 if error else int(name[0]), host="h", port=1, error_code=error)

    def _error(self, name: str) -> int:
        errors = self.errors.get(name)
        return errors.pop(0) if errors else 0


def codec_versions(api: ApiKey) -> int:
    return {ApiKey.METADATA: 12, ApiKey.FIND_COORDINATOR: 4, ApiKey.OFFSET_FETCH: 10}.get(api, 6)


def _read(path: Path) -> bytes:
    raise AssertionError(f"{path} is not read")


def metadata(version: int) -> Any:
    """That the cluster has one topic, "t"."""
    topic = MetadataResponse.MetadataResponseTopic(
        error_code=0, name="t", topic_id=UUID(bytes=TOPIC_ID), is_internal=False, partitions=[]
    )
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="h", port=1, rack=None)
    return MetadataResponse(
        version=version, throttle_time_ms=0, brokers=[broker], cluster_id="c", controller_id=1, topics=[topic]
    )


def names_in(request: Any) -> Sequence[str]:
    """The groups of a request."""
    for field in ("coordinator_keys", "groups_names", "groups"):
        if names := getattr(request, field, None):
            return [getattr(each, "group_id", each) for each in names]
    return []


def descriptions(
    names: Sequence[str], state: str, version: int, error: Callable[[str], int] = lambda _: 0
) -> Any:
    """Groups in this state; one whose name ends with "none" is unknown."""
    kind = DescribeGroupsResponse.DescribedGroup
    rows = []
    for name in names:
        is_known = not name.endswith("none")
        code = error(name) or (0 if is_known or version < 6 else int(ErrorCode.GROUP_ID_NOT_FOUND))
        rows.append(
            kind(
                error_code=code,
                error_message=None,
                group_id=name,
                group_state=state if is_known else "Dead",
                protocol_type="",
                protocol_data="",
                members=[],
                authorized_operations=set(),
            )
        )
    return DescribeGroupsResponse(throttle_time_ms=0, groups=rows)


def deletions(
    names: Sequence[str], error: Callable[[str], int] = lambda _: 0, reason: str | None = None
) -> Any:
    """What becomes of groups that are deleted."""
    kind = DeleteGroupsResponse.DeletableGroupResult
    rows = []
    for name in names:
        code = error(name)
        rows.append(kind(group_id=name, error_code=code, error_message=reason if code else None))
    return DeleteGroupsResponse(throttle_time_ms=0, results=rows)


def fetched(
    asked: OffsetFetchRequestGroup, offset: int, error: int = 0, topic_error: int = 0
) -> OffsetFetchResponseGroup:
    """A group that has this offset in each partition."""
    topics = [OffsetFetchRequestTopics("t", TOPIC_ID, [0])] if asked.topics is None else asked.topics
    rows = [
        OffsetFetchResponseTopics(
            each.name,
            each.topic_id,
            [
                OffsetFetchResponsePartitions(index, Offset(offset), error_code=topic_error)
                for index in each.partition_indexes
            ],
        )
        for each in topics
    ]
    return OffsetFetchResponseGroup(asked.group_id, [] if error else rows, error)


class Play:
    """A client that may do everything, and its node, which has the groups `here`."""

    def __init__(
        self,
        cluster: Cluster,
        *here: str,
        known: frozenset[str] = frozenset(),
        beside: "Play | None" = None,
    ) -> None:
        """`beside` another client of the same process."""
        self.cluster = cluster
        self.here = {*here}
        self.tasks = Tasks()
        self.now_ms = 0
        self.thread = HandThread()
        offloader = Offloader(lambda: self.thread)
        groups = ClusterGroupAnswerer(
            BatchedGroupRequester(cluster), known.__contains__, offloader, self.tasks, lambda: self.now_ms
        )
        self.groups: ClusterGroupAnswerer = groups if beside is None else beside.groups
        gate = PermissionGate(lambda _session: ALLOW_ALL, offloader, answer_absent=self.groups.answer)
        book = AddressBook(lambda _: None, lambda *_: None)
        routes = ApiRoutes(book, gate.handle_request, offloader, ours=True, message_bytes_max=1 << 20)
        self.io = RecordedIO()
        self.session = Session(self.io, routes, 1 << 20)
        self.located: list[tuple[Sequence[str], bool]] = []
        self.passed: list[Sequence[str]] = []

    def send(self, api: ApiKey, version: int, request: Any) -> None:
        """Send a request."""
        self.session.receive_from_client(memoryview(asked(api, version, request)))

    async def go_on(self) -> None:
        """Let all but the client do what they can do now."""
        assert not self.io.has_failed
        await idle()
        self.thread.run_all()
        for frame in frames(self.io.pipelines[COORDINATOR]):
            self.session.receive_from_pipeline(COORDINATOR, memoryview(self._answer(frame)))
        while self.io.calls:
            self.io.call()

    async def ask(self, api: ApiKey, version: int, request: Any) -> Any:
        """Send a request, and return the response."""
        self.send(api, version, request)
        while not self.io.client:
            await self.go_on()
        (frame,) = frames(self.io.client)
        return decode_answer(find_message_codec(api, version), api, frame, LENGTH_BYTES)

    def _answer(self, frame: bytes) -> bytes:
        api, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
        codec = (
            LOCATE_GROUPS.schema.codecs[0]
            if api == ApiKey.LOCATE_GROUPS
            else find_message_codec(api, version)
        )
        header, pos = decode_request_header(frame[4:], codec.flexible)
        request = codec.decode_request(frame[4:], pos)
        body = codec.encode_response(self._response(ApiKey(api), version, request))
        return encode_response(header.correlation_id, body, has_flexible_response_header(api, codec.flexible))

    def _response(self, api: ApiKey, version: int, request: Any) -> Any:
        if api is ApiKey.LOCATE_GROUPS:
            self.located.append((request.group_ids, request.discard_readings))
            make: Any = LOCATE_GROUPS.schema.response
            return make(version=0, error_code=0, here=[name in self.here for name in request.group_ids])
        self.passed.append(names_in(request))
        if api is ApiKey.DESCRIBE_GROUPS:
            return descriptions(request.groups, HERE, version)
        if api is ApiKey.DELETE_GROUPS:
            return deletions(request.groups_names)
        return OffsetFetchResponse(groups=[fetched(each, 2) for each in request.groups])

    async def describe(self, *names: str, version: int = 5) -> list[tuple[str, str, int]]:
        """(name, state, error) of each row of the answer."""
        request = DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)
        response = await self.ask(ApiKey.DESCRIBE_GROUPS, version, request)
        return [(row.group_id, row.group_state, row.error_code) for row in response.groups]

    async def delete(self, *names: str) -> list[tuple[str, int]]:
        response = await self.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=list(names)))
        return [(row.group_id, row.error_code) for row in response.results]


# --- deletions of 4.4 ---


@pytest.mark.parametrize(("newest", "reason"), [(2, None), (3, "a plug-in says no")])
async def test_a_deletion_is_answered_in_the_version_of_the_client(newest: int, reason: str | None) -> None:
    cluster = Cluster(DELETE_GROUPS=newest)
    failed = int(ErrorCode.GROUP_DELETION_FAILED)
    cluster.errors["1a"] = [failed]
    play = Play(cluster, "2b")
    request = DeleteGroupsRequest(groups_names=["2b", "1a", "3c"])
    response = await play.ask(ApiKey.DELETE_GROUPS, 3, request)
    assert [(row.group_id, row.error_code, row.error_message) for row in response.results] == [
        ("2b", 0, None),
        ("1a", failed, reason),
        ("3c", 0, None),
    ]


# --- where groups are ---


async def test_groups_that_are_here_are_their_nodes() -> None:
    play = Play(Cluster(), "1a", "2b")
    assert await play.describe("1a", "2b") == [("1a", HERE, 0), ("2b", HERE, 0)]
    assert play.located == [(["1a", "2b"], False)]
    assert play.cluster.asked == []


async def test_of_a_group_that_is_known_to_be_here_nothing_is_asked() -> None:
    play = Play(Cluster(), known=frozenset(["1a"]))
    assert await play.describe("1a") == [("1a", HERE, 0)]
    assert play.located == []


async def test_groups_are_answered_for_by_who_has_them_in_the_order_in_which_they_were_asked() -> None:
    play = Play(Cluster(), "1b", "3b")
    asked_for = ("2a", "1b", "1a", "3b", "2a", "1-none")
    answer = await play.describe(*asked_for)
    assert answer == [
        ("2a", THERE, 0),
        ("1b", HERE, 0),
        ("1a", THERE, 0),
        ("3b", HERE, 0),
        ("2a", THERE, 0),
        ("1-none", "Dead", 0),
    ]
    assert play.passed == [["1b", "3b"]]


async def test_many_groups_are_one_request_for_each_broker_and_two_for_the_node() -> None:
    names = [f"{1 + number % 3}-{number}" for number in range(2_000)]
    play = Play(Cluster())
    for expected in ([None, 1, 2, 3], [1, 2, 3]):  # where they are coordinated is remembered
        play.located.clear()
        play.cluster.asked.clear()
        assert await play.describe(*names) == [(name, THERE, 0) for name in names]
        assert sorted((node for node, *_ in play.cluster.asked), key=lambda node: node or 0) == expected
        assert [groups for groups, _ in play.located] == [names, names]
    assert play.passed == []


async def test_a_group_that_comes_here_meanwhile_is_answered_for_by_its_node() -> None:
    play = Play(Cluster())
    play.cluster.meanwhile = lambda: play.here.add("1a")
    assert await play.describe("1a", "1b") == [("1a", HERE, 0), ("1b", THERE, 0)]
    assert play.passed == [["1a"]]


async def test_a_group_that_comes_here_while_it_is_deleted_is_deleted_here_too() -> None:
    play = Play(Cluster())
    play.cluster.meanwhile = lambda: play.here.add("1a")
    assert sorted(await play.delete("1a", "2b")) == [("1a", 0), ("2b", 0)]
    assert sorted(play.cluster.deleted) == ["1a", "2b"]
    assert play.passed == [["1a"]]


async def test_a_deletion_of_a_client_that_is_gone_waits_for_no_answer_of_its_node() -> None:
    """That may come after the answer to a JoinGroup, which waits for other members."""
    play = Play(Cluster())
    play.send(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["1a"]))
    await idle()
    (location,) = frames(play.io.pipelines[COORDINATOR])
    assert int.from_bytes(location[4:6], "big") == ApiKey.LOCATE_GROUPS
    play.session.execute_gone_client_writes()
    (deletion,) = frames(play.io.pipelines[COORDINATOR])
    assert int.from_bytes(deletion[4:6], "big") == ApiKey.DELETE_GROUPS
    assert play.session.is_client_input_finished


async def test_what_was_read_before_a_deletion_is_not_stored_after_it() -> None:
    play = Play(Cluster(), "3c")
    await play.delete("1a", "3c", "2b")
    assert play.located == [(["1a", "3c", "2b"], False), (["1a", "2b"], True)]
    await play.describe("1a")
    assert play.located[2:] == [(["1a"], False), (["1a"], False)]


@pytest.mark.parametrize("is_located", [True, False])
async def test_a_connection_that_ends_meanwhile_is_freed_without_the_garbage_collector(
    is_located: bool,
) -> None:
    play = Play(Cluster())
    play.cluster.may_answer.clear()
    play.send(
        ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=["1a"], include_authorized_operations=False)
    )
    while is_located and not play.cluster.asked:
        await play.go_on()
    session = play.session
    del play.session
    gc.disable()
    try:
        session.end()
        assert sys.getrefcount(session) == OUR_REFERENCES
    finally:
        gc.enable()
    play.cluster.may_answer.set()
    await play.tasks.wait_until_done()


async def test_so_many_requests_of_a_process_are_asked_at_the_cluster_at_a_time() -> None:
    cluster = Cluster()
    cluster.may_answer.clear()
    first = Play(cluster)
    plays = [first, *(Play(cluster, beside=first) for _ in range(AT_A_TIME + 3))]
    for play in plays:
        play.send(ApiKey.DELETE_GROUPS, 0, DeleteGroupsRequest(groups_names=["1a"]))
        await play.go_on()
    assert len(cluster.asked) == AT_A_TIME
    cluster.may_answer.set()
    while not all(play.io.client for play in plays):
        for play in plays:
            await play.go_on()
    assert len(cluster.deleted) == len(plays)


# --- errors of the cluster ---


async def test_a_coordinator_that_has_moved_is_looked_for_once_more() -> None:
    play = Play(Cluster())
    play.cluster.errors["1a"] = [NOT_COORDINATOR]
    assert await play.describe("1a", "2b") == [("1a", THERE, 0), ("2b", THERE, 0)]
    assert [(node, names) for node, api, names in play.cluster.asked if api is ApiKey.DESCRIBE_GROUPS] == [
        (1, ["1a"]),
        (2, ["2b"]),
        (1, ["1a"]),
    ]
    play.cluster.errors["1a"] = [NOT_COORDINATOR] * 2
    assert await play.describe("1a") == [("1a", THERE, NOT_COORDINATOR)]


async def test_a_broker_that_is_gone_is_looked_for_once_more() -> None:
    play = Play(Cluster())
    play.cluster.failing[ApiKey.DESCRIBE_GROUPS] = Unreachable(ADDRESS, "refused")
    assert await play.describe("1a") == [("1a", THERE, 0)]


async def test_a_cluster_that_cannot_be_asked_is_an_error_on_which_clients_try_again() -> None:
    play = Play(Cluster(), "3c")
    play.cluster.failing[ApiKey.DESCRIBE_GROUPS] = UpstreamNotKafka(ADDRESS, "speaks HTTP")
    play.cluster.errors["find 2b"] = [NOT_AVAILABLE] * 2
    with captured() as lines:
        assert await play.describe("1a", "2b", "3c") == [
            ("1a", "", NOT_AVAILABLE),
            ("2b", "", NOT_AVAILABLE),
            ("3c", HERE, 0),
        ]
        assert lines.events == [NOT_ASKED]
    play.cluster.failing[ApiKey.FIND_COORDINATOR] = Unreachable(ADDRESS, "refused")
    assert await play.describe("1x") == [("1x", "", NOT_AVAILABLE)]


async def test_an_answer_that_cannot_be_read_is_an_error_and_the_log_names_its_broker() -> None:
    play = Play(Cluster(), "3c")
    play.cluster.garbage[ApiKey.DESCRIBE_GROUPS] = b"\xff" * 50
    with captured() as lines:
        assert await play.describe("1a", "3c") == [("1a", "", NOT_AVAILABLE), ("3c", HERE, 0)]
        (told,) = lines.fields(NOT_ASKED)
        assert "broker 1" in told["reason"]
        assert "no DESCRIBE_GROUPS response" in told["reason"]
    assert await play.describe("1a") == [("1a", THERE, 0)], "the client's connection goes on"


async def test_a_group_that_an_answer_leaves_out_is_asked_for_once_more_and_then_an_error() -> None:
    play = Play(Cluster())
    play.cluster.left_out = {"1b"}
    assert await play.describe("1a", "1b", "1c") == [(name, THERE, 0) for name in ("1a", "1b", "1c")]
    play.cluster.left_out = {"1b"}
    play.cluster.meanwhile = lambda: play.cluster.left_out.add("1b")
    assert await play.describe("1a", "1b") == [("1a", THERE, 0), ("1b", "", NOT_AVAILABLE)]


async def test_the_log_names_what_the_gateways_user_lacks() -> None:
    play = Play(Cluster())
    denied = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    play.cluster.errors |= {"1a": [denied], "find 2b": [denied]}
    with captured() as lines:
        assert await play.describe("1a", "2b") == [("1a", THERE, denied), ("2b", "", denied)]
        play.cluster.errors["1a"] = [denied]
        assert await play.delete("1a", "3c") == [("1a", denied), ("3c", 0)]
    assert {tuple(each.values()) for each in lines.fields(LACKING)} == {
        ("DESCRIBE", "group", "1a"),
        ("DESCRIBE", "group", "2b"),
        ("DELETE", "group", "1a"),
    }


@pytest.mark.parametrize(("version", "name"), [(9, "t"), (10, UUID(bytes=TOPIC_ID))])
async def test_the_log_names_topics_that_the_gateways_user_may_not_see(
    version: int, name: str | UUID
) -> None:
    play = Play(Cluster())
    play.cluster.topic_error = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topics = [OffsetFetchRequestTopics("t", TOPIC_ID, [0, 1])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(GroupId("1a"), topics=topics)])
    with captured() as lines:
        response = await play.ask(ApiKey.OFFSET_FETCH, version, request)
    assert lines.fields(LACKING) == [{"operation": "DESCRIBE", "resource": "topic", "name": name}]
    (topic,) = response.groups[0].topics
    assert [part.error_code for part in topic.partitions] == [play.cluster.topic_error] * 2


# --- brokers that are older than clients ---


@pytest.mark.parametrize("newest", [5, 6])
async def test_an_unknown_group_is_not_found_whatever_the_broker_has(newest: int) -> None:
    play = Play(Cluster(DESCRIBE_GROUPS=newest))
    not_found = int(ErrorCode.GROUP_ID_NOT_FOUND)
    assert await play.describe("1-none", "1a", version=6) == [
        ("1-none", "Dead", not_found),
        ("1a", THERE, 0),
    ]


@pytest.mark.parametrize("newest", [8, 9, 10])
async def test_topics_are_named_by_id_whatever_the_broker_has(newest: int) -> None:
    play = Play(Cluster(OFFSET_FETCH=newest), "3c")
    topics = [OffsetFetchRequestTopics("", OTHER_ID, [0]), OffsetFetchRequestTopics("", TOPIC_ID, [0, 3])]
    groups = [OffsetFetchRequestGroup(GroupId(name), topics=topics) for name in ("1a", "3c")]
    groups.append(OffsetFetchRequestGroup(GroupId("2b"), topics=None))
    response = await play.ask(ApiKey.OFFSET_FETCH, 10, OffsetFetchRequest(groups=groups))
    rows = {
        (group.group_id, topic.topic_id, part.partition_index): (part.committed_offset, part.error_code)
        for group in response.groups
        for topic in group.topics
        for part in topic.partitions
    }
    unknown = (-1, int(ErrorCode.UNKNOWN_TOPIC_ID)) if newest < 10 else (1, 0)
    assert rows == {
        ("1a", OTHER_ID, 0): unknown,
        ("1a", TOPIC_ID, 0): (1, 0),
        ("1a", TOPIC_ID, 3): (1, 0),
        ("3c", OTHER_ID, 0): (2, 0),
        ("3c", TOPIC_ID, 0): (2, 0),
        ("3c", TOPIC_ID, 3): (2, 0),
        ("2b", TOPIC_ID, 0): (1, 0),
    }
    assert [group.group_id for group in response.groups] == ["1a", "3c", "2b"]
