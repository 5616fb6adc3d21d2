# SPDX-License-Identifier: Apache-2.0
"""The way back: the responses that the client waits for, in order, and which bytes of the lanes leave when.

Every request that will be answered stands in the queue `pending`, and in the queue of the lane that answers it, which
answers in order, too. What a lane says is passed on only while its request is the client's oldest, so nothing has to be
numbered anew; else it is held, and the lane is read no further. Of an answer that passes as it is nothing is kept.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from coordinator.gateway.outside import NOWHERE, Outside
from coordinator.gateway.ways import (
    COLLECTED_BYTES_MAX,
    COORDINATOR,
    CORRELATION_ID_AT,
    LENGTH_BYTES,
    NOTHING,
    Bytes,
    ClientSession,
    NoAnswer,
    Rewrite,
    Rewritten,
    head_of,
    kept,
)
from coordinator.runtime.promise import Promise, run
from protocol.errors import ErrorCode, FrameTooLarge, ProtocolError
from protocol.fixed import int32_at

REWRITTEN_AT_ONCE: Final = 50
"""After so many answers that were rewritten, or read, of those that came together, others have their turn."""
ANSWERS_BYTES_MAX: Final = 256 * 1024
"""No request is taken while more of the answers that were made here wait for others."""

_RESPONSE_BYTES: Final = 8  # the length, the correlation id
_SMALLEST_RESPONSE: Final = 4


class PendingResponse:
    """A request whose answer is to come."""

    __slots__ = ("answer", "correlation_id", "promise", "refusal", "rewrite")

    def __init__(self, correlation_id: int, rewrite: Rewrite | None) -> None:
        self.correlation_id = correlation_id
        self.rewrite = rewrite
        self.answer: bytes | None = None  # the frame, where it was made here
        self.promise: Promise[bytes] | None = None  # of the answer to a request of our own
        self.refusal: Callable[[ErrorCode], bytes] | None = None


class Lane:
    """What is known of the connection to a broker or a coordinator."""

    __slots__ = ("blocked", "inbox", "left", "missing", "more", "queue", "rewriting")

    def __init__(self) -> None:
        self.queue: deque[PendingResponse] = deque()
        self.inbox: memoryview = NOTHING  # what has come and was not passed on
        self.more = bytearray()  # what has come after it of an answer that is collected
        self.missing = 0  # how much more has to come before it is looked at again
        self.rewriting: Coroutine[Any, Any, tuple[bytes, int]] | None = None  # the first answer of the inbox
        self.left = 0  # bytes that are still to come of the answer that is being passed on
        self.blocked = False  # whether the inbox waits for the other lane's answer

    @property
    def kept_bytes(self) -> int:
        """How much of what has come is kept here; an answer that is being changed is there twice."""
        if self.inbox is NOTHING:
            return 0
        return (1 if self.rewriting is None else 2) * len(self.inbox) + len(self.more)


class Lanes:
    """What is still to be said to the client, by the broker, by a coordinator, and here."""

    __slots__ = ("_answers_bytes", "_outside", "_rewritten", "delivered_bytes", "lanes", "pending")

    def __init__(self, outside: Outside) -> None:
        self._outside: Outside = outside
        self.pending: deque[PendingResponse] = deque()
        self._answers_bytes = 0  # of what was answered here and waits
        self._rewritten = 0  # answers in this step
        self.delivered_bytes = 0
        """The length of the coordinator's answers that the coroutine of the current request holds."""
        self.lanes: Final = [Lane(), Lane()]
        """A list, because compiled code goes over it faster than over a tuple."""

    @property
    def kept_bytes(self) -> int:
        """How much of what has come is kept here."""
        count = self._answers_bytes + self.delivered_bytes
        for lane in self.lanes:
            count += lane.kept_bytes
        return count

    @property
    def is_full(self) -> bool:
        """Whether so much was answered here that waits that no request should be taken."""
        return self._answers_bytes > ANSWERS_BYTES_MAX

    @property
    def has_enough(self) -> bool:
        """Whether others have their turn before `take` goes on."""
        return self._rewritten >= REWRITTEN_AT_ONCE

    def begin(self) -> None:
        """A step begins."""
        self._rewritten = 0

    def keep(self) -> None:
        """Copy what is left of buffers that are not ours."""
        for lane in self.lanes:
            if lane.inbox is not NOTHING:
                lane.inbox = kept(lane.inbox)

    def end(self) -> None:
        """Take nothing any more, and forget what was kept."""
        self._outside = NOWHERE
        self.pending.clear()
        self._answers_bytes = self.delivered_bytes = 0
        for lane in self.lanes:
            lane.queue.clear()
            _empty(lane)

    # --- what the client waits for ---

    def expect(self, lane: int, pending: PendingResponse) -> None:
        """A request goes to this lane, and the client waits for its answer."""
        self.lanes[lane].queue.append(pending)
        self.pending.append(pending)

    def asks(self, lane: int, frame: bytes, promise: Promise[bytes]) -> None:
        """A request of our own, whole with its length, goes to this lane."""
        pending = PendingResponse(int32_at(frame, CORRELATION_ID_AT), None)
        pending.promise = promise
        self.lanes[lane].queue.append(pending)

    def answer(self, frame: bytes) -> None:
        """Say this, which was made here, once all before it is said."""
        if not self.pending:
            self._outside.to_client(frame)
            return
        pending = PendingResponse(0, None)
        self._wait(pending, frame)
        self.pending.append(pending)

    def _wait(self, pending: PendingResponse, answer: bytes) -> None:
        pending.answer = answer
        self._answers_bytes += len(answer)

    def client_gone(self) -> None:
        """Stop waiting for answers of the coordinator, because the client does not read them any more."""
        # A copy, because a coroutine that continues may add a request to the queue.
        for pending in list(self.lanes[COORDINATOR].queue):
            if pending.promise is not None:
                pending.promise.resolve(NoAnswer())

    def lost(self, lane_number: int) -> bool:
        """A lane has ended: its answers become refusals; False where that cannot be, and nothing was changed."""
        lane = self.lanes[lane_number]
        if lane.left or any(pending.refusal is None and pending.promise is None for pending in lane.queue):
            return False
        lost = list(lane.queue)
        lane.queue.clear()
        _empty(lane)
        lane.blocked = False  # what it held back is gone
        for pending in lost:
            if pending.promise is not None:
                pending.promise.resolve(NoAnswer())
            elif pending.refusal is not None:
                self._wait(pending, pending.refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return True

    # --- what is said ---

    def add(self, lane_number: int, data: memoryview) -> bool:
        """Bytes of a lane have come; returns whether there is something for `take` in them."""
        lane = self.lanes[lane_number]
        if len(data) < lane.missing:  # joined seldom, or an answer in small pieces would be copied for each
            lane.missing -= len(data)
            lane.more += data
            return False
        if lane.inbox is not NOTHING:
            data = memoryview(b"".join((lane.inbox, lane.more, data)))
            lane.more = bytearray()
        lane.missing = 0
        lane.inbox = data
        return True

    def take(self, client: ClientSession) -> None:
        """Pass on what may leave now, of both lanes and of what was answered here."""
        while True:
            some = self._send_answers()
            for lane in self.lanes:
                if lane.inbox is not NOTHING and not lane.missing and self._take(client, lane):
                    some = True
            if not some or not self.pending:
                return

    def _send_answers(self) -> bool:
        """Send the oldest answers that were made here; returns whether there were any."""
        some = False
        while self.pending and self.pending[0].answer is not None:
            pending = self.pending.popleft()
            answer = pending.answer or b""
            self._answers_bytes -= len(answer)
            self._outside.to_client(answer)
            some = True
        return some

    def _take(self, client: ClientSession, lane: Lane) -> bool:
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
            head = head_of(data, pos)
            length, pending = self._next_response(lane, head)
            if self._must_wait(pending):
                lane.blocked = True
                break
            whole = LENGTH_BYTES + length
            if pending.promise is None and pending.rewrite is None:
                lane.left = whole
                continue
            self._rewritten += 1
            answer = head[:whole] if whole <= len(head) else bytes(data[pos : pos + whole])
            made = self._take_response(client, lane, pending, answer, whole)
            if made is None:
                break
            changed, taken = made
            if taken:
                self._send(data[start:pos])
                self._send(changed)
                start = pos = pos + taken
            some = True
        if pos > start:
            self._outside.to_client(data if pos - start == size else data[start:pos])
        lane.inbox = data[pos:] if pos < size else NOTHING
        return some

    def _send(self, data: Bytes) -> None:
        if data:
            self._outside.to_client(data)

    def _must_wait(self, pending: PendingResponse) -> bool:
        """Whether others come before this answer: other answers, or other connections."""
        if pending.promise is None and pending is not self.pending[0]:
            return True
        return self.has_enough and (pending.promise is not None or pending.rewrite is not None)

    def _next_response(self, lane: Lane, head: bytes) -> tuple[int, PendingResponse]:
        """The length of the answer with this head, and the request that it belongs to."""
        length, correlation_id = int32_at(head, 0), int32_at(head, LENGTH_BYTES)
        if not lane.queue:
            raise ProtocolError("the broker answers what was not asked")
        pending = lane.queue[0]
        if length < _SMALLEST_RESPONSE or correlation_id != pending.correlation_id:
            raise ProtocolError(
                f"the broker answers {length} bytes to {correlation_id}; {pending.correlation_id} comes first"
            )
        return length, pending

    def _take_response(
        self, client: ClientSession, lane: Lane, pending: PendingResponse, data: bytes, whole: int
    ) -> Rewritten:
        """Rewrite an answer of `whole` bytes as far as it is there, or take one to a request of ours.

        Returns what is sent in place of its first so many bytes, what is left of it passes; None where it waits.
        """
        if len(data) > COLLECTED_BYTES_MAX or (pending.promise is not None and whole > COLLECTED_BYTES_MAX):
            raise FrameTooLarge(f"an answer of {whole - LENGTH_BYTES} bytes cannot be rewritten")
        if pending.promise is not None:
            if len(data) < whole:
                lane.missing = whole - len(data)
                return None
            lane.queue.popleft()
            if lane is self.lanes[COORDINATOR]:
                self.delivered_bytes += whole
            pending.promise.resolve(data)
            return b"", whole
        assert pending.rewrite is not None, "others pass"
        made = _rewritten(client, lane, pending.rewrite, data)
        if made is None:
            if len(data) == whole:  # it waits for something else
                lane.blocked = True
            lane.missing = min(whole - len(data), len(data))  # twice as much, as the head of it may do
            return None
        lane.left = whole - made[1]
        if not lane.left:
            self._finished(lane)
        return made

    def _finished(self, lane: Lane) -> None:
        """The lane's oldest answer, which is the client's oldest, has been passed on."""
        lane.queue.popleft()
        self.pending.popleft()


def _rewritten(client: ClientSession, lane: Lane, rewrite: Rewrite, data: bytes) -> Rewritten:
    """What becomes of an answer; None while that is not known."""
    if lane.rewriting is None:
        made = rewrite(client, data)
        if made is None or isinstance(made, tuple):
            return made
        lane.rewriting = made
    rewritten = run(lane.rewriting)
    if rewritten is not None:
        lane.rewriting = None
    return rewritten


def _empty(lane: Lane) -> None:
    """Forget what has come."""
    lane.inbox = NOTHING
    lane.more = bytearray()
    lane.missing = 0
    if lane.rewriting is not None:
        lane.rewriting.close()
        lane.rewriting = None
