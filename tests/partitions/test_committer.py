# SPDX-License-Identifier: Apache-2.0
"""From records to flushes: what shares one, when tickets end, and what is left when one fails."""

import asyncio
from collections.abc import Sequence

import pytest

from coordinator.logs.files.committer import Committer, FileLogWriter, FlushMode
from coordinator.logs.group_log import LogError
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DurabilityTicket
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.errors import RecordTooLarge, StorageError
from storage.format.batch import Batch, iter_batches
from storage.format.record_decoder import RecordDecoder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record, TopicOffsetCommits
from storage.journal.journal import Entry
from tests.catalogue.disk import ManualThread
from tests.groups.harness import WALL_START_MS, FakeClock
from tests.partitions.running import turns

BATCH_BYTES_MAX = 1_024


class Log:
    """Takes batches like a LogManager, or fails."""

    def __init__(self) -> None:
        self.appends: list[tuple[list[Entry], bool]] = []
        self.error: Exception | None = None

    def append(self, entries: Sequence[Entry], *, sync: bool) -> None:
        if self.error is not None:
            raise self.error
        self.appends.append((list(entries), sync))

    @property
    def partitions(self) -> list[list[int]]:
        """The partitions of each append's batches."""
        return [[entry.partition for entry in entries] for entries, _ in self.appends]

    def batches(self, append: int) -> list[Batch]:
        entries, _ = self.appends[append]
        return [batch for entry in entries for batch in iter_batches(entry.batch, check=True)]


class Bench:
    """A committer, its log, and a thread that runs when told to."""

    def __init__(self, mode: FlushMode = FlushMode.ALWAYS) -> None:
        self.log = Log()
        self.thread = ManualThread()
        self.stats = Stats()
        self.committer = Committer(
            asyncio.get_running_loop(),
            self.log,
            self.thread,
            FakeClock(),
            self.stats,
            mode,
            batch_bytes_max=BATCH_BYTES_MAX,
            offset_value_version=3,
            compression=0,
        )
        self.events: list[str] = []
        self.lost: list[list[int]] = []
        self.committer.on_failed = self._failed

    def _failed(self, writers: list[FileLogWriter], error: LogError) -> None:
        self.events.append(f"failed {error}")
        self.lost.append([writer.partition for writer in writers])

    async def flush(self) -> None:
        """Let a flush begin, and the disk do it."""
        await turns(2)
        self.thread.run_all()
        await turns(2)


def offset(partition: int = 0, value: int = 1, metadata: str = "") -> Record:
    return OffsetCommitRecord(
        GroupId("g"), "t", partition, OffsetAndMetadata(Offset(value), -1, metadata, WALL_START_MS)
    )


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_records_of_one_turn_are_one_batch_a_partition_in_one_append(bench: Bench) -> None:
    first, second = (
        bench.committer.new_writer(Partition(3), Offset(0), LeaderEpoch(7)),
        bench.committer.new_writer(Partition(9), Offset(100), LeaderEpoch(8)),
    )
    first.append([offset(0)])
    second.append([offset(0)])
    first.append([offset(1), offset(2)])
    first.append_offsets(
        [TopicOffsetCommits(GroupId("g"), "t", {5: OffsetAndMetadata(Offset(1), -1, "", WALL_START_MS)})]
    )

    await bench.flush()

    assert bench.log.partitions == [[3, 9]]
    three, nine = bench.log.batches(0)
    assert (three.base_offset, three.count, three.leader_epoch) == (0, 4, 7)
    assert (nine.base_offset, nine.count, nine.leader_epoch) == (100, 1, 8)
    partitions = [
        record.partition
        for record in RecordDecoder().decode_batch(three)
        if isinstance(record, OffsetCommitRecord)
    ]
    assert partitions == [0, 1, 2, 5]


async def test_always_asks_for_a_sync_and_the_other_modes_do_not() -> None:
    synced = {}
    for mode in FlushMode:
        bench = Bench(mode)
        ticket = bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0)).append([offset()])
        await bench.flush()
        ((_, synced[mode]),) = bench.log.appends
        assert ticket.is_durable
    assert synced == {FlushMode.ALWAYS: True, FlushMode.INTERVAL: False, FlushMode.OS: False}


async def test_each_flush_has_its_ticket_and_the_next_one_follows_on(bench: Bench) -> None:
    writer = bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0))
    tickets = []
    for _ in range(4):
        ticket = writer.append([offset()])
        assert writer.append([offset()]) is ticket
        tickets.append(ticket)
        await turns(2)
        assert ticket.is_pending
        bench.thread.run_all()
        assert ticket.is_durable
    assert [ticket.number for ticket in tickets] == [1, 2, 3, 4]
    assert [batch.base_offset for append in range(4) for batch in bench.log.batches(append)] == [0, 2, 4, 6]


async def test_one_flush_is_under_way_while_the_next_gathers(bench: Bench) -> None:
    writer, other = (
        bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0)),
        bench.committer.new_writer(Partition(1), Offset(0), LeaderEpoch(0)),
    )
    first = writer.append([offset()])
    await turns(2)
    later: set[DurabilityTicket] = set()
    for _ in range(5):
        later |= {writer.append([offset()]), other.append([offset()])}
        await turns(2)
        assert len(bench.thread.waiting) == 1, "a second flush began before the first had ended"
    bench.thread.run_one()
    assert first.is_durable
    assert len(later) == 2
    assert all(ticket.is_pending for ticket in later)
    await turns(2)
    bench.thread.run_one()
    assert all(ticket.is_durable for ticket in later)
    assert bench.log.partitions == [[0], [0, 1]]
    assert [batch.count for batch in bench.log.batches(1)] == [5, 5]
    assert bench.committer.is_idle


async def test_without_records_nothing_is_flushed(bench: Bench) -> None:
    bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0))
    await bench.flush()
    assert bench.log.appends == []
    assert bench.committer.is_idle


async def test_what_does_not_fit_in_one_batch_takes_two_at_following_offsets(bench: Bench) -> None:
    writer = bench.committer.new_writer(Partition(0), Offset(10), LeaderEpoch(0))
    for value in range(4):
        writer.append([offset(value, metadata="x" * 400)])
    await bench.flush()
    assert bench.log.partitions == [[0, 0]]
    assert [(batch.base_offset, batch.count) for batch in bench.log.batches(0)] == [(10, 2), (12, 2)]
    writer.append([offset()])
    await bench.flush()
    assert [batch.base_offset for batch in bench.log.batches(1)] == [14]


async def test_records_that_fit_in_no_batch_are_refused_and_change_nothing(bench: Bench) -> None:
    writer = bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0))
    too_much = [offset(value, metadata="x" * 400) for value in range(3)]
    with pytest.raises(RecordTooLarge):
        writer.append(too_much)
    assert bench.committer.is_idle
    writer.append([offset(0)])
    with pytest.raises(RecordTooLarge):
        writer.append(too_much)
    await bench.flush()
    (batch,) = bench.log.batches(0)
    assert batch.count == 1


# --- failures ---


@pytest.mark.parametrize("mode", FlushMode)
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("x", "broken"), ErrorCode.KAFKA_STORAGE_ERROR),
        (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
    ids=["disk", "bug"],
)
async def test_a_failed_flush_takes_what_gathered_meanwhile_with_it(
    mode: FlushMode, error: Exception, code: ErrorCode
) -> None:
    bench = Bench(mode)
    writer, other, untouched = (
        bench.committer.new_writer(Partition(partition), Offset(0), LeaderEpoch(0)) for partition in range(3)
    )
    bench.log.error = error
    tickets = [writer.append([offset()])]
    if mode is FlushMode.ALWAYS:
        await turns(2)
        tickets.append(other.append([offset()]))  # decided on a state that is void once the first flush fails
        tickets.append(writer.append([offset()]))
    else:
        tickets.append(other.append([offset()]))

    await bench.flush()

    assert bench.lost == [[0, 1]]
    assert len(bench.events) == 1
    assert bench.stats.flush_failures == 1
    assert [ticket.error for ticket in tickets] == [code] * len(tickets)
    assert bench.committer.is_idle
    bench.log.error = None
    ticket = untouched.append([offset()])
    await bench.flush()
    assert ticket.is_durable
    assert bench.log.partitions == [[2]]


async def test_a_writer_that_lost_records_takes_no_more(bench: Bench) -> None:
    writer = bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0))
    bench.log.error = StorageError("x", "broken")
    writer.append([offset(1)])
    await bench.flush()
    bench.log.error = None
    refused = [
        writer.append([offset(3)]),
        writer.append_offsets(
            [TopicOffsetCommits(GroupId("g"), "t", {3: OffsetAndMetadata(Offset(3), -1, "", WALL_START_MS)})]
        ),
    ]
    assert [ticket.error for ticket in refused] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    # As leadership makes it, after the partition was loaded again.
    again = bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0))
    again.append([offset(2)])
    await bench.flush()
    (entry,) = bench.log.appends[0][0]
    (batch,) = iter_batches(entry.batch, check=True)
    (record,) = RecordDecoder().decode_batch(batch)
    assert isinstance(record, OffsetCommitRecord)
    assert (entry.base_offset, record.partition) == (0, 2)


async def test_a_batch_that_cannot_be_built_fails_its_partition_and_the_others_go_on(bench: Bench) -> None:
    beyond_any_log = 1 << 63
    writer, other = (
        bench.committer.new_writer(Partition(0), Offset(beyond_any_log), LeaderEpoch(0)),
        bench.committer.new_writer(Partition(1), Offset(0), LeaderEpoch(0)),
    )
    ticket, beside = writer.append([offset()]), other.append([offset()])
    await bench.flush()
    assert bench.lost == [[0]]
    assert ticket.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert beside.is_durable
    assert bench.log.partitions == [[1]]


async def test_where_no_batch_can_be_built_what_gathers_next_is_flushed(bench: Bench) -> None:
    writer, other = (
        bench.committer.new_writer(Partition(0), Offset(1 << 63), LeaderEpoch(0)),
        bench.committer.new_writer(Partition(1), Offset(0), LeaderEpoch(0)),
    )
    writer.append([offset()])
    late: list[DurabilityTicket] = []
    bench.committer.on_failed = lambda _writers, _error: late.append(other.append([offset()]))
    await bench.flush()
    await bench.flush()
    assert [ticket.is_durable for ticket in late] == [True]
    assert bench.committer.is_idle


async def test_a_waiter_that_fails_does_not_stop_the_flushes(bench: Bench) -> None:
    class Broken:
        def resume_after_ticket(self) -> None:
            raise RuntimeError("a bug")

    writer = bench.committer.new_writer(Partition(0), Offset(0), LeaderEpoch(0))
    writer.append([offset()]).add_waiter(Broken())
    await turns(2)
    late = writer.append([offset()])  # gathers while the first is on its way
    await bench.flush()
    await bench.flush()
    assert late.is_durable
