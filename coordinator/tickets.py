# SPDX-License-Identifier: Apache-2.0
"""Tickets: what was appended to one partition, on its way to being durable.

An append is answered with a ticket at once; everything of one partition that becomes durable together shares one.
A reply carries the tickets that it depends on and leaves when they are durable. Where one fails, the reply becomes
an error: what it says was lost, or may be.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from protocol.errors import ErrorCode
from protocol.names import Partition


class Waiter(Protocol):
    """Waits for a ticket."""

    def release(self) -> None:
        """The ticket has come to its end, and so have those that end with it."""


class DurabilityTicket:
    """Pending first; then `is_durable`, or failed with `error`. It never changes again after that.

    Tickets of a partition become durable in the order of their numbers; once one has failed, all later ones that
    were given under the same leadership fail as well.
    """

    __slots__ = ("_waiters", "error", "is_durable", "number", "partition")

    def __init__(self, partition: Partition, number: int, error: ErrorCode | None = None) -> None:
        """A ticket that is pending, unless there is an `error`."""
        self.partition = partition
        self.number = number
        """Grows from each ticket of a writer to its next one."""
        self.is_durable = False
        self.error = error
        """Why it failed, as Kafka would say it of an append to the partition."""
        self._waiters: list[Waiter] | None = None

    def __repr__(self) -> str:
        state = "durable" if self.is_durable else "pending" if self.error is None else self.error.name
        return f"<Ticket {self.number} of partition {self.partition}: {state}>"

    @property
    def is_pending(self) -> bool:
        """Whether it is neither durable nor failed."""
        return not self.is_durable and self.error is None

    def wait(self, waiter: Waiter) -> None:
        """Call `waiter.release()` once at the end of this ticket, which must be pending."""
        if self._waiters is None:
            self._waiters = [waiter]
        else:
            self._waiters.append(waiter)

    def _end(self, error: ErrorCode | None) -> None:
        assert self.is_pending, f"{self!r} comes to a second end"
        if error is None:
            self.is_durable = True
        else:
            self.error = error

    def _wake(self, failures: list[Exception]) -> None:
        waiters, self._waiters = self._waiters, None
        if waiters is not None:
            for waiter in waiters:
                try:
                    waiter.release()
                except Exception as failure:  # noqa: BLE001 - the other waiters must hear; `settle` raises it
                    failures.append(failure)


NO_PARTITION: Final = Partition(-1)
"""That of a ticket for something that stands in no partition."""


def _durable() -> DurabilityTicket:
    ticket = DurabilityTicket(NO_PARTITION, 0)
    ticket.is_durable = True
    return ticket


DURABLE: Final = _durable()
"""The ticket of what was durable from the start, or waits for nothing."""


class ReplyDependencies:
    """Something that must not be said before all that it depends on is durable."""

    __slots__ = ("more", "ticket")

    def __init__(self) -> None:
        self.ticket: DurabilityTicket = DURABLE
        """What this waits for."""
        self.more: list[DurabilityTicket] | None = None
        """What it waits for beside that: most wait for one ticket at most."""

    def wait_for(self, ticket: DurabilityTicket) -> None:
        """Wait for this, too."""
        mine = self.ticket
        if ticket.is_durable or ticket is mine:
            return
        if mine.is_durable:
            self.ticket = ticket
        elif self.more is None:
            self.more = [ticket]
        elif ticket not in self.more:
            self.more.append(ticket)

    def blocker(self) -> DurabilityTicket | None:
        """A ticket that is not durable, be it pending or failed; None where all are."""
        while self.ticket.is_durable:
            if not self.more:
                return None
            self.ticket = self.more.pop()
        return self.ticket

    def failure(self) -> ErrorCode | None:
        """Why a ticket has failed, if one has."""
        error = self.ticket.error
        if error is None and self.more is not None:
            for ticket in self.more:
                if ticket.error is not None:
                    return ticket.error
        return error

    def forget(self) -> None:
        """Wait for nothing any more."""
        self.ticket = DURABLE
        self.more = None


def settle(tickets: Sequence[DurabilityTicket], error: ErrorCode | None = None) -> None:
    """Bring pending tickets to their end: durable, or failed with `error`.

    All of them have their end before the first waiter is released, so that one that waits for several has to look
    only once. Raises ExceptionGroup, when all were released, with what single waiters raised.
    """
    for ticket in tickets:
        ticket._end(error)
    failures: list[Exception] = []
    for ticket in tickets:
        ticket._wake(failures)
    if failures:
        raise ExceptionGroup("waiters failed", failures)


def later(one: DurabilityTicket, other: DurabilityTicket) -> DurabilityTicket:
    """Of two tickets of one writer the one that is durable last."""
    if other.is_durable:
        return one
    return other if one.is_durable or other.number > one.number else one
