# SPDX-License-Identifier: Apache-2.0
"""One partition's log: segments, reading, cutting."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.disk.properties import decode_uuid
from storage.errors import CorruptLog, StorageError, StorageFull
from storage.format.batch import BatchBuilder, find_whole_batch_start, iter_batches
from storage.format.batch_format import next_offset_of
from storage.format.records import UnknownRecord
from storage.partition.log import PartitionLog
from storage.settings import SEGMENT_MS_DEFAULT, LogSettings
from tests.storage.faulty import Fault, FaultyFileSystem
from tests.storage.strategies import batch

ROOT = Path("/data")
DIRECTORY = ROOT / "__consumer_offsets-3"
TOPIC_ID = bytes(range(16))


def new_log(
    fs: FaultyFileSystem, segment_bytes: int = 1000, segment_ms: int = SEGMENT_MS_DEFAULT
) -> PartitionLog:
    """An empty log of partition 3."""
    return PartitionLog(
        fs, DIRECTORY, Partition(3), LogSettings(segment_bytes=segment_bytes, segment_ms=segment_ms), TOPIC_ID
    )


def batches_of(counts: list[int]) -> list[bytes]:
    """Batches that follow each other, of so many records each."""
    made, offset = [], 0
    for label, count in enumerate(counts):
        made.append(batch(label, offset, count))
        offset += count
    return made


def test_nothing_is_on_disk_before_the_first_append() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (0, 0, 0)
    assert log.read(Offset(0), 100) == (b"", 0)
    log.fsync()
    assert not fs.exists(DIRECTORY)


def test_the_files_are_named_as_kafka_names_them() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, segment_bytes=300)
    for one in batches_of([2, 2, 2]):
        log.append(one)
    assert fs.listdir(DIRECTORY) == [
        "00000000000000000000.log",
        "00000000000000000002.log",
        "00000000000000000004.log",
        "partition.metadata",
    ]
    text = fs.inode(DIRECTORY / "partition.metadata").data.decode()
    assert text.startswith("version: 0\ntopic_id: ")
    assert decode_uuid(text.split()[-1]) == TOPIC_ID


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=20),
    st.integers(200, 2000),
    st.lists(st.integers(1, 6), max_size=20),
)
def test_segments_do_not_depend_on_how_many_batches_come_at_once(
    counts: list[int], segment_bytes: int, cuts: list[int]
) -> None:
    batches = batches_of(counts)
    fs, together = FaultyFileSystem(ROOT), FaultyFileSystem(ROOT)
    log = new_log(fs, segment_bytes)
    for one in batches:
        log.append(one)
    other = new_log(together, segment_bytes)
    position = 0
    for size in [*cuts, len(batches)]:
        other.append_all(batches[position : position + size])
        position += size
    assert fs.listdir(DIRECTORY) == together.listdir(DIRECTORY)
    for segment, twin in zip(log.segments, other.segments, strict=True):
        assert fs.inode(segment.path).data == together.inode(twin.path).data
        # A segment holds more than it should only where one batch alone does.
        assert segment.size_bytes <= max(segment_bytes, len(max(batches, key=len)))
    assert log.end_offset == other.end_offset == sum(counts)


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=20),
    st.integers(200, 2000),
    st.data(),
)
def test_reads_return_whole_batches_from_the_one_that_holds_the_offset(
    counts: list[int], segment_bytes: int, data: st.DataObject
) -> None:
    batches = batches_of(counts)
    log = new_log(FaultyFileSystem(ROOT), segment_bytes)
    log.append_all(batches)
    for _ in range(5):
        start = data.draw(st.integers(0, log.end_offset + 3))
        max_bytes = data.draw(st.integers(0, 3000))
        found, following = log.read(Offset(start), max_bytes)
        expected = [one for one in batches if next_offset_of(one) > start]
        if not expected:
            assert (found, following) == (b"", log.end_offset)
            continue
        got = [one.data for one in iter_batches(found)]
        assert got == expected[: len(got)]
        assert len(got) >= 1
        assert len(found) <= max(max_bytes, len(got[0]))
        assert following == next_offset_of(got[-1])


def test_a_batch_that_steps_back_is_refused() -> None:
    log = new_log(FaultyFileSystem(ROOT))
    log.append(batch(1, 0, 5))
    with pytest.raises(ValueError, match="offset 4 of a log that ends at 5"):
        log.append(batch(2, 4, 5))
    assert log.end_offset == 5


def test_a_segment_spans_no_more_offsets_than_kafkas_indexes_can_tell() -> None:
    log = new_log(FaultyFileSystem(ROOT), 1 << 30)
    log.append(batch(1, 0))
    log.append(batch(2, (1 << 31) - 1))
    log.append(batch(3, 1 << 31))
    assert [segment.base_offset for segment in log.segments] == [0, 1 << 31]


def test_what_a_full_disk_kept_out_can_be_appended_again() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, 500)
    batches = batches_of([2] * 8)
    fs.fail(Fault.FULL, 1, only="pwrite")
    with pytest.raises(StorageFull):
        log.append_all(batches)
    done = log.end_offset // 2
    assert 0 <= done < len(batches)
    log.append_all(batches[done:])
    assert [one.data for one in iter_batches(log.read(Offset(0), 1 << 20)[0])] == batches[:3]
    whole = b"".join(bytes(fs.inode(segment.path).data) for segment in log.segments)
    assert whole == b"".join(batches)


def test_a_log_can_be_rolled_and_an_empty_segment_is_not_rolled_again() -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs)
    log.roll()
    assert log.segments == []
    log.append(batch(1, 0, 3))
    log.roll()
    log.roll()
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    assert log.read(Offset(3), 100) == (b"", 3)
    log.append(batch(2, 3, 1))
    assert [segment.size_bytes > 0 for segment in log.segments] == [True, True]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.data())
def test_truncating_leaves_exactly_what_was_before(counts: list[int], data: st.DataObject) -> None:
    batches = batches_of(counts)
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, 400)
    log.append_all(batches)
    keep = data.draw(st.integers(0, len(batches)))
    log.truncate(Offset(sum(counts[:keep])))
    assert log.end_offset == sum(counts[:keep])
    on_disk = [name for name in fs.listdir(DIRECTORY) if name.endswith(".log")]
    assert b"".join(bytes(fs.inode(DIRECTORY / name).data) for name in on_disk) == b"".join(batches[:keep])
    log.append_all(batches[keep:])
    whole = b"".join(bytes(fs.inode(segment.path).data) for segment in log.segments)
    assert whole == b"".join(batches)


def test_truncating_within_a_batch_is_refused() -> None:
    log = new_log(FaultyFileSystem(ROOT))
    log.append(batch(1, 0, 5))
    with pytest.raises(CorruptLog, match="lies across offset 3"):
        log.truncate(Offset(3))


def test_writing_to_a_brokers_segment_keeps_what_it_says_of_aborted_transactions() -> None:
    fs = FaultyFileSystem(ROOT)
    new_log(fs).append(batch(1, 0))
    fs.open(DIRECTORY / f"{0:020d}.txnindex", create=True)
    log = new_log(fs)
    log.load()
    log.end_offset = Offset(1)
    log.append(batch(2, 1))
    assert f"{0:020d}.txnindex" in fs.listdir(DIRECTORY)
    # It may say something about what is cut.
    log.truncate(Offset(1))
    assert f"{0:020d}.txnindex" not in fs.listdir(DIRECTORY)


def test_a_compaction_that_a_broker_did_not_finish_is_finished() -> None:
    fs = FaultyFileSystem(ROOT)
    new_log(fs).append(batch(1, 0))
    fs.open(DIRECTORY / f"{0:020d}.log.swap", create=True).pwrite([batch(2, 0)], 0)
    log = new_log(fs)
    log.load()
    log.end_offset = Offset(1)
    assert log.needs_fsync
    assert log.read(Offset(0), 1_000) == (batch(2, 0), 1)


def test_a_batch_is_found_wherever_it_starts() -> None:
    wanted = batch(1, 70)
    assert find_whole_batch_start(b"\x02" * 100 + wanted, Offset(70)) == 100
    assert find_whole_batch_start(b"\x02" * 100 + wanted, Offset(71)) is None
    assert find_whole_batch_start(b"\x02" * 100 + wanted[:-1], Offset(70)) is None
    assert find_whole_batch_start(b"", Offset(0)) is None


def test_what_was_synced_survives_a_power_loss_with_its_names() -> None:
    for seed in range(20):
        fs = FaultyFileSystem(ROOT, random.Random(seed))
        log = new_log(fs, 300)
        batches = batches_of([2, 2, 2])
        log.append_all(batches[:2])
        log.fsync()
        assert not log.needs_fsync
        log.append(batches[2])
        assert log.needs_fsync
        fs.restart(power_loss=True)
        found = [bytes(fs.inode(DIRECTORY / f"{base:020d}.log").data) for base in (0, 2)]
        assert found == batches[:2]
        assert fs.exists(DIRECTORY / "partition.metadata")


@pytest.mark.parametrize("reopened", [False, True])
def test_a_segment_is_followed_by_another_once_its_first_record_is_old_enough(reopened: bool) -> None:
    fs = FaultyFileSystem(ROOT)
    log = new_log(fs, segment_bytes=100_000, segment_ms=60_000)
    start = 1_700_000_000_000

    def at(offset: int, age_ms: int) -> bytes:
        builder = BatchBuilder()
        builder.append_in_one_batch([UnknownRecord(99, b"\x00\x63k", b"v")])
        (one,) = builder.build(Offset(offset), LeaderEpoch(0), start + age_ms)
        return one

    log.append_all([at(0, 0), at(1, 59_999)])
    if reopened:
        log = new_log(fs, segment_bytes=100_000, segment_ms=60_000)
        log.load()
        log.end_offset = Offset(2)
    log.append(at(2, 59_999))
    assert [segment.base_offset for segment in log.segments] == [0]
    log.append_all([at(3, 60_000), at(4, 119_999), at(5, 120_000)])
    assert [segment.base_offset for segment in log.segments] == [0, 3, 5]


def test_where_the_first_batch_cannot_be_read_an_append_fails_and_succeeds_later() -> None:
    """Its time says how old the segment is, and after a start it is read when something is appended."""
    fs = FaultyFileSystem(ROOT)
    first, second = batches_of([2, 2])
    written = new_log(fs)
    written.append(first)
    written.close_files()
    log = new_log(fs)
    log.load()
    log.end_offset = Offset(2)
    name = str(DIRECTORY / f"{0:020d}.log")
    fs.unreadable.add(name)
    with pytest.raises(StorageError, match="reading the first batch failed: Input/output error"):
        log.append(second)
    fs.unreadable.clear()
    log.append(second)
    assert log.read(Offset(0), 10_000)[0] == first + second
