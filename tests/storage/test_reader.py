# SPDX-License-Identifier: Apache-2.0
"""What clients read of a log: whole batches as they are on disk, wherever they start and whatever compaction does."""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.partition_cleaning import write_cleaned_segments
from storage.cleaner.plan import CleanerSettings
from storage.errors import CorruptLog
from storage.format.batch import Batch, iter_batches, iter_records
from storage.format.batch_format import TRANSACTIONAL
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.partition.log import PartitionLog
from storage.partition.reader import (
    NOWHERE,
    READ_BYTES_MAX,
    EmptyReadReason,
    FetchQuery,
    LogReader,
    OffsetQuery,
    OffsetSpec,
    ReadResult,
    TimestampAndOffset,
)
from storage.settings import LogSettings
from tests.storage.cleaning import NOW, RETENTION, History, MarkerKind, build, content, replay
from tests.storage.faulty import FaultyFileSystem
from tests.storage.test_cleaner import Bench
from tests.support.files_in_memory import ROOT

SMALL = LogSettings(segment_bytes=2_000, index_interval_bytes=200, journal_step_bytes=8192)
MUCH = 1 << 20
EPOCH = 3


class Reading:
    """A log of one partition, and a reader of it."""

    def __init__(
        self,
        fs: FaultyFileSystem | None = None,
        read_bytes_max: int = READ_BYTES_MAX,
        manager: LogManager | None = None,
    ) -> None:
        self.fs = fs or FaultyFileSystem(ROOT)
        self.manager = manager or LogManager.open(ROOT, SMALL, self.fs)
        self.history = History(self.manager, 0)
        self.reader = LogReader(read_bytes_max)

    def fetch(
        self, offset: int, max_bytes: int = MUCH, *, at_least_one: bool = True, **wanted: Any
    ) -> ReadResult | EmptyReadReason:
        """One fetch, after as many slices of the search for transactions as it takes."""
        asked = FetchQuery(
            partition=Partition(0),
            offset=Offset(offset),
            max_bytes=max_bytes,
            leader_epoch=LeaderEpoch(EPOCH),
            **wanted,
        )
        while True:
            found = self.manager.run_read_on_log(
                Partition(0),
                lambda log: self.reader.fetch(log, asked, max_bytes, at_least_one=at_least_one),
                write_behind_first=True,
            )
            if found is not EmptyReadReason.NOT_YET:
                return found

    def found(self, offset: int, max_bytes: int = MUCH, **wanted: Any) -> ReadResult:
        found = self.fetch(offset, max_bytes, **wanted)
        assert isinstance(found, ReadResult)
        return found

    def batches(self, max_bytes: int = MUCH, **wanted: Any) -> Iterator[Batch]:
        """All batches, read as a consumer does: from where the last answer ended."""
        offset = 0
        while (found := self.found(offset, max_bytes, **wanted)).records:
            for batch in iter_batches(found.records, check=True):
                yield batch
                offset = batch.next_offset

    def locate(
        self, place: OffsetSpec, timestamp: int = -1, *, committed: bool = False
    ) -> TimestampAndOffset | EmptyReadReason:
        sought = OffsetQuery(
            Partition(0), place, timestamp, committed=committed, leader_epoch=LeaderEpoch(EPOCH)
        )
        return self.manager.run_read_on_log(
            Partition(0),
            lambda log: self.reader.resolve_list_offsets_query(log, sought),
            write_behind_first=True,
        )

    def compact(self) -> bool:
        """Clean what is not written to any more; returns whether there was something."""
        self.manager.checkpoint_journal()
        settings = CleanerSettings(delete_retention_ms=RETENTION, min_cleanable_dirty_ratio=0.0)
        cleaner = LogCleaner(
            self.manager, settings, lambda job: write_cleaned_segments(self.fs, job), lambda: NOW
        )
        return cleaner.clean_dirtiest() is not None


def same(read: Iterator[Batch], manager: LogManager) -> bool:
    return [batch.data for batch in read] == [batch.data for batch in content(manager, 0)]


@pytest.mark.parametrize("max_bytes", [0, 1, 200, 700, MUCH])
def test_every_byte_of_a_log_is_read_whatever_comes_at_once(max_bytes: int) -> None:
    reading = Reading()
    reading.history.random(random.Random(5), 150, transactions=True)
    assert same(reading.batches(max_bytes), reading.manager)


def test_an_empty_log_is_read_from_its_start_and_nowhere_else() -> None:
    reading = Reading()
    assert reading.found(0) == ReadResult(b"", Offset(0), Offset(0), Offset(0))
    assert reading.fetch(1) is EmptyReadReason.OUT_OF_RANGE


def test_an_offset_before_the_start_or_behind_the_end_is_out_of_range() -> None:
    reading = Reading()
    reading.history.value("a", "1")
    assert reading.found(1) == ReadResult(b"", Offset(0), Offset(1), Offset(1))
    assert reading.fetch(2) is EmptyReadReason.OUT_OF_RANGE
    assert reading.fetch(-1) is EmptyReadReason.OUT_OF_RANGE


def test_the_first_batch_comes_however_long_it_is_and_others_only_if_they_fit() -> None:
    reading = Reading()
    for number in range(3):
        reading.history.value(f"k{number}", "x" * 100)
    first, second, _ = content(reading.manager, 0)
    assert reading.found(0, 1).records == first.data
    assert reading.found(0, first.size_bytes + second.size_bytes - 1).records == first.data
    assert reading.found(0, first.size_bytes + second.size_bytes).records == first.data + second.data
    assert reading.found(0, first.size_bytes, at_least_one=False).records == first.data
    assert reading.found(0, first.size_bytes - 1, at_least_one=False).records == b""


def test_less_than_no_bytes_are_refused_where_there_are_some() -> None:
    reading = Reading()
    assert reading.fetch(0, -1) == ReadResult(b"", Offset(0), Offset(0), Offset(0))
    reading.history.value("a", "1")
    assert reading.fetch(0, -1) is EmptyReadReason.NEGATIVE_SIZE


def test_an_offset_within_a_batch_gets_the_whole_batch() -> None:
    reading = Reading()
    reading.history.values({f"k{number}": "v" for number in range(5)})
    (batch,) = content(reading.manager, 0)
    assert reading.found(3).records == batch.data


def test_what_is_not_in_the_segments_yet_is_read_only_by_who_asks_for_all_that_is_durable() -> None:
    reading = Reading()
    reading.history.value("a", "1")
    wanted = FetchQuery(partition=Partition(0), offset=Offset(0), max_bytes=MUCH)
    for write_behind_first, ends in ((False, 0), (True, 1), (False, 1)):
        found = reading.manager.run_read_on_log(
            Partition(0),
            lambda log: reading.reader.fetch(log, wanted, MUCH, at_least_one=True),
            write_behind_first=write_behind_first,
        )
        assert isinstance(found, ReadResult)
        assert (found.end_offset, bool(found.records)) == (ends, bool(ends))


def test_who_reads_on_finds_the_place_without_a_look_at_the_index() -> None:
    """A follower at the end of a segment of 100 MB must not walk what lies behind its last index entry each time."""
    reading = Reading()
    for number in range(5):
        reading.history.value(f"k{number}", "v")
    end = reading.found(0).end_offset
    reading.history.value("more", "v")
    reading.manager.write_behind()
    read = sum(size for _, size in reads_of(reading, lambda: reading.found(end)))
    (*_, last) = content(reading.manager, 0)
    # The batch as it is found, as it is read, and as its header is looked at for transactions.
    assert read <= 3 * last.size_bytes


def reads_of(reading: Reading, act: object) -> list[tuple[int, int]]:
    """Position and size of what is read from files meanwhile."""
    seen: list[tuple[int, int]] = []
    log = reading.manager.get_or_create_log(Partition(0))
    segment = log.segments[-1]
    file = segment._open()
    original = file.pread

    def pread(size: int, offset: int) -> bytes:
        data = original(size, offset)
        seen.append((offset, len(data)))
        return data

    file.pread = pread  # type: ignore[method-assign]
    try:
        act()  # type: ignore[operator]
    finally:
        del file.pread
    return seen


# --- transactions


def with_transactions() -> Reading:
    """Offsets 0 and 1 of a transaction that is aborted at 3; 4 and 5 of one that is committed at 6; 7 open."""
    reading = Reading()
    history = reading.history
    history.transaction(9, {"a": "1", "b": "1"})
    history.value("plain", "1")
    history.end(9, MarkerKind.ABORT)
    history.transaction(9, {"a": "2", "b": "2"})
    history.end(9, MarkerKind.COMMIT)
    history.transaction(10, {"c": "1"})
    history.value("plain", "2")
    return reading


def test_who_reads_committed_data_stops_at_an_open_transaction_and_hears_of_aborted_ones() -> None:
    reading = with_transactions()
    found = reading.found(0, committed=True)
    assert [batch.base_offset for batch in iter_batches(found.records)] == [0, 2, 3, 4, 6]
    assert (found.stable_offset, found.end_offset) == (7, 9)
    assert [(each.producer_id, each.first_offset) for each in found.aborted] == [(9, 0)]
    assert [each.last_offset for each in reading.found(3, committed=True).aborted] == [3]
    assert reading.found(4, committed=True).aborted == ()
    assert reading.found(7, committed=True).records == b""
    assert reading.fetch(9, committed=True) == ReadResult(b"", Offset(0), Offset(9), Offset(7))


def test_who_reads_all_gets_what_is_open_and_the_same_stable_offset() -> None:
    reading = with_transactions()
    found = reading.found(0)
    assert [batch.base_offset for batch in iter_batches(found.records)] == [0, 2, 3, 4, 6, 7, 8]
    assert (found.stable_offset, found.aborted) == (7, ())


def test_an_open_transaction_that_ends_lets_readers_go_on() -> None:
    reading = with_transactions()
    assert reading.found(7, committed=True).records == b""
    reading.history.end(10, MarkerKind.ABORT)
    found = reading.found(7, committed=True)
    assert [batch.base_offset for batch in iter_batches(found.records)] == [7, 8, 9]
    assert (found.stable_offset, [each.first_offset for each in found.aborted]) == (10, [7])


@pytest.mark.parametrize("seed", range(6))
def test_committed_data_is_what_a_replay_of_the_log_makes_of_it(seed: int) -> None:
    """A consumer's filter over what is fetched gives what the markers mean, before and after compaction."""
    rng = random.Random(seed)
    reading = Reading(read_bytes_max=700)
    compactions = 0
    for _ in range(4):
        reading.history.random(rng, 60, transactions=True)
        reading.history.transaction(20, {"p20.0": "never"})
        reading.history.end(20, MarkerKind.ABORT)
        assert consumed(reading) == reading.history.state == replay(content(reading.manager, 0))
        compactions += reading.compact()
        assert consumed(reading) == reading.history.state
    assert compactions > 1


def consumed(reading: Reading) -> dict[bytes, bytes]:
    """What Kafka's consumer hands out with read_committed, key by key (CompletedFetch.nextFetchedRecord)."""
    state: dict[bytes, bytes] = {}
    offset = 0
    while (found := reading.found(offset, 900, committed=True)).records:
        waiting = sorted(found.aborted, key=lambda each: each.first_offset)
        aborted: set[int] = set()
        for batch in iter_batches(found.records, check=True):
            offset = batch.next_offset
            while waiting and waiting[0].first_offset <= batch.last_offset:
                aborted.add(waiting.pop(0).producer_id)
            if batch.is_control:
                aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborted):
                for _, _, key, value in iter_records(batch):
                    assert key is not None
                    state.pop(key, None)
                    if value is not None:
                        state[key] = value
    return state


def test_a_transaction_whose_marker_was_compacted_away_is_forgotten() -> None:
    """Else it would hide what its producer commits later: no marker would end it."""
    bench = Bench()
    reading = Reading(manager=bench.manager)
    bench.history.transaction(9, {"a": "aborted"})
    bench.history.end(9, MarkerKind.ABORT)
    told = []
    for _ in range(4):
        told.append([each.first_offset for each in reading.found(0, committed=True).aborted])
        bench.now_ms += RETENTION + 86_400_000
        for _ in range(40):
            bench.history.value("other", "x" * 40)
        bench.roll()
        reading.found(0)  # the segment that is written to next was looked at, and stays
        bench.clean()
    assert any(batch.producer_id == 9 for batch in bench.batches()) is False
    bench.history.transaction(9, {"a": "committed"})
    bench.history.end(9, MarkerKind.COMMIT)
    assert told[0] == [0]
    assert reading.found(0, committed=True).aborted == ()
    assert consumed(reading) == bench.history.state


# --- leader epochs


def with_epochs() -> Reading:
    """Epoch 1 from offset 0, epoch 2 from 2, and the leader of now, in epoch 3, has written nothing."""
    reading = Reading()
    for offset, epoch in enumerate((1, 1, 2)):
        reading.manager.append(
            [Entry(Partition(0), Offset(offset), build(offset, [(b"k", b"v")], epoch=epoch))], sync=True
        )
    return reading


@pytest.mark.parametrize(
    ("last_epoch", "offset", "expected"),
    [
        (1, 2, None),
        (1, 3, (1, 2)),  # the client has read more of it than there was
        (2, 3, None),
        (0, 0, None),
        (0, 1, (0, 0)),
        (3, 3, None),
        (4, 3, EmptyReadReason.OUT_OF_RANGE),  # it is not known here
    ],
)
def test_logs_that_diverge_are_told_where(
    last_epoch: int, offset: int, expected: tuple[int, int] | EmptyReadReason | None
) -> None:
    found = with_epochs().fetch(offset, last_epoch=last_epoch)
    assert (found.diverging if isinstance(found, ReadResult) else found) == expected


def test_of_logs_that_diverge_no_records_are_told() -> None:
    found = with_epochs().found(1, last_epoch=0)
    assert (found.records, found.end_offset, found.diverging) == (b"", 3, (0, 0))


# --- ListOffsets


def with_times(*times: int) -> Reading:
    reading = Reading()
    for offset, time in enumerate(times):
        pairs = [(f"k{offset}".encode(), b"v" * 60)]
        reading.manager.append(
            [Entry(Partition(0), Offset(offset), build(offset, pairs, timestamp=NOW + time))], sync=True
        )
    return reading


def test_the_ends_of_a_log() -> None:
    reading = with_epochs()
    assert reading.locate(OffsetSpec.START) == (-1, 0, 1)
    assert reading.locate(OffsetSpec.END) == (-1, 3, EPOCH)
    empty = Reading()
    assert empty.locate(OffsetSpec.START) == empty.locate(OffsetSpec.END) == (-1, 0, EPOCH)


def test_the_end_for_who_reads_committed_data_is_where_the_first_open_transaction_begins() -> None:
    reading = with_transactions()
    assert reading.locate(OffsetSpec.END, committed=True) == (-1, 7, EPOCH)
    assert reading.locate(OffsetSpec.END) == (-1, 9, EPOCH)
    assert reading.locate(OffsetSpec.TIME, NOW, committed=True) == (NOW, 0, 0)


def test_a_record_of_an_open_transaction_is_not_found_by_who_reads_committed_data() -> None:
    reading = with_times(0)
    batch = build(1, [(b"k", b"v")], timestamp=NOW + 5, attributes=TRANSACTIONAL, producer_id=9)
    reading.manager.append([Entry(Partition(0), Offset(1), batch)], sync=True)
    for place, timestamp in ((OffsetSpec.NEWEST, -1), (OffsetSpec.TIME, NOW + 1)):
        assert reading.locate(place, timestamp) == (NOW + 5, 1, 0)
        assert reading.locate(place, timestamp, committed=True) == NOWHERE


def test_the_newest_record_is_the_first_with_the_largest_timestamp() -> None:
    assert Reading().locate(OffsetSpec.NEWEST) == NOWHERE
    assert with_times(5, 9, 9, 3).locate(OffsetSpec.NEWEST) == (NOW + 9, 1, 0)


@pytest.mark.parametrize("seed", range(4))
def test_a_time_is_found_as_by_looking_at_every_record(seed: int) -> None:
    rng = random.Random(seed)
    times = [number * 10 + rng.randint(-40, 40) for number in range(120)]
    reading = with_times(*times)
    reading.manager.checkpoint_journal()
    assert len(reading.manager.get_or_create_log(Partition(0)).segments) > 3
    for restarted in (False, True):
        if restarted:
            reading.manager.close()
            reading = Reading(reading.fs)
        for asked in [min(times), max(times), max(times) + 1, *rng.choices(range(-50, 1250), k=60)]:
            expected = next(((NOW + time, at, 0) for at, time in enumerate(times) if time >= asked), NOWHERE)
            assert reading.locate(OffsetSpec.TIME, NOW + asked) == expected
        newest = times.index(max(times))
        assert reading.locate(OffsetSpec.NEWEST) == (NOW + max(times), newest, 0)


def test_damage_is_an_error_with_its_place() -> None:
    reading = Reading()
    for number in range(4):
        reading.history.value(f"k{number}", "v")
    reading.manager.checkpoint_journal()
    segment = reading.manager.get_or_create_log(Partition(0)).segments[0]
    second = content(reading.manager, 0)[1]
    inode = reading.fs.inode(segment.path)
    inode.data[content(reading.manager, 0)[0].size_bytes + 16] = 99  # no magic
    with pytest.raises(CorruptLog, match=rf"{segment.path} at byte {second.position}: "):
        reading.fetch(1)


def test_who_reads_committed_data_waits_at_a_gap_before_an_open_transaction() -> None:
    """Compaction may have taken everything between a reader's offset and a transaction that never ended."""
    fs = FaultyFileSystem(ROOT)
    log = PartitionLog(fs, ROOT / "__consumer_offsets-0", Partition(0), SMALL, bytes(16))
    log.append(build(0, [(b"a", b"1")]))
    log.append(build(10, [(b"k", b"v")], attributes=TRANSACTIONAL, producer_id=9))
    reader = LogReader()
    for offset in (1, 5, 10):
        asked = FetchQuery(
            partition=Partition(0),
            offset=Offset(offset),
            max_bytes=MUCH,
            committed=True,
            leader_epoch=LeaderEpoch(EPOCH),
        )
        found = reader.fetch(log, asked, MUCH, at_least_one=True)
        assert isinstance(found, ReadResult)
        assert (found.records, found.stable_offset) == (b"", 10)
