# SPDX-License-Identifier: Apache-2.0
"""Both sides of a Session as a test plays them: what it is given, and what becomes of it."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from random import Random
from struct import pack, unpack_from

from coordinator.gateway import session_io
from coordinator.gateway.offload import Offloader
from coordinator.gateway.routing_types import (
    BROKER,
    COORDINATOR,
    HERE,
    AwaitedResponseLost,
    Bytes,
    ClientSession,
    Route,
    Verdict,
)
from coordinator.gateway.session import Session
from coordinator.runtime.io_thread import BlockingCallThread
from protocol.errors import ErrorCode, ProtocolError
from protocol.headers import pack_api_key_and_version

OPAQUE, REWRITTEN, HEAD_REWRITTEN, ANSWERED, COORDINATED, GATED, SILENT, FILTERED = range(100, 108)
QUESTION = 120
VERSION = 0
COLLECTED_BYTES_MAX = 4096
HEAD_BYTES = 40


def request(api_key: int, correlation_id: int, content: bytes) -> bytes:
    """A request, with its length, whose answer will hold the content."""
    body = pack(">hhih", api_key, VERSION, correlation_id, -1) + content
    return pack(">i", len(body)) + body


def answer(correlation_id: int, content: bytes) -> bytes:
    """An answer, with its length."""
    return pack(">ii", len(content) + 4, correlation_id) + content


def expected(api_key: int, correlation_id: int, content: bytes) -> bytes:
    """What the client is to get for this request."""
    if api_key == SILENT:
        return b""
    if api_key in (REWRITTEN, HEAD_REWRITTEN, FILTERED):
        content = content[:HEAD_BYTES].swapcase() + b"!" + content[HEAD_BYTES:]
    return answer(correlation_id, content)


def rewrite_head(_client: object, frame: bytes) -> tuple[bytes, int] | None:
    """Changes the head of an answer, once that is there."""
    (length,) = unpack_from(">i", frame)
    end = min(8 + HEAD_BYTES, 4 + length)
    if len(frame) < end:
        return None
    return pack(">i", length + 1) + frame[4:8] + frame[8:end].swapcase() + b"!", end


def rewrite_whole(_client: object, frame: bytes) -> tuple[bytes, int] | None:
    """Changes an answer once all of it is there."""
    (length,) = unpack_from(">i", frame)
    if len(frame) < 4 + length:
        return None
    content = frame[8:]
    changed = content[:HEAD_BYTES].swapcase() + b"!" + content[HEAD_BYTES:]
    return pack(">i", length + 1) + frame[4:8] + changed, 4 + length


@dataclass
class TestRoutes:
    """One api for each way that a request can take."""

    __test__ = False
    found: dict[int, Route] = field(init=False)

    def __post_init__(self) -> None:
        collected = COLLECTED_BYTES_MAX
        routes = (
            Route(OPAQUE, VERSION),
            Route(REWRITTEN, VERSION, rewrite=rewrite_whole),
            Route(HEAD_REWRITTEN, VERSION, rewrite=rewrite_head),
            Route(ANSWERED, VERSION, ask=self._answer, bytes_max=collected),
            Route(COORDINATED, VERSION, ask=lambda *_: Verdict(COORDINATOR), bytes_max=collected),
            Route(GATED, VERSION, ask=self._gate, bytes_max=collected),
            Route(FILTERED, VERSION, ask=self._filter, bytes_max=collected),
            Route(SILENT, VERSION, has_answer=lambda frame, _version: None if len(frame) < 20 else False),
        )
        self.found = {pack_api_key_and_version(each.api_key, each.version): each for each in routes}

    def find_unknown_version_route(self, api_key: int, version: int) -> Route | None:
        """Nothing else is offered."""

    @staticmethod
    def _answer(_session: ClientSession, _route: Route, frame: bytes) -> Verdict:
        return Verdict(HERE, answer(unpack_from(">i", frame, 4)[0], frame[10:]))

    @staticmethod
    async def _filter(session: ClientSession, _route: Route, frame: bytes) -> Verdict:
        """Goes to the coordinator; about the answer the broker is asked, once all of it is there."""
        try:
            answered = await session.send_own_request(COORDINATOR, pack(">i", len(frame)) + frame)
        except AwaitedResponseLost:
            return Verdict(HERE, refused(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        assert await session.send_own_request(BROKER, request(QUESTION, -7, b"")) == answer(-7, b"")
        whole = rewrite_whole(None, answered)
        assert whole is not None, "all of it is there"
        return Verdict(HERE, whole[0])

    @staticmethod
    async def _gate(session: ClientSession, _route: Route, frame: bytes) -> Verdict:
        """Asks the broker a question of ours before it passes."""
        assert await session.send_own_request(BROKER, request(QUESTION, -7, frame[10:])) == answer(
            -7, frame[10:]
        )
        return Verdict(COORDINATOR)


def no_thread() -> BlockingCallThread:
    """Where nothing is so long that it needs one."""
    raise AssertionError("nothing here is long")


AT_ONCE = Offloader(no_thread)


class RecordedIO(session_io.SessionIO):
    """Keeps what a session sends."""

    def __init__(self) -> None:
        self.client = bytearray()
        self.pipelines = {BROKER: bytearray(), COORDINATOR: bytearray()}
        self.error: ProtocolError | None = None
        self.has_failed = False
        self.calls: deque[Callable[[], None]] = deque()
        self.writes = 0

    def send_to_client(self, data: Bytes) -> None:
        """To the client."""
        assert data, "nothing need not be sent"
        self.client += data
        self.writes += 1

    def send_to_pipeline(self, pipeline: int, data: Bytes) -> None:
        """To a pipeline."""
        assert data, "nothing need not be sent"
        self.pipelines[pipeline] += data

    def schedule_call(self, call: Callable[[], None]) -> None:
        """Another step of the play."""
        self.calls.append(call)

    def call(self) -> None:
        """The oldest of these steps."""
        self.calls.popleft()()

    def resume_wanted_reads(self) -> None:
        """The play looks by itself."""

    def end_after_violation(self, error: ProtocolError) -> None:
        """The end."""
        self.error = error

    def abort_after_failure(self) -> None:
        """A fault."""
        self.has_failed = True


class LanePeer:
    """A broker or coordinator: answers every request in order with its content."""

    def __init__(self, sent: bytearray) -> None:
        self._sent = sent
        self.seen: list[int] = []
        self.answers = bytearray()

    def work(self) -> None:
        """Answer what has come whole."""
        sent = self._sent
        while len(sent) >= 4 and len(sent) >= 4 + unpack_from(">i", sent)[0]:
            end = 4 + unpack_from(">i", sent)[0]
            api_key, _, correlation_id = unpack_from(">hhi", sent, 4)
            self.seen.append(correlation_id)
            if api_key != SILENT:
                self.answers += answer(correlation_id, bytes(sent[14:end]))
            del sent[:end]


class Play:
    """A session between peers that send in pieces of any size, in any order, as far as it lets them."""

    def __init__(self, random: Random, piece_bytes_max: int, *, bytes_max: int = 1 << 20) -> None:
        self.io = RecordedIO()
        self.session = Session(self.io, TestRoutes(), bytes_max)
        self.peers = {pipeline: LanePeer(sent) for pipeline, sent in self.io.pipelines.items()}
        self.requests = bytearray()
        self.kept_bytes_max = 0
        self._random = random
        self._piece_bytes_max = piece_bytes_max
        self._buffer = bytearray(piece_bytes_max)

    def run(self, steps_max: int | None = None) -> None:
        """Go on until nobody can do anything, or for so many steps."""
        for _ in count() if steps_max is None else range(steps_max):
            steps: deque[Callable[[], None]] = deque()
            if self.io.calls:
                steps.append(self.io.call)
            if self.requests and self.session.wants_requests:
                steps.append(lambda: self.session.receive_from_client(self._piece(self.requests)))
            for pipeline, peer in self.peers.items():
                peer.work()
                if peer.answers and self.session.should_read_responses(pipeline):
                    steps.append(
                        lambda pipeline=pipeline, peer=peer: self.session.receive_from_pipeline(
                            pipeline, self._piece(peer.answers)
                        )  # type: ignore[misc]
                    )
            if not steps or self.io.error is not None:
                return
            self._random.choice(steps)()
            self.kept_bytes_max = max(self.kept_bytes_max, self.session.kept_bytes)

    def _piece(self, data: bytearray) -> memoryview:
        """Some bytes in a buffer that is used again, with other things in it before."""
        size = min(len(data), self._random.randint(1, self._piece_bytes_max))
        self._buffer[:] = b"\xff" * len(self._buffer)
        self._buffer[:size] = data[:size]
        del data[:size]
        return memoryview(self._buffer)[:size]


def refused(error: ErrorCode) -> bytes:
    """An answer that says this error."""
    return answer(int(error), b"refused")
