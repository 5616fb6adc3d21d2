# SPDX-License-Identifier: Apache-2.0
"""One client connection, without its sockets: which bytes go where, and in which order answers leave.

`requests` is the way there, `lanes` the way back. A session runs both, whatever comes, and ends where one of them finds
that a side breaks the protocol.
"""

import struct
from functools import partial
from typing import Final

from coordinator.gateway.lanes import Lanes
from coordinator.gateway.outside import NOWHERE, Outside
from coordinator.gateway.requests import Requests
from coordinator.gateway.ways import Memory, Routes
from coordinator.runtime.promise import Promise
from protocol.errors import ProtocolError

READ_BYTES: Final = 256 * 1024
"""How much is read from a side at a time."""
PROBE_BYTES: Final = 4 * 1024
"""How much is read from a client while its request waits, only to notice that it closes."""


class Session:
    """The state of one client connection (see the module's docstring)."""

    __slots__ = (
        "_all_answered",
        "_busy",
        "_ended",
        "_lanes",
        "_outside",
        "_requests",
        "login_has_begun",
        "memory",
    )

    def __init__(self, outside: Outside, routes: Routes, bytes_max: int) -> None:
        """Refuse requests that are longer than `bytes_max` (socket.request.max.bytes)."""
        self._outside: Outside = outside
        self._lanes = Lanes(outside)
        self._requests = Requests(outside, routes, self._lanes, bytes_max)
        self.memory: Memory | None = None
        """What those who are asked remember of this connection."""
        self.login_has_begun = False
        """Whether the client has asked for a mechanism to log in."""
        self._all_answered: Promise[None] | None = None
        self._busy = False
        self._ended = False

    # --- flow ---

    @property
    def node_id(self) -> int:
        """That of the node that the client has connected to."""
        return self._outside.node_id

    @property
    def wants_requests(self) -> bool:
        """Whether the client should be read."""
        return self._requests.wants_more and not self._ended

    @property
    def wanted_bytes(self) -> int:
        """How much should be read from the client at a time; 0 for nothing."""
        if self.wants_requests:
            return READ_BYTES
        if self._ended or self._requests.client_is_gone or self._requests.inbox_bytes >= PROBE_BYTES:
            return 0
        return PROBE_BYTES

    def wants_answers(self, lane: int) -> bool:
        """Whether this lane should be read."""
        return not self._lanes.lanes[lane].blocked

    @property
    def is_done(self) -> bool:
        """Whether the client is gone, and each request that it has sent whole was passed on or refused."""
        return self._requests.client_is_gone and not self._requests.is_waiting

    @property
    def client_is_gone(self) -> bool:
        """Whether the client has closed its connection, so that nobody reads answers any more."""
        return self._requests.client_is_gone

    @property
    def is_idle(self) -> bool:
        """Whether no response is pending."""
        return not self._lanes.pending

    @property
    def kept_bytes(self) -> int:
        """How much of what has come is kept here."""
        return self._requests.kept_bytes + self._lanes.kept_bytes

    def client_gone(self) -> None:
        """The client has closed. Whole requests that change something are still carried out, as at a node."""
        self._requests.client_gone()
        self._lanes.client_gone()
        self._check_all_answered()
        if not self._ended:
            self._run(answers=False)

    def end(self) -> None:
        """Take nothing any more, and forget what was kept."""
        self._ended = True
        self._outside = NOWHERE  # which refers to this session, and the garbage collector comes rarely
        if self.memory is not None:
            self.memory.end()
            self.memory = None
        self._all_answered = None
        self._requests.end()
        self._lanes.end()

    # --- what comes ---

    def requested(self, data: memoryview) -> None:
        """Take bytes of the client."""
        if self._ended:
            return
        if self._requests.add(data):
            self._run(answers=False)

    def answered(self, lane: int, data: memoryview) -> None:
        """Take bytes of a lane."""
        if self._ended:
            return
        if self._lanes.add(lane, data):
            self._run(answers=True)

    def lost(self, lane: int) -> bool:
        """A lane has ended: refuse what it still had to answer; False where that cannot be, and the client is to go."""
        if self._ended or not self._lanes.lost(lane):
            return False
        self._run(answers=True)
        return True

    def go_on(self) -> None:
        """Run on what waits for a promise that was resolved."""
        self._requests.is_waiting = False
        if not self._busy and not self._ended:
            self._run(answers=True)
            self._outside.went_on()

    def ask(self, lane: int, frame: bytes) -> Promise[bytes]:
        """Send a request of our own to a lane, and return a promise of its answer; both have their length."""
        promise: Promise[bytes] = Promise(self.go_on)
        self._lanes.asks(lane, frame, promise)
        self._outside.to_lane(lane, frame)
        if self._requests.client_is_gone:
            self._lanes.client_gone()
        return promise

    def go_on_soon(self) -> None:
        """Call `go_on` once other connections have had their turn."""
        self._outside.soon(self.go_on)

    def all_answered(self) -> Promise[None]:
        """Return a promise that is resolved once the client has taken the answers to all earlier requests."""
        promise = self._all_answered = Promise(self.go_on)
        self._check_all_answered()
        return promise

    def _check_all_answered(self) -> None:
        promise = self._all_answered
        if promise is not None and (self.is_idle or self._requests.client_is_gone):
            self._all_answered = None
            self._outside.soon(partial(promise.resolve, None))  # once the client takes what it is sent

    def _break(self, error: ProtocolError) -> None:
        error.__traceback__ = None  # it would keep this session alive
        outside = self._outside
        self.end()
        outside.broken(error)

    def _run(self, *, answers: bool) -> None:
        """Take answers if there are any, then requests; keep what is left of buffers that are not ours."""
        self._busy = True
        self._requests.begin()
        self._lanes.begin()
        try:
            if answers:
                self._lanes.take(self)
            if self._requests.can_be_taken:
                self._requests.take(self)
            if self._lanes.has_enough:
                self._outside.soon(self.go_on)
            self._check_all_answered()
        except ProtocolError as error:
            self._break(error)
        except struct.error as error:  # a name of bytes that are no UTF-8 is longer when it is sent again
            self._break(ProtocolError(f"what it sends makes a message that cannot be written: {error}"))
        except Exception:  # noqa: BLE001 - it is logged there; others that wait for what this one did go on
            outside = self._outside
            self.end()
            outside.failed()
        finally:
            self._busy = False
        self._requests.keep()
        self._lanes.keep()
