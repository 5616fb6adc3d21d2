# SPDX-License-Identifier: Apache-2.0
"""One client connection: frames in, replies out in the order of their requests.

A request is handled as soon as it is read. Its reply may have to wait: for a flush that makes what it says
durable, or, when it was parked (a join, a sync, a long poll), for the rest of the group. Later requests go on
being handled behind a reply that waits for a flush, but not behind a parked one: Kafka takes the requests of a
connection one at a time, and clients rely on a request behind a join seeing what the join did.

Nor are requests handled while too many bytes of answers wait, for the disk or for a peer that does not read: a
few bytes can ask for megabytes; what all connections owe together has a budget, too (budget.py). Nor once the
requests of all connections have taken their time in one turn of the event loop. A request that is long itself, or
whose handler has much to do, is parked and worked on in slices. What is read and not handled yet is the backlog; when
it is full, no more is read.
A request that breaks the protocol ends the connection after the answers to those before it, as in Kafka.
"""

import asyncio
from collections import deque
from typing import Any, Final, cast

from coordinator.api.context import PARKED, SILENT, RequestContext, Work
from coordinator.api.part_errors import count_part_errors
from coordinator.api.slices import error_in_steps, handle_in_steps
from coordinator.api.table import Handled
from coordinator.net.brief import is_brief
from coordinator.net.long_work import LongWork
from coordinator.net.owed import Owed
from coordinator.net.refusals import code_of_failure, count_refused, error_response
from coordinator.net.server import Server
from coordinator.partitions.append_errors import group_error
from coordinator.partitions.door import RequestRefused
from coordinator.telemetry.logs import get_logger
from coordinator.tickets import Ticket
from protocol.errors import (
    ErrorCode,
    ProtocolError,
)
from protocol.framing import FrameReader
from protocol.headers import decode_request_header, encode_response, response_head, route_of
from protocol.strangers import NotKafka

log = get_logger("connection")

DONE: Final = object()

REPLIES_WAITING_MAX = 10_000
"""A connection is read no further while so many of its replies wait."""

ANSWERS_BYTES_MAX = 1024 * 1024
"""A connection's requests are handled no further while answers of more bytes than these wait."""

SMALL_REQUEST_BYTES = 2048
"""Longer requests may have hundreds of things in them: those beyond `Handled.small_bytes` are handled in slices."""

REPEATED_REQUESTS_MAX = 32
REPEATED_BYTES_MAX = 1024
"""How many decoded requests a connection remembers, and of what size at most."""


class Connection:
    """The asyncio.Protocol of one socket (see the module's docstring).

    It does not inherit from that, which has nothing to inherit: so it can be compiled to a class of its own.
    """

    __slots__ = (
        "_asked",
        "_awaited",
        "_backlog",
        "_backlog_bytes",
        "_client_host",
        "_closing",
        "_failure",
        "_going_on",
        "_last_words",
        "_long",
        "_owed",
        "_parked",
        "_paused_for_backlog",
        "_reader",
        "_refusing",
        "_repeated",
        "_replies",
        "_server",
        "_transport",
        "_void",
        "client_software",
        "last_active",
        "peer",
    )

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader = FrameReader(server.request_bytes_max, server.frame_bounds)
        self._repeated: dict[tuple[Handled, bytes], Any] = {}
        self._replies: deque[RequestContext] = deque()  # in request order; parked ones have no frame yet
        self._backlog: deque[bytes] = deque()  # frames that cannot be handled yet
        self._backlog_bytes = 0
        self._owed = Owed(server.unsent)
        self._going_on = False  # whether `_go_on` will be called
        self._failure: str | None = None  # what broke the protocol behind the backlog
        self._last_words = b""  # what a client of another protocol understands
        self._parked: RequestContext | None = None
        self._awaited: Ticket | None = None  # the ticket that will release this connection
        self._long = LongWork(server.turns, server.longest)  # that answers the parked request
        self._void: deque[tuple[RequestContext, ErrorCode]] = deque()  # what is still to be refused
        self._refusing: Work | None = None  # that refuses them
        self._paused_for_backlog = False
        self._asked = 0  # a bit for each api of `is_first`
        self._closing = False
        self._client_host = ""
        self.client_software = ""
        self.peer = ""
        self.last_active = 0.0

    # --- the transport's calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the socket, unless there are too many."""
        peername = transport.get_extra_info("peername")
        address = peername[0] if peername else ""
        self.accept(transport, address, f"{address}:{peername[1]}" if peername else "?")

    def accept(self, transport: asyncio.BaseTransport, address: str, peer: str) -> None:
        """Take over a transport, unless there are too many connections, or too many of this client's address."""
        self._transport = cast(asyncio.Transport, transport)
        self.peer = peer
        self._client_host = f"/{address}"
        self.last_active = asyncio.get_running_loop().time()
        server = self._server
        if not server.admission.admit(address):
            server.stats.connections_refused += 1
            self._closing = True
            self._transport.abort()
            return
        server.stats.connections_accepted += 1
        server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the socket. A parked join still takes part in its group, its answer goes nowhere."""
        server = self._server
        if self in server.connections:
            server.connections.discard(self)
            server.admission.leave(self._client_host[1:])
        self._forget()
        self._owed.emptied()
        server.unsent.forget(self)

    def _forget(self) -> None:
        self._closing = True
        self._owed.drop_answers()
        self._replies.clear()
        self._void.clear()
        self._refusing = None
        self._backlog.clear()
        self._repeated.clear()
        if self._parked is not None:
            self._parked.abandon()
        # The garbage collector does not look into a request's context, which refers to its connection.
        self._parked = None
        self._long.drop()

    def eof_received(self) -> None:
        """The peer sends no more: the transport closes itself."""

    def pause_writing(self) -> None:
        """The peer does not read: do not read from it either."""
        self._owed.is_full = True
        self._server.unsent.full(self)
        self.settle()
        self._pause_or_resume()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self._server.unsent.empty(self)
        self._owed.emptied()
        if self._backlog:
            self.go_on_soon()
        self._pause_or_resume()

    def data_received(self, data: bytes) -> None:
        """Handle what is complete; a stream that breaks the protocol ends its connection and no other."""
        if self._closing or self._failure is not None:
            return
        server = self._server
        server.stats.bytes_received += len(data)
        self.last_active = asyncio.get_running_loop().time()
        try:
            frames = self._reader.feed(data)
        except ProtocolError as error:
            # See below. The reader keeps the error, and its traceback would keep this connection until the garbage
            # collector comes, which is rarely.
            error.__traceback__ = None
            frames = []
        if self._parked is not None or self._backlog or self._owed.is_full:
            self._keep(frames)
        else:
            self._handle_all(frames)
        failure = self._reader.failure
        if failure is not None:
            self._break_behind(failure)

    # --- requests ---

    def _keep(self, frames: list[bytes]) -> None:
        self._backlog.extend(frames)
        self._backlog_bytes += sum(map(len, frames))
        self._pause_or_resume()

    def _handle_all(self, frames: list[bytes]) -> None:
        out: list[bytes] = []
        turns = self._server.turns
        now_ns = turns.nanos()
        ends_ns = min(turns.ends_ns(now_ns), now_ns + turns.share_ns)
        for index, frame in enumerate(frames):
            if now_ns >= ends_ns or self._must_wait(frame):
                self._keep(frames[index:])
                break
            answered = self._handle(frame, out, now_ns)
            now_ns = self._count(answered, now_ns)
            if self._failure is not None:
                break
        turns.handled_ns = now_ns
        self._write(out)
        if self._backlog or self._failure is not None:
            self._after_sending()

    def _count(self, answered: RequestContext | None, began_ns: int) -> int:
        """The time, after a request that was begun with at `began_ns`, which counts if it is answered."""
        server = self._server
        now_ns = server.turns.nanos()
        if answered is not None:
            server.stats.answered(answered.api_key, now_ns - began_ns)
        return now_ns

    def _handle(self, frame: bytes, out: list[bytes], now_ns: int) -> RequestContext | None:
        """Handle a request; returns it where its answer is in `out` now."""
        server = self._server
        is_large = False
        request: Any = None
        try:
            # Where it goes is known before anything is decoded.
            found = server.routes.get(route_of(frame))
            api: Handled = server.capabilities.unrouted(frame) if found is None else found
            header, pos = decode_request_header(frame, api.flexible)
            if len(frame) > SMALL_REQUEST_BYTES:
                is_large = len(frame) > api.small_bytes
            if not is_large:
                request = self._decode_repeated(api, frame, pos) if api.repeats else api.decode(frame, pos)
        except ProtocolError as error:
            count_refused(self._server.stats, error)
            self._break_here(error)
            return None
        ctx = RequestContext(
            self,
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id or "",
            self._client_host,
            api,
            request,
        )
        ctx.began_ns = now_ns
        self._parked = ctx  # until answered; a handler may answer a parked request before it returns
        if is_large:
            # Once those have had their turn who ask less.
            ctx.is_large = True
            self._replies.append(ctx)
            self._long.begin_later(self, ctx, handle_in_steps(server.node, ctx, api, frame, pos))
            return None
        server.stats.handled(header.api_key)
        try:
            response = api.handle(server.node, request, ctx)
        except ProtocolError as error:  # no answer could be read
            self._parked = None
            self._break_here(error)
            return None
        except Exception:
            log.exception("a request failed", api=api.name, version=header.api_version, peer=self.peer)
            response = error_response(self._server.stats, ctx, ErrorCode.UNKNOWN_SERVER_ERROR)
        if response is not PARKED:
            self._encode(ctx, response)
        return ctx if self._handled(ctx, out) else None

    def _handled(self, ctx: RequestContext, out: list[bytes]) -> bool:
        """Whether the reply is in `out`; else it, or the place for it, is kept among those that wait."""
        frame = ctx.frame
        if frame is None:
            if self._parked is ctx:  # else the connection has ended
                self._replies.append(ctx)
            return False
        self._parked = None
        if not self._replies and self._is_ready(ctx):
            out.append(frame)
            if ctx.rest is not None:
                out += ctx.rest
            return True
        self._replies.append(ctx)
        if len(self._replies) >= REPLIES_WAITING_MAX:
            self._pause_or_resume()
        return False

    def _decode_repeated(self, api: Handled, frame: bytes, pos: int) -> Any:
        """Decode a request that clients send again and again, byte for byte, only the first time."""
        key = (api, frame[pos:])
        request = self._repeated.get(key)
        if request is None:
            request = api.decode(frame, pos)
            if len(frame) <= REPEATED_BYTES_MAX:
                if len(self._repeated) >= REPEATED_REQUESTS_MAX:
                    self._repeated.clear()
                self._repeated[key] = request
        return request

    def _encode(self, ctx: RequestContext, response: Any) -> None:
        if response is SILENT:
            ctx.frame = b""
            return
        api: Handled = ctx.api
        if api.adapt is not None:
            response = api.adapt(response, ctx.api_version)
        if api.has_error and response.error_code:
            self._server.stats.error(api.key, response.error_code)
        if api.error_parts and not api.counts_part_errors:
            count_part_errors(self._server.stats, api.key, api.error_parts, response)
        try:
            frame = encode_response(ctx.correlation_id, api.encode(response), api.flexible_response)
        except Exception as error:
            # A parked request is completed by somebody else's, who must not suffer from this.
            log.exception("an answer cannot be written", api=api.name, peer=self.peer)
            self._break(ProtocolError(f"the answer to its {api.name} cannot be written: {error}"))
            frame = b""
        self._set_frame(ctx, frame, None)

    def _set_frame(self, ctx: RequestContext, frame: bytes, rest: list[bytes] | None) -> None:
        more_bytes = len(frame)
        if rest is not None:
            more_bytes += _size(rest)
        if ctx.frame is not None:
            self._owed.replaced(len(ctx.frame) + _size(ctx.rest))
        self._owed.add(more_bytes)
        ctx.frame = frame
        ctx.rest = rest

    # --- what is done in slices ---

    def in_slices(self, ctx: RequestContext, work: Work) -> None:
        """Do the work that answers the parked request; as much of it as one share at once."""
        if self._closing or self._parked is not ctx:
            work.close()
        else:
            self._long.begin(self, ctx, work)

    def finish(self, ctx: RequestContext, result: Any) -> None:
        """Long work is done: `result` is the response, or the pieces of its body."""
        if isinstance(result, list):
            api: Handled = ctx.api
            head = response_head(ctx.correlation_id, _size(result), api.flexible_response)
            if _size(result) <= self._server.pieces_from_bytes:
                self._set_frame(ctx, b"".join([head, *result]), None)
            else:
                self._set_frame(ctx, head, result)
        else:
            self._encode(ctx, result)
        self._go_on_behind(ctx)

    def fail(self, ctx: RequestContext, error: Exception) -> None:
        """Long work has failed. A request whose answer would be too long hears that, if it is short itself.

        What is refused is answered, however long the request: its client is to try again.
        """
        if isinstance(error, ProtocolError):
            self._end_with(ctx, error)
            return
        code = code_of_failure(self._server.stats, ctx, error, self.peer)
        if ctx.is_large and not isinstance(error, RequestRefused):
            api: Handled = ctx.api
            self._end_with(ctx, ProtocolError(f"its {api.name} cannot be answered: {error}"))
            return
        self._encode(ctx, error_response(self._server.stats, ctx, code))
        self._go_on_behind(ctx)

    def _end_with(self, ctx: RequestContext, error: ProtocolError) -> None:
        """End the connection at the parked request, which is not answered."""
        if ctx.request is None:
            count_refused(self._server.stats, error)
        self._parked = None
        if self._replies and self._replies[-1] is ctx:
            self._replies.pop()
        self._break_here(error)
        self._after_sending()

    # --- replies ---

    def is_first(self, api_key: int) -> bool:
        """Whether this is asked for the first time about this api, for what is to be said once on a connection."""
        bit = 1 << api_key
        first = not self._asked & bit
        self._asked |= bit
        return first

    def complete(self, ctx: RequestContext, response: Any) -> None:
        """Answer a parked request; only the first answer counts, and none on a connection that is gone."""
        if ctx.frame is not None or ctx.is_void or self._closing:
            return
        self._encode(ctx, response)
        self._go_on_behind(ctx)

    def _go_on_behind(self, ctx: RequestContext) -> None:
        """The parked request has its answer: what came behind it is handled now."""
        if self._parked is ctx and self._replies and self._replies[-1] is ctx:
            self._parked = None
            # Not now: what completes this is in the middle of a step of the same group, perhaps.
            self.go_on_soon()

    def release(self) -> None:
        """Send the replies at the head of the queue that wait for nothing any more."""
        self._awaited = None
        self._send_ready()
        if self._backlog or self._failure is not None:
            self._after_sending()
        if self._paused_for_backlog:
            self._pause_or_resume()

    def _send_ready(self) -> None:
        replies, server = self._replies, self._server
        now_ns = server.turns.nanos()
        out: list[bytes] = []
        while replies and replies[0].frame is not None and self._is_ready(replies[0]):
            reply = replies.popleft()
            server.stats.answered(reply.api_key, now_ns - reply.began_ns)
            out.append(reply.frame or b"")
            if reply.rest is not None:
                out += reply.rest
        self._write(out)

    def _is_ready(self, ctx: RequestContext) -> bool:
        """Whether a reply at the head of the queue may leave now.

        Otherwise the connection goes on when what it waits for has come to its end, or, where that was lost, once
        the reply has become an error.
        """
        if ctx.ticket.is_durable and ctx.more is None:
            return True
        blocker = ctx.blocker()
        if blocker is None:
            return True
        if blocker.error is not None:
            self._refuse(ctx, blocker.error)
        elif self._awaited is not blocker:
            self._awaited = blocker
            blocker.wait(self)
        return False

    def refuse_lost(self) -> None:
        """Make every reply void that depends on what was lost, also of requests that are still being answered."""
        for ctx in self._replies:
            error = ctx.failure()
            if error is not None:
                self._refuse(ctx, error)

    def _refuse(self, ctx: RequestContext, error: ErrorCode) -> None:
        """Make a reply void, as what it says may never become true, and answer this error of the log instead, soon.

        So many may wait, and for so much, that all of it is not done at once.
        """
        if ctx.is_void:
            return
        if ctx.frame is None:  # it waits for something else, or is being answered in slices
            self._long.drop()
            self._parked = None
        else:
            self._set_frame(ctx, b"", None)
            ctx.frame = None
        ctx.is_void = True
        self._void.append((ctx, group_error(error)))
        if self._refusing is None:
            self._refusing = self._refuse_all()
        self.go_on_soon()

    def _refuse_all(self) -> Work:
        while self._void:
            ctx, error = self._void.popleft()
            ctx.forget()
            if ctx.is_large:
                response = yield from error_in_steps(self._server.stats, ctx, error)
            else:
                response = error_response(self._server.stats, ctx, error)
            self._encode(ctx, response)
            yield

    def _refuse_some(self) -> None:
        """Refuse what is void for one share of a turn."""
        turns = self._server.turns
        ends_ns = turns.nanos() + turns.share_ns
        while (refusing := self._refusing) is not None:
            if next(refusing, DONE) is DONE:
                self._refusing = None
            elif turns.nanos() >= ends_ns:
                self.go_on_soon(again=True)
                break

    def _write(self, out: list[bytes]) -> None:
        if out and not self._closing:
            if len(out) == 1:
                self._write_piece(out[0])
            elif _size(out) <= self._server.pieces_from_bytes:
                self._write_piece(b"".join(out))
            else:
                for piece in out:
                    self._write_piece(piece)

    def _write_piece(self, data: bytes) -> None:
        self._owed.written(len(data))
        self._server.stats.bytes_sent += len(data)
        self._transport.write(data)

    # --- flow ---

    def settle(self) -> bool:
        """Find out what the full transport keeps; returns whether the peer has taken something since the last time."""
        return self._owed.settle(self._transport.get_write_buffer_size())

    @property
    def buffered_bytes(self) -> int:
        """What the transport keeps, as far as that is known."""
        return self._owed.buffered_bytes

    def abort(self) -> None:
        """Close at once; what the peer has not taken is lost."""
        self._forget()
        self._transport.abort()

    @property
    def busy(self) -> bool:
        """Whether a reply is owed that is not parked, or sent bytes have not left yet."""
        owed = any(ctx.frame is not None or ctx.is_void for ctx in self._replies)
        return owed or self._long.is_under_way or self._transport.get_write_buffer_size() > 0

    @property
    def is_idle(self) -> bool:
        """Whether the client asks nothing and waits for nothing."""
        return not self._replies and not self._backlog and not self._closing

    def _pause_or_resume(self) -> None:
        full = (
            self._backlog_bytes > self._server.queued_bytes_max or len(self._replies) >= REPLIES_WAITING_MAX
        )
        self._paused_for_backlog = full
        if self._closing:
            return
        if full or self._owed.is_full or self._failure is not None:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def go_on_soon(self, *, again: bool = False) -> None:
        """Go on with the backlog, in this connection's turn; `again` if it has had one already."""
        if not self._going_on:
            self._going_on = True
            self._server.turns.go_on_later(self._go_on, again=again)

    def _go_on(self) -> None:
        self._going_on = False
        if self._closing:
            return
        if self._refusing is not None:
            self._refuse_some()
        self._send_ready()
        out: list[bytes] = []
        turns = self._server.turns
        now_ns = turns.nanos()
        ends_ns = now_ns + turns.share_ns
        while self._backlog and not self._must_wait(self._backlog[0]):
            frame = self._backlog.popleft()
            self._backlog_bytes -= len(frame)
            answered = self._handle(frame, out, now_ns)
            now_ns = self._count(answered, now_ns)
            if now_ns >= ends_ns:
                break
        self._write(out)
        self._after_sending(again=True)
        self._pause_or_resume()

    def _must_wait(self, frame: bytes) -> bool:
        """Whether this request is not handled yet; what it waits for lets the connection go on."""
        if self._parked is not None or self._owed.is_full or self._owed.answers_bytes > ANSWERS_BYTES_MAX:
            return True
        server = self._server
        if not server.unsent.over or is_brief(server.node, server.capabilities, frame):
            return False
        server.unsent.hold(self)
        return True

    def _after_sending(self, *, again: bool = False) -> None:
        """Go on with the backlog where that is possible now, or close where it was the last of the connection."""
        if self._backlog:
            if not self._must_wait(self._backlog[0]):
                self.go_on_soon(again=again)
        elif self._failure is not None and not self._replies and not self._closing:
            log.info("closing a connection that breaks the protocol", peer=self.peer, reason=self._failure)
            if self._last_words:
                self._transport.write(self._last_words)
            self.close()

    def _break_here(self, error: ProtocolError) -> None:
        """Break at the request that is being handled: those behind it are not."""
        self._backlog.clear()
        self._backlog_bytes = 0
        self._break(error)

    def _break_behind(self, error: ProtocolError) -> None:
        """Break behind all requests that were read, unless one of them has broken the protocol before."""
        if self._failure is None:
            count_refused(self._server.stats, error)
            self._break(error)
            self._after_sending()

    def _break(self, error: ProtocolError) -> None:
        """Read no more; what was asked before is still answered."""
        self._failure = str(error)
        if isinstance(error, NotKafka):
            self._last_words = error.answer
        self._pause_or_resume()

    def close(self) -> None:
        """Close after what was written has left, for which the peer has `Server.linger_s`."""
        self._forget()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(self._server.linger_s, self._transport.abort)


def _size(pieces: list[bytes] | None) -> int:
    return 0 if pieces is None else sum([len(piece) for piece in pieces])
