# SPDX-License-Identifier: Apache-2.0
"""Tickets for appends to one partition, which track when the appends become durable.

An append returns a ticket at once; all appends to one partition that become durable together share one. A reply
carries the tickets that it depends on and is sent once they are durable. If one fails, the reply becomes an error:
the state that it reports was lost, or may be.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from protocol.errors import ErrorCode
from protocol.newtypes import Partition


class Waiter(Protocol):
    """Waits for the end of a ticket."""

    def resume_after_ticket(self) -> None:
        """Continue after the ticket has ended; all tickets that end together with it have ended, too."""


class DurabilityTicket:
    """A ticket is first pending, then `is_durable` or failed with `error`, and never changes after that.

    Tickets of a partition become durable in the order of their numbers; once one has failed, all later ones that
    were given under the same leadership fail as well.
    """

    __slots__ = ("_waiters", "error", "is_durable", "number", "partition")

    def __init__(self, partition: Partition, number: int, error: ErrorCode | None = None) -> None:
        """Create a ticket that is pending, or has failed if there is an `error`."""
        self.partition = partition
        self.number = number
        """The number of the ticket, which grows from each ticket of a writer to its next one."""
        self.is_durable = False
        self.error = error
        """The reason of the failure, as Kafka's error for an append to the partition."""
        self._waiters: list[Waiter] | None = None

    def __repr__(self) -> str:
        state = "durable" if self.is_durable else "pending" if self.error is None else self.error.name
        return f"<Ticket {self.number} of partition {self.partition}: {state}>"

    @property
    def is_pending(self) -> bool:
        """True if the ticket is neither durable nor failed."""
        return not self.is_durable and self.error is None

    def add_waiter(self, waiter: Waiter) -> None:
        """Call `waiter.resume_after_ticket()` once at the end of this ticket, which must be pending."""
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
                    waiter.resume_after_ticket()
                except Exception as failure:  # noqa: BLE001 - the others must be released; `end_tickets` raises it
                    failures.append(failure)


NO_PARTITION: Final = Partition(-1)
"""The partition of a ticket for something that is in no partition."""


def _durable() -> DurabilityTicket:
    ticket = DurabilityTicket(NO_PARTITION, 0)
    ticket.is_durable = True
    return ticket


DURABLE: Final = _durable()
"""The ticket of data that was durable from the start, or of a reply that waits for nothing."""


class ReplyDependencies:
    """The tickets that a reply depends on, which must all be durable before it is sent."""

    __slots__ = ("more", "ticket")

    def __init__(self) -> None:
        self.ticket: DurabilityTicket = DURABLE
        """The ticket that the reply waits for."""
        self.more: list[DurabilityTicket] | None = None
        """More tickets that the reply waits for; most replies wait for one at most."""

    def add_ticket(self, ticket: DurabilityTicket) -> None:
        """Let the reply wait for a ticket, too."""
        mine = self.ticket
        if ticket.is_durable or ticket is mine:
            return
        if mine.is_durable:
            self.ticket = ticket
        elif self.more is None:
            self.more = [ticket]
        elif ticket not in self.more:
            self.more.append(ticket)

    def find_undurable_ticket(self) -> DurabilityTicket | None:
        """Return a ticket that is not durable, be it pending or failed; None if all are."""
        while self.ticket.is_durable:
            if not self.more:
                return None
            self.ticket = self.more.pop()
        return self.ticket

    def find_error(self) -> ErrorCode | None:
        """Return the error of a failed ticket, if one has failed."""
        error = self.ticket.error
        if error is None and self.more is not None:
            for ticket in self.more:
                if ticket.error is not None:
                    return ticket.error
        return error

    def clear_tickets(self) -> None:
        """Let the reply wait for nothing any more."""
        self.ticket = DURABLE
        self.more = None


def end_tickets(tickets: Sequence[DurabilityTicket], error: ErrorCode | None = None) -> None:
    """End pending tickets: durable, or failed with `error`.

    All of them end before the first waiter is released, so that a waiter for several has to check only once. Raises
    ExceptionGroup, once all were released, with the exceptions of single waiters.
    """
    for ticket in tickets:
        ticket._end(error)
    failures: list[Exception] = []
    for ticket in tickets:
        ticket._wake(failures)
    if failures:
        raise ExceptionGroup("waiters failed", failures)


def find_later_ticket(one: DurabilityTicket, other: DurabilityTicket) -> DurabilityTicket:
    """Return the one of two tickets of a writer that becomes durable last."""
    if other.is_durable:
        return one
    return other if one.is_durable or other.number > one.number else one
