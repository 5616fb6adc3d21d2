# SPDX-License-Identifier: Apache-2.0
"""What every implementation of the log port keeps to (coordinator/logs/group_log.py)."""

import asyncio
import random
from collections.abc import Sequence

import pytest

from coordinator.logs.group_log import (
    GroupLog,
    LogDamaged,
    LogError,
    LogFenced,
    LogUnavailable,
    LogWriter,
    wait_for_ticket_end,
)
from coordinator.tickets import DurabilityTicket
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.errors import RecordTooLarge
from storage.format.batch import BatchBuilder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, TopicOffsetCommits, UnknownRecord
from tests.groups.harness import WALL_START_MS
from tests.log_contract.subject import (
    Subject,
    batches_of,
    foreign,
    lead,
    offset,
    records_in,
    records_of,
    values,
)
from tests.partitions.running import turns
from tests.support.idle import idle


async def append(writer: LogWriter, *numbers: int) -> DurabilityTicket:
    """Append offsets in one call and wait for their end."""
    ticket = writer.append([offset(number, number) for number in numbers])
    await wait_for_ticket_end(ticket)
    return ticket


async def take_over(log: GroupLog, partition: Partition, leader_epoch: int) -> tuple[list[int], LogWriter]:
    """Claim and read a partition until the log lets it, as a leader does; returns what is in it, and a writer."""
    while True:
        try:
            await log.repair_log_or_wait(partition)
            claim = await log.claim(partition, LeaderEpoch(leader_epoch))
            return values(await records_of(claim)), claim.open_writer()
        except LogUnavailable:
            continue


async def read_values(log: GroupLog, partition: Partition, leader_epoch: int = 0) -> list[int]:
    return values(await records_of(await log.claim(partition, LeaderEpoch(leader_epoch))))


# --- appending and reading ---


async def test_what_was_appended_comes_back_in_order(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    for number in range(1, 6):
        writer.append([offset(number)])
        if number % 2:
            await append(writer, 10 * number, 10 * number + 1)
    last = writer.append_offsets(
        [
            TopicOffsetCommits(
                GroupId("g"), "t", {7: OffsetAndMetadata(Offset(99), -1, "", WALL_START_MS, None)}
            )
        ]
    )
    await wait_for_ticket_end(last)
    assert last.is_durable
    batches = await batches_of(await subject.log.claim(Partition(0), LeaderEpoch(0)))
    assert values(records_in(batches)) == [1, 10, 11, 2, 3, 30, 31, 4, 5, 50, 51, 99]
    ends = [batch.last_offset + 1 for batch in batches]
    assert [batch.base_offset for batch in batches] == [0, *ends[:-1]], "there are gaps"


async def test_partitions_know_nothing_of_each_other(subject: Subject) -> None:
    first, second = await lead(subject.log, Partition(0)), await lead(subject.log, Partition(1))
    one, other = first.append([offset(1)]), second.append([offset(2)])
    assert (one.partition, other.partition) == (0, 1)
    await wait_for_ticket_end(one)
    await wait_for_ticket_end(other)
    assert await read_values(subject.log, Partition(0)) == [1]
    assert await read_values(subject.log, Partition(1)) == [2]
    assert await read_values(subject.log, Partition(2)) == []


async def test_what_one_call_brings_stays_in_one_batch(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    calls = [[offset(10 * number + i, i, metadata="x" * 100) for i in range(3)] for number in range(8)]
    tickets = [writer.append(records) for records in calls]
    await wait_for_ticket_end(tickets[-1])
    batches = await batches_of(await subject.log.claim(Partition(0), LeaderEpoch(0)))
    assert len(batches) > 1, "all of them fit in one batch: nothing is shown"
    where = {value: number for number, batch in enumerate(batches) for value in values(records_in([batch]))}
    for records in calls:
        assert len({where[value] for value in values(records)}) == 1
    assert sorted(where) == sorted(value for records in calls for value in values(records))


async def test_records_that_fit_in_no_batch_are_refused_and_nothing_of_them_is_taken(
    subject: Subject,
) -> None:
    writer = await lead(subject.log, Partition(0))
    too_much = [offset(number, number, metadata="x" * 400) for number in range(3)]
    with pytest.raises(RecordTooLarge):
        writer.append(too_much)
    ticket = writer.append([offset(7)])
    with pytest.raises(RecordTooLarge):
        writer.append(too_much)
    commits = {
        number: OffsetAndMetadata(Offset(number), -1, "x" * 400, WALL_START_MS, None) for number in range(3)
    }
    with pytest.raises(RecordTooLarge):
        writer.append_offsets([TopicOffsetCommits(GroupId("g"), "t", commits)])
    await wait_for_ticket_end(ticket)
    assert ticket.is_durable
    assert await read_values(subject.log, Partition(0)) == [7]
    assert subject.failed == []


async def test_other_partitions_are_appended_to_while_one_is_read(subject: Subject) -> None:
    writer, other = await lead(subject.log, Partition(0)), await lead(subject.log, Partition(1))
    for number in range(40):
        await append(writer, number)
    claim = await subject.log.claim(Partition(0), LeaderEpoch(0))
    turned, found = 0, 0
    done = False

    def turn() -> None:
        nonlocal turned
        turned += 1
        if not done:
            asyncio.get_running_loop().call_soon(turn)

    turn()
    async for piece in claim.read():
        before = turned
        ticket = other.append([offset(found)])
        await wait_for_ticket_end(ticket)
        assert ticket.is_durable
        assert turned > before
        assert piece.offset < piece.next_offset <= claim.end_offset
        found += 1
    done = True
    assert found > 0
    assert await read_values(subject.log, Partition(1)) == list(range(found))
    claim.open_writer()


async def test_records_of_kinds_that_are_unknown_here_are_kept(subject: Subject) -> None:
    builder = BatchBuilder()
    strangers = [
        UnknownRecord(key_version=0x7FFF, key=b"\x7f\xff what is this", value=b"\x00\x09 value"),
        UnknownRecord(key_version=0x63, key=b"\x00\x63", value=None),
    ]
    builder.append_in_one_batch([strangers[0], offset(1), strangers[1]])
    (batch,) = builder.build(Offset(0), LeaderEpoch(3), WALL_START_MS)
    await subject.plant(Partition(0), batch)
    writer = await lead(subject.log, Partition(0), 4)
    await append(writer, 2)
    records = await records_of(await subject.log.claim(Partition(0), LeaderEpoch(4)))
    assert foreign(records) == strangers
    assert values(records) == [1, 2]


# --- when it is durable ---


async def test_a_ticket_is_pending_until_its_flush_is_durable(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    subject.hold(Partition(0))
    ticket = writer.append([offset(1)])
    assert ticket.is_pending
    await subject.until_held(Partition(0))
    await idle()
    assert ticket.is_pending
    subject.let_go(Partition(0))
    await wait_for_ticket_end(ticket)
    assert ticket.is_durable
    assert ticket.error is None
    assert await read_values(subject.log, Partition(0)) == [1]


async def test_appends_gather_while_a_flush_is_under_way_and_are_durable_after_it(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    subject.hold(Partition(0))
    first = writer.append([offset(1)])
    assert writer.append([offset(2)]) is first, "what becomes durable together has one ticket"
    await subject.until_held(Partition(0))
    second = writer.append([offset(3)])
    assert second is not first
    assert second.number > first.number
    assert writer.append([offset(4)]) is second
    ends: list[tuple[int, bool]] = []

    class Seen:
        def __init__(self, number: int) -> None:
            self.number = number

        def resume_after_ticket(self) -> None:
            ends.append((self.number, first.is_durable and not (self.number == 1 and second.is_durable)))

    first.add_waiter(Seen(1))
    second.add_waiter(Seen(2))
    subject.let_go(Partition(0))
    await wait_for_ticket_end(second)
    assert ends == [(1, True), (2, True)]
    assert await read_values(subject.log, Partition(0)) == [1, 2, 3, 4]


# --- failures ---


@pytest.mark.parametrize("kept", [False, True])
async def test_a_failed_append_fails_its_ticket_and_all_that_follow_it(subject: Subject, kept: bool) -> None:
    writer = await lead(subject.log, Partition(0))
    await append(writer, 1)
    subject.hold(Partition(0))
    first = writer.append([offset(2)])
    await subject.until_held(Partition(0))
    second = writer.append([offset(3)])  # decided on what is lost with the first
    subject.fail_next(Partition(0), kept=kept)
    subject.let_go(Partition(0))
    await wait_for_ticket_end(first)
    assert first.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert second.error is ErrorCode.KAFKA_STORAGE_ERROR
    third = writer.append([offset(4)])
    assert third.error is not None
    ((writers, error),) = subject.failed
    assert writers == [writer]
    assert isinstance(error, LogError)
    assert error.reason in str(error)
    assert not any(first.is_durable for first in (first, second, third))


@pytest.mark.parametrize("kept", [False, True])
async def test_after_a_failure_exactly_what_was_acknowledged_is_there_or_what_failed_as_well(
    subject: Subject, kept: bool
) -> None:
    writer = await lead(subject.log, Partition(0))
    await append(writer, 1, 2)
    subject.fail_next(Partition(0), kept=kept)
    assert (await append(writer, 3)).error is not None
    await subject.log.repair_log_or_wait(Partition(0))
    found = await read_values(subject.log, Partition(0))
    assert found == [1, 2] or (kept and found == [1, 2, 3])
    again = await lead(subject.log, Partition(0))
    assert (await append(again, 4)).is_durable
    assert await read_values(subject.log, Partition(0)) == [*found, 4]


@pytest.mark.parametrize("kept", [False, True])
async def test_only_a_claim_shows_if_an_append_that_timed_out_is_there(subject: Subject, kept: bool) -> None:
    writer = await lead(subject.log, Partition(0))
    await append(writer, 1)
    if not subject.time_out_next(Partition(0), kept=kept):
        return
    assert (await append(writer, 2)).error is ErrorCode.REQUEST_TIMED_OUT
    assert (await append(writer, 3)).error is not None, "it was decided on what may be lost"
    ((writers, error),) = subject.failed
    assert writers == [writer]
    assert error.code is ErrorCode.REQUEST_TIMED_OUT
    again = await lead(subject.log, Partition(0))
    assert (await append(again, 4)).is_durable
    assert await read_values(subject.log, Partition(0), again.leader_epoch) == [1, *([2] if kept else []), 4]


async def test_the_writers_of_a_failure_are_named_once_their_tickets_have_failed(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    idle = await lead(subject.log, Partition(1))
    seen: list[tuple[list[LogWriter], bool]] = []
    ticket = None

    def failed(writers: Sequence[LogWriter], error: LogError) -> None:
        assert ticket is not None
        seen.append((list(writers), ticket.error is not None))

    subject.log.on_failed = failed
    subject.fail_next(Partition(0), kept=False)
    ticket = writer.append([offset(1)])
    await wait_for_ticket_end(ticket)
    await subject.log.repair_log_or_wait(Partition(0))
    assert seen == [([writer], True)], "a writer that had appended nothing has lost nothing"
    assert (await append(idle, 5)).is_durable


async def test_a_partition_in_which_nothing_failed_tells_the_truth(subject: Subject) -> None:
    writer, other = await lead(subject.log, Partition(0)), await lead(subject.log, Partition(1))
    await append(other, 1)
    subject.fail_next(Partition(0), kept=False)
    lost, ticket = writer.append([offset(2)]), other.append([offset(3)])
    await wait_for_ticket_end(lost)
    await wait_for_ticket_end(ticket)
    assert lost.error is not None
    named = {each for writers, _ in subject.failed for each in writers}
    assert (other in named) == (ticket.error is not None)
    if subject.fails_apart:
        assert ticket.is_durable
    await subject.log.repair_log_or_wait(Partition(1))
    assert await read_values(subject.log, Partition(1)) == ([1, 3] if ticket.is_durable else [1])


async def test_what_broke_down_can_be_claimed_once_it_is_available(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    await append(writer, 1)
    subject.break_down(Partition(0))
    assert (await append(writer, 2)).error is not None
    with pytest.raises(LogUnavailable):
        await subject.log.claim(Partition(0), LeaderEpoch(0))
    available = asyncio.create_task(subject.log.repair_log_or_wait(Partition(0)))
    await idle()
    assert not available.done()
    subject.mend(Partition(0))
    await available
    assert await read_values(subject.log, Partition(0)) == [1]
    assert (await append(await lead(subject.log, Partition(0)), 3)).is_durable


async def test_a_claim_from_before_a_failure_gives_no_writer(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    await append(writer, 1)
    claim = await subject.log.claim(Partition(0), LeaderEpoch(0))
    other = await lead(subject.log, Partition(1))
    subject.break_down(Partition(1 if not subject.fails_apart else 0))
    if subject.fails_apart:
        with pytest.raises(LogUnavailable):
            claim.open_writer()
        return
    assert (await append(other, 2)).error is not None
    with pytest.raises(LogUnavailable):
        claim.open_writer()
    subject.mend(Partition(1))
    await subject.log.repair_log_or_wait(Partition(0))
    with pytest.raises(LogUnavailable):
        claim.open_writer()  # what was read of it may not be what is there


async def test_damage_is_found_and_named_and_the_other_partitions_are_whole(subject: Subject) -> None:
    for partition in (0, 1):
        writer = await lead(subject.log, Partition(partition))
        for number in range(3):
            await append(writer, number)
    log = await subject.restart()
    subject.damage(Partition(0))
    with pytest.raises(LogDamaged) as raised:
        await records_of(await log.claim(Partition(0), LeaderEpoch(0)))
    assert raised.value.place, "nobody would know where to look"
    assert raised.value.fields()["reason"] == raised.value.reason
    assert await read_values(log, Partition(1)) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(10))
async def test_at_any_time_a_claim_reads_what_was_acknowledged(subject: Subject, seed: int) -> None:
    rng = random.Random(seed)
    writers = {partition: await lead(subject.log, Partition(partition)) for partition in range(3)}
    model: dict[int, list[tuple[int, DurabilityTicket]]] = {partition: [] for partition in writers}
    for number in range(120):
        partition = rng.randrange(3)
        kind = rng.random()
        if kind < 0.7:
            model[partition].append((number, writers[partition].append([offset(number)])))
        elif kind < 0.85:
            await turns(rng.randrange(6))
        elif kind < 0.9:
            subject.fail_next(Partition(partition), kept=rng.random() < 0.5)
        else:
            found, writers[partition] = await take_over(subject.log, Partition(partition), number)
            appended = model[partition]
            acknowledged = [value for value, ticket in appended if ticket.is_durable]
            possible = iter([value for value, _ in appended])
            assert all(not ticket.is_pending for _, ticket in appended)
            assert all(value in possible for value in found), "out of order, or never appended"
            assert set(acknowledged) <= set(found)


# --- leaders ---


async def test_what_is_written_carries_the_epoch_of_its_leader(subject: Subject) -> None:
    epochs = []
    for asked in (0, 0, 5):
        claim = await subject.log.claim(Partition(0), LeaderEpoch(asked))
        assert claim.partition == 0
        assert claim.leader_epoch >= asked
        writer = claim.open_writer()
        assert (writer.partition, writer.leader_epoch) == (0, claim.leader_epoch)
        epochs.append(claim.leader_epoch)
        await append(writer, asked)
    batches = await batches_of(await subject.log.claim(Partition(0), LeaderEpoch(5)))
    assert [batch.leader_epoch for batch in batches] == epochs


async def test_a_claim_of_an_older_epoch_is_refused_or_gets_a_newer_one(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0), 7)
    if subject.assigns_epochs:
        claim = await subject.log.claim(Partition(0), LeaderEpoch(6))
        assert claim.leader_epoch > writer.leader_epoch
        assert (await append(writer, 1)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await append(claim.open_writer(), 2)).is_durable
        return
    with pytest.raises(LogFenced):
        await subject.log.claim(Partition(0), LeaderEpoch(6))
    assert (await append(writer, 1)).is_durable, "a claim that was refused has changed something"


async def test_a_claim_waits_for_what_was_appended_and_its_former_writer_writes_no_more(
    subject: Subject,
) -> None:
    former = await lead(subject.log, Partition(0), 1)
    subject.hold(Partition(0))
    ticket = former.append([offset(1)])
    await subject.until_held(Partition(0))
    gathering = former.append([offset(2)])
    claiming = asyncio.create_task(subject.log.claim(Partition(0), LeaderEpoch(2)))
    await idle()
    assert not claiming.done()
    refused = former.append([offset(3)])
    assert refused.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    subject.let_go(Partition(0))
    claim = await claiming
    assert ticket.is_durable
    assert gathering.is_durable
    assert values(await records_of(claim)) == [1, 2]
    late = await append(former, 4)
    assert late.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await append(claim.open_writer(), 5)).is_durable
    assert await read_values(subject.log, Partition(0), 2) == [1, 2, 5]
    assert subject.failed == [], "nothing was lost"


async def test_a_released_partition_has_all_that_was_appended_and_another_node_goes_on_with_it(
    subject: Subject,
) -> None:
    writer, stays = await lead(subject.log, Partition(0), 1), await lead(subject.log, Partition(1), 1)
    subject.hold(Partition(0))
    ticket = writer.append([offset(1)])
    await subject.until_held(Partition(0))
    releasing = asyncio.create_task(subject.log.release(Partition(0)))
    await idle()
    assert not releasing.done()
    subject.let_go(Partition(0))
    await releasing
    assert ticket.is_durable
    assert (await append(writer, 2)).error is not None
    assert (await append(stays, 3)).is_durable
    await subject.log.release(Partition(1))
    next_log = await subject.successor(Partition(0), Partition(1))
    next_claim = await next_log.claim(Partition(0), LeaderEpoch(2))
    assert values(await records_of(next_claim)) == [1]
    assert (await append(next_claim.open_writer(), 4)).is_durable
    assert await read_values(next_log, Partition(0), 2) == [1, 4]
    assert await read_values(next_log, Partition(1), 2) == [3]
    await next_log.close()


# --- the end ---


async def test_closing_settles_what_was_appended_and_takes_no_more(subject: Subject) -> None:
    log = subject.log
    writer = await lead(log, Partition(0))
    tickets = [writer.append([offset(number)]) for number in range(3)]
    await log.close()
    assert all(ticket.is_durable for ticket in tickets)
    assert writer.append([offset(9)]).error is not None
    with pytest.raises(LogError):
        await log.claim(Partition(0), LeaderEpoch(0))
    await log.close()
    assert await read_values(await subject.restart(), Partition(0)) == [0, 1, 2]


async def test_an_offset_that_was_taken_away_stays_away_after_a_restart(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    await append(writer, 1)
    ticket = writer.append([OffsetCommitRecord(GroupId("g"), "t", 1, None)])
    await wait_for_ticket_end(ticket)
    records = await records_of(await (await subject.restart()).claim(Partition(0), LeaderEpoch(1)))
    assert [isinstance(record, OffsetCommitRecord) and record.value is None for record in records] == [
        False,
        True,
    ]


async def test_an_append_of_nothing_is_durable_and_others_go_on(subject: Subject) -> None:
    writer = await lead(subject.log, Partition(0))
    nothing = writer.append_offsets([TopicOffsetCommits(GroupId("g"), "t", {})])
    await idle()
    assert not nothing.is_pending
    assert nothing.error is None
    assert (await append(await lead(subject.log, Partition(1)), 1)).is_durable
    assert (await append(writer, 2)).is_durable
    assert await read_values(subject.log, Partition(0)) == [2]
