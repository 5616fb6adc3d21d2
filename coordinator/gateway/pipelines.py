# SPDX-License-Identifier: Apache-2.0
"""The responses on their way to the client: their order, and which bytes of a pipeline are sent when.

A pipeline is a connection to a broker, or to a coordinator of ours, that answers requests in order. Every request that
will be answered stands in the queue `pending`, and in the queue of its pipeline. A response is passed on only while its
request is the client's oldest, so correlation ids stay unchanged; until then it is held, and the pipeline is read no
further. A response that passes unchanged is never stored whole.
"""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from coordinator.gateway.routing_types import (
    COLLECTED_BYTES_MAX,
    COORDINATOR,
    CORRELATION_ID_AT,
    LENGTH_BYTES,
    NOTHING,
    AwaitedResponseLost,
    Bytes,
    ClientSession,
    Rewrite,
    Rewritten,
    copy_from_read_buffer,
    get_head_bytes,
)
from coordinator.gateway.session_io import CLOSED, SessionIO
from coordinator.runtime.promise import Promise, run_until_next_wait
from protocol.errors import ErrorCode, FrameTooLarge, ProtocolError
from protocol.fixed_integers import int32_at

REWRITTEN_AT_ONCE: Final = 50
"""The number of responses that are rewritten or read in one step, before other connections have their turn."""
ANSWERS_BYTES_MAX: Final = 256 * 1024
"""The limit of the bytes of waiting responses that were made here; above it no request is taken."""

_RESPONSE_BYTES: Final = 8  # the length, the correlation id
_SMALLEST_RESPONSE: Final = 4


class PendingResponse:
    """A request that is not answered yet."""

    __slots__ = ("answer", "correlation_id", "promise", "refusal", "rewrite")

    def __init__(self, correlation_id: int, rewrite: Rewrite | None) -> None:
        self.correlation_id = correlation_id
        self.rewrite = rewrite
        self.answer: bytes | None = None  # the frame, if it was made here
        self.promise: Promise[bytes] | None = None  # of the response to a request of our own
        self.refusal: Callable[[ErrorCode], bytes] | None = None


class PipelineState:
    """The requests that a broker or a coordinator has to answer, and the part of its responses that has arrived."""

    __slots__ = ("blocked", "inbox", "left", "missing", "more", "queue", "rewriting")

    def __init__(self) -> None:
        self.queue: deque[PendingResponse] = deque()
        self.inbox: memoryview = NOTHING  # the bytes that have arrived and were not passed on
        self.more = bytearray()  # further bytes of a response that is collected
        self.missing = 0  # the number of bytes that have to come before the inbox is read again
        self.rewriting: Coroutine[Any, Any, tuple[bytes, int]] | None = None  # of the inbox's first response
        self.left = 0  # the bytes that are still to come of the response that is being passed on
        self.blocked = False  # whether the inbox waits for a response of the other pipeline

    @property
    def kept_bytes(self) -> int:
        """The bytes of responses that are held; one that is being rewritten is held twice."""
        if self.inbox is NOTHING:
            return 0
        return (1 if self.rewriting is None else 2) * len(self.inbox) + len(self.more)


class ResponsePipelines:
    """The responses that the client waits for: the broker's, a coordinator's, and those made here."""

    __slots__ = ("_answers_bytes", "_io", "_rewritten", "delivered_bytes", "pending", "pipelines")

    def __init__(self, io: SessionIO) -> None:
        self._io: SessionIO = io
        self.pending: deque[PendingResponse] = deque()
        self._answers_bytes = 0  # the bytes of waiting responses that were made here
        self._rewritten = 0  # the responses rewritten or read in this step
        self.delivered_bytes = 0
        """The bytes of the coordinator's responses that the coroutine of the current request holds."""
        self.pipelines: Final = [PipelineState(), PipelineState()]
        """A list, because compiled code goes over it faster than over a tuple."""

    @property
    def kept_bytes(self) -> int:
        """The bytes of responses that are held."""
        count = self._answers_bytes + self.delivered_bytes
        for pipeline in self.pipelines:
            count += pipeline.kept_bytes
        return count

    @property
    def exceeds_own_response_bytes(self) -> bool:
        """True if the bytes of waiting responses that were made here exceed ANSWERS_BYTES_MAX."""
        return self._answers_bytes > ANSWERS_BYTES_MAX

    @property
    def has_used_its_share(self) -> bool:
        """True if this step has rewritten its share, so that other connections have their turn."""
        return self._rewritten >= REWRITTEN_AT_ONCE

    def begin_step(self) -> None:
        """Begin a step, with a new share of responses to rewrite."""
        self._rewritten = 0

    def detach_from_read_buffer(self) -> None:
        """Copy what is left in the shared read buffer, which the next read overwrites."""
        for pipeline in self.pipelines:
            if pipeline.inbox is not NOTHING:
                pipeline.inbox = copy_from_read_buffer(pipeline.inbox)

    def drop_all_responses(self) -> None:
        """Drop all responses, and send nothing any more."""
        self._io = CLOSED
        self.pending.clear()
        self._answers_bytes = self.delivered_bytes = 0
        for pipeline in self.pipelines:
            pipeline.queue.clear()
            _empty(pipeline)

    # --- requests that wait ---

    def add_client_request(self, pipeline: int, pending: PendingResponse) -> None:
        """Add a request of the client that is sent to this pipeline."""
        self.pipelines[pipeline].queue.append(pending)
        self.pending.append(pending)

    def expect_own_response(self, pipeline: int, frame: bytes, promise: Promise[bytes]) -> None:
        """Add a request of our own, which is sent to this pipeline; `frame` begins with its length."""
        pending = PendingResponse(int32_at(frame, CORRELATION_ID_AT), None)
        pending.promise = promise
        self.pipelines[pipeline].queue.append(pending)

    def queue_gateway_response(self, frame: bytes) -> None:
        """Send a response that was made here, once all responses before it were sent."""
        if not self.pending:
            self._io.send_to_client(frame)
            return
        pending = PendingResponse(0, None)
        self._wait(pending, frame)
        self.pending.append(pending)

    def _wait(self, pending: PendingResponse, answer: bytes) -> None:
        pending.answer = answer
        self._answers_bytes += len(answer)

    def fail_own_requests(self) -> None:
        """Fail the requests of our own to the coordinator, because nothing is sent to the client any more."""
        # A copy, because a coroutine that continues may add a request to the queue.
        for pending in list(self.pipelines[COORDINATOR].queue):
            if pending.promise is not None:
                pending.promise.resolve(AwaitedResponseLost())

    def refuse_lost_requests(self, number: int) -> bool:
        """Answer all requests of a closed pipeline with errors.

        Returns False, and changes nothing, if one of them has no error response or is answered in part.
        """
        pipeline = self.pipelines[number]
        if pipeline.left or any(
            pending.refusal is None and pending.promise is None for pending in pipeline.queue
        ):
            return False
        lost = list(pipeline.queue)
        pipeline.queue.clear()
        _empty(pipeline)
        pipeline.blocked = False  # the response that blocked it is gone
        for pending in lost:
            if pending.promise is not None:
                pending.promise.resolve(AwaitedResponseLost())
            elif pending.refusal is not None:
                self._wait(pending, pending.refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        return True

    # --- responses that come back ---

    def buffer_bytes_from_pipeline(self, number: int, data: memoryview) -> bool:
        """Add bytes that a pipeline has sent; return whether `send_due_responses` can do something with them."""
        pipeline = self.pipelines[number]
        if (
            len(data) < pipeline.missing
        ):  # joined seldom, or a response in small pieces would be copied for each
            pipeline.missing -= len(data)
            pipeline.more += data
            return False
        if pipeline.inbox is not NOTHING:
            data = memoryview(b"".join((pipeline.inbox, pipeline.more, data)))
            pipeline.more = bytearray()
        pipeline.missing = 0
        pipeline.inbox = data
        return True

    def send_due_responses(self, client: ClientSession) -> None:
        """Send the client all responses whose turn it is, from both pipelines and those made here."""
        while True:
            some = self._send_answers()
            for pipeline in self.pipelines:
                if pipeline.inbox is not NOTHING and not pipeline.missing and self._take(client, pipeline):
                    some = True
            if not some or not self.pending:
                return

    def _send_answers(self) -> bool:
        """Send the responses made here that are the client's oldest; return whether there were any."""
        some = False
        while self.pending and self.pending[0].answer is not None:
            pending = self.pending.popleft()
            answer = pending.answer or b""
            self._answers_bytes -= len(answer)
            self._io.send_to_client(answer)
            some = True
        return some

    def _take(self, client: ClientSession, pipeline: PipelineState) -> bool:
        """Send the responses of a pipeline whose turn it is; return whether one was sent to its end."""
        data = pipeline.inbox
        size = len(data)
        pos = start = 0
        some = pipeline.blocked = False
        while True:
            if pipeline.left:
                step = min(pipeline.left, size - pos)
                pipeline.left -= step
                pos += step
                if pipeline.left:
                    break
                self._finished(pipeline)
                some = True
            if size - pos < _RESPONSE_BYTES:
                break
            head = get_head_bytes(data, pos)
            length, pending = self._next_response(pipeline, head)
            if self._must_wait(pending):
                pipeline.blocked = True
                break
            whole = LENGTH_BYTES + length
            if pending.promise is None and pending.rewrite is None:
                pipeline.left = whole
                continue
            self._rewritten += 1
            answer = head[:whole] if whole <= len(head) else bytes(data[pos : pos + whole])
            made = self._take_response(client, pipeline, pending, answer, whole)
            if made is None:
                break
            changed, taken = made
            if taken:
                self._send(data[start:pos])
                self._send(changed)
                start = pos = pos + taken
            some = True
        if pos > start:
            self._io.send_to_client(data if pos - start == size else data[start:pos])
        pipeline.inbox = data[pos:] if pos < size else NOTHING
        return some

    def _send(self, data: Bytes) -> None:
        if data:
            self._io.send_to_client(data)

    def _must_wait(self, pending: PendingResponse) -> bool:
        """Return whether a response has to wait for other responses, or for other connections."""
        if pending.promise is None and pending is not self.pending[0]:
            return True
        return self.has_used_its_share and (pending.promise is not None or pending.rewrite is not None)

    def _next_response(self, pipeline: PipelineState, head: bytes) -> tuple[int, PendingResponse]:
        """Return the length of the response with this head, and its request. Raises ProtocolError."""
        length, correlation_id = int32_at(head, 0), int32_at(head, LENGTH_BYTES)
        if not pipeline.queue:
            raise ProtocolError("the broker answers what was not asked")
        pending = pipeline.queue[0]
        if length < _SMALLEST_RESPONSE or correlation_id != pending.correlation_id:
            raise ProtocolError(
                f"the broker answers {length} bytes to {correlation_id}; {pending.correlation_id} comes first"
            )
        return length, pending

    def _take_response(
        self,
        client: ClientSession,
        pipeline: PipelineState,
        pending: PendingResponse,
        data: bytes,
        whole: int,
    ) -> Rewritten:
        """Rewrite a response of `whole` bytes as far as it has arrived, or take the response to a request of our own.

        Returns the bytes that replace its beginning, and how many bytes they replace; the rest passes unchanged.
        Returns None while more of it is needed.
        """
        if len(data) > COLLECTED_BYTES_MAX or (pending.promise is not None and whole > COLLECTED_BYTES_MAX):
            raise FrameTooLarge(f"an answer of {whole - LENGTH_BYTES} bytes cannot be rewritten")
        if pending.promise is not None:
            if len(data) < whole:
                pipeline.missing = whole - len(data)
                return None
            pipeline.queue.popleft()
            if pipeline is self.pipelines[COORDINATOR]:
                self.delivered_bytes += whole
            pending.promise.resolve(data)
            return b"", whole
        assert pending.rewrite is not None, "others pass"
        made = _rewritten(client, pipeline, pending.rewrite, data)
        if made is None:
            if len(data) == whole:  # the rewriting waits for something else
                pipeline.blocked = True
            pipeline.missing = min(whole - len(data), len(data))  # twice as much, as the head may suffice
            return None
        pipeline.left = whole - made[1]
        if not pipeline.left:
            self._finished(pipeline)
        return made

    def _finished(self, pipeline: PipelineState) -> None:
        """Remove the pipeline's oldest request, which is the client's oldest, as its response was sent."""
        pipeline.queue.popleft()
        self.pending.popleft()


def _rewritten(client: ClientSession, pipeline: PipelineState, rewrite: Rewrite, data: bytes) -> Rewritten:
    """Return the rewritten response, or None while its rewriting waits."""
    if pipeline.rewriting is None:
        made = rewrite(client, data)
        if made is None or isinstance(made, tuple):
            return made
        pipeline.rewriting = made
    rewritten = run_until_next_wait(pipeline.rewriting)
    if rewritten is not None:
        pipeline.rewriting = None
    return rewritten


def _empty(pipeline: PipelineState) -> None:
    """Drop the bytes that have arrived from a pipeline."""
    pipeline.inbox = NOTHING
    pipeline.more = bytearray()
    pipeline.missing = 0
    if pipeline.rewriting is not None:
        pipeline.rewriting.close()
        pipeline.rewriting = None
