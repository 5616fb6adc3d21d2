# SPDX-License-Identifier: Apache-2.0
"""Compaction: what stays, what goes, and that a replay of the log shows no difference."""

import random
from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.cleaner.child import ChildRunner
from storage.cleaner.log_cleaner import CleaningFailed, CompletedCleaning, LogCleaner
from storage.cleaner.partition_cleaning import (
    CleaningAborted,
    CleaningJob,
    CleaningResult,
    write_cleaned_segments,
)
from storage.cleaner.plan import CleanerSettings
from storage.disk.checkpoint_file import read_offsets, write_offsets
from storage.disk.filesystem import RealFileSystem, read_file
from storage.format.batch import Batch, iter_batches, iter_records
from storage.format.batch_format import CONTROL, TRANSACTIONAL
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.cleaning import NOW, RETENTION, History, MarkerKind, build, content, replay
from tests.storage.faulty import FaultyFileSystem
from tests.storage.test_index import check
from tests.storage.test_old_messages import message_set

ROOT = Path("/data")
SETTINGS = LogSettings(segment_bytes=2_000, index_interval_bytes=200, journal_step_bytes=8192)
CHECKPOINT = ROOT / "cleaner-offset-checkpoint"
KEY = ("__consumer_offsets", Partition(0))


class Bench:
    """A log of one partition, a history written to it, and a cleaner whose clock stands still."""

    def __init__(self, fs: FaultyFileSystem | None = None, **settings: float) -> None:
        self.fs = fs or FaultyFileSystem(ROOT)
        self.now_ms = NOW
        self.settings = CleanerSettings(delete_retention_ms=RETENTION, **settings)  # type: ignore[arg-type]
        self.manager = LogManager.open(ROOT, SETTINGS, self.fs)
        self.history = History(self.manager, 0)
        self.cleaner = self.new_cleaner()

    def new_cleaner(self) -> LogCleaner:
        return LogCleaner(self.manager, self.settings, self.run, lambda: self.now_ms)

    def run(self, job: CleaningJob) -> CleaningResult:
        return write_cleaned_segments(self.fs, job)

    def clean(self) -> CompletedCleaning | None:
        self.manager.checkpoint_journal()
        return self.cleaner.clean_dirtiest()

    def roll(self) -> None:
        """Begin a new segment, so that all before it can be cleaned."""
        self.manager.checkpoint_journal()
        self.manager.get_or_create_log(Partition(0)).roll()
        self.manager.get_or_create_log(Partition(0)).fsync()
        # The roll itself changes no recovery point; a record does.
        self.history.value("roll", "r")
        self.manager.checkpoint_journal()

    def batches(self) -> list[Batch]:
        return content(self.manager, 0)

    def all_keys(self) -> list[bytes | None]:
        return [key for batch in self.batches() for _, _, key, _ in iter_records(batch)]

    def reopen(self) -> None:
        self.manager.close()
        self.manager = LogManager.open(ROOT, SETTINGS, self.fs)
        assert self.manager.failed_partitions == {}
        self.history.manager = self.manager
        self.cleaner = self.new_cleaner()


@pytest.mark.parametrize("seed", range(12))
def test_replaying_gives_the_same_before_and_after(seed: int) -> None:
    bench = Bench()
    bench.history.random(random.Random(seed), 250, transactions=seed % 2 == 1)
    for _ in range(4):
        bench.roll()
        before = replay(bench.batches())
        bench.clean()
        assert replay(bench.batches()) == before
        bench.now_ms += RETENTION // 2
        bench.history.random(random.Random(seed), 100, transactions=seed % 2 == 1)
    bench.reopen()
    assert replay(bench.batches()) == bench.history.state
    bench.manager.close()
    check(bench.fs, ROOT / "__consumer_offsets-0", 200)


def test_of_every_key_the_newest_value_stays() -> None:
    bench = Bench()
    for number in range(200):
        bench.history.value(f"k{number % 7}", str(number))
    bench.roll()
    cleaning = bench.clean()
    assert cleaning is not None
    assert cleaning.records_before == 200
    assert cleaning.bytes_after < cleaning.bytes_before
    cleaned = [batch for batch in bench.batches() if batch.last_offset < 200]
    records = [(offset, key) for batch in cleaned for offset, _, key, _ in iter_records(batch)]
    assert records == [(offset, f"k{offset % 7}".encode()) for offset in range(193, 200)]
    assert read_offsets(bench.fs, CHECKPOINT) == {KEY: 200}
    # Segments are put together by their size before, so that the next cleaning finds small ones.
    assert len(bench.manager.get_or_create_log(Partition(0)).segments) > 2
    bench.history.value("k1", "x" * 600)
    bench.roll()
    assert bench.clean() is not None
    assert len(bench.manager.get_or_create_log(Partition(0)).segments) == 2


def test_nothing_is_cleaned_below_the_dirty_ratio_nor_the_segment_that_is_written() -> None:
    bench = Bench(min_cleanable_dirty_ratio=0.5)
    bench.history.value("a", "1")
    assert bench.clean() is None
    for number in range(100):
        bench.history.value(f"k{number}", "x")
    bench.roll()
    assert bench.clean() is not None
    for number in range(30):
        bench.history.value(f"k{number}", "y")
    bench.roll()
    assert bench.clean() is None
    assert 0.1 < bench.cleaner.max_dirty_ratio < 0.5
    for number in range(100):
        bench.history.value(f"k{number}", "z")
    bench.roll()
    assert bench.clean() is not None


def test_segments_that_are_not_on_disk_for_good_are_left() -> None:
    bench = Bench()
    for number in range(100):
        bench.history.value(f"k{number % 3}", "x")
    bench.manager.write_behind()
    assert len(bench.manager.get_or_create_log(Partition(0)).segments) > 2
    assert bench.cleaner.clean_dirtiest() is None
    bench.manager.checkpoint_journal()
    assert bench.cleaner.clean_dirtiest() is not None


def test_a_tombstone_stays_for_its_retention_after_it_was_first_cleaned() -> None:
    bench = Bench()
    bench.history.value("gone", "1")
    bench.history.tombstone("gone")
    bench.history.value("kept", "1")
    bench.roll()
    assert bench.clean() is not None
    assert b"gone" in bench.all_keys()
    (batch,) = [
        batch for batch in bench.batches() if b"gone" in [key for _, _, key, _ in iter_records(batch)]
    ]
    assert batch.attributes & 0x40
    assert batch.base_timestamp == NOW + RETENTION
    # Its record still has its own time.
    assert [timestamp for _, timestamp, _, _ in iter_records(batch)] == [NOW]
    for now_ms, present in ((NOW + RETENTION - 1, True), (NOW + RETENTION, False)):
        bench.now_ms = now_ms
        for _ in range(40):
            bench.history.value("other", "x" * 40)
        bench.roll()
        assert bench.clean() is not None
        assert (b"gone" in bench.all_keys()) is present
    assert b"kept" in bench.all_keys()


def test_the_last_batch_of_what_was_cleaned_stays_if_only_empty() -> None:
    bench = Bench()
    bench.history.value("a", "1")
    bench.history.tombstone("a")
    bench.roll()
    bench.clean()
    bench.now_ms += RETENTION
    bench.history.value("a", "2")
    bench.roll()
    bench.clean()
    bench.now_ms += RETENTION
    offsets = [(batch.base_offset, batch.count) for batch in bench.batches()]
    assert offsets[-1][0] == bench.manager.end_offset(Partition(0)) - 1
    # What a reader is told to read next never goes back.
    offset, seen = 0, []
    while offset < bench.manager.end_offset(Partition(0)):
        _, offset = bench.manager.read(Partition(0), Offset(offset), 1)
        seen.append(offset)
    assert seen == sorted(set(seen))


def test_what_cannot_be_read_is_kept_and_compacted_by_its_key() -> None:
    bench = Bench()
    for number in range(60):
        bench.history.raw(b"\x00\x63unknown kind " + bytes([number % 2]), b"\xff\xff" + bytes([number]))
    bench.roll()
    bench.clean()
    records = [(key, value) for batch in bench.batches() for _, _, key, value in iter_records(batch)]
    assert records[:2] == [
        (b"\x00\x63unknown kind " + bytes([n]), b"\xff\xff" + bytes([58 + n])) for n in (0, 1)
    ]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_batches_stay_compressed(codec: int) -> None:
    bench = Bench()
    bench.history.compression = codec
    for number in range(50):
        bench.history.values({f"k{each}": f"{number}" + "x" * 30 for each in range(number % 5, 5)})
    bench.roll()
    before = replay(bench.batches())
    assert bench.clean() is not None
    assert replay(bench.batches()) == before
    assert {batch.compression for batch in bench.batches() if batch.count} == {codec}


def test_records_of_an_aborted_transaction_go_and_then_their_marker() -> None:
    bench = Bench()
    bench.history.value("a", "before")
    bench.history.transaction(7, {"a": "aborted", "b": "aborted"})
    bench.history.end(7, MarkerKind.ABORT)
    bench.history.transaction(8, {"c": "committed"})
    bench.history.end(8, MarkerKind.COMMIT)
    bench.roll()
    bench.clean()
    values = [
        value for batch in bench.batches() if not batch.is_control for _, _, _, value in iter_records(batch)
    ]
    assert values == [b"before", b"committed", b"r"]
    assert sum(batch.is_control for batch in bench.batches()) == 2
    # Once the producer is forgotten, its empty batch goes; the next cleaning finds nothing of the transaction,
    # and gives its marker a horizon; the one after that removes it.
    markers = []
    for _ in range(3):
        bench.now_ms += RETENTION + 86_400_000
        for _ in range(40):
            bench.history.value("other", "x" * 40)
        bench.roll()
        bench.clean()
        markers.append([batch.producer_id for batch in bench.batches() if batch.is_control and batch.count])
    assert markers == [[7, 8], [7, 8], [8]]
    assert replay(bench.batches()) == bench.history.state


def test_a_transaction_that_is_open_stops_cleaning_before_it() -> None:
    bench = Bench()
    for number in range(100):
        bench.history.value(f"k{number % 3}", "x")
    bench.roll()
    bench.history.transaction(7, {"a": "pending"})
    for number in range(100):
        bench.history.value(f"k{number % 3}", "y")
    bench.roll()
    first = bench.clean()
    assert first is not None
    assert first.end_offset <= 101
    assert bench.clean() is None
    assert bench.clean() is None
    bench.history.end(7, MarkerKind.COMMIT)
    bench.roll()
    assert bench.clean() is not None
    assert replay(bench.batches()) == bench.history.state
    assert bench.history.state[b"a"] == b"pending"


def test_the_state_of_a_producer_that_a_broker_may_still_know_is_kept() -> None:
    bench = Bench()
    bench.history.transaction(7, {"a": "1"})
    bench.history.end(7, MarkerKind.COMMIT)
    bench.history.value("a", "2")
    bench.roll()
    bench.clean()
    assert [(b.producer_id, b.count) for b in bench.batches() if b.producer_id == 7] == [(7, 0), (7, 1)]


@pytest.mark.parametrize("seed", range(4))
def test_an_offset_map_that_is_too_small_for_all_cleans_in_rounds(seed: int) -> None:
    bench = Bench(dedupe_buffer_bytes=6_000)
    for number in range(400):
        bench.history.value(f"k{random.Random(seed + number).randint(0, 90)}", str(number))
    bench.roll()
    rounds = 0
    while (cleaning := bench.clean()) is not None:
        rounds += 1
        assert replay(bench.batches()) == bench.history.state
        assert rounds < 60
    assert rounds > 2
    # 6,000 bytes are some 30 keys.
    assert cleaning is None


def test_a_batch_that_the_offset_map_cannot_hold_is_a_failure_that_changes_nothing() -> None:
    bench = Bench(dedupe_buffer_bytes=1_000)
    bench.history.values({f"key {number}": "x" for number in range(50)})
    bench.roll()
    before = bench.batches()
    with pytest.raises(CleaningFailed, match="1000 bytes do not hold the keys of one batch"):
        bench.clean()
    assert bench.cleaner.uncleanable.keys() == {0}
    assert [batch.data for batch in bench.batches()] == [batch.data for batch in before]
    assert bench.clean() is None


def test_damage_is_left_where_it_is() -> None:
    bench = Bench()
    for number in range(100):
        bench.history.value(f"k{number % 3}", "x" * 20)
    bench.roll()
    path = bench.manager.get_or_create_log(Partition(0)).segments[0].path
    bench.fs.inode(path).data[700] ^= 1
    before = bytes(bench.fs.inode(path).data)
    with pytest.raises(CleaningFailed, match=rf"{path.name} at byte \d+: checksum"):
        bench.clean()
    assert bytes(bench.fs.inode(path).data) == before
    assert not [name for name in bench.fs.listdir(path.parent) if name.endswith(".cleaned")]


def test_a_marker_that_cannot_be_read_is_damage_with_a_place() -> None:
    bench = Bench()
    for number in range(100):
        bench.history.value(f"k{number % 3}", "x" * 20)
    end = bench.manager.end_offset(Partition(0))
    marker = build(end, [(b"\0", b"")], attributes=TRANSACTIONAL | CONTROL, producer_id=9)
    bench.manager.append([Entry(Partition(0), end, marker)], sync=True)
    bench.roll()
    with pytest.raises(CleaningFailed, match=r"\.log at byte \d+: "):
        bench.clean()


def test_a_young_log_waits_and_an_old_one_does_not() -> None:
    bench = Bench(min_compaction_lag_ms=1_000)
    for number in range(100):
        bench.history.value(f"k{number % 3}", "x" * 20)
    bench.roll()
    bench.now_ms = NOW + 999
    assert bench.clean() is None
    bench.now_ms = NOW + 1_001
    assert bench.clean() is not None
    bench = Bench(max_compaction_lag_ms=1_000, min_cleanable_dirty_ratio=1.0)
    for number in range(100):
        bench.history.value(f"k{number % 3}", "x" * 20)
    bench.roll()
    bench.now_ms = NOW + 1_000
    assert bench.clean() is None
    bench.now_ms = NOW + 1_001
    assert bench.clean() is not None


@pytest.mark.parametrize(("noted", "starts_at"), [(50, 50), (10_000, 0), (-5, 0), (0, 0)])
def test_cleaning_goes_on_where_a_broker_stopped(noted: int, starts_at: int) -> None:
    bench = Bench()
    for number in range(100):
        bench.history.value(f"k{number}", "x" * 20)
    bench.roll()
    write_offsets(bench.fs, CHECKPOINT, {KEY: Offset(noted), ("a-topic", Partition(3)): Offset(7)})
    jobs: list[CleaningJob] = []

    def run(job: CleaningJob) -> CleaningResult:
        jobs.append(job)
        return write_cleaned_segments(bench.fs, job)

    LogCleaner(bench.manager, CleanerSettings(min_cleanable_dirty_ratio=0), run, lambda: NOW).clean_dirtiest()
    assert jobs[0].first_dirty_offset == starts_at
    assert read_offsets(bench.fs, CHECKPOINT) == {KEY: 100, ("a-topic", Partition(3)): 7}


def test_what_is_read_while_a_log_is_cleaned_is_whole() -> None:
    bench = Bench()
    for number in range(300):
        bench.history.value(f"k{number % 9}", str(number))
    bench.roll()
    found: list[Batch] = []
    offset = 0
    cleaned = False
    while offset < bench.manager.end_offset(Partition(0)):
        data, offset = bench.manager.read(Partition(0), Offset(offset), 700)
        found += list(iter_batches(data, check=True))
        if offset > 100 and not cleaned:
            cleaned = True
            assert bench.clean() is not None
    assert replay(found) == bench.history.state


def test_the_index_of_a_cleaned_segment_is_used_and_right() -> None:
    bench = Bench()
    for number in range(600):
        bench.history.value(f"k{number % 200}", "x" * 20)
    bench.roll()
    bench.clean()
    bench.reopen()
    for offset in range(0, 600, 13):
        data, _ = bench.manager.read(Partition(0), Offset(offset), 1)
        first = next(iter_batches(data))
        assert first.last_offset >= offset
    bench.manager.close()
    check(bench.fs, ROOT / "__consumer_offsets-0", 200)


def fill(manager: LogManager, count: int = 500) -> History:
    history = History(manager, 0)
    for number in range(count):
        history.value(f"k{number % 9}", str(number))
    manager.checkpoint_journal()
    return history


@pytest.mark.process
def test_a_child_process_cleans_a_real_directory(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, SETTINGS, RealFileSystem())
    history = fill(manager)
    cleaner = LogCleaner(manager, CleanerSettings(min_cleanable_dirty_ratio=0), None, lambda: NOW)
    cleaning = cleaner.clean_dirtiest()
    assert cleaning is not None
    assert cleaning.bytes_after < cleaning.bytes_before / 10
    assert replay(content(manager, 0)) == history.state
    manager.close()
    check(RealFileSystem(), tmp_path / "__consumer_offsets-0", 200)
    names = {path.name.rpartition(".")[2] for path in (tmp_path / "__consumer_offsets-0").iterdir()}
    assert names == {"log", "index", "timeindex", "metadata", "leader-epoch-checkpoint", "rolled-segments"}


@pytest.mark.process
def test_the_child_tells_of_damage(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, SETTINGS, RealFileSystem())
    fill(manager)
    path = manager.get_or_create_log(Partition(0)).segments[1].path
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    with pytest.raises(CleaningFailed, match=rf"{path.name} at byte \d+: checksum"):
        LogCleaner(manager, CleanerSettings(), None, lambda: NOW).clean_dirtiest()
    assert not list(path.parent.glob("*.cleaned"))
    manager.close()


def test_a_cleaner_that_is_stopped_starts_no_child(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, SETTINGS, RealFileSystem())
    fill(manager)
    cleaner = LogCleaner(manager, CleanerSettings(), None, lambda: NOW)
    cleaner.stop()
    assert cleaner.clean_dirtiest() is None
    manager.close()


def test_a_child_never_writes_into_a_file_that_is_there(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, SETTINGS, RealFileSystem())
    fill(manager)
    jobs: list[CleaningJob] = []

    def take(job: CleaningJob) -> CleaningResult:
        jobs.append(job)
        raise CleaningAborted

    LogCleaner(manager, CleanerSettings(), take, lambda: NOW).clean_dirtiest()
    path = tmp_path / "__consumer_offsets-0" / f"{0:020d}.log.cleaned"
    path.write_bytes(b"somebody else's")
    with pytest.raises(FileExistsError):
        ChildRunner()(jobs[0])
    assert read_file(RealFileSystem(), path) == b"somebody else's"
    manager.close()


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_old_messages_are_compacted_one_by_one(magic: int, codec: int) -> None:
    """Of a wrapper what stays comes out of it: with a newer tombstone gone, nothing superseded may be left."""
    bench = Bench(min_cleanable_dirty_ratio=0)
    pairs: list[tuple[bytes | None, bytes | None]] = [
        (b"a", b"1"), (b"b", b"2"), (b"gone", b"3"), (b"a", b"4"), (b"gone", None), (b"c", b"5"),
    ]  # fmt: skip
    bench.manager.close()
    data = message_set(magic, codec, pairs=pairs)
    if codec:
        # As a broker stores it: a wrapper has the offset of its last message.
        data = (len(pairs) - 1).to_bytes(8, "big") + data[8:]
    directory = ROOT / "__consumer_offsets-0"
    bench.fs.mkdir(directory)
    bench.fs.open(directory / f"{0:020d}.log", create=True).pwrite([data], 0)
    bench.manager = LogManager.open(ROOT, SETTINGS, bench.fs)
    bench.history = History(bench.manager, 0)
    bench.cleaner = bench.new_cleaner()
    assert bench.manager.end_offset(Partition(0)) == len(pairs)
    bench.now_ms = NOW + RETENTION - 1
    for left in (True, False):
        bench.roll()
        assert bench.clean() is not None
        old = [batch for batch in bench.batches() if batch.magic < 2]
        records = [(key, value) for batch in old for _, _, key, value in iter_records(batch)]
        tombstones = [(b"gone", None)] if left else []
        assert records == [(b"b", b"2"), (b"a", b"4"), *tombstones, (b"c", b"5")]
        assert [batch.last_offset for batch in old] == [1, 3, *([4] if left else []), 5]
        bench.now_ms += 2 * RETENTION
