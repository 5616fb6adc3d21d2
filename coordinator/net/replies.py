# SPDX-License-Identifier: Apache-2.0
"""The replies of one connection in the order of their requests: which may leave, and which have become errors.

The first one leaves once what it depends on is durable (rule 2 in ARCHITECTURE.md). Where that was lost, what the reply
says may never become true: it is void, and an error is answered in its place.
"""

from collections import deque
from typing import Any, Final, Protocol

from coordinator.api.context import RequestContext, Work
from coordinator.api.slices import error_in_steps
from coordinator.net.owed import Owed
from coordinator.net.refusals import error_response
from coordinator.net.turns import Turns
from coordinator.partitions.append_errors import group_error
from coordinator.telemetry.stats import Stats
from coordinator.tickets import Ticket, Waiter
from protocol.errors import ErrorCode

DONE: Final = object()

REPLIES_WAITING_MAX: Final = 10_000
"""A connection is read no further while so many of its replies wait."""


class Replier(Waiter, Protocol):
    """The connection of the replies."""

    def encode(self, ctx: RequestContext, response: Any) -> None:
        """Make the frame of a request's answer."""

    def give_up(self) -> None:
        """What the parked request waits for, or is being made for it, is not its answer any more."""

    def go_on_soon(self, *, again: bool = False) -> None:
        """Call `refuse_some` in the connection's next turn; `again` if it has had one already."""


class Replies:
    """Replies that wait, and those that are still to be refused."""

    __slots__ = ("_owed", "_refusing", "_stats", "_void", "awaited", "queue")

    def __init__(self, stats: Stats, owed: Owed) -> None:
        self._stats = stats
        self._owed = owed
        self.queue: deque[RequestContext] = deque()
        """In request order; parked ones have no frame yet."""
        self.awaited: Ticket | None = None
        """The ticket that will release the connection."""
        self._void: deque[tuple[RequestContext, ErrorCode]] = deque()  # what is still to be refused
        self._refusing: Work | None = None  # that refuses them

    def forget(self) -> None:
        """The connection is gone."""
        self.queue.clear()
        self._void.clear()
        self._refusing = None

    @property
    def is_full(self) -> bool:
        """Whether so many wait that no more is read."""
        return len(self.queue) >= REPLIES_WAITING_MAX

    def is_newest(self, ctx: RequestContext) -> bool:
        """Whether no request has come behind this one."""
        return bool(self.queue) and self.queue[-1] is ctx

    def drop_newest(self, ctx: RequestContext) -> None:
        """This request, if it is the newest, is not answered."""
        if self.is_newest(ctx):
            self.queue.pop()

    def take_ready(self, connection: Replier, now_ns: int) -> list[bytes]:
        """The frames of the replies at the head of the queue that wait for nothing any more."""
        replies = self.queue
        out: list[bytes] = []
        while replies:
            reply = replies[0]
            frame = reply.frame
            if frame is None or not self.is_ready(reply, connection):
                break
            replies.popleft()
            self._stats.answered(reply.api_key, now_ns - reply.began_ns)
            out.append(frame)
            if reply.rest is not None:
                out += reply.rest
        return out

    def is_ready(self, ctx: RequestContext, connection: Replier) -> bool:
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
            self._refuse(ctx, blocker.error, connection)
        elif self.awaited is not blocker:
            self.awaited = blocker
            blocker.wait(connection)
        return False

    def refuse_lost(self, connection: Replier) -> None:
        """Make every reply void that depends on what was lost, also of requests that are still being answered."""
        for ctx in self.queue:
            error = ctx.failure()
            if error is not None:
                self._refuse(ctx, error, connection)

    def _refuse(self, ctx: RequestContext, error: ErrorCode, connection: Replier) -> None:
        """Make a reply void, as what it says may never become true, and answer this error of the log instead, soon.

        So many may wait, and for so much, that all of it is not done at once.
        """
        if ctx.is_void:
            return
        if ctx.frame is None:  # it waits for something else, or is being answered in slices
            connection.give_up()
        else:
            self._owed.put(ctx, b"", None)
            ctx.frame = None
        ctx.is_void = True
        self._void.append((ctx, group_error(error)))
        if self._refusing is None:
            self._refusing = self._refuse_all(connection)
        connection.go_on_soon()

    def _refuse_all(self, connection: Replier) -> Work:
        while self._void:
            ctx, error = self._void.popleft()
            ctx.forget()
            if ctx.is_large:
                response = yield from error_in_steps(self._stats, ctx, error)
            else:
                response = error_response(self._stats, ctx, error)
            connection.encode(ctx, response)
            yield

    def refuse_some(self, connection: Replier, turns: Turns) -> None:
        """Refuse what is void for one share of a turn."""
        if self._refusing is None:
            return
        ends_ns = turns.nanos() + turns.share_ns
        while (refusing := self._refusing) is not None:
            if next(refusing, DONE) is DONE:
                self._refusing = None
            elif turns.nanos() >= ends_ns:
                connection.go_on_soon(again=True)
                break
