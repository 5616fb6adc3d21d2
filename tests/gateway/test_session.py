# SPDX-License-Identifier: Apache-2.0
"""The state machine of a connection: order, whatever comes when and in which pieces; bounds; and what breaks it."""

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.gateway.client_request_reader import ASKED_AT_ONCE, PENDING_MAX
from coordinator.gateway.routing_types import (
    BROKER,
    COLLECTED_BYTES_MAX,
    COORDINATOR,
    ClientSession,
    Route,
    Verdict,
)
from coordinator.gateway.session import Session
from coordinator.runtime.promise import Promise
from protocol.compiled_struct import copy_with_fields
from protocol.errors import ErrorCode, FrameTooLarge, InvalidLength, ProtocolError, UnsupportedVersion
from protocol.headers import pack_api_key_and_version
from protocol.non_kafka import NotKafka
from tests.gateway.peers import (
    ANSWERED,
    COORDINATED,
    FILTERED,
    GATED,
    HEAD_REWRITTEN,
    OPAQUE,
    REWRITTEN,
    SILENT,
    VERSION,
    Play,
    RecordedIO,
    TestRoutes,
    answer,
    expected,
    refused,
    request,
)

KINDS = (OPAQUE, REWRITTEN, HEAD_REWRITTEN, ANSWERED, COORDINATED, GATED, SILENT, FILTERED)
TO_BROKER = (OPAQUE, REWRITTEN, HEAD_REWRITTEN, SILENT)
TO_COORDINATOR = (COORDINATED, GATED, FILTERED)
REQUESTS = st.lists(st.tuples(st.sampled_from(KINDS), st.binary(min_size=10, max_size=200)), max_size=40)


def play(asked: list[tuple[int, bytes]], random: Random, piece_bytes_max: int) -> Play:
    """Have these requests sent, and everything answered."""
    playing = Play(random, piece_bytes_max)
    for number, (api_key, content) in enumerate(asked):
        playing.requests += request(api_key, number, pack_number(number) + content)
    playing.run()
    return playing


def pack_number(number: int) -> bytes:
    """No two requests are the same."""
    return b"%06d" % number


@given(REQUESTS, st.randoms(use_true_random=False), st.sampled_from((1, 7, 60, 1000)))
def test_answers_leave_in_the_order_of_requests_however_both_sides_send(
    asked: list[tuple[int, bytes]], random: Random, piece_bytes_max: int
) -> None:
    playing = play(asked, random, piece_bytes_max)
    assert playing.io.error is None
    assert not playing.io.has_failed
    assert bytes(playing.io.client) == b"".join(
        expected(api_key, number, pack_number(number) + content)
        for number, (api_key, content) in enumerate(asked)
    )
    assert playing.session.is_idle
    assert playing.session.kept_bytes == 0


@given(REQUESTS, st.randoms(use_true_random=False), st.sampled_from((1, 60, 1000)))
def test_each_side_gets_its_requests_in_their_order(
    asked: list[tuple[int, bytes]], random: Random, piece_bytes_max: int
) -> None:
    playing = play(asked, random, piece_bytes_max)
    numbered = list(enumerate(asked))
    seen = [each for each in playing.peers[BROKER].seen if each >= 0]  # but for questions of ours
    assert seen == [number for number, (api_key, _) in numbered if api_key in TO_BROKER]
    assert playing.peers[COORDINATOR].seen == [
        number for number, (api_key, _) in numbered if api_key in TO_COORDINATOR
    ]


@given(REQUESTS, st.randoms(use_true_random=False), st.sampled_from((1, 60, 1000)))
def test_what_a_client_has_sent_whole_before_it_is_gone_is_passed_on_in_order(
    asked: list[tuple[int, bytes]], random: Random, piece_bytes_max: int
) -> None:
    playing = Play(random, piece_bytes_max)
    for number, (api_key, content) in enumerate(asked):
        playing.requests += request(api_key, number, pack_number(number) + content)
    ends = ends_of(bytes(playing.requests))
    playing.run(steps_max=random.randint(0, 3 * len(asked) + 1))
    taken = (ends[-1] if ends else 0) - len(playing.requests)
    whole = sum(end <= taken for end in ends)
    playing.requests.clear()
    playing.session.execute_gone_client_writes()
    playing.run()
    assert playing.io.error is None
    assert not playing.io.has_failed
    assert playing.session.is_client_input_finished
    seen = {pipeline: [each for each in peer.seen if each >= 0] for pipeline, peer in playing.peers.items()}
    for pipeline, kinds in ((BROKER, TO_BROKER), (COORDINATOR, TO_COORDINATOR)):
        assert seen[pipeline] == [number for number, (kind, _) in enumerate(asked[:whole]) if kind in kinds]


def ends_of(sent: bytes) -> list[int]:
    """Where each request ends."""
    ends, pos = [], 0
    while pos < len(sent):
        pos += 4 + int.from_bytes(sent[pos : pos + 4], "big")
        ends.append(pos)
    return ends


def test_requests_behind_a_parked_one_are_passed_on_once_their_client_is_gone() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    parked = request(COORDINATED, 1, b"")
    filtered = request(FILTERED, 2, b"")
    session.receive_from_client(memoryview(parked + filtered + request(COORDINATED, 3, b"")))
    assert bytes(io.pipelines[COORDINATOR]) == parked + filtered, "the third waits for the second's answer"
    session.execute_gone_client_writes()
    assert session.is_client_input_finished
    assert bytes(io.pipelines[COORDINATOR]) == parked + filtered + request(COORDINATED, 3, b"")


@given(st.integers())
def test_of_a_long_answer_that_passes_as_it_is_no_more_is_kept_than_a_piece(seed: int) -> None:
    piece = 1000
    asked = [
        (OPAQUE, bytes(50_000)),
        (COORDINATED, b"x" * 20),
        (HEAD_REWRITTEN, bytes(50_000)),
        (OPAQUE, bytes(9)),
    ]
    playing = play(asked, Random(seed), piece)
    assert len(playing.io.client) > 100_000
    # held for the order: a piece of each pipeline; collected: a head, and the request that goes to the coordinator
    assert playing.kept_bytes_max <= 3 * piece


def test_several_whole_answers_in_one_piece_leave_in_one_write() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    session.receive_from_client(memoryview(b"".join(request(OPAQUE, number, b"") for number in range(10))))
    session.receive_from_pipeline(
        BROKER, memoryview(b"".join(answer(number, b"some") for number in range(10)))
    )
    assert (len(io.client), io.writes) == (120, 1)


def test_a_client_is_read_no_further_while_too_many_responses_are_pending() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    session.receive_from_client(
        memoryview(b"".join(request(OPAQUE, number, b"") for number in range(PENDING_MAX + 5)))
    )
    assert not session.wants_requests
    assert len(io.pipelines[BROKER]) == PENDING_MAX * len(request(OPAQUE, 0, b""))
    session.receive_from_pipeline(BROKER, memoryview(answer(0, b"")))
    assert len(io.pipelines[BROKER]) == (PENDING_MAX + 1) * len(request(OPAQUE, 0, b""))


def test_an_answer_that_comes_too_early_stops_its_pipeline_until_its_turn() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    session.receive_from_client(memoryview(request(OPAQUE, 1, b"") + request(COORDINATED, 2, b"")))
    session.receive_from_pipeline(COORDINATOR, memoryview(answer(2, b"second")))
    assert not session.should_read_responses(COORDINATOR)
    assert session.should_read_responses(BROKER)
    assert not io.client
    session.receive_from_pipeline(BROKER, memoryview(answer(1, b"first")))
    assert bytes(io.client) == answer(1, b"first") + answer(2, b"second")
    assert session.should_read_responses(COORDINATOR)


def test_a_coordinator_that_is_lost_refuses_where_that_can_be_said() -> None:
    io = RecordedIO()
    routes = TestRoutes()
    coordinated = pack_api_key_and_version(COORDINATED, VERSION)
    routes.found[coordinated] = copy_with_fields(
        routes.found[coordinated], refusal=lambda _, error: refused(error)
    )
    session = Session(io, routes, 1 << 20)
    session.receive_from_client(memoryview(request(COORDINATED, 1, b"") + request(OPAQUE, 2, b"")))
    assert session.try_refuse_lost_requests(COORDINATOR)
    assert bytes(io.client) == refused(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    session.receive_from_pipeline(BROKER, memoryview(answer(2, b"")))
    assert bytes(io.client).endswith(answer(2, b""))


@pytest.mark.parametrize("begun", [b"", answer(1, b"the whole of it")[:12]])
def test_a_pipeline_that_is_lost_ends_the_connection_where_no_refusal_is_known(begun: bytes) -> None:
    session = Session(RecordedIO(), TestRoutes(), 1 << 20)
    session.receive_from_client(memoryview(request(COORDINATED, 1, b"")))
    session.receive_from_pipeline(COORDINATOR, memoryview(begun))
    assert not session.try_refuse_lost_requests(COORDINATOR)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"\0\0\0\0", InvalidLength),
        (b"\xff\xff\xff\xff", InvalidLength),
        (b"\x7f\xff\xff\xff", FrameTooLarge),
        (b"GET / HTTP/1.1\r\n", NotKafka),
        (b"\x16\x03\x01\x02\x00\x01", NotKafka),
        (request(99, 1, b""), UnsupportedVersion),
        (request(ANSWERED, 1, bytes(5000)), FrameTooLarge),
    ],
)
def test_requests_that_break_the_protocol_end_the_connection(sent: bytes, error: type[ProtocolError]) -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    session.receive_from_client(memoryview(request(OPAQUE, 1, b"before") + sent))
    assert isinstance(io.error, error)
    assert not session.wants_requests


@pytest.mark.parametrize(
    "sent",
    [
        answer(2, b"another's"),
        b"\0\0\0\3" + bytes(4),
        answer(1, b"") + answer(1, b"again"),
    ],
)
def test_answers_that_nobody_asked_for_end_the_connection(sent: bytes) -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    session.receive_from_client(memoryview(request(OPAQUE, 1, b"")))
    session.receive_from_pipeline(BROKER, memoryview(sent))
    assert isinstance(io.error, ProtocolError)


def test_an_answer_that_is_to_be_rewritten_has_a_bound() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    session.receive_from_client(memoryview(request(REWRITTEN, 1, b"")))
    session.receive_from_pipeline(BROKER, memoryview(answer(1, bytes(COLLECTED_BYTES_MAX))))
    assert isinstance(io.error, FrameTooLarge)


def test_a_pipeline_that_was_held_back_when_it_was_lost_is_read_when_it_is_there_again() -> None:
    io, routes = RecordedIO(), TestRoutes()
    coordinated = pack_api_key_and_version(COORDINATED, VERSION)
    routes.found[coordinated] = copy_with_fields(
        routes.found[coordinated], refusal=lambda _, error: refused(error)
    )
    session = Session(io, routes, 1 << 20)
    session.receive_from_client(memoryview(request(OPAQUE, 1, b"") + request(COORDINATED, 2, b"")))
    session.receive_from_pipeline(COORDINATOR, memoryview(answer(2, b"too early")))
    assert not session.should_read_responses(COORDINATOR)
    assert session.try_refuse_lost_requests(COORDINATOR)
    session.receive_from_pipeline(BROKER, memoryview(answer(1, b"")))
    session.receive_from_client(memoryview(request(COORDINATED, 3, b"")))
    assert session.should_read_responses(COORDINATOR)
    session.receive_from_pipeline(COORDINATOR, memoryview(answer(3, b"new")))
    assert bytes(io.client).endswith(answer(3, b"new"))


def test_others_have_their_turn_while_many_requests_are_answered() -> None:
    io = RecordedIO()
    session = Session(io, TestRoutes(), 1 << 20)
    count = 2 * ASKED_AT_ONCE + 1
    session.receive_from_client(
        memoryview(b"".join(request(ANSWERED, number, b"") for number in range(count)))
    )
    said = [io.writes]
    while io.calls:
        assert not session.wants_requests
        io.call()
        said.append(io.writes)
    assert said == [ASKED_AT_ONCE, 2 * ASKED_AT_ONCE, count]
    assert session.wants_requests
    assert bytes(io.client) == b"".join(answer(number, b"") for number in range(count))


def test_a_fault_in_what_comes_after_a_wait_is_no_fault_of_those_who_ended_it() -> None:
    io, routes = RecordedIO(), TestRoutes()
    promises: list[Promise[int]] = []

    async def ask(session: ClientSession, _route: Route, _frame: bytes) -> Verdict:
        promises.append(Promise(session.go_on))
        await promises[0]
        raise KeyError("not foreseen")

    routes.found[pack_api_key_and_version(GATED, VERSION)] = Route(GATED, VERSION, ask=ask, bytes_max=100)
    session = Session(io, routes, 1 << 20)
    session.receive_from_client(memoryview(request(GATED, 1, b"")))
    promises[0].resolve(1)
    assert io.has_failed
    assert not session.wants_requests


class Counting(dict[int, Route]):
    """Counts how often a route is looked up."""

    looked_up = 0

    def get(self, key: int, default: Any = None) -> Any:
        """As of any dict."""
        self.looked_up += 1
        return super().get(key, default)


def test_a_request_that_comes_in_small_pieces_is_joined_once() -> None:
    io, routes = RecordedIO(), TestRoutes()
    routes.found = counting = Counting(routes.found)
    session = Session(io, routes, 1 << 20)
    content = bytes(range(250)) * 10
    sent = request(OPAQUE, 1, b"") + request(ANSWERED, 2, content) + request(ANSWERED, 3, b"next")
    for start in range(0, len(sent), 5):
        session.receive_from_client(memoryview(sent[start : start + 5]))
        if start == 1000:
            session.receive_from_pipeline(BROKER, memoryview(answer(1, b"")))
            assert session.kept_bytes == start + 5 - len(request(OPAQUE, 1, b""))
    assert bytes(io.client) == answer(1, b"") + answer(2, content) + answer(3, b"next")
    assert session.kept_bytes == 0
    assert counting.looked_up < 20
