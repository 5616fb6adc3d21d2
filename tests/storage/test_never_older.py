# SPDX-License-Identifier: Apache-2.0
"""Whatever is taken from a data directory: a start finds all that was acknowledged, or says what is gone."""

import copy
import random
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.partition_cleaning import write_cleaned_segments
from storage.cleaner.plan import CleanerSettings
from storage.disk.filesystem import RealFileSystem
from storage.errors import CorruptLog, StorageError
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.full_check import check_directory
from storage.recovery.journal_loss import find_damage, recover_despite_loss
from storage.recovery.repair import carry_out, plan_repair
from storage.recovery.shared_directory import SharedDirectoryFiles
from storage.settings import LogSettings
from tests.storage.account import contents
from tests.storage.cleaning import NOW as CLEANED_AT
from tests.storage.cleaning import History
from tests.storage.faulty import Crash, Fault, FaultyFileSystem
from tests.storage.strategies import batch

pytestmark = [pytest.mark.slow, pytest.mark.gate]

ROOT = Path("/data")
SETTINGS = LogSettings(segment_bytes=700, journal_step_bytes=8192)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PARTITIONS = 3
JOURNALS = ROOT / "journal"

Offsets = dict[int, list[bytes]]


def life(manager: LogManager, first: int, count: int, *, sync: bool = True) -> Offsets:
    """So many flushes of all partitions, each record says which; returns what was acknowledged."""
    acknowledged: Offsets = {partition: [] for partition in range(PARTITIONS)}
    for label in range(first, first + count):
        ends = [(partition, manager.end_offset(partition)) for partition in map(Partition, range(PARTITIONS))]
        entries = [Entry(p, end, batch(label, end)) for p, end in ends]
        manager.append(entries, sync=sync)
        for entry in entries:
            acknowledged[entry.partition].append(entry.batch)
    return acknowledged


def killed(
    *, after_checkpoint: int = 12, sync: bool = True, machine: int = 0
) -> tuple[FaultyFileSystem, Offsets]:
    """What SIGKILL leaves of a node with several segments and a checkpoint, and what it had acknowledged."""
    fs = FaultyFileSystem(ROOT, machine=machine)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    before = life(manager, 0, 20, sync=sync)
    manager.checkpoint_journal()
    after = life(manager, 20, after_checkpoint, sync=sync)
    fs.restart(power_loss=False)
    return fs, {partition: before[partition] + after[partition] for partition in before}


def all_of(manager: LogManager) -> Offsets:
    """What a node would serve."""
    return {partition: contents(manager, partition) for partition in range(PARTITIONS)}


def the_journal(fs: FaultyFileSystem) -> Path:
    (name,) = (name for name in fs.listdir(JOURNALS) if name.endswith(".journal"))
    return JOURNALS / name


def refused(fs: FaultyFileSystem, *words: str) -> None:
    """A start is refused, again and again, `log check` says the same, and nothing on disk has changed."""
    before = {name: bytes(fs.inode(JOURNALS / name).data) for name in fs.listdir(JOURNALS)}
    for _ in range(2):
        with pytest.raises(CorruptLog) as error:
            LogManager.open(ROOT, SETTINGS, fs)
        assert all(word in str(error.value) for word in words), str(error.value)
    checked = check_directory(fs, ROOT)
    assert not checked.is_undamaged
    assert str(error.value) in [str(each) for each in checked.journals]
    assert {name: bytes(fs.inode(JOURNALS / name).data) for name in fs.listdir(JOURNALS)} == before


def accepted(fs: FaultyFileSystem, acknowledged: Offsets) -> Offsets:
    """Accept the loss: each partition holds the beginning of what was acknowledged, and goes on from there."""
    done = recover_despite_loss(fs, ROOT, SETTINGS, NOW)
    assert done.damages
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions == {}
    found = all_of(manager)
    for partition, batches in found.items():
        assert batches == acknowledged[partition][: len(batches)]
        assert done.ends[Partition(partition)] == manager.end_offset(Partition(partition))
    life(manager, 1000, 3)
    manager.close()
    assert check_directory(fs, ROOT).is_undamaged
    assert recover_despite_loss(fs, ROOT, SETTINGS, NOW).damages == []
    return found


# --- the journal ---


def test_a_journal_that_was_cut_anywhere_is_no_torn_frame() -> None:
    fs, acknowledged = killed()
    path = the_journal(fs)
    size = len(fs.inode(path).data)
    sizes = sorted({*range(0, size, size // 130), 4095, 4096, 4097, size - 1})
    assert len(sizes) >= 130
    for cut in sizes:
        fs, acknowledged = killed()
        image = bytes(fs.inode(the_journal(fs)).data)
        del fs.inode(the_journal(fs)).data[cut:]
        refused(fs, str(path), f"at byte {cut}: the file was cut" if cut >= 4096 else "header is damaged")
        left = accepted(fs, acknowledged)
        aside = ROOT / f"damaged-20260102T030405Z-journal-{path.name}"
        assert bytes(fs.inode(aside).data) == image[:cut]
        assert all(len(batches) >= 20 for batches in left.values()), "what the checkpoint made sure of"
    # The last cut went behind the frames: nothing was lost.
    assert left == acknowledged


@pytest.mark.parametrize("sync", [True, False])
def test_a_journal_that_is_gone_is_missed(sync: bool) -> None:
    fs, acknowledged = killed(sync=sync)
    path = the_journal(fs)
    fs.remove(path)
    refused(fs, str(path), "the journal that was in use is missing")
    accepted(fs, acknowledged)


def test_a_directory_of_journals_that_is_gone_is_missed() -> None:
    fs, acknowledged = killed()
    path = the_journal(fs)
    for name in fs.listdir(JOURNALS):
        fs.remove(JOURNALS / name)
    fs.rmdir(JOURNALS)
    refused(fs, str(path), "is missing")
    assert all(len(batches) == 20 for batches in accepted(fs, acknowledged).values())


def test_a_journal_of_another_node_is_refused_in_the_place_of_ones_own_and_beside_it() -> None:
    other, _ = killed(after_checkpoint=5, machine=1)
    stranger = bytes(other.inode(the_journal(other)).data)
    fs, acknowledged = killed()
    path = the_journal(fs)
    own = bytes(fs.inode(path).data)
    fs.inode(path).data[:] = stranger
    refused(fs, str(path), "this is not the journal that was in use")
    fs.inode(path).data[:] = own
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert all_of(manager) == acknowledged

    fs, acknowledged = killed(after_checkpoint=0)
    other, _ = killed(after_checkpoint=5, machine=1)
    moved = JOURNALS / f"{9:020d}.journal"
    fs.open(moved, create=True).pwrite([bytes(other.inode(the_journal(other)).data)], 0)
    refused(fs, str(moved), "its header names journal 2")


def test_the_journal_of_an_earlier_life_is_refused() -> None:
    fs, _ = killed()
    path = the_journal(fs)
    earlier = bytes(fs.inode(path).data)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    life(manager, 40, 5)
    acknowledged = all_of(manager)
    now = the_journal(fs)
    fs.restart(power_loss=False)
    assert now != path
    # All that it held is in the segments: beside the one in use it does no harm.
    fs.open(path, create=True).pwrite([earlier], 0)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert all_of(manager) == acknowledged
    manager.close()
    # After a clean stop nothing is missed, and nothing is taken in.
    fs.mkdir(JOURNALS)
    fs.open(path, create=True).pwrite([earlier], 0)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert all_of(manager) == acknowledged


def test_a_journal_from_elsewhere_is_refused_after_a_clean_stop() -> None:
    other, _ = killed(after_checkpoint=30, machine=1)
    fs, _ = killed(after_checkpoint=0)
    LogManager.open(ROOT, SETTINGS, fs).close()
    fs.mkdir(JOURNALS)
    path = the_journal(other)
    fs.open(path, create=True).pwrite([bytes(other.inode(path).data)], 0)
    refused(fs, str(path), "was not in use here")


def test_a_note_of_the_journals_that_makes_no_sense_is_named() -> None:
    fs, acknowledged = killed()
    fs.inode(ROOT / "open-journals").data[:] = b"{"
    refused(fs, str(ROOT / "open-journals"), "does not say which journals are in use")
    accepted(fs, acknowledged)


# --- while the node runs ---


def test_nothing_is_accepted_into_a_journal_that_was_removed() -> None:
    fs, _ = killed()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    path = the_journal(fs)
    fs.remove(path)
    with pytest.raises(StorageError, match="the journal was removed, or moved away"):
        life(manager, 50, 1)
    for _ in range(2):
        with pytest.raises(CorruptLog, match="the journal that was in use is missing"):
            manager.recover_all_after_failure()
        with pytest.raises(StorageError, match="an earlier write failed"):
            life(manager, 50, 1)


def test_a_journal_that_was_removed_is_noticed_where_nothing_is_written() -> None:
    fs, _ = killed()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.check_journals_present()
    fs.remove(the_journal(fs))
    with pytest.raises(StorageError, match="the journal was removed, or moved away"):
        manager.check_journals_present()
    assert manager.append_failure is not None


def test_a_directory_that_was_moved_away_and_back_costs_nothing(tmp_path: Path) -> None:
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    manager = LogManager.open(data, SETTINGS, RealFileSystem())
    life(manager, 0, 5)
    before = all_of(manager)
    data.rename(elsewhere)
    with pytest.raises(StorageError, match="moved away"):
        life(manager, 5, 1)
    # Another node starts in its place: it is not mistaken for one's own.
    other = LogManager.open(data, SETTINGS, RealFileSystem())
    life(other, 70, 2)
    with pytest.raises(CorruptLog, match="this is not the journal that was in use"):
        manager.recover_all_after_failure()
    other.close()
    data.rename(tmp_path / "other")
    elsewhere.rename(data)
    manager.recover_all_after_failure()
    assert all_of(manager) == before
    life(manager, 6, 1)
    manager.close()
    manager = LogManager.open(data, SETTINGS, RealFileSystem())
    assert {p: len(batches) for p, batches in all_of(manager).items()} == dict.fromkeys(range(PARTITIONS), 6)
    manager.close()


@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_segment_that_is_removed_from_a_running_node_costs_its_partition(which: int) -> None:
    fs, _ = killed()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    path = manager.get_or_create_log(Partition(1)).segments[which].path
    fs.remove(path)
    life(manager, 50, 1)
    with pytest.raises(StorageError, match="was removed"):
        manager.checkpoint_journal()
    manager.recover_all_after_failure()
    assert manager.failed_partitions.keys() == {1}
    end = manager.end_offset(Partition(0))
    manager.append([Entry(Partition(0), end, batch(60, end))], sync=True)
    with pytest.raises(CorruptLog):
        manager.append([Entry(Partition(1), Offset(0), batch(60, 0))], sync=True)


# --- segments and directories ---


def with_segments(*, cleaned: bool) -> tuple[FaultyFileSystem, Offsets, list[Path]]:
    """A node that was stopped cleanly, what it held, and its segments."""
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    histories = [History(manager, partition) for partition in range(PARTITIONS)]
    for history in histories:
        history.random(random.Random(history.partition), 90, transactions=False)
    manager.checkpoint_journal()
    if cleaned:
        settings = CleanerSettings(min_cleanable_dirty_ratio=0)
        cleaner = LogCleaner(manager, settings, partial(write_cleaned_segments, fs), lambda: CLEANED_AT)
        while cleaner.clean_dirtiest() is not None:
            for history in histories:
                history.random(random.Random(history.partition), 20, transactions=False)
            manager.checkpoint_journal()
            if len(manager.get_or_create_log(Partition(0)).segments) > 12:
                break
    found = all_of(manager)
    paths = [
        segment.path
        for p in range(PARTITIONS)
        for segment in manager.get_or_create_log(Partition(p)).segments
    ]
    manager.close()
    return fs, found, paths


@pytest.mark.parametrize("how", ["removed", "emptied", "cut"])
@pytest.mark.parametrize("cleaned", [False, True])
def test_every_segment_is_missed(cleaned: bool, how: str) -> None:
    fs, found, paths = with_segments(cleaned=cleaned)
    assert len(paths) > 9
    assert check_directory(fs, ROOT).is_undamaged
    images = {path: bytes(fs.inode(path).data) for path in paths}
    stopped = fs
    for path in paths:
        partition = int(path.parent.name.rpartition("-")[2])
        fs = copy.deepcopy(stopped)
        if how == "removed":
            fs.remove(path)
        else:
            del fs.inode(path).data[0 if how == "emptied" else first_batch(images[path]) :]
        if len(images[path]) == len(fs.inode(path).data if fs.exists(path) else b""):
            continue
        for _ in range(2):
            manager = LogManager.open(ROOT, SETTINGS, fs)
            assert manager.failed_partitions.keys() == {partition}, path
            assert str(path.parent) in str(manager.failed_partitions[Partition(partition)])
            manager.close()
        checked = check_directory(fs, ROOT)
        damages = {p.partition: p.damages for p in checked.partitions if p.damages}
        assert damages.keys() == {partition}
        assert damages[Partition(partition)][0].next_offset is not None
        mended(fs, partition, found)


def test_mending_one_partition_hides_nothing_of_another() -> None:
    fs, _, paths = with_segments(cleaned=True)
    of_partition = [[path for path in paths if path.parent.name.endswith(f"-{p}")] for p in range(2)]
    for its in of_partition:
        fs.remove(its[1])
    carry_out(fs, ROOT, plan_repair(fs, ROOT, Partition(0)), NOW)
    damaged = [p.partition for p in check_directory(fs, ROOT).partitions if p.damages]
    assert damaged == [1]
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions.keys() == {1}
    manager.close()


def first_batch(data: bytes) -> int:
    """Where the first batch ends."""
    return 12 + int.from_bytes(data[8:12], "big")


def mended(fs: FaultyFileSystem, partition: int, before: Offsets) -> None:
    """A repair brings the partition back, without what is lost, and no offset is given out twice."""
    repair = carry_out(fs, ROOT, plan_repair(fs, ROOT, Partition(partition)), NOW)
    assert repair.lost_offset_count > 0
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions == {}
    left = [one for one in contents(manager, partition) if int.from_bytes(one[57:61], "big")]
    assert set(left) < set(before[partition])
    last = before[partition][-1]
    end = int.from_bytes(last[:8], "big") + int.from_bytes(last[23:27], "big") + 1
    assert manager.end_offset(Partition(partition)) == end
    manager.append([Entry(Partition(partition), Offset(end), batch(7, end))], sync=True)
    manager.close()
    assert check_directory(fs, ROOT).is_undamaged


def test_a_partition_whose_directory_is_gone_is_missed_and_mended() -> None:
    fs, found, paths = with_segments(cleaned=False)
    for name in fs.listdir(paths[0].parent):
        fs.remove(paths[0].parent / name)
    fs.rmdir(paths[0].parent)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert "the directory is missing, and offsets up to" in str(manager.failed_partitions[Partition(0)])
    assert all_but(manager, 0) == {p: batches for p, batches in found.items() if p}
    manager.close()
    (damaged,) = (p for p in check_directory(fs, ROOT).partitions if p.damages)
    assert damaged.partition == 0
    mended(fs, 0, found)


def all_but(manager: LogManager, partition: int) -> Offsets:
    return {p: contents(manager, p) for p in range(PARTITIONS) if p != partition}


def test_what_somebody_else_compacted_since_is_not_missed() -> None:
    fs, found, paths = with_segments(cleaned=False)
    fs.inode(ROOT / ".kafka_cleanshutdown").data[:] = b'{"version":0,"brokerEpoch":5}'
    fs.remove(paths[0])  # as a broker's cleaner may do
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions == {}
    assert contents(manager, 1) == found[1]
    fs.restart(power_loss=True)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions == {}


def test_a_compaction_that_was_interrupted_is_no_damage_to_a_check() -> None:
    for after in range(0, 400, 2):
        fs = FaultyFileSystem(ROOT)
        manager = LogManager.open(ROOT, SETTINGS, fs)
        history = History(manager, 0)
        history.random(random.Random(3), 40, transactions=False)
        manager.checkpoint_journal()
        cleaner = LogCleaner(
            manager,
            CleanerSettings(min_cleanable_dirty_ratio=0),
            partial(write_cleaned_segments, fs),
            lambda: CLEANED_AT,
        )
        fs.fail(Fault.CRASH, after)
        try:
            cleaner.clean_dirtiest()
        except Crash:
            fs.restart(power_loss=False)
        else:
            assert after > 20
            return
        checked = check_directory(fs, ROOT)
        assert checked.is_undamaged, (after, fs.log, [p.damages for p in checked.partitions])
    raise AssertionError("a cleaning takes more steps than were tried")


# --- several nodes ---


def two_nodes() -> tuple[FaultyFileSystem, SharedDirectoryFiles, dict[int, LogManager]]:
    """Two nodes that share a directory: partitions 0 and 2 at node 1, partition 1 at node 2."""
    fs = FaultyFileSystem(ROOT)
    shared, _ = SharedDirectoryFiles.open(ROOT, SETTINGS, fs)
    managers = {
        node: LogManager.open_in_shared_directory(ROOT, SETTINGS, shared.topic_id, node, fs)
        for node in (1, 2)
    }
    for partition, node in ((0, 1), (1, 2), (2, 1)):
        managers[node].adopt(Partition(partition), *shared.get_partition_recovery_point(Partition(partition)))
    for label in range(5):
        for partition, node in ((0, 1), (1, 2), (2, 1)):
            end = managers[node].end_offset(Partition(partition))
            managers[node].append([Entry(Partition(partition), end, batch(label, end))], sync=True)
    return fs, shared, managers


def lose(fs: FaultyFileSystem, directory: Path) -> None:
    for name in fs.listdir(directory):
        fs.remove(directory / name)
    fs.rmdir(directory)


Start = Callable[[FaultyFileSystem], object]


@pytest.mark.parametrize(
    "start",
    [
        lambda fs: SharedDirectoryFiles.open(ROOT, SETTINGS, fs),
        lambda fs: LogManager.open(ROOT, SETTINGS, fs),
    ],
)
def test_the_journal_of_one_of_several_nodes_is_missed(start: Start) -> None:
    fs, _, _ = two_nodes()
    fs.restart(power_loss=False)
    lose(fs, ROOT / "journal.2")
    for _ in range(2):
        with pytest.raises(
            CorruptLog, match=r"journal\.2/0+1\.journal: the journal that was in use is missing"
        ):
            start(fs)
    assert [str(each) for each in find_damage(fs, ROOT, SETTINGS.topic)]
    done = recover_despite_loss(fs, ROOT, SETTINGS, NOW)
    assert done.ends[Partition(0)] == done.ends[Partition(2)] == 5
    start(fs)
    assert find_damage(fs, ROOT, SETTINGS.topic) == []


def test_a_worker_whose_journal_is_gone_gives_nothing_to_the_others() -> None:
    fs, shared, managers = two_nodes()
    lose(fs, ROOT / "journal.2")
    with pytest.raises(StorageError, match="removed, or moved away"):
        managers[2].append([Entry(Partition(1), Offset(5), batch(9, 5))], sync=True)
    del managers[2]
    for _ in range(2):
        with pytest.raises(CorruptLog, match="the journal that was in use is missing"):
            shared.replay_and_remove_node_journal(2, [Partition(1)])
    end = managers[1].end_offset(Partition(0))
    managers[1].append([Entry(Partition(0), end, batch(9, end))], sync=True)


def test_journals_that_two_nodes_have_swapped_are_refused() -> None:
    fs, _, _ = two_nodes()
    fs.restart(power_loss=False)
    one, two = (fs.inode(ROOT / f"journal.{node}" / f"{1:020d}.journal") for node in (1, 2))
    one.data, two.data = two.data, one.data
    with pytest.raises(CorruptLog, match="this is not the journal that was in use"):
        SharedDirectoryFiles.open(ROOT, SETTINGS, fs)
    assert len(find_damage(fs, ROOT, SETTINGS.topic)) >= 2
