# SPDX-License-Identifier: Apache-2.0
"""What takes long is done beside the event loop: the requests of others pass meanwhile, and answers are the same."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.gateway import answers
from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.cluster_authorizer import ClusterAuthorizers
from coordinator.gateway.decode_slots import SLOTS
from coordinator.gateway.offload import LONG_BYTES, Offloader
from coordinator.gateway.permission_gate import Adopt, PermissionGate, adopt_nothing
from coordinator.gateway.routes import ApiRoutes
from coordinator.gateway.routing_types import BROKER, COORDINATOR, LENGTH_BYTES
from coordinator.gateway.session import Session
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import encode_response
from protocol.kafka_python_messages import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FetchRequest,
    ListGroupsRequest,
    ListGroupsResponse,
)
from protocol.message_codecs import find_message_codec
from tests.catalogue.disk import ManualThread
from tests.gateway.peers import RecordedIO
from tests.gateway.rig import asked, read_request
from tests.gateway.test_gate import ALLOWED, Adopting, frames
from tests.gateway.test_relay import HEARTBEAT
from tests.gateway.test_rewriting import frame_of
from tests.net.requests import join

GROUPS = [f"group-{number}" for number in range(3_000)]
DENIED = frozenset(GROUPS[::3])
FETCH = asked(ApiKey.FETCH, 4, FetchRequest(version=4, topics=[], forgotten_topics_data=[]), 3)
LONG = asked(ApiKey.DESCRIBE_GROUPS, 0, DescribeGroupsRequest(groups=GROUPS), 7)
assert len(LONG) > LONG_BYTES
OURS = ("coordinator.", "protocol.")
OUR_REFERENCES = 2
"""To an object that nobody but a test has: its variable, and the argument of the count."""
NOT_ALLOWED = ErrorCode.GROUP_AUTHORIZATION_FAILED


class HandThread(ManualThread):
    """Works when the test says so."""

    async def run_blocking(self, call: Callable[[], Any]) -> Any:
        raise AssertionError("nothing waits for it")

    def close(self) -> None:
        """There is nothing to close."""


class Client:
    """A session, and what it has sent."""

    def __init__(self, routes: ApiRoutes) -> None:
        self.io = RecordedIO()
        self.session = Session(self.io, routes, 1 << 20)

    def send(self, frame: bytes) -> None:
        self.session.receive_from_client(memoryview(frame))

    def sent(self, pipeline: int) -> list[bytes]:
        """What has gone to a pipeline since it was looked at last, without lengths."""
        return [frame[4:] for frame in frames(self.io.pipelines[pipeline])]

    def answer(self, pipeline: int, frame: bytes) -> None:
        self.session.receive_from_pipeline(pipeline, memoryview(frame))


class Gate:
    """The routes of one kind of port, with a thread that is worked by hand."""

    def __init__(self, *, ours: bool = True, adopt: Adopt = adopt_nothing) -> None:
        self.thread = HandThread()
        self.takes_groups = adopt is adopt_nothing
        offloader = Offloader(lambda: self.thread)
        authorizers = ClusterAuthorizers(lambda: 0, 1_000, offloader)
        self.routes = ApiRoutes(
            AddressBook(lambda _: None, lambda *_: None),
            PermissionGate(authorizers.get_client_authorizer, offloader, adopt).handle_request,
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

    def settle(self, *clients: Client) -> None:
        """Let the thread and these clients do all that they can; another client's heartbeats pass meanwhile."""
        while self.thread.waiting or any(client.io.calls for client in clients):
            if self.thread.waiting:
                if self.takes_groups:
                    self.heartbeats_pass()
                self.thread.run_one()
            for client in clients:
                while client.io.calls:
                    client.io.call()

    def heartbeats_pass(self) -> None:
        other = self.client()
        for number in range(3):
            other.send(asked(ApiKey.HEARTBEAT, 3, HEARTBEAT))
            if number == 0:  # it is asked once what the client may do
                (question,) = other.sent(BROKER)
                other.answer(BROKER, reply(question, ALLOWED.to_bytes(2, "big")))
            (passed,) = other.sent(COORDINATOR)
            other.answer(COORDINATOR, reply(passed, bytes(6)))
        assert len(frames(other.io.client)) == 3
        other.session.end()


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
    body = find_message_codec(ApiKey.DESCRIBE_GROUPS, 0).encode_response(
        DescribeGroupsResponse(version=0, groups=groups)
    )
    return reply(request, body)


def test_a_request_that_names_thousands_of_groups_holds_up_nobody() -> None:
    process = Gate()
    client = process.client()
    client.send(LONG)
    assert client.sent(BROKER) == [], "nothing of it was looked at yet"
    process.settle(client)
    (question,) = client.sent(BROKER)
    assert read_request(question).groups == GROUPS
    client.answer(BROKER, described(question, DENIED))
    assert client.sent(COORDINATOR) == [], "the answer was not read yet"
    process.settle(client)
    (passed,) = client.sent(COORDINATOR)
    assert read_request(passed).groups == [name for name in GROUPS if name not in DENIED]
    client.answer(COORDINATOR, described(passed, frozenset()))
    assert not client.io.client
    process.settle(client)
    (answer,) = frames(client.io.client)
    response = find_message_codec(ApiKey.DESCRIBE_GROUPS, 0).decode_response(answer, 8)
    assert [group.group_id for group in response.groups] == [
        *GROUPS[::3],
        *(name for name in GROUPS if name not in DENIED),
    ]
    assert {group.group_id for group in response.groups if group.error_code == NOT_ALLOWED} == DENIED
    assert not process.thread.waiting


def lists_groups(client: Client) -> bytes:
    """Let a client that may not describe the cluster ask for all groups; returns the coordinator's answer to that."""
    client.send(asked(ApiKey.LIST_GROUPS, 0, ListGroupsRequest()))
    (question,) = client.sent(BROKER)
    client.answer(BROKER, cluster_may_not_be_described(question))
    (passed,) = client.sent(COORDINATOR)
    kind = ListGroupsResponse.ListedGroup
    groups = [kind(version=0, group_id=name, protocol_type="consumer") for name in GROUPS]
    listed = ListGroupsResponse(version=0, error_code=0, groups=groups)
    return reply(passed, find_message_codec(ApiKey.LIST_GROUPS, 0).encode_response(listed))


def test_an_answer_with_thousands_of_groups_holds_up_nobody() -> None:
    process = Gate()
    client = process.client()
    client.answer(COORDINATOR, lists_groups(client))
    process.settle(client)
    (question,) = client.sent(BROKER)
    assert read_request(question).groups == GROUPS
    client.answer(BROKER, described(question, DENIED))
    assert not client.io.client
    process.settle(client)
    (answer,) = frames(client.io.client)
    response = find_message_codec(ApiKey.LIST_GROUPS, 0).decode_response(answer, 8)
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
    assert not client.io.client
    (_,) = process.thread.waiting
    process.thread.run_one()
    assert bytes(client.io.client) == answers.make_error_response(LONG[4:], ErrorCode.NOT_COORDINATOR)


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
    process.settle(client)
    assert client.sent(BROKER)


def waits_for_a_slot(process: Gate, client: Client) -> None:
    """Which others hold."""
    others = [process.client() for _ in range(SLOTS)]
    for each in (*others, client):
        each.send(LONG)
        process.settle(each)
    assert not client.io.pipelines[BROKER]


def waits_for_its_groups(process: Gate, client: Client) -> None:
    """Until they are ours."""
    client.send(join("g", version=3))
    (question,) = client.sent(BROKER)
    client.answer(BROKER, reply(question, ALLOWED.to_bytes(2, "big")))
    assert not client.sent(COORDINATOR)


def waits_for_the_coordinator(_process: Gate, client: Client) -> None:
    """For an answer of which something may have to be taken out."""
    client.send(asked(ApiKey.LIST_GROUPS, 0, ListGroupsRequest()))
    (question,) = client.sent(BROKER)
    client.answer(BROKER, cluster_may_not_be_described(question))
    assert client.sent(COORDINATOR)


@pytest.mark.parametrize(
    "comes_to_wait",
    [
        begins,
        waits_for_the_broker,
        waits_for_a_slot,
        waits_for_its_groups,
        waits_for_the_coordinator,
    ],
)
def test_a_connection_that_ends_while_its_request_waits_is_freed_without_the_garbage_collector(
    comes_to_wait: Callable[[Gate, Client], None],
) -> None:
    adopting = Adopting([])
    process = Gate(adopt=adopting.adopt)
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
    for _, done in adopting.waiting:
        done(ErrorCode.NONE)
    while process.thread.waiting:
        process.thread.run_one()


def asking(process: Gate, count: int) -> list[Client]:
    """Clients that have sent a request which names much."""
    clients = [process.client() for _ in range(count)]
    for client in clients:
        client.send(LONG)
        process.settle(*clients)
    return clients


def have_slots(clients: list[Client]) -> list[bool]:
    """Whether the broker was asked about the request of each."""
    return [bool(client.io.pipelines[BROKER]) for client in clients]


def test_so_many_requests_that_name_much_are_held_decoded_and_the_others_wait_as_bytes() -> None:
    process = Gate()
    clients = asking(process, SLOTS + 2)
    assert have_slots(clients) == [True] * SLOTS + [False] * 2
    assert [client.session.kept_bytes for client in clients] == [len(LONG) - LENGTH_BYTES] * len(clients)
    first = clients[0]
    (question,) = first.sent(BROKER)
    first.answer(BROKER, described(question, DENIED))
    process.settle(*clients)
    (passed,) = first.sent(COORDINATOR)
    assert have_slots(clients)[-2:] == [False, False], "what is put together needs what is held"
    first.answer(COORDINATOR, described(passed, frozenset()))
    process.settle(*clients)
    assert have_slots(clients)[-2:] == [True, False], "the first that waits is the next"


@pytest.mark.parametrize("who", [0, SLOTS])
def test_a_connection_that_ends_releases_its_slot_whether_it_held_it_or_waited(who: int) -> None:
    process = Gate()
    clients = asking(process, SLOTS + 2)
    clients[who].session.end()
    process.settle(*clients)
    assert have_slots(clients)[SLOTS:] == ([True, False] if who < SLOTS else [False, False])
    clients[1].session.end()
    process.settle(*clients)
    assert have_slots(clients)[-1]


def test_a_connection_that_ends_as_it_is_given_a_slot_passes_it_on() -> None:
    process = Gate()
    clients = asking(process, SLOTS + 2)
    clients[0].session.end()
    clients[SLOTS].session.end()
    process.settle(*clients)
    assert have_slots(clients)[-1]


def test_a_client_that_leaves_an_answer_unread_gets_no_slot() -> None:
    """The broker's answer would wait behind what the client does not take."""
    process = Gate()
    slow = process.client()
    slow.send(FETCH + LONG)
    process.settle(slow)
    clients = asking(process, SLOTS)
    assert have_slots(clients) == [True] * SLOTS
    assert slow.sent(BROKER) == [FETCH[LENGTH_BYTES:]]
    clients[0].session.end()
    slow.answer(BROKER, reply(FETCH[LENGTH_BYTES:], b"fetched"))
    assert slow.io.calls, "once the client has taken it"
    assert slow.sent(BROKER) == []
    process.settle(slow)
    assert slow.sent(BROKER)


def test_an_answer_that_waits_for_a_slot_counts() -> None:
    process = Gate()
    client = process.client()
    listed = lists_groups(client)
    others = asking(process, SLOTS)
    client.answer(COORDINATOR, listed)
    process.settle(client)
    assert client.session.kept_bytes >= len(listed)
    others[0].session.end()
    process.settle(client)
    (question,) = client.sent(BROKER)
    assert read_request(question).groups == GROUPS


def everything(process: Gate) -> None:
    """Requests of all kinds: short and long, allowed, partly and wholly refused, filtered, and broken."""
    process.heartbeats_pass()
    for denied in (frozenset[str](), DENIED, frozenset(GROUPS)):
        (client,) = asking(process, 1)
        (question,) = client.sent(BROKER)
        client.answer(BROKER, described(question, denied))
        process.settle(client)
        for passed in client.sent(COORDINATOR):
            client.answer(COORDINATOR, described(passed, frozenset()))
        process.settle(client)
        assert client.io.client
        client.session.end()
    client = process.client()
    client.answer(COORDINATOR, lists_groups(client))
    process.settle(client)
    (question,) = client.sent(BROKER)
    client.answer(BROKER, described(question, DENIED))
    process.settle(client)
    assert client.io.client
    client.session.end()
    client = process.client()
    client.send(LONG[:20] + b"\x7f" * (len(LONG) - 20))
    process.settle(client)
    assert client.io.error is not None


def uncollected(work: Callable[[], None]) -> list[object]:
    """The objects of the gateway that only the garbage collector frees after `work`."""
    while gc.collect():  # coroutines that other tests have left are closed, and leave something themselves
        pass
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        work()
        gc.collect()
        return [each for each in gc.garbage if str(getattr(each, "__module__", "")).startswith(OURS)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_no_request_leaves_anything_to_the_garbage_collector() -> None:
    process = Gate()
    everything(process)  # what is made once and stays
    assert uncollected(lambda: everything(process)) == []


def test_what_is_left_to_the_garbage_collector_is_found() -> None:
    def leave() -> None:
        session = Gate().client().session
        session.memory = ClusterAuthorizers(lambda: 0, 0, Offloader(HandThread)).get_client_authorizer(
            session
        )

    assert {type(each).__name__ for each in uncollected(leave)} >= {"Session", "ClusterAuthorizer"}


@pytest.mark.parametrize("cut", [20, len(LONG) // 2])
def test_a_long_request_that_is_none_ends_its_connection(cut: int) -> None:
    process = Gate()
    client = process.client()
    broken = LONG[4:cut] + b"\x7f" * (len(LONG) - cut)
    client.send(LONG[:4] + broken)
    process.work()
    assert client.io.error is not None
    assert not client.io.has_failed
