# SPDX-License-Identifier: Apache-2.0
"""Answering requests in slices: each share of a turn does some of the work, and others go on between them.

What is made of a long answer is in no budget before it is whole. So those that take long are few at a time, and none
begins while the budget of unsent bytes is used up: the others wait, and go on when there is a place. Work on what is in
that budget already (`RequestContext.is_counted`) waits for a place alone: if it waited for the budget as well, that
could be used up by what only this work gives back.
"""

from typing import Any, Final, Protocol

from coordinator.api.context import RequestContext, Work
from coordinator.net.budget import Unsent
from coordinator.net.turns import Turns

SHORT_SHARES: Final = 3
LONG_AT_ONCE: Final = 4
"""An answer that takes more shares of turns than that, a megabyte or more, is one of so few that are made together."""


class Answerer(Protocol):
    """The connection of a request that is answered in slices."""

    def finish(self, ctx: RequestContext, result: Any) -> None:
        """The work is done: `result` is the response, the pieces of its encoded body, or PARKED."""

    def fail(self, ctx: RequestContext, error: Exception) -> None:
        """The work has raised this."""


class LongWork:
    """The work that answers a request of one connection, one request at a time."""

    __slots__ = (
        "_answerer",
        "_ctx",
        "_longest",
        "_running",
        "_scheduled",
        "_shares",
        "_turns",
        "_work",
        "size_bytes",
    )

    def __init__(self, turns: Turns, longest: "Longest") -> None:
        self._turns: Final = turns
        self._longest: Final = longest
        self._answerer: Answerer | None = None
        self._ctx: RequestContext | None = None
        self._work: Work | None = None
        self._shares = 0  # so many it has had
        self._running = False  # whether it is being worked on now
        self._scheduled = False  # whether `_go_on` will be called
        self.size_bytes = 0
        """Of the long request that it works on; 0 where there is none, or it is short itself."""

    @property
    def is_counted(self) -> bool:
        """Whether what it works on is in the budget of unsent bytes already."""
        ctx = self._ctx
        return ctx is not None and (ctx.is_counted or ctx.is_unheard)

    @property
    def is_under_way(self) -> bool:
        """Whether a request is being answered."""
        return self._work is not None

    def begin_later(self, answerer: Answerer, ctx: RequestContext, work: Work, size_bytes: int) -> None:
        """Work on a long request once those have had their turn who ask less."""
        self._answerer, self._ctx, self._work = answerer, ctx, work
        self.size_bytes = size_bytes
        self._shares = 0
        self.go_on_soon()

    def begin(self, answerer: Answerer, ctx: RequestContext, work: Work) -> None:
        """Do as much of this work as one share at once; work that is under way is given up for it."""
        self._answerer, self._ctx, self._work = answerer, ctx, work
        if not self._running:  # else it goes on with this
            self._shares = 0
            self._go_on()

    def drop(self) -> None:
        """The answer is not wanted any more."""
        work, self._work = self._work, None
        self._forget()
        self._longest.leave(self)
        if work is not None and not self._running:
            work.close()

    def _forget(self) -> None:
        """Else the connection and its work would refer to each other, for the garbage collector to find."""
        self._answerer = self._ctx = None
        self.size_bytes = 0

    def go_on_soon(self) -> None:
        """Take another share, in one of the next turns."""
        if not self._scheduled:
            self._scheduled = True
            self._turns.go_on_later(self._go_on_now, again=True)

    def _go_on_now(self) -> None:
        self._scheduled = False
        if self.is_under_way:
            self._go_on()

    def _go_on(self) -> None:
        answerer, ctx = self._answerer, self._ctx
        if answerer is None or ctx is None or not self._may_go_on(ctx):
            return
        try:
            result = self._take_share()
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends no more than this request
            self._forget()
            answerer.fail(ctx, error)
            self._longest.leave(self)
            return
        if self.is_under_way:
            self.go_on_soon()
            return
        self._forget()
        if result is not None:
            answerer.finish(ctx, result)
        self._longest.leave(self)  # now that the answer is counted

    def _may_go_on(self, ctx: RequestContext) -> bool:
        """Whether this gets another share now; else `go_on_soon` will be called."""
        self._shares += 1
        return (
            self._shares <= self._longest.short_shares or ctx.api.short_answers or self._longest.admit(self)
        )

    def _take_share(self) -> Any:
        self._running = True
        try:
            return self._work_until(self._turns.nanos() + self._turns.share_ns)
        finally:
            self._running = False

    def _work_until(self, ends_ns: int) -> Any:
        """Work on; `_work` is None when it has come to its end, whose result is returned, or was dropped."""
        while (work := self._work) is not None:
            try:
                next(work)
            except StopIteration as done:
                if self._work is work:
                    self._work = None
                    return done.value
                continue
            except BaseException:
                self._work = None
                raise
            if self._turns.nanos() >= ends_ns:
                break
        return None


class Longest:
    """The few long answers that are made at the same time, and those that wait for a place."""

    def __init__(self, unsent: Unsent) -> None:
        self.short_shares = SHORT_SHARES
        self._unsent = unsent
        self._places: set[LongWork] = set()
        self._waiting: dict[LongWork, None] = {}  # a set that keeps their order

    def __len__(self) -> int:
        return len(self._places)

    def admit(self, work: LongWork) -> bool:
        """Whether this work has a place, or gets one now; else it waits until it has."""
        if work in self._places:
            return True
        if self._waits_for_budget(work):
            self._unsent.hold(work)
        elif len(self._places) < LONG_AT_ONCE:
            self._places.add(work)
            return True
        else:
            self._waiting[work] = None
        return False

    def leave(self, work: LongWork) -> None:
        """This work needs no place any more: those that wait longest get what is free."""
        self._waiting.pop(work, None)
        self._unsent.let_go(work)
        self._places.discard(work)
        while self._waiting and len(self._places) < LONG_AT_ONCE:
            first = next(iter(self._waiting))
            del self._waiting[first]
            if self._waits_for_budget(first):
                self._unsent.hold(first)
            else:
                self._places.add(first)
                first.go_on_soon()

    def _waits_for_budget(self, work: LongWork) -> bool:
        return self._unsent.over and not work.is_counted
