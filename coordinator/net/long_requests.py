# SPDX-License-Identifier: Apache-2.0
"""Answers long requests in slices: each share of a turn does some of the work, and other connections go on in between.

A long response is in no budget before it is whole. So only LONG_AT_ONCE of them are made at a time, and none begins
while the budget of unsent bytes is used up; the others wait for a slot. Work on a response that the budget counts
already (`LongRequestRunner.is_in_response_budget`) waits for a slot alone: the budget could be used up by bytes that
only this work frees.
"""

from typing import Any, Final, Protocol

from coordinator.api.context import RequestContext, Work
from coordinator.net.fair_queue import FairQueue
from coordinator.net.response_budget import ResponseBudget

SHORT_SHARES: Final = 3
LONG_AT_ONCE: Final = 4
"""The limit of responses made at a time that take more than SHORT_SHARES shares, which is a megabyte or more."""


class Answerer(Protocol):
    """The connection of a request that is answered in slices."""

    def take_work_result(self, ctx: RequestContext, result: Any) -> None:
        """Take the result of the work: the response, the pieces of its encoded body, or PARKED."""

    def answer_failed_request(self, ctx: RequestContext, error: Exception) -> None:
        """Answer a request whose work has raised `error`."""


class LongRequestRunner:
    """The work that answers a request of one connection, one request at a time."""

    __slots__ = (
        "_answerer",
        "_ctx",
        "_fair_queue",
        "_running",
        "_scheduled",
        "_shares",
        "_slots",
        "_work",
        "size_bytes",
    )

    def __init__(self, fair_queue: FairQueue, slots: "LongRequestSlots") -> None:
        self._fair_queue: Final = fair_queue
        self._slots: Final = slots
        self._answerer: Answerer | None = None
        self._ctx: RequestContext | None = None
        self._work: Work | None = None
        self._shares = 0  # the number of shares that it has had
        self._running = False  # whether it is being worked on now
        self._scheduled = False  # whether `_go_on` will be called
        self.size_bytes = 0
        """The bytes of the long request that is worked on; 0 if there is none, or only its response is long."""

    @property
    def is_in_response_budget(self) -> bool:
        """True if the response is counted in the budget of unsent bytes already."""
        ctx = self._ctx
        return ctx is not None and (ctx.is_counted or ctx.is_unheard)

    @property
    def is_under_way(self) -> bool:
        """True if a request is being answered."""
        return self._work is not None

    def begin_later(self, answerer: Answerer, ctx: RequestContext, work: Work, size_bytes: int) -> None:
        """Begin work on a long request, after shorter requests of others have had their turn."""
        self._answerer, self._ctx, self._work = answerer, ctx, work
        self.size_bytes = size_bytes
        self._shares = 0
        self.go_on_soon()

    def begin(self, answerer: Answerer, ctx: RequestContext, work: Work) -> None:
        """Do one share of this work at once, in place of any other work of this connection."""
        self._answerer, self._ctx, self._work = answerer, ctx, work
        if not self._running:  # else it goes on with this
            self._shares = 0
            self._go_on()

    def drop(self) -> None:
        """Drop the work, as its response is not wanted any more."""
        work, self._work = self._work, None
        self._forget()
        self._slots.leave(self)
        if work is not None and not self._running:
            work.close()

    def _forget(self) -> None:
        """Break the cycle of references between the connection and its work, which only a collection would free."""
        self._answerer = self._ctx = None
        self.size_bytes = 0

    def go_on_soon(self) -> None:
        """Do another share of the work in one of the next turns."""
        if not self._scheduled:
            self._scheduled = True
            self._fair_queue.go_on_later(self._go_on_now, again=True)

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
            answerer.answer_failed_request(ctx, error)
            self._slots.leave(self)
            return
        if self.is_under_way:
            self.go_on_soon()
            return
        self._forget()
        if result is not None:
            answerer.take_work_result(ctx, result)
        self._slots.leave(self)  # now that the response is counted

    def _may_go_on(self, ctx: RequestContext) -> bool:
        """Return whether another share may be done now; if not, `go_on_soon` is called later."""
        self._shares += 1
        return self._shares <= self._slots.short_shares or ctx.api.short_answers or self._slots.admit(self)

    def _take_share(self) -> Any:
        self._running = True
        try:
            return self._work_until(self._fair_queue.nanos() + self._fair_queue.share_ns)
        finally:
            self._running = False

    def _work_until(self, ends_ns: int) -> Any:
        """Continue the work until `ends_ns`; return its result once it has ended, which sets `_work` to None."""
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
            if self._fair_queue.nanos() >= ends_ns:
                break
        return None


class LongRequestSlots:
    """Limits how many long responses are made at a time; the others wait for a slot."""

    def __init__(self, budget: ResponseBudget) -> None:
        self.short_shares = SHORT_SHARES
        self._budget = budget
        self._places: set[LongRequestRunner] = set()
        self._waiting: dict[LongRequestRunner, None] = {}  # a set that keeps their order

    def __len__(self) -> int:
        return len(self._places)

    def admit(self, work: LongRequestRunner) -> bool:
        """Return whether this work has a slot, and assign a free one; without one it waits."""
        if work in self._places:
            return True
        if self._waits_for_budget(work):
            self._budget.add_waiter(work)
        elif len(self._places) < LONG_AT_ONCE:
            self._places.add(work)
            return True
        else:
            self._waiting[work] = None
        return False

    def leave(self, work: LongRequestRunner) -> None:
        """Free the slot of this work for the one that has waited longest."""
        self._waiting.pop(work, None)
        self._budget.remove_waiter(work)
        self._places.discard(work)
        while self._waiting and len(self._places) < LONG_AT_ONCE:
            first = next(iter(self._waiting))
            del self._waiting[first]
            if self._waits_for_budget(first):
                self._budget.add_waiter(first)
            else:
                self._places.add(first)
                first.go_on_soon()

    def _waits_for_budget(self, work: LongRequestRunner) -> bool:
        return self._budget.over and not work.is_in_response_budget
