# SPDX-License-Identifier: Apache-2.0
"""What takes long is done beside the event loop: the requests of others pass meanwhile, and answers are the same."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.gateway import answers
from coordinator.gateway.adoption import PORTION
from coordinator.gateway.book import Book
from coordinator.gateway.cluster_authorizer import ClusterAuthorizers
from coordinator.gateway.offload import LONG_BYTES, Offloader
from coordinator.gateway.permission_gate import Adopt, PermissionGate, all_are_ours
from coordinator.gateway.routes import PortRoutes
from coordinator.gateway.session import Session
from coordinator.gateway.ways import BROKER, COORDINATOR
from protocol.apis import ApiKey
from protocol.codecs import codec_for
from protocol.errors import ErrorCode
from protocol.headers import encode_response
from protocol.messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.catalogue.disk import ManualThread
from tests.gateway.house import asked, read_request
from tests.gateway.peers import Outside
from tests.gateway.test_adoption import Played, Process
from tests.gateway.test_gate import ALLOWED, frames
from tests.gateway.test_relay import HEARTBEAT
from tests.gateway.test_rewriting import frame_of
from tests.partitions.running import eventually

GROUPS = [f"group-{number}" for number in range(3_000)]
DENIED = frozenset(GROUPS[::3])
LONG = asked(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=GROUPS), 7)
assert len(LONG) > LONG_BYTES
OUR_REFERENCES = 2
"""To an object that nobody but a test has: its variable, and the argument of the count."""
NOT_ALLOWED = ErrorCode.GROUP_AUTHORIZATION_FAILED


class HandThread(ManualThread):
    """Works when the test says so."""

    async def run(self, call: Callable[[], Any]) -> Any:
        raise AssertionError("nothing waits for it")

    def close(self) -> None:
        """There is nothing to close."""


class Client:
    """A session, and what it has sent."""

    def __init__(self, routes: PortRoutes) -> None:
        self.outside = Outside()
        self.session = Session(self.outside, routes, 1 << 20)

    def send(self, frame: bytes) -> None:
        self.session.requested(memoryview(frame))

    def sent(self, lane: int) -> list[bytes]:
        """What has gone to a lane since it was looked at last, without lengths."""
        return [frame[4:] for frame in frames(self.outside.lanes[lane])]

    def answer(self, lane: int, frame: bytes) -> None:
        self.session.answered(lane, memoryview(frame))


class Gate:
    """The routes of one kind of port, with a thread that is worked by hand."""

    def __init__(self, *, ours: bool = True, adopt: Adopt = all_are_ours) -> None:
        self.thread = HandThread()
        self.adopting: list[Callable[[ErrorCode], None]] = []
        """Takes what becomes of the groups that are being taken over."""
        offloader = Offloader(lambda: self.thread)
        authorizers = ClusterAuthorizers(lambda: 0, 1_000, offloader)
        self.routes = PortRoutes(
            Book(lambda _: None, lambda *_: None),
            PermissionGate(authorizers.of, offloader, adopt).judge,
            offloader,
            ours=ours,
            message_bytes_max=1 << 20,
        )

    def client(self) -> Client:
        return Client(self.routes)

    def work(self) -> None:
        """Let the thread do the one thing that waits, while another client's heartbeats pass before it."""
        (_,) = self.thread.waiting
        self.heartbeats_pass()
        self.thread.run_one()

    def heartbeats_pass(self) -> None:
        other = self.client()
        for number in range(3):
            other.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT))
            if number == 0:  # it is asked once what the client may do
                (question,) = other.sent(BROKER)
                other.answer(BROKER, reply(question, ALLOWED.to_bytes(2, "big")))
            (passed,) = other.sent(COORDINATOR)
            other.answer(COORDINATOR, reply(passed, bytes(6)))
        assert len(frames(other.outside.client)) == 3


def reply(request: bytes, body: bytes) -> bytes:
    return encode_response(int.from_bytes(request[4:8], "big", signed=True), body, False)


def described(request: bytes, denied: frozenset[str]) -> bytes:
    """The answer of a broker, or a coordinator, to a DescribeGroups."""
    kind = DescribeGroupsResponse.DescribedGroup
    groups = [
        kind(
            version=0,
            error_code=int(NOT_ALLOWED) if name in denied else 0,
            group_id=name,
            group_state="" if name in denied else "Empty",
            protocol_type="",
            protocol_data="",
            members=[],
        )
        for name in read_request(request).groups
    ]
    body = codec_for(ApiKey.DESCRIBE_GROUPS, 0).encode_response(
        DescribeGroupsResponse(version=0, groups=groups)
    )
    return reply(request, body)


def test_a_request_that_names_thousands_of_groups_holds_up_nobody() -> None:
    process = Gate()
    client = process.client()
    client.send(LONG)
    assert client.sent(BROKER) == [], "nothing of it was looked at yet"
    process.work()  # decoded
    process.work()  # what is known of its permissions
    (question,) = client.sent(BROKER)
    assert read_request(question).groups == GROUPS
    client.answer(BROKER, described(question, DENIED))
    process.work()  # the answer is read
    process.work()  # judged
    process.work()  # what is left of it
    (passed,) = client.sent(COORDINATOR)
    assert read_request(passed).groups == [name for name in GROUPS if name not in DENIED]
    client.answer(COORDINATOR, described(passed, frozenset()))
    assert not client.outside.client
    process.work()  # the answer is decoded
    process.work()  # put together
    (answer,) = frames(client.outside.client)
    response = codec_for(ApiKey.DESCRIBE_GROUPS, 0).decode_response(answer, 8)
    assert [group.group_id for group in response.groups] == [
        *GROUPS[::3],
        *(name for name in GROUPS if name not in DENIED),
    ]
    assert {group.group_id for group in response.groups if group.error_code == NOT_ALLOWED} == DENIED
    assert not process.thread.waiting


def test_a_group_that_goes_while_a_request_is_made_anew_changes_nothing_of_that() -> None:
    given_back: list[bool] = []

    def adopt(_groups: list[str], done: Callable[[ErrorCode], None]) -> bool:
        if given_back:
            done(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return not given_back

    process = Gate(adopt=adopt)
    client = process.client()
    client.send(LONG)
    process.thread.run_one()  # decoded
    process.thread.run_one()  # what is known of its permissions
    (question,) = client.sent(BROKER)
    client.answer(BROKER, described(question, DENIED))
    process.thread.run_one()  # the answer is read
    process.thread.run_one()  # judged
    given_back.append(True)
    process.thread.run_one()  # what is left of it
    assert not client.outside.client, "an answer"
    (passed,) = client.sent(COORDINATOR)
    assert read_request(passed).groups == [name for name in GROUPS if name not in DENIED]


def test_an_answer_with_thousands_of_groups_holds_up_nobody() -> None:
    process = Gate()
    client = process.client()
    client.send(asked(ApiKey.LIST_GROUPS, 0, ListGroupsRequest()))
    (question,) = client.sent(BROKER)
    client.answer(BROKER, cluster_may_not_be_described(question))
    (passed,) = client.sent(COORDINATOR)
    kind = ListGroupsResponse.ListedGroup
    groups = [kind(version=0, group_id=name, protocol_type="consumer") for name in GROUPS]
    listed = ListGroupsResponse(version=0, error_code=0, groups=groups)
    client.answer(COORDINATOR, reply(passed, codec_for(ApiKey.LIST_GROUPS, 0).encode_response(listed)))
    process.work()  # which groups there are
    process.work()  # what is known of the permissions for them
    (question,) = client.sent(BROKER)
    assert read_request(question).groups == GROUPS
    client.answer(BROKER, described(question, DENIED))
    process.work()  # the answer is read
    assert not client.outside.client
    process.work()  # what may be seen
    (answer,) = frames(client.outside.client)
    response = codec_for(ApiKey.LIST_GROUPS, 0).decode_response(answer, 8)
    assert [group.group_id for group in response.groups] == [each for each in GROUPS if each not in DENIED]
    assert not process.thread.waiting


def cluster_may_not_be_described(question: bytes) -> bytes:
    metadata = {
        "throttle_time_ms": 0,
        "brokers": [],
        "cluster_id": None,
        "controller_id": 1,
        "topics": [],
        "authorized_operations": set(),
    }
    frame = frame_of(ApiKey.METADATA, metadata, 8)
    return frame[:4] + question[4:8] + frame[8:]


def test_a_long_request_for_what_no_broker_coordinates_holds_up_nobody() -> None:
    process = Gate(ours=False)
    client = process.client()
    client.send(LONG)
    assert not client.outside.client
    (_,) = process.thread.waiting
    process.thread.run_one()
    assert bytes(client.outside.client) == answers.refusal(LONG[4:], ErrorCode.NOT_COORDINATOR)


def test_a_client_that_is_gone_meanwhile_hears_nothing() -> None:
    process = Gate()
    client = process.client()
    client.send(LONG)
    client.session.end()
    process.work()
    assert client.sent(BROKER) == []


def begins(_process: Gate, client: Client) -> None:
    """It is decoded in the thread."""
    client.send(LONG)


def waits_for_the_broker(process: Gate, client: Client) -> None:
    """For what the client may do."""
    client.send(LONG)
    process.thread.run_one()
    process.thread.run_one()
    assert client.sent(BROKER)


def waits_for_its_groups(process: Gate, client: Client) -> None:
    """Until they are ours."""
    client.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT))
    (question,) = client.sent(BROKER)
    client.answer(BROKER, reply(question, ALLOWED.to_bytes(2, "big")))
    assert process.adopting


def waits_for_the_coordinator(_process: Gate, client: Client) -> None:
    """For an answer of which something may have to be taken out."""
    client.send(asked(ApiKey.LIST_GROUPS, 0, ListGroupsRequest()))
    (question,) = client.sent(BROKER)
    client.answer(BROKER, cluster_may_not_be_described(question))
    assert client.sent(COORDINATOR)


@pytest.mark.parametrize(
    "comes_to_wait", [begins, waits_for_the_broker, waits_for_its_groups, waits_for_the_coordinator]
)
def test_a_connection_that_ends_while_its_request_waits_is_freed_without_the_garbage_collector(
    comes_to_wait: Callable[[Gate, Client], None],
) -> None:
    adopting: list[Callable[[ErrorCode], None]] = []

    def adopt(_groups: list[str], done: Callable[[ErrorCode], None]) -> bool:
        adopting.append(done)
        return False

    process = Gate(adopt=adopt)
    process.adopting = adopting
    client = process.client()
    comes_to_wait(process, client)
    session = client.session
    del client
    gc.disable()
    try:
        session.end()
        assert sys.getrefcount(session) == OUR_REFERENCES
    finally:
        gc.enable()
    for done in adopting:
        done(ErrorCode.NONE)
    while process.thread.waiting:
        process.thread.run_one()


@pytest.mark.parametrize("cut", [20, len(LONG) // 2])
def test_a_long_request_that_is_none_ends_its_connection(cut: int) -> None:
    process = Gate()
    client = process.client()
    broken = LONG[4:cut] + b"\x7f" * (len(LONG) - cut)
    client.send(LONG[:4] + broken)
    process.work()
    assert client.outside.error is not None
    assert not client.outside.has_failed


async def test_the_groups_of_one_request_are_taken_over_in_portions() -> None:
    played = Played()
    process = Process(played)
    played.may_answer.clear()
    groups = [f"g{number}" for number in range(2 * PORTION + 1)]
    assert await process.ask(*groups) is None
    assert len(process.tasks) == PORTION
    played.may_answer.set()
    await eventually(lambda: len(played.here) == len(groups), "all groups to be taken over")
    assert await process.ask(*groups) is True
