# SPDX-License-Identifier: Apache-2.0
"""One client connection: requests in, replies out in the order of the requests.

A request is handled as soon as it is read. Its reply may have to wait (`replies`): for a flush that makes its content
durable, or, if the request was parked (a join, a sync, a long poll), for the rest of the group. Later requests are
handled behind a reply that waits for a flush, but not behind a parked one: Kafka takes the requests of a connection one
at a time, and clients rely on a request behind a join seeing what the join did.

Requests are not handled while too many bytes of responses wait, for the disk or for a peer that does not read: a few
bytes can ask for megabytes. The unsent bytes of all connections together have a budget, too (response_budget.py).
Requests also wait once those of all connections have used up their time in one turn of the event loop. A request that
is long itself, or whose handler has much to do, is parked and worked on in slices. Requests that are read and not
handled yet form the backlog; when it is full, no more is read. A request that breaks the protocol ends the connection
after the responses to the requests before it, as in Kafka.

After a connection is closed, by either side, the requests that were read whole and change something are still carried
out, in order. The other requests are dropped, and no responses are sent. The remaining requests count towards the
budget but never wait for it, and they get the same shares of turns as those of open connections. The connection keeps
its place under the connection limits until they are done. A parked join or sync does not hold back the requests behind
it, because the members that it waits for may depend on them.
"""

import asyncio
from collections import deque
from typing import Any, Final, cast

from coordinator.api.context import PARKED, SILENT, RequestContext, Work
from coordinator.api.single_api_version import SingleApiVersion
from coordinator.api.slices import encode_and_count_errors_in_steps, handle_in_steps
from coordinator.net.long_requests import LongRequestRunner
from coordinator.net.refusals import count_protocol_violation, log_and_classify_failure, make_and_count_error
from coordinator.net.replies import Replies
from coordinator.net.request_cache import RequestCache
from coordinator.net.response_encoding import encode_and_count_errors
from coordinator.net.server import Server
from coordinator.net.small_response_requests import is_brief
from coordinator.net.unsent_bytes import UnsentBytes
from coordinator.partitions.group_access import RequestRefused
from coordinator.telemetry.logs import get_logger
from protocol.errors import ErrorCode, ProtocolError
from protocol.framing import FrameReader
from protocol.headers import RequestHeader, decode_request_header, read_api_key_and_version
from protocol.non_kafka import NotKafka

log = get_logger("connection")

ANSWERS_BYTES_MAX: Final = 1024 * 1024
"""The bytes of waiting responses above which no further request of the connection is handled."""

SMALL_REQUEST_BYTES: Final = 2048
"""The length above which a request beyond `Handled.small_bytes` is handled in slices, as it may name hundreds."""


class Connection:
    """The asyncio.Protocol of one socket (see the module's docstring).

    The class does not inherit from asyncio.Protocol, whose methods do nothing, so that mypyc can compile it to a
    native class.
    """

    __slots__ = (
        "_asked",
        "_backlog",
        "_backlog_bytes",
        "_client_host",
        "_closing",
        "_failure",
        "_going_on",
        "_is_lost",
        "_last_words",
        "_long",
        "_parked",
        "_paused_for_backlog",
        "_reader",
        "_replies",
        "_request_cache",
        "_server",
        "_transport",
        "_undone_bytes",
        "_unsent",
        "last_active_ns",
        "peer",
    )

    def __init__(self, server: Server) -> None:
        self._server = server
        self._reader = FrameReader(server.request_bytes_max, server.frame_bounds)
        self._request_cache = RequestCache()
        self._backlog: deque[bytes] = deque()  # frames that cannot be handled yet
        self._backlog_bytes = 0
        self._unsent = UnsentBytes(server.budget, server.stats, server.pieces_from_bytes)
        self._replies = Replies(server.stats, self._unsent)
        self._going_on = False  # whether `_go_on` will be called
        self._failure: str | None = None  # the error that broke the protocol behind the backlog
        self._last_words = b""  # a response in another protocol, for a client of that protocol
        self._parked: RequestContext | None = None
        self._long = LongRequestRunner(server.fair_queue, server.long_requests)  # answers the parked request
        self._paused_for_backlog = False
        self._asked = 0  # one bit for each api, for `claim_first_api_use`
        self._closing = False
        self._is_lost = False  # whether the transport is gone
        self._undone_bytes = (
            0  # the bytes in the budget of requests that a closed connection still carries out
        )
        self._client_host = ""
        self.peer = ""
        self.last_active_ns = 0

    # --- the transport's calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the socket, unless there are too many connections."""
        peername = transport.get_extra_info("peername")
        address = peername[0] if peername else ""
        self.accept(transport, address, f"{address}:{peername[1]}" if peername else "?")

    def accept(self, transport: asyncio.BaseTransport, address: str, peer: str) -> None:
        """Take over a transport, unless there are too many connections, or too many of this client's address."""
        self._transport = cast(asyncio.Transport, transport)
        self.peer = peer
        self._client_host = f"/{address}"
        self.last_active_ns = self._server.fair_queue.nanos()
        if not self._server.admit(self, address):
            self._closing = True
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the socket, and carry out the requests that were read."""
        self._is_lost = True
        self._begin_end()
        self._unsent.note_transport_emptied()
        self._server.budget.forget_reader_and_waiter(self)
        self._leave()

    # --- requests that a closed connection still carries out ---

    def _begin_end(self) -> None:
        """Send no more responses, and keep only the requests that change something."""
        if self._closing:
            return
        self._closing = True
        self._unsent.drop_answers()
        self._replies.forget_all_replies()
        parked = self._parked
        if parked is not None:
            self._end_parked(parked)
        self._undone_bytes = self._backlog_bytes + self._long.size_bytes
        if self._undone_bytes:
            self._server.budget.add_unsent_bytes(self._undone_bytes)
        if self._has_to_do:
            # The old reader may hold half of a long request.
            self._reader = FrameReader(self._server.request_bytes_max)
        if self._backlog:
            self.go_on_soon()

    def _end_parked(self, ctx: RequestContext) -> None:
        """Drop the parked request if it changes nothing; else go on with it."""
        ctx.is_unheard = True
        api: SingleApiVersion = ctx.api
        if not (api.may_change if ctx.request is None else api.changes(ctx.request)):
            self._long.drop()
            ctx.stop_abandoned_work()
            # The garbage collector does not traverse a request's context, which refers to its connection.
            self._parked = None
        elif self._long.is_under_way:
            self._long.go_on_soon()  # it may have waited for the budget
        else:
            self._let_pass(ctx)

    def _let_pass(self, ctx: RequestContext) -> None:
        """Let the next request of a closed connection go on if this one is answered or waits for other members."""
        if self._parked is ctx and (ctx.frame is not None or ctx.api.waits_for_members):
            self._parked = None

    @property
    def _has_to_do(self) -> bool:
        return bool(self._backlog) or self._parked is not None

    def _leave(self) -> None:
        """Leave the server once the socket is gone and all requests are carried out."""
        if self._has_to_do:
            return
        if self._undone_bytes:
            count, self._undone_bytes = self._undone_bytes, 0
            self._server.budget.remove_unsent_bytes(count)
        self._request_cache.forget()
        if self._is_lost:
            self._server.forget_connection(self, self._client_host[1:])

    def drop_requests_and_close(self) -> None:
        """Close the connection, and drop the requests that are not carried out yet: the node is about to end."""
        self._begin_end()
        self._backlog.clear()
        self._parked = None
        self._long.drop()
        self._leave()
        self.close()

    def eof_received(self) -> None:
        """Do nothing, as the transport closes itself when the peer sends no more."""

    def pause_writing(self) -> None:
        """Stop reading from the peer, as it does not read either."""
        self._unsent.is_full = True
        self._server.budget.watch_slow_reader(self)
        self.update_buffered_bytes()
        self._pause_or_resume()

    def resume_writing(self) -> None:
        """Write and read again, as the peer reads again."""
        self._server.budget.unwatch_slow_reader(self)
        self._unsent.note_transport_emptied()
        self._unsent.write_on(self._transport)
        if self._backlog or self._failure is not None:
            self.go_on_soon()
        self._pause_or_resume()

    def data_received(self, data: bytes) -> None:
        """Handle the complete requests; a stream that breaks the protocol ends its connection and no other."""
        if self._closing or self._failure is not None:
            return
        server = self._server
        server.stats.bytes_received += len(data)
        # Not the loop's clock: to find the running loop takes a system call, for the id of the process.
        now_ns = server.fair_queue.nanos()
        self.last_active_ns = now_ns
        try:
            frames = self._reader.feed(data)
        except ProtocolError as error:
            # The reader keeps the error (`_break_behind` takes it from the reader), whose traceback would keep this
            # connection until the garbage collector runs, which is rare.
            error.__traceback__ = None
            frames = []
        if self._parked is not None or self._backlog or self._unsent.is_full:
            self._keep(frames)
        elif frames:
            self._handle_all(frames, now_ns)
        elif self._reader.buffered_bytes > SMALL_REQUEST_BYTES:
            self._share_reading()
        failure = self._reader.failure
        if failure is not None:
            self._break_behind(failure)

    def _share_reading(self) -> None:
        """Read the rest of a long request in a later turn of the event loop, if this turn's time is over."""
        fair_queue = self._server.fair_queue
        now_ns = fair_queue.nanos()
        ends_ns = fair_queue.update_turn_end_ns(now_ns)
        fair_queue.handled_ns = now_ns
        if now_ns >= ends_ns:
            self._transport.pause_reading()
            self.go_on_soon()

    # --- requests ---

    def _keep(self, frames: list[bytes]) -> None:
        self._backlog.extend(frames)
        self._backlog_bytes += sum(map(len, frames))
        self._pause_or_resume()

    def _handle_all(self, frames: list[bytes], now_ns: int) -> None:
        out: list[bytes] = []
        fair_queue = self._server.fair_queue
        ends_ns = min(fair_queue.update_turn_end_ns(now_ns), now_ns + fair_queue.share_ns)
        for index, frame in enumerate(frames):
            if now_ns >= ends_ns or self._must_wait(frame):
                self._keep(frames[index:])
                break
            answered = self._handle(frame, out, now_ns)
            now_ns = self._count(answered, now_ns)
            if self._failure is not None:
                break
        fair_queue.handled_ns = now_ns
        self._write(out)
        if self._backlog or self._failure is not None:
            self._after_sending()

    def _count(self, answered: RequestContext | None, began_ns: int) -> int:
        """Return the time; count a request that was begun at `began_ns`, if it is answered."""
        server = self._server
        now_ns = server.fair_queue.nanos()
        if answered is not None:
            server.stats.count_response(answered.api_key, now_ns - began_ns)
        return now_ns

    def _handle(self, frame: bytes, out: list[bytes], now_ns: int) -> RequestContext | None:
        """Handle a request; return its context if its response is in `out` now."""
        server = self._server
        is_large = False
        request: Any = None
        try:
            # The route is known before anything is decoded.
            found = server.routes.get(read_api_key_and_version(frame))
            api: SingleApiVersion = (
                server.capabilities.get_version_refusal_api(frame) if found is None else found
            )
            header, pos = decode_request_header(frame, api.flexible)
            if len(frame) > SMALL_REQUEST_BYTES:
                is_large = len(frame) > api.small_bytes
            if not is_large:
                request = (
                    self._request_cache.decode(api, frame, pos) if api.repeats else api.decode(frame, pos)
                )
        except ProtocolError as error:
            count_protocol_violation(server.stats, error)
            self._break_here(error)
            return None
        if self._closing and not (api.may_change if is_large else api.changes(request)):
            return None
        ctx = self._begin(api, header, request, now_ns)
        if is_large:
            # After the requests of clients that ask for less have had their turn.
            ctx.is_large = True
            if not self._closing:
                self._replies.queue.append(ctx)
            work = handle_in_steps(server.node, ctx, api, frame, pos)
            self._long.begin_later(self, ctx, work, len(frame))
            return None
        return ctx if self._answer(api, ctx) and self._handled(ctx, out) else None

    def _begin(
        self, api: SingleApiVersion, header: RequestHeader, request: Any, now_ns: int
    ) -> RequestContext:
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
        ctx.is_unheard = self._closing
        self._parked = ctx  # until answered; a handler may answer a parked request before it returns
        return ctx

    def _answer(self, api: SingleApiVersion, ctx: RequestContext) -> bool:
        """Let the handler answer a request, or park it; return False if that ends the connection."""
        server = self._server
        server.stats.count_request(ctx.api_key)
        try:
            response = api.handle(server.node, ctx.request, ctx)
        except ProtocolError as error:  # no response could be read
            self._parked = None
            self._break_here(error)
            return False
        except Exception:
            log.exception("a request failed", api=api.name, version=ctx.api_version, peer=self.peer)
            response = make_and_count_error(server.stats, ctx, ErrorCode.UNKNOWN_SERVER_ERROR)
        if response is not PARKED:
            self.encode_and_set_response(ctx, response)
        return True

    def _handled(self, ctx: RequestContext, out: list[bytes]) -> bool:
        """Return whether the reply is in `out`; otherwise the reply, or its place, is added to the waiting ones."""
        if self._closing:
            self._let_pass(ctx)
            return False
        frame = ctx.frame
        if frame is None:
            self._replies.queue.append(ctx)
            return False
        self._parked = None
        replies = self._replies.queue
        if not replies and self._replies.check_durable_or_wait(ctx, self):
            out.append(frame)
            if ctx.rest is not None:
                out += ctx.rest
            return True
        replies.append(ctx)
        if self._replies.is_full:
            self._pause_or_resume()
        return False

    def encode_and_set_response(self, ctx: RequestContext, response: Any) -> None:
        """Encode the response to a request; a response that cannot be encoded ends the connection."""
        if response is SILENT or self._closing:
            ctx.frame = b""
            return
        try:
            frame = encode_and_count_errors(self._server.stats, ctx, response)
        except ProtocolError as error:
            # A parked request is completed by the request of another client, which must not suffer from this.
            log.exception("an answer cannot be written", api=ctx.api.name, peer=self.peer)
            self._break(error)
            frame = b""
        self._unsent.set_response(ctx, frame, None)

    # --- work in slices ---

    def run_in_slices(self, ctx: RequestContext, work: Work) -> None:
        """Start the work that answers the parked request, with one share of it at once."""
        if self._parked is not ctx:
            work.close()
        else:
            self._long.begin(self, ctx, work)

    def take_work_result(self, ctx: RequestContext, result: Any) -> None:
        """Take the result of long work: the response, the pieces of its body, or PARKED."""
        if result is PARKED:
            if self._closing:
                self._let_pass(ctx)
                self.go_on_soon()
            return
        if isinstance(result, list) and not self._closing:
            self._unsent.put_pieces(ctx, result)
        else:
            self.encode_and_set_response(ctx, result)
        self._go_on_behind(ctx)

    def answer_failed_request(self, ctx: RequestContext, error: Exception) -> None:
        """Answer a request whose long work has failed; a long request ends the connection unless it was refused.

        A refused request gets its error however long it is, because its client is to try again. A short request whose
        response would be too long gets an error, too.
        """
        if isinstance(error, ProtocolError):
            self._end_with(ctx, error)
            return
        code = log_and_classify_failure(self._server.stats, ctx, error, self.peer)
        if ctx.is_large and not isinstance(error, RequestRefused):
            api: SingleApiVersion = ctx.api
            self._end_with(ctx, ProtocolError(f"its {api.name} cannot be answered: {error}"))
            return
        self.encode_and_set_response(ctx, make_and_count_error(self._server.stats, ctx, code))
        self._go_on_behind(ctx)

    def _end_with(self, ctx: RequestContext, error: ProtocolError) -> None:
        """End the connection at the parked request, which gets no response."""
        if ctx.request is None:
            count_protocol_violation(self._server.stats, error)
        self._parked = None
        self._replies.drop_if_newest(ctx)
        self._break_here(error)
        self._after_sending()

    # --- replies ---

    def claim_first_api_use(self, api_key: int) -> bool:
        """Return True at the first call for an api on this connection, to log a message once for each connection."""
        bit = 1 << api_key
        first = not self._asked & bit
        self._asked |= bit
        return first

    def answer_parked_request(self, ctx: RequestContext, response: Any) -> None:
        """Answer a parked request; only the first response counts, and none is sent on a closed connection."""
        if ctx.frame is not None or ctx.is_replaced:
            return
        in_pieces = ctx.api.in_pieces
        long = None if in_pieces is None or self._closing else in_pieces(response, ctx.api_version)
        if long is not None:
            self._long.begin_later(
                self, ctx, encode_and_count_errors_in_steps(self._server.node, ctx, long), 0
            )
            return
        self.encode_and_set_response(ctx, response)
        self._go_on_behind(ctx)

    def _go_on_behind(self, ctx: RequestContext) -> None:
        """Handle the requests behind the parked one soon, as it has its response."""
        if self._parked is ctx and (self._closing or self._replies.is_newest(ctx)):
            self._parked = None
            # Not now: the caller may be in the middle of a step of the same group.
            self.go_on_soon()

    def resume_after_ticket(self) -> None:
        """Send the replies at the head of the queue that wait for nothing any more."""
        self._replies.awaited = None
        self._send_ready()
        if self._backlog or self._failure is not None:
            self._after_sending()
        if self._paused_for_backlog:
            self._pause_or_resume()

    def _send_ready(self) -> None:
        self._write(self._replies.take_ready(self, self._server.fair_queue.nanos()))

    def refuse_replies_of_lost_appends(self) -> None:
        """Replace every reply that depends on a lost append by an error, also of requests that are being answered."""
        self._replies.refuse_replies_of_lost_appends(self)

    def drop_parked_request(self) -> None:
        """Drop the parked request and its work, as an error takes the place of its response."""
        self._long.drop()
        self._parked = None

    def _write(self, out: list[bytes]) -> None:
        if out and not self._closing:
            self._unsent.write(self._transport, out)

    # --- flow ---

    def update_buffered_bytes(self) -> bool:
        """Update how many bytes the full transport holds; return whether the peer has taken any since the last call."""
        return self._unsent.update_buffered_bytes(self._transport.get_write_buffer_size())

    @property
    def bytes_not_yet_sent(self) -> int:
        """The bytes that the peer has not taken, as of the last `update_buffered_bytes`."""
        return self._unsent.bytes_not_yet_sent

    def abort(self) -> None:
        """Close at once, and drop what the peer has not taken."""
        self._begin_end()
        self._transport.abort()

    @property
    def has_unparked_work(self) -> bool:
        """True if work is left: a request that is not parked, unsent bytes, or a closed connection's backlog."""
        if self._closing and self._has_to_do:
            return True
        unsent = any(ctx.frame is not None or ctx.is_replaced for ctx in self._replies.queue)
        return unsent or self._long.is_under_way or self._transport.get_write_buffer_size() > 0

    @property
    def is_idle(self) -> bool:
        """True if no request is being handled and no response is waiting."""
        return (
            not self._replies.queue and not self._backlog and not self._unsent.is_full and not self._closing
        )

    def _pause_or_resume(self) -> None:
        full = self._backlog_bytes > self._server.queued_bytes_max or self._replies.is_full
        self._paused_for_backlog = full
        if self._closing:
            return
        if full or self._unsent.is_full or self._failure is not None:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def go_on_soon(self, *, again: bool = False) -> None:
        """Go on with the backlog, in this connection's turn; `again` if it has had one already."""
        if not self._going_on:
            self._going_on = True
            self._server.fair_queue.go_on_later(self._go_on, again=again)

    def _go_on(self) -> None:
        self._going_on = False
        self._replies.encode_some_errors(self, self._server.fair_queue)
        self._send_ready()
        out: list[bytes] = []
        fair_queue = self._server.fair_queue
        now_ns = fair_queue.nanos()
        ends_ns = now_ns + fair_queue.share_ns
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
        """Return whether a request cannot be handled yet; the connection goes on when the reason has ended."""
        if self._parked is not None:
            return True
        if self._closing:
            return False
        if self._unsent.is_full or self._unsent.answers_bytes > ANSWERS_BYTES_MAX:
            return True
        server = self._server
        if not server.budget.over or is_brief(server.node, server.capabilities, frame):
            return False
        server.budget.add_waiter(self)
        return True

    def _after_sending(self, *, again: bool = False) -> None:
        """Go on with the backlog if possible; else close or leave if this was the last request of the connection."""
        if self._backlog:
            if not self._must_wait(self._backlog[0]):
                self.go_on_soon(again=again)
        elif self._closing:
            self._leave()
        elif self._failure is not None and not self._replies.queue and self._unsent.is_written_to_transport:
            log.info("closing a connection that breaks the protocol", peer=self.peer, reason=self._failure)
            if self._last_words:
                self._transport.write(self._last_words)
            self.close()

    def _break_here(self, error: ProtocolError) -> None:
        """Break the connection at the current request: the requests behind it are not handled."""
        self._backlog.clear()
        self._backlog_bytes = 0
        self._break(error)

    def _break_behind(self, error: ProtocolError) -> None:
        """Break the connection behind all requests that were read, unless one of them has broken it already."""
        if self._failure is None:
            count_protocol_violation(self._server.stats, error)
            self._break(error)
            self._after_sending()

    def _break(self, error: ProtocolError) -> None:
        """Read no more; earlier requests are still answered."""
        self._failure = str(error)
        if isinstance(error, NotKafka):
            self._last_words = error.answer
        self._pause_or_resume()

    def close(self) -> None:
        """Close once all written bytes have been sent, for which the peer has `Server.linger_s`."""
        self._begin_end()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(self._server.linger_s, self._transport.abort)
