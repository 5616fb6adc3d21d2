# SPDX-License-Identifier: Apache-2.0
"""The sockets of one client connection, around its Session, which does no I/O."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from socket import socket
from typing import Protocol

from coordinator.gateway.address_book import AddressBook
from coordinator.gateway.buffer_budget import COUNTED_FROM_BYTES, BufferBudget
from coordinator.gateway.connector import Connector, SocketWithPreface
from coordinator.gateway.ports import Port
from coordinator.gateway.routing_types import BROKER, COORDINATOR, Bytes
from coordinator.gateway.session import READ_BYTES, Session
from coordinator.gateway.session_io import SessionIO
from coordinator.gateway.socket_stream import EndedStreamCloser, SocketStream, StreamOwner
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from protocol.errors import ProtocolError
from protocol.non_kafka import NotKafka
from protocol.proxy_header import Endpoint

log = get_logger("gateway")


class RelayContext(Protocol):
    """The parts of a gateway process that its listeners and its connections share."""

    loop: asyncio.AbstractEventLoop
    buffer: memoryview
    ends: EndedStreamCloser
    book: AddressBook
    connector: Connector
    request_bytes_max: int
    buffer_budget: BufferBudget
    closed: Counter[str]
    tasks: Tasks

    def start_client_relay(self, port: Port, sock: socket, peer: Endpoint) -> None:
        """Serve a client that has connected."""

    def note_client_closed(self, relay: "Relay") -> None:
        """Stop counting a connection as open: the client's socket is closed, its other sockets may still be open."""

    def forget_relay(self, relay: "Relay") -> None:
        """Forget a connection, as all its sockets are closed."""


class Relay(SessionIO, StreamOwner):
    """One client connection: the client's socket, and those of its pipelines."""

    def __init__(self, context: RelayContext, port: Port, sock: socket, peer: Endpoint) -> None:
        self._context = context
        self._port = port
        self.node_id = port.node_id
        self.peer = peer
        self._ours = _endpoint(sock.getsockname())
        self.session = Session(self, port.routes, context.request_bytes_max)
        self._client = SocketStream(context.loop, self, context.buffer, context.ends)
        self._pipelines: list[SocketStream | None] = [None, None]
        self._connecting: dict[SocketStream, asyncio.Task[None]] = {}
        self._later: list[Callable[[], None]] = []
        self._over = False
        self._has_left = False
        self._is_counted = False
        self._has_received = False
        # When a side was last seen to have sent something, and the client to have taken its responses.
        self._active_s = self._taken_s = context.loop.time()
        self._taken_bytes = 0
        self._client.set_wanted_bytes(READ_BYTES)
        self._client.use_socket(sock)

    @property
    def waiting_bytes(self) -> int:
        """The bytes that have arrived, from all sides, and were not passed on."""
        return self.session.kept_bytes + sum(stream.waiting_bytes for stream in self._streams())

    @property
    def peer_name(self) -> str:
        """The client's address, for the log."""
        return str(self.peer)

    @property
    def has_client(self) -> bool:
        """True if the client's socket is open."""
        return not self._client.is_gone

    @property
    def has_closed_all_sockets(self) -> bool:
        """True if all sockets of the connection are closed."""
        return all(stream.is_gone for stream in self._streams())

    def _streams(self) -> Iterator[SocketStream]:
        return (stream for stream in (self._client, *self._pipelines) if stream is not None)

    def measure_idle_s(self, now_s: float) -> float:
        """Return for how long no side has sent anything, as far as regular calls of the method show."""
        if self._has_received:
            self._active_s, self._has_received = now_s, False
        return now_s - self._active_s

    def measure_unread_s(self, now_s: float) -> float:
        """Return for how long the client has read nothing of what waits, as far as regular calls of the method show."""
        taken_bytes = self._client.sent_bytes
        if not self._client.is_write_blocked or taken_bytes != self._taken_bytes:
            self._taken_s, self._taken_bytes = now_s, taken_bytes
        return now_s - self._taken_s

    # --- called by the streams ---

    def receive_bytes(self, stream: SocketStream, data: memoryview) -> None:
        """Pass the bytes that a socket has received to the session."""
        self._has_received = True
        if stream is self._client:
            self.session.receive_from_client(data)
        else:
            self.session.receive_from_pipeline(self._pipeline_of(stream), data)
        self._settle()

    def note_all_sent(self, stream: SocketStream) -> None:
        """Read the other sides again, as all waiting bytes for this stream were sent."""
        self._call_later()
        self._settle()

    def on_stream_lost(self, stream: SocketStream) -> None:
        """Close the connection after a side has closed, unless requests to a coordinator can be answered with errors.

        Requests that the client has sent whole are still carried out.
        """
        if stream is self._client:
            self.session.execute_gone_client_writes()
            self._settle()
            return
        self._pipeline_ended(self._pipeline_of(stream))

    def note_socket_closed(self, stream: SocketStream) -> None:
        """Update the counted bytes of this connection, as one of its sockets is closed."""
        if self._over and self._is_counted:
            self._count()
        self._leave()

    def _leave(self) -> None:
        """Report the end of the connection: first that of the client's socket, then that of all sockets."""
        if self._over and not self.has_client and not self._has_left:
            self._has_left = True
            self._context.note_client_closed(self)
        if self._has_left and self.has_closed_all_sockets:
            self._context.forget_relay(self)

    def _pipeline_ended(self, pipeline: int) -> None:
        self._pipelines[pipeline] = None
        if pipeline == BROKER or not self.session.try_refuse_lost_requests(pipeline):
            self.finish()
        else:
            self._settle()

    def _pipeline_of(self, stream: SocketStream) -> int:
        return BROKER if stream is self._pipelines[BROKER] else COORDINATOR

    @property
    def _client_is_full(self) -> bool:
        """True if responses wait for the client; those for a client that is gone are dropped and never wait."""
        return self._client.is_write_blocked and self.has_client

    def _settle(self) -> None:
        """Read each side only while the other side takes what was read."""
        if self._over:
            return
        session = self.session
        if session.is_client_input_finished:
            self.finish()
            return
        client_is_full = self._client_is_full
        broker_is_free = self._settle_pipeline(BROKER, client_is_full)
        pipelines_are_free = self._settle_pipeline(COORDINATOR, client_is_full) and broker_is_free
        # A client that does not read may not send more requests: responses made here pass no pipeline.
        self._client.set_wanted_bytes(
            session.read_bytes_max if pipelines_are_free and not client_is_full else 0
        )
        if (
            self._is_counted
            or client_is_full
            or not pipelines_are_free
            or session.kept_bytes >= COUNTED_FROM_BYTES
        ):
            self._count()

    def _settle_pipeline(self, number: int, client_is_full: bool) -> bool:
        """Read a pipeline only while the client reads; return whether the pipeline takes what the client sends."""
        pipeline = self._pipelines[number]
        if pipeline is None:
            return True
        pipeline.set_wanted_bytes(
            READ_BYTES if not client_is_full and self.session.should_read_responses(number) else 0
        )
        return not pipeline.is_write_blocked

    def _count(self) -> None:
        """Report the bytes that are held to the budget of all connections."""
        count = self.waiting_bytes
        self._is_counted = count >= COUNTED_FROM_BYTES
        self._context.buffer_budget.set_bytes_closing_excess(self, count)

    # --- called by the session ---

    def send_to_client(self, data: Bytes) -> None:
        """Send data to the client."""
        self._client.write(data)

    def send_to_pipeline(self, pipeline: int, data: Bytes) -> None:
        """Send data to the broker or the coordinator, after connecting to it if necessary."""
        stream = self._pipelines[pipeline]
        if stream is None:
            stream = self._open(pipeline)
        stream.write(data)

    def schedule_call(self, call: Callable[[], None]) -> None:
        """Schedule a call for the next turn of the event loop in which nothing waits for the client."""
        self._later.append(call)
        self._context.loop.call_soon(self._call_later)

    def _call_later(self) -> None:
        if not self._client_is_full:
            calls, self._later = self._later, []
            for call in calls:
                call()

    def resume_wanted_reads(self) -> None:
        """Read again the sides that the session wants to read."""
        self._settle()

    def end_after_violation(self, error: ProtocolError) -> None:
        """Close the connection because a side does not speak Kafka's protocol."""
        self._context.closed["protocol"] += 1
        log.info("closing a connection that breaks the protocol", peer=str(self.peer), reason=str(error))
        if isinstance(error, NotKafka):
            self._client.write(error.answer)
        self.finish()

    def abort_after_failure(self) -> None:
        """Close this connection alone because of an unexpected exception."""
        self._context.closed["fault"] += 1
        log.exception("a connection has failed", peer=str(self.peer))
        self.abort()

    # --- pipelines ---

    def open_broker(self) -> None:
        """Connect to the broker before the first request, so that a client of a dead broker is closed at once."""
        self._open(BROKER)

    def _open(self, pipeline: int) -> SocketStream:
        stream = self._pipelines[pipeline] = SocketStream(
            self._context.loop, self, self._context.buffer, self._context.ends
        )
        stream.set_wanted_bytes(READ_BYTES)
        work = self._connect_to(stream, self._port.describe_target_nodes(pipeline), self._choices(pipeline))
        task = self._context.tasks.start(work, "connect to a node", lambda _error: self.abort())
        self._connecting[stream] = task
        task.add_done_callback(lambda _task: self._connecting.pop(stream))
        return stream

    def _choices(self, pipeline: int) -> dict[str, Callable[[], Awaitable[SocketWithPreface]]]:
        """Return how to connect to each of the nodes that can serve a pipeline, by their names for the log."""
        connector, port = self._context.connector, self._port
        if pipeline == BROKER:
            return {
                str(each): partial(connector.connect_to_broker, each)
                for each in port.broker_addresses_to_try()
            }
        connect_to = partial(connector.connect_to_our_node, client=self.peer, ours=self._ours)
        return {f"our node {each.node_id}": partial(connect_to, each) for each in port.our_nodes_to_try()}

    async def _connect_to(
        self,
        stream: SocketStream,
        wanted: str,
        choices: Mapping[str, Callable[[], Awaitable[SocketWithPreface]]],
    ) -> None:
        """Connect to the first node that can be reached."""
        for name, connect_to in choices.items():
            try:
                sock, preface = await connect_to()
            except (OSError, ValueError) as error:  # ValueError for an invalid host name
                self._context.connector.note_failed_connection(name, error)
            else:
                self._context.connector.log_reconnection(name, wanted)
                stream.use_socket(sock, preface)
                return
        if not choices:
            self._context.connector.note_no_node_to_connect(wanted)
        stream.abort()
        if not self._over:
            self._pipeline_ended(self._pipeline_of(stream))

    # --- the end ---

    def finish(self) -> None:
        """Close every side once all written bytes have been sent, also one that is still being connected to."""
        if self._close():
            for stream in self._streams():
                stream.close_when_sent()
            self._stop_connecting()
            self._count()

    def abort(self) -> None:
        """Close every side at once."""
        self._close()
        self._is_counted = False
        self._context.buffer_budget.forget(self)
        for stream in self._streams():
            stream.abort()
        self._stop_connecting()

    def _stop_connecting(self) -> None:
        for stream, task in self._connecting.items():
            if stream.is_gone:
                task.cancel()

    def _close(self) -> bool:
        if self._over:
            return False
        self._over = True
        self._later.clear()
        self.session.end()
        self._leave()
        return True


def _endpoint(name: object) -> Endpoint | None:
    """Return the address of a TCP socket from the result of `getpeername` or `getsockname`, None of a Unix socket."""
    return Endpoint(str(name[0]), int(name[1])) if isinstance(name, tuple) else None
