# SPDX-License-Identifier: Apache-2.0
"""Damage is found wherever it is, and a repair keeps everything that it did not touch."""

import csv
import gzip
import io
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import read_offsets, write_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import CLEANER_OFFSET_FILE, OFFSETS_TOPIC, RECOVERY_POINT_FILE
from storage.errors import CorruptLog, StorageError
from storage.format.batch import BatchBuilder, iter_batches
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, UnknownRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.full_check import CheckedPartition, check_directory, check_partition
from storage.recovery.repair import PossibleGroupDataLoss, Repair, _csv, carry_out, plan_repair
from storage.settings import LogSettings
from tests.storage.strategies import batch
from tests.storage.test_old_messages import PAIRS, message_set, wrapper

FS = RealFileSystem()
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RECORDS_PER_BATCH = 3
P = 5


def fill(data_dir: Path, batches: int, *, segment_bytes: int = 1_000) -> None:
    """A partition of so many batches; each one's records carry its number as their offset."""
    manager = LogManager.open(data_dir, LogSettings(segment_bytes=segment_bytes), RealFileSystem())
    for _ in range(batches):
        at = manager.end_offset(Partition(P))
        manager.append(
            [Entry(Partition(P), at, batch(at // RECORDS_PER_BATCH, at, RECORDS_PER_BATCH))], sync=False
        )
    manager.close()


def segments(data_dir: Path) -> list[Path]:
    return sorted((data_dir / f"{OFFSETS_TOPIC}-{P}").glob("*.log"))


def places(data_dir: Path) -> dict[int, tuple[Path, int, int]]:
    """Where each batch lies, by its base offset: file, start, end."""
    return {
        one.base_offset: (path, one.position, one.end)
        for path in segments(data_dir)
        for one in iter_batches(path.read_bytes())
    }


def contents(data_dir: Path) -> dict[int, bytes]:
    """What opening the directory gives: every batch with records by its base offset."""
    manager = LogManager.open(data_dir, LogSettings(), RealFileSystem())
    try:
        assert manager.failed_partitions == {}
        found: dict[int, bytes] = {}
        offset = 0
        while offset < manager.end_offset(Partition(P)):
            data, offset = manager.read(Partition(P), Offset(offset), 1 << 20)
            found |= {one.base_offset: one.data for one in iter_batches(data, check=True) if one.count}
        return found
    finally:
        manager.close()


def check(data_dir: Path) -> CheckedPartition:
    return check_partition(FS, data_dir, Partition(P))


def repair(data_dir: Path) -> Repair:
    done = carry_out(FS, data_dir, plan_repair(FS, data_dir, Partition(P)), NOW)
    after = check(data_dir)
    assert (after.damages, after.unsettled) == ([], [])
    return done


def overwrite(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def test_a_whole_log_is_whole(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    found = check_directory(FS, tmp_path)
    (partition,) = found.partitions
    assert found.is_undamaged
    assert (partition.whole_batch_count, partition.whole_record_count) == (20, 60)
    assert (partition.first_offset, partition.next_offset) == (0, 60)
    assert len(partition.segments) == len(segments(tmp_path)) > 1
    before = {path: path.read_bytes() for path in segments(tmp_path)}
    assert carry_out(FS, tmp_path, plan_repair(FS, tmp_path, Partition(P)), NOW).aside is None
    assert {path: path.read_bytes() for path in segments(tmp_path)} == before


def test_a_flipped_byte_costs_one_batch_and_is_kept_aside(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    before = contents(tmp_path)
    path, start, end = places(tmp_path)[6]
    original = path.read_bytes()
    overwrite(path, start + 70, bytes([original[start + 70] ^ 1]))
    damaged = path.read_bytes()
    (damage,) = check(tmp_path).damages
    assert (damage.path, damage.position, damage.size_bytes) == (path, start, end - start)
    assert (damage.offset, damage.next_offset) == (6, 9)
    assert "checksum" in damage.reason

    done = repair(tmp_path)

    assert done.aside is not None
    assert done.aside.name == "damaged-20260102T030405Z-at-00000000000000000006"
    assert (done.aside / path.name).read_bytes() == damaged
    assert f"{path.name} from byte {start}" in (done.aside / "README.txt").read_text()
    del before[6]
    assert contents(tmp_path) == before
    # The log goes on where it would have, and nothing is given out twice.
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    assert manager.end_offset(Partition(P)) == 60
    manager.append([Entry(Partition(P), Offset(60), batch(99, 60))], sync=True)
    manager.close()
    assert check_directory(FS, tmp_path).is_undamaged


@given(
    batches=st.integers(3, 25),
    wounds=st.lists(
        st.tuples(st.floats(0, 0.999), st.integers(1, 300), st.sampled_from(["flip", "zero", "noise"])),
        min_size=1,
        max_size=3,
    ),
)
def test_whatever_the_damage_all_other_batches_stay(
    tmp_path_factory: pytest.TempPathFactory, batches: int, wounds: list[tuple[float, int, str]]
) -> None:
    data_dir = tmp_path_factory.mktemp("log")
    fill(data_dir, batches)
    before, where = contents(data_dir), places(data_dir)
    new: dict[str, Callable[[int, int], int]] = {
        "flip": lambda _, old: old ^ 0xFF,
        "zero": lambda _, old: 0,
        "noise": lambda n, _: n * 131 + 89 & 0xFF,
    }
    for place, size, how in wounds:
        path = segments(data_dir)[int(place * len(segments(data_dir)))]
        data = bytearray(path.read_bytes())
        starts = [first for at, first, _ in where.values() if at == path]
        for n in range(int(place * len(data)), min(int(place * len(data)) + size, len(data))):
            # A batch's checksum covers neither its offset nor its epoch: those have a test of their own.
            within = n - max(first for first in starts if first <= n)
            if not (within < 8 or 12 <= within < 16):
                data[n] = new[how](n, data[n])
        path.write_bytes(data)
    hurt = {
        base_offset
        for base_offset, (path, first, last) in where.items()
        if path.read_bytes()[first:last] != before[base_offset]
    }
    assert bool(check(data_dir).damages) == bool(hurt)

    done = repair(data_dir)

    assert contents(data_dir) == {at: data for at, data in before.items() if at not in hurt}
    assert check(data_dir).next_offset == batches * RECORDS_PER_BATCH
    offsets_left = RECORDS_PER_BATCH if 0 < len(hurt) < batches else 0
    assert done.loss.certain + len(done.loss.older) == offsets_left


@pytest.mark.parametrize("bit", [0, 1, 5, 20, 40])
@pytest.mark.parametrize("number", [0, 1, 7, 18])
def test_a_wrong_offset_costs_the_batch_that_says_it(tmp_path: Path, bit: int, number: int) -> None:
    fill(tmp_path, 20)
    before = contents(tmp_path)
    base_offset = number * RECORDS_PER_BATCH
    path, start, _ = places(tmp_path)[base_offset]
    overwrite(path, start, (base_offset ^ (1 << bit)).to_bytes(8, "big"))
    wrong = check(tmp_path).damages
    if not wrong:
        # A higher offset that overtakes nobody is no different from a gap that compaction left.
        assert bit == 0
        return
    assert [damage.position for damage in wrong] == [start]
    repair(tmp_path)
    del before[base_offset]
    assert contents(tmp_path) == before


def test_an_impossible_length_hides_nothing_that_follows(tmp_path: Path) -> None:
    fill(tmp_path, 20, segment_bytes=100_000)
    before = contents(tmp_path)
    path, start, end = places(tmp_path)[30]
    for length in (0, 5, 1 << 30, (1 << 32) - 1):
        overwrite(path, start + 8, length.to_bytes(4, "big"))
        (damage,) = check(tmp_path).damages
        assert (damage.position, damage.size_bytes) == (start, end - start)
    repair(tmp_path)
    del before[30]
    assert contents(tmp_path) == before


def test_a_log_that_lost_its_end_gives_no_offset_out_twice(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    before, where = contents(tmp_path), places(tmp_path)
    for path in segments(tmp_path)[2:]:
        path.unlink()
    kept = {at: data for at, data in before.items() if where[at][0] in segments(tmp_path)}
    missing = check(tmp_path).damages
    assert all("the segment is missing" in damage.reason for damage in missing)
    assert missing[0].offset == max(kept) + RECORDS_PER_BATCH
    assert [damage.next_offset for damage in missing] == [*(each.offset for each in missing[1:]), 60]
    done = repair(tmp_path)
    assert contents(tmp_path) == kept
    assert done.loss.certain == 0
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    assert manager.end_offset(Partition(P)) == 60
    manager.close()


def test_a_partition_whose_files_are_all_gone(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    for path in segments(tmp_path):
        path.unlink()
    repair(tmp_path)
    assert contents(tmp_path) == {}
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    assert manager.end_offset(Partition(P)) == 15
    manager.close()


def test_a_missing_segment_of_an_older_version_is_seen_where_nothing_was_compacted(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    before, where = contents(tmp_path), places(tmp_path)
    gone = segments(tmp_path)[1]
    gone.unlink()
    (gone.parent / "rolled-segments").unlink()  # which older versions did not write
    assert check(tmp_path).damages == [], "compaction may have removed it"
    write_offsets(FS, tmp_path / CLEANER_OFFSET_FILE, {})
    (damage,) = check(tmp_path).damages
    assert "are missing" in damage.reason
    repair(tmp_path)
    assert contents(tmp_path) == {at: data for at, data in before.items() if where[at][0] != gone}
    write_offsets(FS, tmp_path / CLEANER_OFFSET_FILE, {(OFFSETS_TOPIC, Partition(P)): Offset(60)})
    assert check(tmp_path).damages == []


def test_a_torn_end_is_for_the_next_start(tmp_path: Path) -> None:
    fill(tmp_path, 5, segment_bytes=100_000)
    (path,) = segments(tmp_path)
    with path.open("ab") as file:
        file.write(batch(1, 15)[:-7])
    found = check(tmp_path)
    assert (found.damages, [damage.offset for damage in found.unsettled]) == ([], [15])
    assert plan_repair(FS, tmp_path, Partition(P)).checked.damages == []
    # Without a recovery point as well, since nothing follows.
    (tmp_path / RECOVERY_POINT_FILE).unlink()
    found = check(tmp_path)
    assert (found.damages, [damage.offset for damage in found.unsettled]) == ([], [15])
    assert len(contents(tmp_path)) == 5


def test_a_repair_leaves_the_end_that_the_next_start_settles(tmp_path: Path) -> None:
    """The journal holds what was acknowledged behind the recovery point: damage before that does not touch it."""
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    for at in range(0, 30, RECORDS_PER_BATCH):
        manager.append([Entry(Partition(P), Offset(at), batch(at, at, RECORDS_PER_BATCH))], sync=True)
        if at == 15:
            manager.checkpoint_journal()
    manager.write_behind()
    image = tmp_path.with_name(f"{tmp_path.name}-image")
    shutil.copytree(tmp_path, image)  # as a crash leaves it
    manager.close()
    path, start, _ = places(image)[3]
    overwrite(path, start + 65, b"\xff")
    path, start, _ = places(image)[24]
    overwrite(path, start + 65, b"\xff")
    found = check(image)
    assert [damage.offset for damage in found.damages] == [3]
    assert [damage.offset for damage in found.unsettled] == [24]
    carry_out(FS, image, plan_repair(FS, image, Partition(P)), NOW)
    assert sorted(contents(image)) == [0, *range(6, 30, 3)]


def test_without_recovery_point_damage_with_something_behind_it_is_damage(tmp_path: Path) -> None:
    fill(tmp_path, 5, segment_bytes=100_000)
    (tmp_path / RECOVERY_POINT_FILE).unlink()
    path, start, _ = places(tmp_path)[6]
    overwrite(path, start + 65, b"\xff")
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    assert isinstance(manager.failed_partitions[Partition(P)], CorruptLog)
    manager.close()
    repair(tmp_path)
    assert sorted(contents(tmp_path)) == [0, 3, 9, 12]


def test_names_in_the_table_of_what_may_be_older_are_no_formulas() -> None:
    older = [("=cmd|' /C calc'!A0", "@t", 0, 1), ("-g", "+1", 1, -1), ("g", "t", 2, 3)]
    assert list(csv.reader(io.StringIO(_csv(PossibleGroupDataLoss(older=older)))))[1:] == [
        ["'=cmd|' /C calc'!A0", "'@t", "0", "1"],
        ["'-g", "'+1", "1", "-1"],
        ["g", "t", "2", "3"],
    ]


def test_what_may_be_older_is_said(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())

    def commit(group: str, offset: int) -> int:
        builder = BatchBuilder()
        builder.append_in_one_batch(
            [OffsetCommitRecord(GroupId(group), "t", 0, OffsetAndMetadata(Offset(offset), -1, "", 1))]
        )
        at = manager.end_offset(Partition(P))
        manager.append([Entry(Partition(P), at, builder.build(at, LeaderEpoch(0), 1)[0])], sync=False)
        return at

    commit("older", 1)
    commit("certain", 1)
    lost = commit("older", 2)
    commit("certain", 2)
    manager.close()
    path, start, _ = places(tmp_path)[lost]
    # The topic's name: the group's can still be read.
    data = bytearray(path.read_bytes())
    data[data.index(b"older", start) + 7] ^= 2
    path.write_bytes(data)
    done = repair(tmp_path)
    assert done.loss.certain == 1
    assert done.loss.older == [("older", "t", 0, 1)]
    assert done.loss.named_in_damage == ["older"]
    assert done.aside is not None
    assert (done.aside / "possibly-older.csv").read_text().splitlines() == [
        "group,topic,partition,offset",
        "older,t,0,1",
    ]


def test_a_record_that_makes_no_sense_is_damage_too(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    builder = BatchBuilder()
    builder.append_in_one_batch([UnknownRecord(1, b"\0\1\0\1", b"")])
    manager.append(
        [Entry(Partition(P), Offset(9), builder.build(Offset(9), LeaderEpoch(0), 1)[0])], sync=True
    )
    manager.append([Entry(Partition(P), Offset(10), batch(3, 10))], sync=True)
    manager.close()
    (damage,) = check(tmp_path).damages
    assert (damage.offset, damage.next_offset) == (9, 10)
    assert "cut short" in damage.reason
    repair(tmp_path)
    assert sorted(contents(tmp_path)) == [0, 3, 6, 10]


def test_a_damaged_journal_is_told(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    for at in range(3):
        manager.append([Entry(Partition(P), Offset(at), batch(at, at))], sync=True)
    image = tmp_path.with_name(f"{tmp_path.name}-image")
    shutil.copytree(tmp_path, image)  # as a crash leaves it
    manager.close()
    assert check_directory(FS, image).is_undamaged
    (journal,) = (image / "journal").glob("*.journal")
    overwrite(journal, 4096 + 60, b"\xff\xff")
    found = check_directory(FS, image)
    assert not found.is_undamaged
    assert [str(journal) in str(each) for each in found.journals] == [True]
    with pytest.raises(CorruptLog):
        LogManager.open(image, LogSettings(), RealFileSystem())


def test_a_repair_that_fails_changes_nothing_and_can_be_done_again(tmp_path: Path) -> None:
    fill(tmp_path, 20)
    path, start, _ = places(tmp_path)[9]
    overwrite(path, start + 70, b"\xff")
    damaged = path.read_bytes()
    plan = plan_repair(FS, tmp_path, Partition(P))
    blocked = path.with_name("damaged-20260102T030405Z-at-00000000000000000009")
    blocked.write_text("a file is in the way")
    with pytest.raises(StorageError):
        carry_out(FS, tmp_path, plan, NOW)
    assert path.read_bytes() == damaged
    blocked.unlink()
    repair(tmp_path)
    points = read_offsets(FS, tmp_path / RECOVERY_POINT_FILE)
    assert points == {(OFFSETS_TOPIC, P): 60}


def test_there_must_be_such_a_partition(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such partition"):
        plan_repair(FS, tmp_path, Partition(3))


def test_old_messages_are_checked_as_well(tmp_path: Path) -> None:
    """A message with others in it has the offset of its last one: that is no gap, and nothing wrong before it."""
    directory = tmp_path / f"{OFFSETS_TOPIC}-{P}"
    directory.mkdir()
    inner = message_set(1, pairs=list(PAIRS))
    old = message_set(0, pairs=list(PAIRS[:5])) + wrapper(gzip.compress(inner), offset=24, attributes=1)
    segment = directory / f"{0:020}.log"
    segment.write_bytes(old + batch(1, 25))
    write_offsets(FS, tmp_path / CLEANER_OFFSET_FILE, {})
    found = check(tmp_path)
    assert (found.damages, found.whole_batch_count, found.whole_record_count, found.next_offset) == (
        [],
        7,
        26,
        26,
    )
