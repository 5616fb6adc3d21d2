# SPDX-License-Identifier: Apache-2.0
"""The replies of one connection in the order of their requests: which can be sent, and which have become errors.

The first reply is sent once what it depends on is durable (rule 2 in ARCHITECTURE.md). If that was lost, what the reply
states may never become true, so an error is sent in its place.
"""

from collections import deque
from typing import Any, Final, Protocol

from coordinator.api.context import RequestContext, Work
from coordinator.api.slices import make_and_count_error_in_steps
from coordinator.net.fair_queue import FairQueue
from coordinator.net.refusals import make_and_count_error
from coordinator.net.unsent_bytes import UnsentBytes
from coordinator.partitions.append_errors import get_client_error_code
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DurabilityTicket, Waiter
from protocol.errors import ErrorCode

DONE: Final = object()

REPLIES_WAITING_MAX: Final = 10_000
"""The number of waiting replies at which a connection is read no further."""


class RepliesOwner(Waiter, Protocol):
    """The connection that the replies belong to."""

    def encode_and_set_response(self, ctx: RequestContext, response: Any) -> None:
        """Encode the response of a request."""

    def drop_parked_request(self) -> None:
        """Drop the parked request's work, as an error takes the place of its response."""

    def go_on_soon(self, *, again: bool = False) -> None:
        """Call `encode_some_errors` in the connection's next turn; `again` if it has had one already."""


class Replies:
    """The waiting replies of one connection, and those that are to become errors."""

    __slots__ = ("_refusing", "_replaced", "_stats", "_unsent", "awaited", "queue")

    def __init__(self, stats: Stats, unsent: UnsentBytes) -> None:
        self._stats = stats
        self._unsent = unsent
        self.queue: deque[RequestContext] = deque()
        """The requests whose replies wait, in order; parked ones have no frame yet."""
        self.awaited: DurabilityTicket | None = None
        """The ticket that will release the connection."""
        self._replaced: deque[tuple[RequestContext, ErrorCode]] = deque()  # are still to become errors
        self._refusing: Work | None = None  # the work that makes them errors

    def forget_all_replies(self) -> None:
        """Forget all replies, as the connection has ended."""
        self.queue.clear()
        self._replaced.clear()
        self._refusing = None

    @property
    def is_full(self) -> bool:
        """True if the number of waiting replies has reached its limit."""
        return len(self.queue) >= REPLIES_WAITING_MAX

    def is_newest(self, ctx: RequestContext) -> bool:
        """Return whether a request is the newest."""
        return bool(self.queue) and self.queue[-1] is ctx

    def drop_if_newest(self, ctx: RequestContext) -> None:
        """Remove this request if it is the newest, as it gets no response."""
        if self.is_newest(ctx):
            self.queue.pop()

    def take_ready(self, connection: RepliesOwner, now_ns: int) -> list[bytes]:
        """Remove the replies at the head of the queue that are ready; return their frames."""
        replies = self.queue
        out: list[bytes] = []
        while replies:
            reply = replies[0]
            frame = reply.frame
            if frame is None or not self.check_durable_or_wait(reply, connection):
                break
            replies.popleft()
            self._stats.count_response(reply.api_key, now_ns - reply.began_ns)
            out.append(frame)
            if reply.rest is not None:
                out += reply.rest
        return out

    def check_durable_or_wait(self, ctx: RequestContext, connection: RepliesOwner) -> bool:
        """Return whether a reply at the head of the queue can be sent now.

        Otherwise the connection goes on once the flush that the reply waits for has ended. If the append
        that the reply depends on is lost already, the connection goes on once the reply has become an error.
        """
        if ctx.ticket.is_durable and ctx.more is None:
            return True
        blocker = ctx.find_undurable_ticket()
        if blocker is None:
            return True
        if blocker.error is not None:
            self._refuse(ctx, blocker.error, connection)
        elif self.awaited is not blocker:
            self.awaited = blocker
            blocker.add_waiter(connection)
        return False

    def refuse_replies_of_lost_appends(self, connection: RepliesOwner) -> None:
        """Replace every reply that depends on a lost append by an error, also of requests that are being answered."""
        for ctx in self.queue:
            error = ctx.find_error()
            if error is not None:
                self._refuse(ctx, error, connection)

    def _refuse(self, ctx: RequestContext, error: ErrorCode, connection: RepliesOwner) -> None:
        """Replace a reply by an error of the log soon, as the append that it reports may be lost.

        Thousands of long replies may wait for one append, so the work is done in slices.
        """
        if ctx.is_replaced:
            return
        if ctx.frame is None:  # it waits for something else, or is being answered in slices
            connection.drop_parked_request()
        else:
            self._unsent.set_response(ctx, b"", None)
            ctx.frame = None
        ctx.is_replaced = True
        self._replaced.append((ctx, get_client_error_code(error)))
        if self._refusing is None:
            self._refusing = self._refuse_all(connection)
        connection.go_on_soon()

    def _refuse_all(self, connection: RepliesOwner) -> Work:
        while self._replaced:
            ctx, error = self._replaced.popleft()
            ctx.clear_tickets()
            if ctx.is_large:
                response = yield from make_and_count_error_in_steps(self._stats, ctx, error)
            else:
                response = make_and_count_error(self._stats, ctx, error)
            connection.encode_and_set_response(ctx, response)
            yield

    def encode_some_errors(self, connection: RepliesOwner, fair_queue: FairQueue) -> None:
        """Encode errors for the replies that were replaced, for one share of a turn."""
        if self._refusing is None:
            return
        ends_ns = fair_queue.nanos() + fair_queue.share_ns
        while (refusing := self._refusing) is not None:
            if next(refusing, DONE) is DONE:
                self._refusing = None
            elif fair_queue.nanos() >= ends_ns:
                connection.go_on_soon(again=True)
                break
