# SPDX-License-Identifier: Apache-2.0
"""One client connection, without its sockets: where each request is sent, and in which order responses are sent.

`requests` handles the client's requests, `pipelines` the responses. A session runs both after each input, and ends when
one of them finds that a side breaks the protocol.
"""

import struct
from functools import partial
from typing import Final

from coordinator.gateway.client_request_reader import RequestReader
from coordinator.gateway.pipelines import ResponsePipelines
from coordinator.gateway.routing_types import DroppableState, Routes
from coordinator.gateway.session_io import CLOSED, SessionIO
from coordinator.runtime.promise import Promise
from protocol.errors import ProtocolError

READ_BYTES: Final = 256 * 1024
"""The most that is read from a side at a time."""
PROBE_BYTES: Final = 4 * 1024
"""The most that is read from a client while its request waits, only to notice that it closes."""


class Session:
    """The state of one client connection (see the module's docstring)."""

    __slots__ = (
        "_all_answered",
        "_busy",
        "_ended",
        "_io",
        "_pipelines",
        "_requests",
        "login_has_begun",
        "memory",
    )

    def __init__(self, io: SessionIO, routes: Routes, bytes_max: int) -> None:
        """Refuse requests that are longer than `bytes_max` (socket.request.max.bytes)."""
        self._io: SessionIO = io
        self._pipelines = ResponsePipelines(io)
        self._requests = RequestReader(io, routes, self._pipelines, bytes_max)
        self.memory: DroppableState | None = None
        """State of the permission gate for this connection."""
        self.login_has_begun = False
        """True if the client has asked for a mechanism to log in."""
        self._all_answered: Promise[None] | None = None
        self._busy = False
        self._ended = False

    # --- flow ---

    @property
    def node_id(self) -> int:
        """The id of the node that the client has connected to."""
        return self._io.node_id

    @property
    def peer_name(self) -> str:
        """The client's address and port, for the log."""
        return self._io.peer_name

    @property
    def wants_requests(self) -> bool:
        """True if the client should be read."""
        return self._requests.wants_more and not self._ended

    @property
    def read_bytes_max(self) -> int:
        """The most bytes to read from the client at a time; 0 to read nothing."""
        if self.wants_requests:
            return READ_BYTES
        if self._ended or self._requests.client_is_gone or self._requests.inbox_bytes >= PROBE_BYTES:
            return 0
        return PROBE_BYTES

    def should_read_responses(self, pipeline: int) -> bool:
        """Return whether this pipeline should be read."""
        return not self._pipelines.pipelines[pipeline].blocked

    @property
    def is_client_input_finished(self) -> bool:
        """True if the client is gone, and each request that it has sent whole was passed on or refused."""
        return self._requests.client_is_gone and not self._requests.is_waiting

    @property
    def client_is_gone(self) -> bool:
        """True if the client has closed its connection, so that responses are not read any more."""
        return self._requests.client_is_gone

    @property
    def is_idle(self) -> bool:
        """True if no response is pending."""
        return not self._pipelines.pending

    @property
    def kept_bytes(self) -> int:
        """The bytes that have arrived and were not passed on."""
        return self._requests.kept_bytes + self._pipelines.kept_bytes

    def execute_gone_client_writes(self) -> None:
        """After the client has closed, carry out the requests that have arrived whole and that change something."""
        self._requests.drop_read_requests_of_gone_client()
        self._pipelines.fail_own_requests()
        self._check_all_answered()
        if not self._ended:
            self._run(answers=False)

    def end(self) -> None:
        """Drop everything, and send nothing any more."""
        self._ended = True
        self._io = CLOSED  # which refers to this session, and the garbage collector comes rarely
        if self.memory is not None:
            self.memory.drop_state()
            self.memory = None
        self._all_answered = None
        self._requests.drop_all_requests()
        self._pipelines.drop_all_responses()

    # --- input ---

    def receive_from_client(self, data: memoryview) -> None:
        """Take bytes that the client has sent."""
        if self._ended:
            return
        if self._requests.add_received_bytes(data):
            self._run(answers=False)

    def receive_from_pipeline(self, pipeline: int, data: memoryview) -> None:
        """Take bytes that a pipeline has sent."""
        if self._ended:
            return
        if self._pipelines.buffer_bytes_from_pipeline(pipeline, data):
            self._run(answers=True)

    def try_refuse_lost_requests(self, pipeline: int) -> bool:
        """Answer all requests of a closed pipeline with errors.

        Returns False if that is not possible, and the connection has to be closed.
        """
        if self._ended or not self._pipelines.refuse_lost_requests(pipeline):
            return False
        self._run(answers=True)
        return True

    def go_on(self) -> None:
        """Continue the request that waited for a promise, since the promise is resolved now."""
        self._requests.is_waiting = False
        if not self._busy and not self._ended:
            self._run(answers=True)
            self._io.resume_wanted_reads()

    def send_own_request(self, pipeline: int, frame: bytes) -> Promise[bytes]:
        """Send a request of our own to a pipeline, and return a promise of its response; both begin with their length.

        The promise raises AwaitedResponseLost if the coordinator is lost or the client is gone.
        """
        promise: Promise[bytes] = Promise(self.go_on)
        self._pipelines.expect_own_response(pipeline, frame, promise)
        self._io.send_to_pipeline(pipeline, frame)
        if self._requests.client_is_gone:
            self._pipelines.fail_own_requests()
        return promise

    def go_on_soon(self) -> None:
        """Schedule `go_on` for after other connections have had their turn."""
        self._io.schedule_call(self.go_on)

    def wait_until_answered(self) -> Promise[None]:
        """Return a promise that is resolved once the client has taken the responses to all earlier requests."""
        promise = self._all_answered = Promise(self.go_on)
        self._check_all_answered()
        return promise

    def _check_all_answered(self) -> None:
        promise = self._all_answered
        if promise is not None and (self.is_idle or self._requests.client_is_gone):
            self._all_answered = None
            self._io.schedule_call(
                partial(promise.resolve, None)
            )  # once the client takes the bytes that it is sent

    def _break(self, error: ProtocolError) -> None:
        error.__traceback__ = None  # the traceback would keep this session alive
        io = self._io
        self.end()
        io.end_after_violation(error)

    def _run(self, *, answers: bool) -> None:
        """Handle responses if there are any, then requests; then copy what is left in the shared read buffer."""
        self._busy = True
        self._requests.begin_step()
        self._pipelines.begin_step()
        try:
            if answers:
                self._pipelines.send_due_responses(self)
            if self._requests.can_process_inbox:
                self._requests.route_inbox_requests(self)
            if self._pipelines.has_used_its_share:
                self._io.schedule_call(self.go_on)
            self._check_all_answered()
        except ProtocolError as error:
            self._break(error)
        except struct.error as error:  # a name of bytes that are no UTF-8 is longer when it is sent again
            self._break(ProtocolError(f"what it sends makes a message that cannot be written: {error}"))
        except Exception:  # noqa: BLE001 - `abort_after_failure` logs it, and other connections continue
            io = self._io
            self.end()
            io.abort_after_failure()
        finally:
            self._busy = False
        self._requests.detach_from_read_buffer()
        self._pipelines.detach_from_read_buffer()
