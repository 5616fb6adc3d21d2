# SPDX-License-Identifier: Apache-2.0
"""The requests of a client, which are split by their lengths and routed by their first four bytes.

Most pass to the broker in the pieces in which they come. The others are collected, and a verdict is asked for: they are
answered here, or sent to a coordinator.
"""

from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, NamedTuple

from coordinator.gateway.pipelines import PendingResponse, ResponsePipelines
from coordinator.gateway.routing_types import (
    BROKER,
    COORDINATOR,
    CORRELATION_ID_AT,
    HERE,
    LENGTH_BYTES,
    NOTHING,
    Ask,
    ClientSession,
    Route,
    Routes,
    Verdict,
    copy_from_read_buffer,
    get_head_bytes,
    with_length,
)
from coordinator.gateway.session_io import CLOSED, SessionIO
from coordinator.runtime.promise import run_until_next_wait
from protocol.errors import FrameTooLarge, InvalidLength, UnsupportedVersion
from protocol.fixed_integers import int32_at
from protocol.non_kafka import find_other_protocol_error
from protocol.produce_proxying import HEAD_BYTES_MAX

PENDING_MAX: Final = 1_000
"""The number of unanswered requests of a client at which it is read no further."""
ASKED_AT_ONCE: Final = 50
"""The number of requests whose verdict is asked for in one step, before other connections have their turn."""
ASKED_BYTES_AT_ONCE: Final = 2 * 1024
"""The most bytes of such requests in one step: a request takes longer the more groups and topics it names."""

_REQUEST_BYTES: Final = 12  # the length, API key and version, the correlation id
_SMALLEST_REQUEST: Final = 10


class PendingVerdict(NamedTuple):
    """A request that waits for its verdict."""

    coroutine: Coroutine[Any, Any, Verdict]
    route: Route
    frame: bytes
    """The request, without its length."""


class RequestReader:
    """Reads the requests of one client, and holds the ones that were not passed on yet."""

    __slots__ = (
        "_asked",
        "_asked_bytes",
        "_bytes_max",
        "_deciding",
        "_found",
        "_inbox",
        "_io",
        "_left",
        "_missing",
        "_more",
        "_pipelines",
        "_routes",
        "client_is_gone",
        "is_waiting",
    )

    def __init__(self, io: SessionIO, routes: Routes, pipelines: ResponsePipelines, bytes_max: int) -> None:
        self._io: SessionIO = io
        self._routes = routes
        self._found = routes.found
        self._pipelines = pipelines
        self._bytes_max = bytes_max
        self._inbox: memoryview = NOTHING  # requests that are incomplete, or wait
        self._more = bytearray()  # further bytes of a request that is collected
        self._missing = 0  # the number of its bytes that are still to come
        self._left = 0  # bytes that are still to come of the request that is being passed on
        self._deciding: PendingVerdict | None = None  # the verdict on the request before the inbox
        self._asked = 0  # the number of verdicts that were asked for in this step
        self._asked_bytes = 0  # the bytes of their requests
        self.is_waiting = False
        """True if no request is taken until `ClientSession.go_on` is called."""
        self.client_is_gone = False
        """True if the client has closed; unsent responses then no longer limit how many requests are taken."""

    @property
    def wants_more(self) -> bool:
        """True if the client should be read."""
        return not self.is_waiting and not self._has_enough_pending() and not self.client_is_gone

    def _has_enough_pending(self) -> bool:
        """Return whether the next request has to wait for responses to those before it."""
        pipelines = self._pipelines
        is_full = pipelines.exceeds_own_response_bytes or len(pipelines.pending) >= PENDING_MAX
        return is_full and not self.client_is_gone

    @property
    def inbox_bytes(self) -> int:
        """The bytes of requests that have arrived and were not taken yet."""
        return 0 if self._inbox is NOTHING else len(self._inbox) + len(self._more)

    @property
    def kept_bytes(self) -> int:
        """The bytes of requests that are held."""
        return self.inbox_bytes + (0 if self._deciding is None else len(self._deciding.frame))

    @property
    def can_process_inbox(self) -> bool:
        """True if there may be something for `route_inbox_requests` to do."""
        if self.is_waiting:
            return False
        return self._deciding is not None or (self._inbox is not NOTHING and not self._missing)

    def detach_from_read_buffer(self) -> None:
        """Copy what is left in the shared read buffer, which the next read overwrites."""
        if self._inbox is not NOTHING:
            self._inbox = copy_from_read_buffer(self._inbox)

    def drop_all_requests(self) -> None:
        """Drop all requests, and send nothing any more."""
        self._io = CLOSED
        self._inbox = NOTHING
        self._more = bytearray()
        self._drop_deciding()

    def drop_read_requests_of_gone_client(self) -> None:
        """Drop requests that change nothing; those that change something are still carried out."""
        self.client_is_gone = True
        if self._deciding is not None and not self._deciding.route.changes:
            self._drop_deciding()
            self.is_waiting = False

    def _drop_deciding(self) -> None:
        if self._deciding is not None:
            self._deciding.coroutine.close()
            self._deciding = None

    def begin_step(self) -> None:
        """Begin a step, with a new share of verdicts."""
        self._asked = self._asked_bytes = 0

    def add_received_bytes(self, data: memoryview) -> bool:
        """Add bytes that the client has sent; return whether `route_inbox_requests` can do something with them."""
        if len(data) < self._missing:  # joined once, or a request in small pieces would be copied for each
            self._missing -= len(data)
            self._more += data
            return False
        self._missing = 0
        if self._inbox is not NOTHING:
            data = memoryview(b"".join((self._inbox, self._more, data)))
            self._more = bytearray()
        self._inbox = data
        return True

    def route_inbox_requests(self, client: ClientSession) -> None:
        """Pass on, answer or collect the requests of the inbox, once the request before it has its verdict."""
        if self._deciding is None or self._decide(self._deciding):
            self._take_inbox(client)

    def _take_inbox(self, client: ClientSession) -> None:
        data = self._inbox
        size = len(data)
        start = 0
        pos = self._after_left(0, size)
        while pos < size and not self.is_waiting:
            head = get_head_bytes(data, pos)
            route = self._next(head)
            if route is None:
                break
            end = pos + LENGTH_BYTES + int32_at(head, 0)
            ask = route.ask
            if route.screen is not None:
                if self._is_cut(end - size):
                    break
                ask = route.screen(head if end - pos <= len(head) else bytes(data[pos:end]))
            if ask is None:
                if not self._pass(route, head, data, pos):
                    break
                self._left = end - pos
                pos = self._after_left(pos, size)
                continue
            if not self._may_ask(client, end - pos, end - size):
                break
            self._pass_on(data, start, pos)
            request = data[pos:end]
            start = pos = end
            if not self._ask(client, route, ask, bytes(request[LENGTH_BYTES:])):
                break
        self._pass_on(data, start, pos)
        self._inbox = data[pos:] if pos < size else NOTHING

    def _pass_on(self, data: memoryview, start: int, end: int) -> None:
        """Send a part of the inbox to the broker."""
        if end > start:
            self._io.send_to_pipeline(BROKER, data if end - start == len(data) else data[start:end])

    def _is_cut(self, missing: int) -> bool:
        """Note how many bytes of a collected request are missing; return whether any are."""
        self._missing = max(0, missing)
        return missing > 0

    def _after_left(self, pos: int, size: int) -> int:
        """Return where the request that is being passed on ends, or `size` if it goes on."""
        step = min(self._left, size - pos)
        self._left -= step
        return pos + step

    def _may_ask(self, client: ClientSession, length: int, missing: int) -> bool:
        """Return whether the verdict on a request may be asked for in this step.

        `length` is the size of the request in bytes, of which `missing` have not arrived. After a step's share of
        requests, other connections have their turn first.
        """
        if self._is_cut(missing):
            return False
        self._asked_bytes += length
        if self._asked and (self._asked >= ASKED_AT_ONCE or self._asked_bytes > ASKED_BYTES_AT_ONCE):
            self.is_waiting = True
            self._io.schedule_call(client.go_on)
            return False
        self._asked += 1
        return True

    def _next(self, head: bytes) -> Route | None:
        """Return the route of the request with this head; None if too little has arrived, or it is not its turn."""
        if len(head) < LENGTH_BYTES:
            return None
        length = int32_at(head, 0)
        self._check_length(length)
        if len(head) < _REQUEST_BYTES or self._has_enough_pending():
            return None
        number = int32_at(head, LENGTH_BYTES) & 0xFFFFFFFF
        route = self._found.get(number) or self._unrouted(number)
        if (route.ask is not None or route.screen is not None) and length > route.bytes_max:
            raise FrameTooLarge(f"a request of api {route.api_key} with {length} bytes")
        return route

    def _check_length(self, length: int) -> None:
        if _SMALLEST_REQUEST <= length <= self._bytes_max:
            return
        known = find_other_protocol_error(length)
        if known is not None:
            raise known
        if length < _SMALLEST_REQUEST:
            raise InvalidLength(f"a request of {length} bytes")
        raise FrameTooLarge(f"a request of {length} bytes; the limit is {self._bytes_max}")

    def _unrouted(self, number: int) -> Route:
        api_key, version = number >> 16, number & 0xFFFF
        route = self._routes.find_unknown_version_route(api_key, version)
        if route is None:
            raise UnsupportedVersion(api_key, version)
        return route

    def _pass(self, route: Route, head: bytes, data: memoryview, pos: int) -> bool:
        """Begin to pass a request to the broker; return False until enough has arrived to know if it is answered."""
        has_answer: bool | None = True
        if route.has_answer is not None:
            has_answer = route.has_answer(head, route.version)
            if has_answer is None and len(data) - pos > len(head):
                has_answer = route.has_answer(bytes(data[pos : pos + HEAD_BYTES_MAX]), route.version)
        if has_answer is None:
            return False
        if has_answer:
            self._pipelines.add_client_request(
                BROKER, PendingResponse(int32_at(head, CORRELATION_ID_AT), route.rewrite)
            )
        return True

    def _ask(self, client: ClientSession, route: Route, ask: Ask, frame: bytes) -> bool:
        """Ask for the verdict on a whole request and carry it out; return False if the verdict is awaited."""
        if self.client_is_gone and not route.changes:
            return True
        asked = ask(client, route, frame)
        if isinstance(asked, Verdict):
            self._carry_out(asked, route, frame)
            return True
        self._deciding = PendingVerdict(asked, route, frame)
        return self._decide(self._deciding)

    def _decide(self, deciding: PendingVerdict) -> bool:
        """Carry out the verdict on the request that waited; return False if it waits again."""
        verdict = run_until_next_wait(deciding.coroutine)
        self.is_waiting = verdict is None
        if verdict is None:
            return False
        self._deciding = None
        self._pipelines.delivered_bytes = 0
        self._carry_out(verdict, deciding.route, deciding.frame)
        return True

    def _carry_out(self, verdict: Verdict, route: Route, frame: bytes) -> None:
        if verdict.way == HERE:
            assert verdict.frame is not None, "an answer"
            self._pipelines.queue_gateway_response(verdict.frame)
            return
        pending = PendingResponse(int32_at(frame, CORRELATION_ID_AT - LENGTH_BYTES), verdict.rewrite)
        if route.refusal is not None and verdict.way == COORDINATOR:
            pending.refusal = partial(route.refusal, frame)
        self._pipelines.add_client_request(verdict.way, pending)
        self._io.send_to_pipeline(verdict.way, verdict.frame or with_length(frame))
