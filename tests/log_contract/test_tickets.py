# SPDX-License-Identifier: Apache-2.0
"""Tickets by themselves: their ends, and who hears of them."""

import asyncio

import pytest

from coordinator.logs.group_log import LogError, LogFenced, wait_for_ticket_end
from coordinator.tickets import DURABLE, DurabilityTicket, end_tickets, find_later_ticket
from protocol.errors import ErrorCode
from protocol.newtypes import Partition


class Waiter:
    """Notes what it finds when it is released."""

    def __init__(self, *tickets: DurabilityTicket) -> None:
        self.tickets = tickets
        self.found: list[list[bool]] = []

    def resume_after_ticket(self) -> None:
        self.found.append([ticket.is_pending for ticket in self.tickets])


def test_all_tickets_of_a_flush_have_their_end_before_anybody_hears_of_one() -> None:
    tickets = [DurabilityTicket(Partition(partition), 1) for partition in range(3)]
    waiters = [Waiter(*tickets) for _ in tickets]
    for ticket, waiter in zip(tickets, waiters, strict=True):
        ticket.add_waiter(waiter)
        ticket.add_waiter(waiter)
    end_tickets(tickets[:2])
    assert [waiter.found for waiter in waiters] == [[[False, False, True]] * 2] * 2 + [[]]
    end_tickets(tickets[2:], ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert waiters[2].found == [[False] * 3] * 2
    assert [ticket.is_durable for ticket in tickets] == [True, True, False]
    assert [ticket.error for ticket in tickets] == [None, None, ErrorCode.NOT_LEADER_OR_FOLLOWER]


@pytest.mark.parametrize("error", [None, ErrorCode.KAFKA_STORAGE_ERROR])
def test_a_ticket_has_one_end(error: ErrorCode | None) -> None:
    ticket = DurabilityTicket(Partition(0), 1)
    end_tickets([ticket])
    with pytest.raises(AssertionError, match="second end"):
        end_tickets([ticket], error)
    assert ticket.is_durable


async def test_a_task_waits_for_the_end_whichever_it_is() -> None:
    await wait_for_ticket_end(DURABLE)
    durable, failed, cancelled = (DurabilityTicket(Partition(0), number) for number in range(3))
    tasks = [asyncio.create_task(wait_for_ticket_end(ticket)) for ticket in (durable, failed, cancelled)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    assert not any(task.done() for task in tasks[:2])
    end_tickets([durable])
    end_tickets([failed, cancelled], ErrorCode.KAFKA_STORAGE_ERROR)
    await asyncio.gather(*tasks[:2])
    with pytest.raises(asyncio.CancelledError):
        await tasks[2]


def test_the_later_of_two_tickets_is_the_one_that_is_durable_last() -> None:
    first, second = DurabilityTicket(Partition(0), 1), DurabilityTicket(Partition(0), 2)
    assert find_later_ticket(first, second) is second
    assert find_later_ticket(second, first) is second
    assert find_later_ticket(first, DURABLE) is first
    assert find_later_ticket(DURABLE, first) is first
    end_tickets([first])
    assert find_later_ticket(first, second) is second
    assert find_later_ticket(second, first) is second


def test_what_a_ticket_is_can_be_read() -> None:
    ticket = DurabilityTicket(Partition(3), 7)
    assert repr(ticket) == "<Ticket 7 of partition 3: pending>"
    end_tickets([ticket])
    assert "durable" in repr(ticket)
    assert "NOT_CONTROLLER" in repr(DurabilityTicket(Partition(3), 7, ErrorCode.NOT_CONTROLLER))


def test_an_error_says_where_in_words_and_in_fields() -> None:
    error = LogError("it burns", {"topic": "offsets", "offset": 7})
    assert str(error) == "topic offsets offset 7: it burns"
    assert error.fields() == {"topic": "offsets", "offset": 7, "reason": "it burns"}
    assert str(LogFenced("gone")) == "gone"
    assert LogFenced("gone").code is ErrorCode.NOT_LEADER_OR_FOLLOWER


class Broken:
    """Fails when it is released."""

    def resume_after_ticket(self) -> None:
        raise RuntimeError("a bug")


def test_a_waiter_that_fails_keeps_no_other_from_its_release() -> None:
    tickets = [DurabilityTicket(Partition(partition), 1) for partition in range(2)]
    waiter = Waiter(*tickets)
    tickets[0].add_waiter(Broken())
    for ticket in tickets:
        ticket.add_waiter(waiter)
    with pytest.raises(ExceptionGroup) as raised:
        end_tickets(tickets)
    assert [str(error) for error in raised.value.exceptions] == ["a bug"]
    assert waiter.found == [[False, False]] * 2
