# SPDX-License-Identifier: Apache-2.0
"""`log-start-offset-checkpoint`, as a broker writes it: what ends before the start of a log counts no more."""

import contextlib
import random
from pathlib import Path

import pytest

from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import write_offsets
from storage.disk.filesystem import FileSystem, read_file
from storage.disk.layout import LOG_START_FILE, OPEN_JOURNALS_FILE, RECOVERY_POINT_FILE
from storage.errors import StorageError
from storage.format.batch import BatchBuilder, iter_batches
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.partition.reader import (
    EmptyReadReason,
    FetchQuery,
    LogReader,
    OffsetQuery,
    OffsetSpec,
)
from storage.recovery.full_check import Damage, check_partition, iter_all_whole_batches
from storage.recovery.repair import plan_repair
from storage.settings import LogSettings
from tests.storage.cleaning import NOW, build
from tests.storage.every_fault import EVERY_FAULT
from tests.storage.faulty import Crash, Fault, FaultyFileSystem
from tests.storage.strategies import batch

ROOT = Path("/data")
P = Partition(0)
KEY = ("__consumer_offsets", P)
DIRECTORY = ROOT / "__consumer_offsets-0"
SETTINGS = LogSettings(segment_bytes=600, journal_step_bytes=8192)
RECORDS = 3
"""Of each batch: with a start of 3n + 1 or 3n + 2 batch n lies across it."""
END = 10 * RECORDS


def a_log(start: int, seed: int = 0, *, point: int | None = None) -> FaultyFileSystem:
    """A log of ten batches in several segments, which a broker says starts at `start`."""
    fs = FaultyFileSystem(ROOT, random.Random(seed))
    manager = LogManager.open(ROOT, SETTINGS, fs)
    for at in range(0, END, RECORDS):
        manager.append([Entry(P, Offset(at), group_batch(at // RECORDS))], sync=False)
    manager.close()
    assert len(segments(fs)) > 3
    fs.remove(ROOT / OPEN_JOURNALS_FILE)  # a broker wrote it
    write_offsets(fs, ROOT / LOG_START_FILE, {KEY: Offset(start), ("other", P): Offset(1)})
    if point is not None:
        write_offsets(fs, ROOT / RECOVERY_POINT_FILE, {KEY: Offset(point)})
    return fs


def group_batch(number: int) -> bytes:
    """The batch with this number: each is of a group of its own, and commits its number."""
    value = OffsetAndMetadata(Offset(number), -1, "", 1 << 40)
    builder = BatchBuilder()
    builder.append_in_one_batch(
        [OffsetCommitRecord(GroupId(f"g{number}"), "t", index, value) for index in range(RECORDS)]
    )
    (built,) = builder.build(Offset(RECORDS * number), LeaderEpoch(0), 1 << 40)
    return built


def segments(fs: FileSystem) -> dict[str, bytes]:
    """The segments of the partition, by name."""
    names = fs.listdir(DIRECTORY)
    return {name: read_file(fs, DIRECTORY / name) for name in names if name.endswith(".log")}


def loaded(manager: LogManager) -> list[int]:
    """The base offsets of all batches that a load reads."""
    log = manager.get_or_create_log(P)
    found: list[int] = []
    offset = log.start_offset
    while offset < manager.end_offset(P):
        data, offset = manager.read(P, offset, 1)
        found += [one.base_offset for one in iter_batches(data, check=True)]
    return found


def counts_from(start: int) -> list[int]:
    """The base offsets of the batches that do not end before `start`."""
    return [at for at in range(0, END, RECORDS) if at + RECORDS > start]


@pytest.mark.parametrize("start", [0, 1, 2, 3, 14, 15, 16, END - 1, END])
def test_a_load_begins_with_the_batch_that_holds_the_start(start: int) -> None:
    fs = a_log(start)
    checked = check_partition(fs, ROOT, P)
    assert [one.base_offset for one in iter_all_whole_batches(fs, checked)] == counts_from(start)
    assert (checked.damages, checked.unsettled) == ([], [])
    for _ in range(2):
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert (manager.get_or_create_log(P).start_offset, manager.end_offset(P)) == (start, END)
        assert (loaded(manager), manager.cuts, manager.failed_partitions) == (counts_from(start), (), {})
        manager.close()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.append([Entry(P, Offset(END), batch(99, END, RECORDS))], sync=True)
    assert loaded(manager) == [*counts_from(start), END]


def test_a_share_that_adopts_a_partition_begins_there_too() -> None:
    fs = a_log(16)
    manager = LogManager.open_in_shared_directory(ROOT, SETTINGS, bytes(16), 1, fs)
    manager.adopt(P, Offset(END))
    assert loaded(manager) == counts_from(16)


def test_a_checkpoint_that_makes_no_sense_says_nothing() -> None:
    fs = a_log(16)
    file = fs.open(ROOT / LOG_START_FILE)
    file.pwrite([b"x"], 0)
    assert loaded(LogManager.open(ROOT, SETTINGS, fs)) == counts_from(0)


@pytest.mark.parametrize("beyond", [1, 1_000])
def test_a_log_that_ends_before_its_start_begins_anew_and_its_bytes_are_kept(beyond: int) -> None:
    start = END + beyond
    fs = a_log(start)
    before = segments(fs)
    assert list(iter_all_whole_batches(fs, check_partition(fs, ROOT, P))) == []
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert (manager.get_or_create_log(P).start_offset, manager.end_offset(P)) == (start, start)
    assert manager.failed_partitions == {}
    assert {cut.reason for cut in manager.cuts} == {
        f"the log ends at offset {END}, and by {LOG_START_FILE} it starts at {start}"
    }
    kept = {cut.saved_as.name: read_file(fs, cut.saved_as) for cut in manager.cuts if cut.saved_as}
    assert kept == {f"{name}.cut": data for name, data in before.items()}
    manager.close()
    for _ in range(2):
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert (manager.end_offset(P), manager.cuts, manager.failed_partitions) == (start, (), {})
        manager.close()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.append([Entry(P, Offset(start), batch(99, start, RECORDS))], sync=True)
    manager.close()
    checked = check_partition(fs, ROOT, P)
    assert (checked.damages, checked.unsettled, checked.next_offset) == ([], [], start + RECORDS)
    assert loaded(LogManager.open(ROOT, SETTINGS, fs)) == [start]


def test_a_log_that_lost_what_was_on_disk_is_damaged_wherever_it_starts() -> None:
    fs = a_log(END + 3, point=END + 5)
    before = segments(fs)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert f"offsets up to {END + 5} were on disk" in str(manager.failed_partitions[P])
    assert segments(fs) == before


@pytest.mark.parametrize("power_loss", [False, True])
@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_any_one_operation_of_beginning_anew_may_fail(fault: Fault, power_loss: bool) -> None:
    start = END + 5
    fs = a_log(start)
    before = segments(fs)
    fs.operations = 0
    LogManager.open(ROOT, SETTINGS, fs)
    count = fs.operations
    assert count > 20
    for operation in range(count):
        fs = a_log(start, operation)
        fs.fail(fault, operation)
        with contextlib.suppress(Crash, StorageError):
            LogManager.open(ROOT, SETTINGS, fs)
        fs.restart(power_loss=power_loss)
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert (manager.failed_partitions, manager.end_offset(P)) == ({}, start), fs.log[-1:]
        assert {name: read_file(fs, DIRECTORY / f"{name}.cut") for name in before} == before
        manager.close()


def test_damage_before_the_start_is_none() -> None:
    fs = a_log(16)
    path = DIRECTORY / min(segments(fs))
    file = fs.open(path)
    file.pwrite([b"\xff"], 70)
    file.fsync()
    assert check_partition(fs, ROOT, P).damages == []
    write_offsets(fs, ROOT / LOG_START_FILE, {})
    (damage,) = check_partition(fs, ROOT, P).damages
    assert isinstance(damage, Damage)
    assert (damage.path, damage.offset, damage.next_offset) == (path, 0, RECORDS)


def test_a_repair_names_nothing_that_counted_no_more() -> None:
    def named(start: int) -> list[int]:
        fs = a_log(start)
        name = max(name for name, data in segments(fs).items() if data)
        file = fs.open(DIRECTORY / name)
        file.pwrite([b"\xff"], 70)
        file.fsync()
        plan = plan_repair(fs, ROOT, P)
        (damage,) = plan.checked.damages
        assert damage.offset > 16
        return sorted({offset for *_, offset in plan.loss.older})

    assert named(0) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    assert named(16) == [5, 6, 7, 8]


def test_a_client_reads_and_finds_nothing_before_the_start() -> None:
    fs = FaultyFileSystem(ROOT, random.Random(0))
    manager = LogManager.open(ROOT, LogSettings(segment_bytes=400), fs)
    for at in range(0, 24, 2):
        pairs = [(f"k{at + n}".encode(), b"v" * 20) for n in range(2)]
        manager.append([Entry(P, Offset(at), build(at, pairs, timestamp=NOW + at))], sync=True)
    manager.close()
    write_offsets(fs, ROOT / LOG_START_FILE, {KEY: Offset(13)})
    manager = LogManager.open(ROOT, LogSettings(segment_bytes=400), fs)
    log, reader = manager.get_or_create_log(P), LogReader()

    def located(spec: OffsetSpec, timestamp: int = -1) -> tuple[int, int]:
        found = reader.resolve_list_offsets_query(
            log, OffsetQuery(P, spec, timestamp, committed=False, leader_epoch=LeaderEpoch(7))
        )
        assert not isinstance(found, EmptyReadReason)
        return found.timestamp, found.offset

    assert located(OffsetSpec.START) == (-1, 13)
    assert located(OffsetSpec.END) == (-1, 24)
    for sought in (0, NOW, NOW + 11, NOW + 12):
        assert located(OffsetSpec.TIME, sought) == (NOW + 12, 13)
    assert located(OffsetSpec.TIME, NOW + 13) == (NOW + 14, 14)
    for offset in (0, 12):
        assert reader.fetch(log, FetchQuery(P, Offset(offset), 1 << 20), 1 << 20, at_least_one=True) is (
            EmptyReadReason.OUT_OF_RANGE
        )
    found = reader.fetch(log, FetchQuery(P, Offset(13), 1), 1, at_least_one=True)
    assert not isinstance(found, EmptyReadReason)
    assert [one.base_offset for one in iter_batches(found.records)] == [12]
    assert found.start_offset == 13


@pytest.mark.parametrize("killed", [False, True])
def test_a_partition_without_a_directory_begins_where_it_was_noted_to_start(killed: bool) -> None:
    fs = FaultyFileSystem(ROOT, random.Random(0))
    write_offsets(fs, ROOT / LOG_START_FILE, {KEY: Offset(500)})
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.end_offset(P) == 500
    manager.append([Entry(P, Offset(500), batch(1, 500, RECORDS))], sync=True)
    if killed:
        fs.restart(power_loss=True)
    else:
        manager.close()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert (loaded(manager), manager.cuts, manager.failed_partitions) == ([500], (), {})


def test_what_a_node_wrote_before_a_noted_start_counts() -> None:
    """An earlier version did not read the file; or somebody put it there."""
    fs = a_log(0)
    LogManager.open(ROOT, SETTINGS, fs).close()
    write_offsets(fs, ROOT / LOG_START_FILE, {KEY: Offset(END + 100)})
    for _ in range(2):
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert (loaded(manager), manager.cuts, manager.failed_partitions) == (counts_from(0), (), {})
        manager.close()
