# SPDX-License-Identifier: Apache-2.0
"""One client connection, without its sockets: which bytes go where, and in which order answers leave.

Requests are cut by their lengths and looked up by their first four bytes (`routes`). Most pass to the broker as they
come, in whatever pieces; some are collected and asked about: they are answered here, or go to a coordinator. Every
request that will be answered stands in the queue `_owed`, and in that of the lane that answers it, for each lane
answers in order, too. What a lane says is passed on only while its request is the client's oldest, so nothing has to be
numbered anew; else it is held, and the lane is read no further. Of an answer that passes as it is nothing is kept.
"""

from collections import deque
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final, NamedTuple, Protocol, TypeAlias

from protocol.errors import (
    ErrorCode,
    FrameTooLarge,
    InvalidLength,
    ProtocolError,
    UnsupportedVersion,
)
from protocol.headers import RequestHeader
from protocol.strangers import stranger

Bytes: TypeAlias = bytes | memoryview

BROKER: Final = 0
COORDINATOR: Final = 1
HERE: Final = 2
"""Who answers: the first two are lanes, connections of ours."""
LANES: Final = (BROKER, COORDINATOR)

OWED_MAX: Final = 1_000
"""A client is read no further while so many of its requests wait for their answers."""
ASKED_AT_ONCE: Final = 50
"""After so many requests that are asked about, of those that came together, others have their turn."""
COLLECTED_BYTES_MAX: Final = 16 * 1024 * 1024
"""The most of an answer that is kept to be rewritten: far more than any cluster has brokers."""

_LENGTH_BYTES: Final = 4
_REQUEST: Final = Struct(">iIi").unpack_from  # the length, API key and version, the correlation id
_REQUEST_BYTES: Final = 12
_SMALLEST_REQUEST: Final = 10
_RESPONSE: Final = Struct(">ii").unpack_from  # the length, the correlation id
_RESPONSE_BYTES: Final = 8
_SMALLEST_RESPONSE: Final = 4
_LENGTH: Final = Struct(">i").unpack_from
_NOTHING: Final = memoryview(b"")

Rewrite: TypeAlias = Callable[[bytes], "tuple[bytes, int] | None"]
"""(an answer from its length on, as far as it has come) -> (what is sent, in place of its first so many bytes); None
where more of it is needed. Raises ProtocolError."""


class Verdict(NamedTuple):
    """What becomes of a request that was asked about."""

    way: int
    """BROKER, COORDINATOR or HERE."""
    frame: bytes | None = None
    """With its length: for HERE the answer, else what is sent in place of the request, None for the request itself."""
    rewrite: Rewrite | None = None
    """What is done with the answer of a lane."""
    refusal: Callable[[ErrorCode], bytes] | None = None
    """Makes the answer where the lane is lost; without one that ends the connection."""
    is_alone: bool = False
    """Whether requests behind it wait until it is answered, since the broker may still be asked about its answer."""


Ask: TypeAlias = Callable[["Session", "Route", bytes], Verdict | None]
"""(session, route, the request without its length) -> a verdict; None for "wait", until `Session.go_on`."""


class Route(NamedTuple):
    """What is done with the requests of one api and version on one kind of port."""

    api_key: int
    version: int
    ask: Ask | None = None
    """Of a request that is collected; others pass to the broker in the pieces in which they come."""
    bytes_max: int = 0
    """The longest request that is collected."""
    rewrite: Rewrite | None = None
    """Of the answer to one that passes."""
    has_answer: Callable[[memoryview], bool | None] | None = None
    """(a request from its length on) -> whether there will be an answer; None where more of it is needed."""


class Routes(Protocol):
    """The routes of one kind of port."""

    @property
    def found(self) -> Mapping[int, Route]:
        """By the first four bytes of a request (`protocol.headers.route`)."""

    def unrouted(self, api_key: int, version: int) -> Route | None:
        """What handles what is not in `found`, if anything does."""


class Outside(Protocol):
    """The sockets of a session. What it is given may be a view of a buffer that is used again after the call."""

    def to_client(self, data: Bytes) -> None:
        """Send to the client."""

    def to_lane(self, lane: int, data: Bytes) -> None:
        """Send to the broker or the coordinator; connect first where that is still to be done."""

    def soon(self, call: Callable[[], None]) -> None:
        """Call this once other connections have had their turn."""

    def went_on(self) -> None:
        """Something that waited goes on, though nothing has come: look again who is to be read."""

    def broken(self, error: ProtocolError) -> None:
        """A side has broken the protocol: end the connection, once what was sent has left."""

    def failed(self) -> None:
        """The exception that is being handled is none that was foreseen: end the connection at once."""


class Nowhere:
    """The outside of a session that has ended."""

    def to_client(self, data: Bytes) -> None:
        """Drop it."""

    def to_lane(self, lane: int, data: Bytes) -> None:
        """Drop it."""

    def soon(self, call: Callable[[], None]) -> None:
        """Nothing is called."""

    def went_on(self) -> None:
        """Nothing goes on."""

    def broken(self, error: ProtocolError) -> None:
        """It is over already."""

    def failed(self) -> None:
        """It is over already."""


NOWHERE: Final = Nowhere()


class Owed:
    """One request whose answer is to come."""

    __slots__ = ("answer", "correlation_id", "done", "refusal", "rewrite")

    def __init__(self, correlation_id: int, rewrite: Rewrite | None) -> None:
        self.correlation_id = correlation_id
        self.rewrite = rewrite
        self.answer: bytes | None = None  # the frame, where it was made here
        self.done: Callable[[bytes], None] | None = None  # takes the answer to a question of our own
        self.refusal: Callable[[ErrorCode], bytes] | None = None


class Lane:
    """What is known of the connection to a broker or a coordinator."""

    __slots__ = ("blocked", "inbox", "left", "queue")

    def __init__(self) -> None:
        self.queue: deque[Owed] = deque()
        self.inbox: memoryview = _NOTHING  # what has come and was not passed on
        self.left = 0  # bytes that are still to come of the answer that is being passed on
        self.blocked = False  # whether the inbox waits for the other lane's answer


class Session:
    """The state of one client connection (see the module's docstring)."""

    __slots__ = (
        "_alone",
        "_asked",
        "_busy",
        "_ended",
        "_found",
        "_inbox",
        "_lanes",
        "_left",
        "_missing",
        "_more",
        "_outside",
        "_owed",
        "_routes",
        "_waiting",
        "bytes_max",
        "memory",
    )

    def __init__(self, outside: Outside, routes: Routes, bytes_max: int) -> None:
        """Refuse requests that are longer than `bytes_max` (socket.request.max.bytes)."""
        self._outside: Outside = outside
        self._routes = routes
        self._found = routes.found
        self.bytes_max = bytes_max
        self._owed: deque[Owed] = deque()
        self._lanes = (Lane(), Lane())
        self._inbox: memoryview = _NOTHING  # requests that are not complete, or wait
        self._more = bytearray()  # what has come after the inbox of a request that is collected
        self._missing = 0  # how much of that is still to come
        self._left = 0  # bytes that are still to come of the request that is being passed on
        self._waiting = False  # whether the first request of the inbox waits for `go_on`
        self._alone: Owed | None = None  # until it is answered no request is taken
        self.memory: object | None = None
        """What those who are asked remember of this connection."""
        self._asked = 0  # how many requests were asked about in this step
        self._busy = False
        self._ended = False

    # --- flow ---

    @property
    def wants_requests(self) -> bool:
        """Whether the client should be read."""
        return not self._waiting and self._alone is None and len(self._owed) < OWED_MAX and not self._ended

    def wants_answers(self, lane: int) -> bool:
        """Whether this lane should be read."""
        return not self._lanes[lane].blocked

    @property
    def is_idle(self) -> bool:
        """Whether no answer is owed."""
        return not self._owed

    @property
    def kept_bytes(self) -> int:
        """How much of what has come is kept here."""
        return len(self._inbox) + len(self._more) + sum(len(lane.inbox) for lane in self._lanes)

    def end(self) -> None:
        """Take nothing any more, and forget what was kept."""
        self._ended = True
        self._outside = NOWHERE  # which refers to this session, and the garbage collector comes rarely
        self._inbox = _NOTHING
        self._more = bytearray()
        self.memory = self._alone = None
        self._owed.clear()
        for lane in self._lanes:
            lane.queue.clear()
            lane.inbox = _NOTHING

    # --- what comes ---

    def requested(self, data: memoryview) -> None:
        """Take bytes of the client."""
        if self._ended:
            return
        if len(data) < self._missing:  # joined once, or a request in small pieces would be copied for each
            self._missing -= len(data)
            self._more += data
            return
        self._missing = 0
        if self._inbox:
            data = memoryview(b"".join((self._inbox, self._more, data)))
            self._more = bytearray()
        self._inbox = data
        self._run(self._take_requests)

    def answered(self, lane_number: int, data: memoryview) -> None:
        """Take bytes of a lane."""
        if self._ended:
            return
        lane = self._lanes[lane_number]
        lane.inbox = data if not lane.inbox else memoryview(bytes(lane.inbox) + data)
        self._run(self._take_answers)

    def lost(self, lane_number: int) -> bool:
        """A lane has ended: refuse what it still owes; False where that cannot be done, and the client is to go."""
        lane = self._lanes[lane_number]
        if self._ended or lane.left or any(owed.refusal is None for owed in lane.queue):
            return False
        for owed in lane.queue:
            assert owed.refusal is not None, "see above"
            owed.answer = owed.refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        lane.queue.clear()
        lane.inbox = _NOTHING
        lane.blocked = False  # what it held back is gone
        self._run(self._take_answers)
        return True

    def go_on(self) -> None:
        """Ask again about the request that waits, and look again at an answer that does."""
        self._waiting = False
        if not self._busy and not self._ended:
            self._run(self._take_answers)
            self._outside.went_on()

    def ask_broker(self, frame: bytes, done: Callable[[bytes], None]) -> None:
        """Send a question of our own, whole with its length, on the client's connection to its broker.

        `done` takes the answer, whole with its length. To be called while a request is asked about.
        """
        owed = Owed(_REQUEST(frame)[2], None)
        owed.done = done
        self._lanes[BROKER].queue.append(owed)
        self._outside.to_lane(BROKER, frame)

    def _run(self, step: Callable[[], None]) -> None:
        """Take a step, and what it makes possible; keep what is left of buffers that are not ours."""
        self._busy = True
        self._asked = 0
        try:
            step()
            if self._inbox and not self._waiting and not self._missing:
                self._take_requests()
        except ProtocolError as error:
            error.__traceback__ = None  # it would keep this session alive
            outside = self._outside
            self.end()
            outside.broken(error)
        except Exception:  # noqa: BLE001 - it is logged there; others that wait for what this one did go on
            outside = self._outside
            self.end()
            outside.failed()
        finally:
            self._busy = False
        self._inbox = _kept(self._inbox)
        for lane in self._lanes:
            lane.inbox = _kept(lane.inbox)

    # --- requests ---

    def _take_requests(self) -> None:
        """Pass on, answer or collect what the inbox has."""
        data = self._inbox
        size = len(data)
        pos = start = 0
        while not self._waiting:
            if self._left:
                step = min(self._left, size - pos)
                self._left -= step
                pos += step
            route = self._next(data, pos)
            if route is None:
                break
            if route.ask is None:
                if not self._pass(route, data, pos):
                    break
                continue
            end = _end(route, data, pos)
            if not self._may_ask(end - size):
                break
            if pos > start:
                self._outside.to_lane(BROKER, data[start:pos])
            start = pos
            if not self._ask(route, data[pos:end]):
                break
            start = pos = end
        if pos > start:
            self._outside.to_lane(BROKER, data[start:pos])
        self._inbox = data[pos:]

    def _may_ask(self, missing: int) -> bool:
        """Whether a request, of which so much is missing, may be asked about in this step.

        After many of them others have a turn before that goes on.
        """
        if missing > 0:
            self._missing = missing
            return False
        self._asked += 1
        if self._asked > ASKED_AT_ONCE:
            self._waiting = True
            self._outside.soon(self.go_on)
        return not self._waiting

    def _next(self, data: memoryview, pos: int) -> Route | None:
        """What is done with the request that begins here; None where it is not there yet, or not its turn."""
        if len(data) - pos < _REQUEST_BYTES:
            if len(data) - pos >= _LENGTH_BYTES:
                self._check_length(_LENGTH(data, pos)[0])
            return None
        if self._alone is not None or len(self._owed) >= OWED_MAX:
            return None
        length, number, correlation_id = _REQUEST(data, pos)
        if not _SMALLEST_REQUEST <= length <= self.bytes_max:
            self._check_length(length)
        return self._found.get(number) or self._unrouted(number, correlation_id)

    def _check_length(self, length: int) -> None:
        if _SMALLEST_REQUEST <= length <= self.bytes_max:
            return
        known = stranger(length)
        if known is not None:
            raise known
        if length < _SMALLEST_REQUEST:
            raise InvalidLength(f"a request of {length} bytes")
        raise FrameTooLarge(f"a request of {length} bytes; the limit is {self.bytes_max}")

    def _unrouted(self, number: int, correlation_id: int) -> Route:
        api_key, version = number >> 16, number & 0xFFFF
        route = self._routes.unrouted(api_key, version)
        if route is None:
            raise UnsupportedVersion(RequestHeader(api_key, version, correlation_id, None))
        return route

    def _pass(self, route: Route, data: memoryview, pos: int) -> bool:
        """Begin to pass a request to the broker; False where more of it has to come to know whether it is answered."""
        length, _, correlation_id = _REQUEST(data, pos)
        has_answer = True if route.has_answer is None else route.has_answer(data[pos:])
        if has_answer is None:
            return False
        if has_answer:
            owed = Owed(correlation_id, route.rewrite)
            self._lanes[BROKER].queue.append(owed)
            self._owed.append(owed)
        self._left = _LENGTH_BYTES + length
        return True

    def _ask(self, route: Route, data: memoryview) -> bool:
        """Do what is said of a whole request; False where it is to wait."""
        assert route.ask is not None, "only such requests are collected"
        self._waiting = True  # unless it is answered: `go_on` may be called before `ask` returns
        verdict = route.ask(self, route, bytes(data[_LENGTH_BYTES:]))
        if verdict is None:
            return not self._waiting and self._ask(route, data)
        self._waiting = False
        if verdict.way == HERE:
            assert verdict.frame is not None, "an answer"
            self._answer(verdict.frame)
            return True
        owed = Owed(_REQUEST(data)[2], verdict.rewrite)
        owed.refusal = verdict.refusal
        if verdict.is_alone:
            self._alone = owed
        self._lanes[verdict.way].queue.append(owed)
        self._owed.append(owed)
        self._outside.to_lane(verdict.way, data if verdict.frame is None else verdict.frame)
        return True

    def _answer(self, frame: bytes) -> None:
        if not self._owed:
            self._outside.to_client(frame)
            return
        owed = Owed(0, None)
        owed.answer = frame
        self._owed.append(owed)

    # --- answers ---

    def _take_answers(self) -> None:
        """Pass on what may leave now, of both lanes and of what was answered here."""
        while True:
            some = self._send_answers()
            for lane in self._lanes:
                if lane.inbox and self._take(lane):
                    some = True
            if not some:
                return

    def _send_answers(self) -> bool:
        """Send the oldest answers that were made here; returns whether there were any."""
        some = False
        while self._owed and self._owed[0].answer is not None:
            owed = self._owed.popleft()
            self._outside.to_client(owed.answer or b"")
            if owed is self._alone:
                self._alone = None
            some = True
        return some

    def _take(self, lane: Lane) -> bool:
        """Pass on what this lane says, as far as it may be said now; returns whether an answer came to its end."""
        data = lane.inbox
        size = len(data)
        pos = start = 0
        some = lane.blocked = False
        while True:
            if lane.left:
                step = min(lane.left, size - pos)
                lane.left -= step
                pos += step
                if lane.left:
                    break
                self._finished(lane)
                some = True
            if size - pos < _RESPONSE_BYTES:
                break
            length, owed = self._expected(lane, data, pos)
            if owed.done is None and owed is not self._owed[0]:
                lane.blocked = True
                break
            if owed.done is None and owed.rewrite is None:
                lane.left = _LENGTH_BYTES + length
                continue
            if pos > start:
                self._outside.to_client(data[start:pos])
            taken = self._take_whole(lane, owed, data[pos : pos + _LENGTH_BYTES + length], length)
            start = pos
            if not taken:
                break
            start = pos = pos + taken
            some = True
        if pos > start:
            self._outside.to_client(data[start:pos])
        lane.inbox = data[pos:]
        return some

    def _expected(self, lane: Lane, data: memoryview, pos: int) -> tuple[int, Owed]:
        """The length of the answer that begins here, and the request that it belongs to."""
        length, correlation_id = _RESPONSE(data, pos)
        if not lane.queue:
            raise ProtocolError("the broker answers what was not asked")
        owed = lane.queue[0]
        if length < _SMALLEST_RESPONSE or correlation_id != owed.correlation_id:
            raise ProtocolError(
                f"the broker answers {length} bytes to {correlation_id}; {owed.correlation_id} comes first"
            )
        return length, owed

    def _take_whole(self, lane: Lane, owed: Owed, data: memoryview, length: int) -> int:
        """Rewrite an answer, or take one to a question of ours; returns how much of it, 0 where more has to come."""
        whole = _LENGTH_BYTES + length
        if len(data) > COLLECTED_BYTES_MAX or (owed.done is not None and whole > COLLECTED_BYTES_MAX):
            raise FrameTooLarge(f"an answer of {length} bytes cannot be rewritten")
        if owed.done is not None:
            if len(data) < whole:
                return 0
            lane.queue.popleft()
            owed.done(bytes(data))
            return whole
        assert owed.rewrite is not None, "others pass"
        rewritten = owed.rewrite(bytes(data))
        if rewritten is None:
            lane.blocked = len(data) == whole  # it waits for something else
            return 0
        head, taken = rewritten
        self._outside.to_client(head)
        lane.left = whole - taken
        if not lane.left:
            self._finished(lane)
        return taken

    def _finished(self, lane: Lane) -> None:
        """The lane's oldest answer, which is the client's oldest, has been passed on."""
        owed = lane.queue.popleft()
        self._owed.popleft()
        if owed is self._alone:
            self._alone = None


def _end(route: Route, data: memoryview, pos: int) -> int:
    """Where the request that begins at `pos` and is collected has its end. Raises FrameTooLarge."""
    (length,) = _LENGTH(data, pos)
    if length > route.bytes_max:
        raise FrameTooLarge(f"a request of api {route.api_key} with {length} bytes")
    return int(pos + _LENGTH_BYTES + length)


def _kept(data: memoryview) -> memoryview:
    """Copy what is left of a buffer that is read into again; what is most of bytes of its own stays there."""
    if not data:
        return _NOTHING
    whole = data.obj
    if isinstance(whole, bytes) and len(whole) <= 2 * len(data):
        return data
    return memoryview(bytes(data))
