# SPDX-License-Identifier: Apache-2.0
"""The indexes beside a segment and the epochs beside a log: as Kafka has them, and right after everything."""

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from struct import Struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.disk.filesystem import RealFileSystem, read_file
from storage.format.batch import BatchBuilder, iter_batches, iter_records, read_checked_batch
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.partition.log import PartitionLog
from storage.partition.segment import Segment
from storage.settings import LogSettings
from tests.storage.faulty import FaultyFileSystem
from tests.storage.machine import SETTINGS, Machine
from tests.storage.strategies import commit

ROOT = Path("/data")
DIRECTORY = ROOT / "__consumer_offsets-3"
ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
SMALL = LogSettings(segment_bytes=6_000, index_interval_bytes=300)
NOW = 1_700_000_000_000


def built(label: int, base_offset: int, count: int = 1, *, epoch: int = 0, timestamp: int = NOW) -> bytes:
    """A batch with the leader's epoch and the time that are wanted."""
    builder = BatchBuilder()
    builder.append_in_one_batch(commit(label, count))
    (batch,) = builder.build(Offset(base_offset), LeaderEpoch(epoch), timestamp)
    return batch


def new_log(fs: FaultyFileSystem, settings: LogSettings = SMALL) -> PartitionLog:
    return PartitionLog(fs, DIRECTORY, Partition(3), settings, bytes(16))


def fill(log: PartitionLog, seed: int, count: int = 60) -> None:
    """Batches of several sizes at times that mostly go up, from a few leaders, with some writes to the files."""
    rng = random.Random(seed)
    timestamp = NOW
    for label in range(count):
        timestamp += rng.randint(-5, 20)
        epoch = label // 25
        log.append(built(label, log.end_offset, rng.randint(1, 9), epoch=epoch, timestamp=timestamp))
        if rng.random() < 0.1:
            log.write_derived_files()


def check(fs: FaultyFileSystem | RealFileSystem, directory: Path, interval: int) -> None:
    """What Kafka's DumpLogSegments checks of both indexes, and that no part of a segment goes without an entry."""
    for name in fs.listdir(directory):
        if not name.endswith(".log"):
            continue
        base_offset = int(name[:-4])
        data = read_file(fs, directory / name)
        batches = {batch.position: batch for batch in iter_batches(data)}
        entries = list(ENTRY.iter_unpack(read_file(fs, directory / name.replace(".log", ".index"))))
        before = 0
        for relative, position in entries:
            batch = batches[position]
            assert batch.last_offset == base_offset + relative
            assert position - before > interval
            before = position
        biggest = max((batch.size_bytes for batch in batches.values()), default=0)
        ends = [0, *(position for _, position in entries), len(data)]
        for start, end in pairwise(ends):
            assert end - start <= interval + 2 * biggest
        times = list(TIME_ENTRY.iter_unpack(read_file(fs, directory / name.replace(".log", ".timeindex"))))
        assert times == sorted(set(times))
        ending = {batch.last_offset: batch for batch in batches.values()}
        for timestamp, relative in times:
            newest = max(record[1] for record in iter_records(ending[base_offset + relative]))
            assert newest == timestamp
        newest = max((batch.max_timestamp for batch in batches.values()), default=-1)
        assert (times[-1][0] if times else -1) == newest


def check_epochs(fs: FaultyFileSystem | RealFileSystem, directory: Path) -> None:
    """The checkpoint says what the batches say."""
    found: dict[int, int] = {}
    for name in fs.listdir(directory):
        if name.endswith(".log"):
            for batch in iter_batches(read_file(fs, directory / name)):
                found.setdefault(batch.leader_epoch, batch.base_offset)
    lines = [f"{epoch} {offset}" for epoch, offset in found.items()]
    expected = "\n".join(["0", str(len(lines)), *lines, ""])
    assert read_file(fs, directory / "leader-epoch-checkpoint").decode() == expected


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_while_the_log_grows(seed: int) -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs)
    fill(log, seed)
    log.write_derived_files(seal=True)
    assert len(log.segments) > 2
    check(fs, DIRECTORY, 300)
    check_epochs(fs, DIRECTORY)


@pytest.mark.parametrize("seed", range(5))
def test_a_log_that_is_opened_again_goes_on_in_the_same_files(seed: int) -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs)
    for life in range(4):
        fill(log, seed + life, 20)
        log.write_derived_files(seal=True)
        end = log.end_offset
        log = new_log(fs)
        log.load()
        log.end_offset = end
    check(fs, DIRECTORY, 300)


def damage(fs: FaultyFileSystem, rng: random.Random) -> None:
    """Tear, lengthen, zero or remove the files that follow from the log."""
    for name in fs.listdir(DIRECTORY):
        if name.endswith(("index", "checkpoint")):
            data = fs.inode(DIRECTORY / name).data
            match rng.randint(0, 5):
                case 0:
                    fs.remove(DIRECTORY / name)
                case 1:
                    del data[rng.randint(0, len(data)) :]
                case 2:
                    data.extend(bytes(rng.choice((8, 24, 50_000))))
                case 3:
                    at = rng.randint(0, len(data))
                    data[at:] = bytes(len(data) - at)
                case 4:
                    data[:] = rng.randbytes(len(data))


@pytest.mark.parametrize("seed", range(40))
def test_after_a_crash_wrong_files_are_made_again(seed: int) -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs)
    fill(log, seed)
    log.write_derived_files(seal=seed % 2 == 0)
    end = log.end_offset
    damage(fs, random.Random(seed))
    log = new_log(fs)
    log.load()
    log.end_offset = end
    log.distrust_derived_files(Offset(0))
    log.append(built(99, end, epoch=7))
    log.write_derived_files(seal=True)
    check(fs, DIRECTORY, 300)
    check_epochs(fs, DIRECTORY)


@pytest.mark.parametrize("seed", range(20))
def test_a_log_that_was_cut(seed: int) -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs)
    fill(log, seed)
    if seed % 2:
        log.write_derived_files()
    starts = [batch.base_offset for segment in log.segments for batch in segment.summaries(0)]
    log.truncate(random.Random(seed).choice(starts))
    log.append(built(100, log.end_offset, 3, epoch=5, timestamp=NOW - 1))
    log.write_derived_files(seal=True)
    check(fs, DIRECTORY, 300)
    check_epochs(fs, DIRECTORY)


def test_an_older_leader_adds_no_epoch() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs)
    for label, epoch in enumerate((-1, 2, 1, -1, 2, 5)):
        log.append(built(label, label, epoch=epoch))
    log.write_derived_files()
    assert read_file(fs, DIRECTORY / "leader-epoch-checkpoint") == b"0\n2\n2 1\n5 5\n"


@given(st.integers(0, 1000), st.integers(0, 400))
def test_reading_from_any_offset_finds_its_batch(seed: int, offset: int) -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, LogSettings(segment_bytes=1 << 20, index_interval_bytes=300))
    fill(log, seed, 400)
    log.write_derived_files()
    data, _ = log.read(Offset(offset), 1)
    assert read_checked_batch(data).base_offset <= offset <= read_checked_batch(data).last_offset


def test_reading_from_an_offset_looks_at_little_of_the_segment() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, LogSettings(segment_bytes=1 << 30))
    log.append_all([built(offset, offset) for offset in range(20_000)])
    log.write_derived_files()
    path = str(log.segments[0].path)
    fs.bytes_read.clear()
    log.read(Offset(19_500), 1)
    assert fs.bytes_read[path] < log.size_bytes // 10


def test_an_index_that_says_something_wrong_is_not_believed() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, LogSettings(segment_bytes=1 << 30))
    log.append_all([built(offset, offset) for offset in range(2_000)])
    log.write_derived_files()
    data = fs.inode(DIRECTORY / f"{0:020d}.index").data
    for at in range(4, len(data), 8):
        data[at + 3] ^= 4
    for offset in range(1_999, 0, -97):
        read, _ = log.read(Offset(offset), 1)
        assert read_checked_batch(read).base_offset == offset
    log.write_derived_files(seal=True)
    check(fs, DIRECTORY, 4096)


def test_a_clean_start_looks_at_no_index() -> None:
    machine = Machine(settings=LogSettings(segment_bytes=3_000, journal_step_bytes=8192))
    for _ in range(60):
        machine.append([0, 1], sync=True, count=3)
    assert machine.close()
    machine.manager.close()
    machine.fs.bytes_read.clear()
    machine.manager = LogManager.open(ROOT, machine.settings, machine.fs)
    machine.append([0], sync=True)
    machine.manager.write_behind()
    read = {Path(name).name for name in machine.fs.bytes_read if name.endswith("index")}
    # Only that of the segment that was written to.
    last = machine.manager.get_or_create_log(Partition(0)).segments[-1].path
    assert read == {last.with_suffix(".index").name, last.with_suffix(".timeindex").name}


def test_a_directory_from_before_there_were_indexes_gets_them_when_it_is_closed() -> None:
    machine = Machine()
    for _ in range(30):
        machine.append([0, 1], sync=True, count=3)
    machine.close()
    machine.manager.close()
    for partition in (0, 1):
        directory = ROOT / f"__consumer_offsets-{partition}"
        for name in machine.fs.listdir(directory):
            if name.endswith(("index", "checkpoint")):
                machine.fs.remove(directory / name)
    machine.manager = LogManager.open(ROOT, machine.settings, machine.fs)
    machine.manager.close()
    for partition in (0, 1):
        check(machine.fs, ROOT / f"__consumer_offsets-{partition}", SETTINGS.index_interval_bytes)
        check_epochs(machine.fs, ROOT / f"__consumer_offsets-{partition}")


def test_a_killed_process_leaves_what_can_be_completed() -> None:
    fs = FaultyFileSystem(ROOT)
    settings = LogSettings(segment_bytes=20_000, index_interval_bytes=500)
    manager = LogManager.open(ROOT, settings, fs)
    for label in range(300):
        end = manager.end_offset(Partition(0))
        manager.append(
            [Entry(Partition(0), end, built(label, end, 1 + label % 3, epoch=label // 100))], sync=False
        )
        if label % 90 == 0:
            manager.checkpoint_journal()
    manager.write_behind()
    fs.restart(power_loss=False)
    again = LogManager.open(ROOT, settings, fs)
    again.close()
    check(fs, ROOT / "__consumer_offsets-0", 500)
    check_epochs(fs, ROOT / "__consumer_offsets-0")


@pytest.mark.parametrize(("lives"), [(300, 0, 0), (91, 1, 0)], ids=["full segments", "the last segment"])
@pytest.mark.parametrize("seed", range(5))
def test_indexes_that_a_crash_left_in_doubt_are_not_trusted_by_a_later_start(
    seed: int, lives: Sequence[int]
) -> None:
    """A start notes that the segments are whole; of indexes that it has not looked at it knows nothing."""
    fs = FaultyFileSystem(ROOT, random.Random(seed))
    settings = LogSettings(segment_bytes=20_000, index_interval_bytes=500)
    directory = ROOT / "__consumer_offsets-0"

    def life(batches: int) -> LogManager:
        manager = LogManager.open(ROOT, settings, fs)
        for label in range(batches):
            end = manager.end_offset(Partition(0))
            manager.append([Entry(Partition(0), end, built(label, end, 3, timestamp=NOW + end))], sync=False)
        manager.write_behind()
        return manager

    life(2).close()
    for batches in lives:
        life(batches)
        # The system has written the segments back by itself, and not the journal.
        fs.fsync_dir(directory)
        for name in fs.listdir(directory):
            fs.inode(directory / name).sync()
        fs.restart(power_loss=True)
    life(0).close()
    check(fs, directory, 500)


def test_summaries_of_a_batch_larger_than_one_read() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, LogSettings(segment_bytes=1 << 30))
    log.append(built(0, 0))
    log.append(built(1, 1, 3_000))
    log.append(built(2, 3_001))
    segment = log.segments[0]
    assert isinstance(segment, Segment)
    found = [(batch.base_offset, batch.last_offset) for batch in segment.summaries(0)]
    assert found == [(0, 0), (1, 3_000), (3_001, 3_001)]
