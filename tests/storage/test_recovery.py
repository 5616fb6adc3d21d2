# SPDX-License-Identifier: Apache-2.0
"""Opening what a crash, a broker or a bad disk left behind."""

from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import read_offsets, write_offsets
from storage.disk.layout import CLEANER_OFFSET_FILE, JOURNAL_DIR, TAKEN_OVER_FILE
from storage.errors import CorruptLog, StorageError
from storage.format.batch import iter_batches
from storage.journal.journal import Entry
from storage.journal.journal_registry import write_registry_file
from storage.log_manager import LogManager
from storage.recovery.full_check import check_partition
from storage.recovery.recovery import UNKNOWN_END
from storage.recovery.shared_directory import SharedDirectoryFiles
from storage.settings import LogSettings
from tests.storage.faulty import Fault, FaultyFileSystem
from tests.storage.strategies import batch

ROOT = Path("/data")
SETTINGS = LogSettings(segment_bytes=600, journal_step_bytes=8192)
POINTS = ROOT / "recovery-point-offset-checkpoint"


def segment(partition: int, base_offset: int = 0) -> Path:
    """The path of a segment."""
    return ROOT / f"__consumer_offsets-{partition}" / f"{base_offset:020d}.log"


def log_of(batches: list[bytes], *, point: int | None) -> FaultyFileSystem:
    """A data directory with these batches in one segment of partition 0, and perhaps a recovery point."""
    fs = FaultyFileSystem(ROOT)
    fs.mkdir(segment(0).parent)
    fs.open(segment(0), create=True).pwrite(batches, 0)
    if point is not None:
        write_offsets(fs, POINTS, {("__consumer_offsets", Partition(0)): Offset(point)})
    return fs


def ours(fs: FaultyFileSystem) -> FaultyFileSystem:
    """The directory as one that a node of this kind has written alone."""
    write_registry_file(fs, ROOT / JOURNAL_DIR, {})
    return fs


def content(manager: LogManager, partition: int = 0) -> list[bytes]:
    """All batches of a partition."""
    found: list[bytes] = []
    offset = 0
    while offset < manager.end_offset(Partition(partition)):
        data, offset = manager.read(Partition(partition), Offset(offset), 1)
        found += (one.data for one in iter_batches(data, check=True))
    return found


BATCHES = [batch(1, 0, 2), batch(2, 2, 1), batch(3, 3, 3)]
BEFORE_LAST = len(BATCHES[0] + BATCHES[1])


@pytest.mark.parametrize("point", [None, 0, 3])
def test_a_log_cut_at_any_byte_of_its_last_batch_holds_all_before_it(point: int | None) -> None:
    whole = b"".join(BATCHES)
    for cut in range(BEFORE_LAST, len(whole)):
        fs = log_of([whole[:cut]], point=point)
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert content(manager) == BATCHES[:2]
        assert manager.end_offset(Partition(0)) == 3
        assert len(fs.inode(segment(0)).data) == BEFORE_LAST
        assert [one.size_bytes for one in manager.cuts] == ([cut - BEFORE_LAST] if cut > BEFORE_LAST else [])
        manager.append([Entry(Partition(0), Offset(3), BATCHES[2])], sync=True)
        assert content(manager) == BATCHES


@pytest.mark.parametrize("point", [None, 0, 3])
def test_a_log_that_ends_in_zeros_loses_only_these(point: int | None) -> None:
    manager = LogManager.open(ROOT, SETTINGS, log_of([*BATCHES[:2], bytes(5000)], point=point))
    assert content(manager) == BATCHES[:2]


@pytest.mark.parametrize("point", [4, 6, 7])
def test_losing_what_was_on_disk_is_damage_and_nothing_is_cut(point: int) -> None:
    whole = b"".join(BATCHES)
    for cut in (BEFORE_LAST, len(whole) - 1) if point < 7 else (len(whole),):
        fs = log_of([whole[:cut]], point=point)
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert manager.failed_partitions.keys() == {0}
        assert f"offsets up to {point} were on disk" in str(manager.failed_partitions[Partition(0)])
        assert fs.inode(segment(0)).data == whole[:cut]


def test_a_flipped_byte_before_the_end_is_damage_and_nothing_is_cut() -> None:
    whole = b"".join(BATCHES)
    for start, end in ((0, len(BATCHES[0])), (len(BATCHES[0]), BEFORE_LAST)):
        # The checksum does not cover a batch's base offset and leader epoch.
        for position in (*range(start + 8, start + 12), *range(start + 16, end)):
            damaged = bytearray(whole)
            damaged[position] ^= 0x21
            fs = log_of([bytes(damaged)], point=None)
            manager = LogManager.open(ROOT, SETTINGS, fs)
            assert manager.failed_partitions.keys() == {0}, position
            assert manager.failed_partitions[Partition(0)].position == start
            manager.close()
            assert fs.inode(segment(0)).data == damaged


def test_a_failed_partition_refuses_and_the_others_serve() -> None:
    fs = log_of([b"junk" * 20, *BATCHES], point=None)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    for use in (
        manager.end_offset,
        manager.get_or_create_log,
        lambda partition: manager.read(partition, Offset(0), 1),
    ):
        with pytest.raises(CorruptLog):
            use(Partition(0))
    with pytest.raises(CorruptLog):
        manager.append(
            [Entry(Partition(1), Offset(0), batch(1, 0)), Entry(Partition(0), Offset(0), batch(1, 0))],
            sync=True,
        )
    manager.append([Entry(Partition(1), Offset(0), batch(9, 0))], sync=True)
    assert content(manager, 1) == [batch(9, 0)]
    manager.close()
    assert not fs.exists(ROOT / ".kafka_cleanshutdown")


def two_partitions() -> FaultyFileSystem:
    """What a crash leaves of two partitions: something in the segments, something in the journal alone."""
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.append(
        [Entry(partition, Offset(0), BATCHES[0]) for partition in map(Partition, (0, 1))], sync=True
    )
    manager.checkpoint_journal()
    manager.append(
        [Entry(partition, Offset(2), BATCHES[1]) for partition in map(Partition, (0, 1))], sync=True
    )
    fs.restart(power_loss=True)
    return fs


def test_a_partition_that_the_disk_cannot_read_fails_alone_and_loses_nothing() -> None:
    fs = two_partitions()
    fs.unreadable.add(str(segment(0)))
    manager = LogManager.open(ROOT, SETTINGS, fs)
    (error,) = manager.failed_partitions.values()
    assert str(error) == f"{segment(0)}: recovering it failed: Input/output error"
    with pytest.raises(CorruptLog):
        manager.end_offset(Partition(0))
    assert content(manager, 1) == BATCHES[:2]
    manager.append([Entry(Partition(1), Offset(3), BATCHES[2])], sync=True)
    manager.close()
    assert not fs.exists(ROOT / ".kafka_cleanshutdown")

    fs.unreadable.clear()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions == {}
    assert (content(manager, 0), content(manager, 1)) == (BATCHES[:2], BATCHES)


def test_the_topics_id_is_read_where_it_can_be() -> None:
    fs = two_partitions()
    ids = [segment(partition).parent / "partition.metadata" for partition in (0, 1)]
    topic_id = bytes(fs.inode(ids[1]).data)
    fs.unreadable.add(str(ids[0]))
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.append([Entry(Partition(2), Offset(0), BATCHES[0])], sync=True)
    manager.close()
    assert bytes(fs.inode(segment(2).parent / "partition.metadata").data) == topic_id
    fs.unreadable.update(str(segment(partition).parent / "partition.metadata") for partition in (1, 2))
    with pytest.raises(StorageError, match="Input/output error"):
        LogManager.open(ROOT, SETTINGS, fs)


def test_an_error_at_any_step_of_a_start_ends_it_or_costs_one_partition_until_the_next() -> None:
    failed: set[int] = set()
    for after in range(200):
        fs = two_partitions()
        fs.fail(Fault.IO_ERROR, after)
        serving: list[Partition] = []
        try:
            manager = LogManager.open(ROOT, SETTINGS, fs)
        except StorageError:
            pass
        else:
            if fs.fail_at is not None:
                break  # that were all steps
            assert len(manager.failed_partitions) <= 1
            failed |= manager.failed_partitions.keys()
            serving = [each for each in map(Partition, (0, 1)) if each not in manager.failed_partitions]
            manager.append([Entry(each, Offset(3), BATCHES[2]) for each in serving], sync=True)
        fs.restart(power_loss=True)
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert manager.failed_partitions == {}, fs.log
        for partition in (0, 1):
            expected = BATCHES if partition in serving else BATCHES[:2]
            assert content(manager, partition) == expected, fs.log
    else:
        raise AssertionError("a start takes more steps than were tried")
    assert failed == {0, 1}


def test_a_repair_that_cannot_read_is_tried_again() -> None:
    fs = two_partitions()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    fs.unreadable.add(str(segment(0)))
    with pytest.raises(StorageError, match="Input/output error") as raised:
        manager.recover_all_after_failure()
    assert not isinstance(raised.value, CorruptLog)
    fs.unreadable.clear()
    manager.recover_all_after_failure()
    assert manager.failed_partitions == {}
    assert content(manager, 0) == BATCHES[:2]


@pytest.mark.parametrize("max_bytes", [1, 1_000])
def test_segments_that_overlap_are_damage_when_they_are_read(max_bytes: int) -> None:
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, LogSettings(segment_bytes=1), fs)
    manager.append(
        [
            Entry(Partition(0), Offset(0), BATCHES[0]),
            Entry(Partition(0), Offset(2), BATCHES[1]),
            Entry(Partition(0), Offset(3), BATCHES[2]),
        ],
        sync=True,
    )
    manager.close()
    twice = len(BATCHES[0])
    fs.open(segment(0)).pwrite([BATCHES[1]], twice)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions == {}
    with pytest.raises(CorruptLog, match="goes on to offset 2 and beyond") as raised:
        manager.read(Partition(0), Offset(0), max_bytes)
    assert raised.value.path == str(segment(0))
    assert raised.value.position == twice
    assert manager.read(Partition(0), Offset(3), max_bytes) == (BATCHES[2], 6)


def test_damage_that_nobody_was_promised_is_cut_but_saved() -> None:
    damaged = bytearray(b"".join(BATCHES))
    damaged[len(BATCHES[0]) + 70] ^= 1
    fs = log_of([bytes(damaged)], point=2)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert content(manager) == BATCHES[:1]
    (cut,) = manager.cuts
    assert (cut.partition, cut.position, cut.path) == (0, len(BATCHES[0]), segment(0))
    assert cut.saved_as is not None
    assert fs.inode(cut.saved_as).data == damaged[len(BATCHES[0]) :]


def test_segments_behind_a_gap_that_nobody_was_promised_are_set_aside() -> None:
    fs = ours(log_of([BATCHES[0]], point=2))
    fs.open(segment(0, 3), create=True).pwrite([BATCHES[2]], 0)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert content(manager) == BATCHES[:1]
    assert not fs.exists(segment(0, 3))
    assert [one.saved_as for one in manager.cuts if one.path == segment(0, 3)] == [
        segment(0, 3).with_name("00000000000000000003.log.cut")
    ]
    manager.append([Entry(Partition(0), Offset(2), batch(8, 2))], sync=True)
    manager.close()
    assert content(LogManager.open(ROOT, SETTINGS, fs)) == [BATCHES[0], batch(8, 2)]


def test_a_gap_within_a_segment_is_kept_only_where_compaction_may_have_made_it() -> None:
    kept = LogManager.open(ROOT, SETTINGS, ours(log_of([BATCHES[0], BATCHES[2]], point=6)))
    assert content(kept) == [BATCHES[0], BATCHES[2]]
    unknown = LogManager.open(ROOT, SETTINGS, ours(log_of([BATCHES[0], BATCHES[2]], point=None)))
    assert content(unknown) == [BATCHES[0], BATCHES[2]]
    lost = LogManager.open(ROOT, SETTINGS, ours(log_of([BATCHES[0], BATCHES[2]], point=2)))
    assert content(lost) == [BATCHES[0]]


@pytest.mark.parametrize("shared", [False, True])
def test_what_could_not_be_read_at_first_is_still_a_brokers_once_it_can(shared: bool) -> None:
    """The other partitions were taken over meanwhile; a gap behind the recovery point is no torn end."""
    fs = log_of([BATCHES[0], BATCHES[2]], point=6)
    fs.open(segment(0, 9), create=True).pwrite([batch(9, 9)], 0)
    fs.mkdir(segment(1).parent)
    fs.open(segment(1), create=True).pwrite([BATCHES[0]], 0)
    magic = fs.inode(segment(0)).data[16]
    fs.inode(segment(0)).data[16] = 99
    for _ in range(2):
        if shared:
            directory, _ = SharedDirectoryFiles.open(ROOT, SETTINGS, fs)
            assert directory.failed.keys() == {0}
            directory.close(clean=False)
        else:
            manager = LogManager.open(ROOT, SETTINGS, fs)
            assert manager.failed_partitions.keys() == {0}
            manager.close()
        assert read_offsets(fs, ROOT / TAKEN_OVER_FILE) == {
            ("__consumer_offsets", 0): UNKNOWN_END,
            ("__consumer_offsets", 1): 2,
        }
    fs.inode(segment(0)).data[16] = magic
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert content(manager) == [BATCHES[0], BATCHES[2], batch(9, 9)]
    assert (manager.cuts, manager.failed_partitions) == ((), {})
    assert read_offsets(fs, ROOT / TAKEN_OVER_FILE) == {
        ("__consumer_offsets", 0): 10,
        ("__consumer_offsets", 1): 2,
    }


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("point", [None, 0, 2, 3, 6])
def test_a_broker_leaves_gaps_wherever_it_copied_from_a_compacted_replica(
    point: int | None, shared: bool
) -> None:
    """Within a segment and between two, also behind the recovery point that a broker which was killed has noted."""
    fs = log_of([BATCHES[0], BATCHES[2]], point=point)
    fs.open(segment(0, 9), create=True).pwrite([batch(9, 9)], 0)
    write_offsets(fs, ROOT / CLEANER_OFFSET_FILE, {("other", Partition(0)): Offset(1)})
    assert check_partition(fs, ROOT, Partition(0)).damages == []
    if shared:
        SharedDirectoryFiles.open(ROOT, SETTINGS, fs)[0].close(clean=False)
    else:
        LogManager.open(ROOT, SETTINGS, fs)
    fs.restart(power_loss=True)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert content(manager) == [BATCHES[0], BATCHES[2], batch(9, 9)]
    assert (manager.cuts, manager.failed_partitions) == ((), {})
    manager.close()
    # What was there counts as it is, and what comes behind it as written here.
    assert read_offsets(fs, ROOT / TAKEN_OVER_FILE) == {("__consumer_offsets", 0): 10}
    checked = check_partition(fs, ROOT, Partition(0))
    assert (checked.damages, checked.unsettled) == ([], [])
    fs.open(segment(0, 12), create=True).pwrite([batch(12, 12)], 0)
    (damage,) = check_partition(fs, ROOT, Partition(0)).unsettled
    assert damage.reason == "offsets 10 to 11 are missing, and were not compacted"


def test_a_log_that_does_not_start_at_zero_is_read() -> None:
    fs = FaultyFileSystem(ROOT)
    fs.mkdir(segment(0).parent)
    fs.open(segment(0, 100), create=True).pwrite([batch(1, 100, 2)], 0)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.get_or_create_log(Partition(0)).start_offset == 100
    assert manager.read(Partition(0), Offset(0), 1000) == (batch(1, 100, 2), 102)


def test_a_batch_larger_than_what_is_scanned_at_once() -> None:
    big = [batch(1, 0, 30, metadata_bytes=32_000), batch(2, 30, 60, metadata_bytes=32_000), batch(3, 90)]
    manager = LogManager.open(ROOT, SETTINGS, log_of(big, point=0))
    assert content(manager) == big
    torn = LogManager.open(ROOT, SETTINGS, log_of([big[0], big[1][:-1]], point=0))
    assert content(torn) == big[:1]


def test_a_journal_that_goes_on_behind_the_log_is_damage() -> None:
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.append(
        [Entry(Partition(0), Offset(0), BATCHES[0]), Entry(Partition(1), Offset(0), batch(1, 0))], sync=True
    )
    manager.checkpoint_journal()
    manager.append([Entry(Partition(0), Offset(2), BATCHES[1])], sync=True)
    fs.restart(power_loss=False)
    fs.remove(segment(0))
    fs.remove(POINTS)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert "its journal goes on at 2" in str(manager.failed_partitions[Partition(0)])
    assert content(manager, 1) == [batch(1, 0)]
    # Its journal is kept until the partition can be read again.
    manager.append([Entry(Partition(1), Offset(1), batch(2, 1))], sync=True)
    manager.checkpoint_journal()
    manager.close()
    fs.open(segment(0), create=True).pwrite([BATCHES[0]], 0)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.failed_partitions == {}
    assert content(manager) == BATCHES[:2]
    assert content(manager, 1) == [batch(1, 0), batch(2, 1)]


def test_a_journal_kept_for_a_failed_partition_never_brings_back_a_failed_append() -> None:
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.append(
        [Entry(Partition(0), Offset(0), BATCHES[0]), Entry(Partition(1), Offset(0), batch(1, 0))], sync=True
    )
    manager.checkpoint_journal()
    manager.append(
        [Entry(Partition(0), Offset(2), BATCHES[1]), Entry(Partition(1), Offset(1), batch(2, 1))], sync=True
    )
    fs.fail(Fault.IO_ERROR, only="pwrite_durable")
    with pytest.raises(StorageError):
        manager.append([Entry(Partition(1), Offset(2), batch(66, 2))], sync=True)
    # Partition 0 breaks before the repair, so that the journal with the failed frame has to stay.
    fs.remove(segment(0))
    manager.recover_all_after_failure()
    assert manager.failed_partitions.keys() == {0}
    manager.append([Entry(Partition(1), Offset(2), batch(3, 2))], sync=True)
    fs.restart(power_loss=True)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert content(manager, 1) == [batch(1, 0), batch(2, 1), batch(3, 2)]


def test_a_damaged_journal_stops_the_node_and_stays_as_it_is() -> None:
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    for label in range(3):
        manager.append([Entry(Partition(0), Offset(label), batch(label, label))], sync=True)
    fs.restart(power_loss=False)
    path = ROOT / "journal" / f"{1:020d}.journal"
    fs.inode(path).data[4096 + 60] ^= 1
    before = bytes(fs.inode(path).data)
    for _ in range(2):
        with pytest.raises(CorruptLog, match="a frame is damaged"):
            LogManager.open(ROOT, SETTINGS, fs)
        assert fs.inode(path).data == before


def test_a_page_that_looks_fine_after_a_failed_sync_is_written_again() -> None:
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    for label in range(4):
        manager.append([Entry(Partition(0), Offset(label), batch(label, label))], sync=True)
    manager.write_behind()
    fs.inode(segment(0)).dirty.clear()  # what a failed fsync leaves: in the cache, clean, and not on disk
    fs.restart(power_loss=False)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    fs.restart(power_loss=True)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert content(manager) == [batch(label, label) for label in range(4)]


def test_a_failed_sync_of_a_segment_is_not_believed_the_second_time() -> None:
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    manager.append([Entry(Partition(0), Offset(0), batch(1, 0, 3))], sync=True)
    manager.write_behind()
    manager.append([Entry(Partition(0), Offset(3), batch(2, 3, 3))], sync=True)
    # Those before are the new journal's, that of the note of it, and that of the leaders' epochs.
    fs.fail(Fault.IO_ERROR, 3, only="fsync")
    with pytest.raises(StorageError):
        manager.checkpoint_journal()
    with pytest.raises(StorageError, match="an earlier write failed"):
        manager.checkpoint_journal()
    manager.recover_all_after_failure()
    fs.restart(power_loss=True)
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert content(manager) == [batch(1, 0, 3), batch(2, 3, 3)]


@pytest.mark.parametrize("text", ["", "1\n0\n", "0\n2\n__consumer_offsets 0 1\n", "0\nx\n", "0\n1\na b c\n"])
def test_a_recovery_point_file_that_makes_no_sense_is_as_good_as_none(text: str) -> None:
    fs = log_of(BATCHES, point=None)
    fs.open(POINTS, create=True).pwrite([text.encode()], 0)
    assert read_offsets(fs, POINTS) is None
    assert content(LogManager.open(ROOT, SETTINGS, fs)) == BATCHES


def test_recovery_points_of_other_topics_are_kept() -> None:
    fs = log_of(BATCHES, point=0)
    write_offsets(
        fs,
        POINTS,
        {("other-topic", Partition(7)): Offset(42), ("__consumer_offsets", Partition(0)): Offset(0)},
    )
    LogManager.open(ROOT, SETTINGS, fs).close()
    assert read_offsets(fs, POINTS) == {
        ("other-topic", Partition(7)): Offset(42),
        ("__consumer_offsets", 0): 6,
    }


def test_a_partition_whose_directory_was_removed_fails_at_every_start() -> None:
    fs = log_of(BATCHES, point=6)
    fs.remove(segment(0))
    fs.rmdir(segment(0).parent)
    for _ in range(2):
        manager = LogManager.open(ROOT, SETTINGS, fs)
        (error,) = manager.failed_partitions.values()
        assert str(error) == f"{segment(0).parent}: the directory is missing, and offsets up to 6 were in it"
        with pytest.raises(CorruptLog):
            manager.append([Entry(Partition(0), Offset(0), batch(1, 0))], sync=True)
        manager.append(
            [
                Entry(
                    Partition(1), manager.end_offset(Partition(1)), batch(1, manager.end_offset(Partition(1)))
                )
            ],
            sync=True,
        )
        manager.close()
        assert not fs.exists(segment(0).parent)
        assert not fs.exists(ROOT / ".kafka_cleanshutdown")


POSITIONS = ROOT / "recovery-point-positions"


def test_a_restart_does_not_walk_over_what_was_on_disk() -> None:
    fs = FaultyFileSystem(ROOT)
    manager = LogManager.open(ROOT, LogSettings(journal_step_bytes=8192), fs)
    for label in range(200):
        manager.append([Entry(Partition(0), Offset(label), batch(label, label))], sync=True)
    manager.checkpoint_journal()
    before = len(fs.inode(segment(0)).data)
    for label in range(200, 205):
        manager.append([Entry(Partition(0), Offset(label), batch(label, label))], sync=True)
    manager.write_behind()
    fs.restart(power_loss=False)
    fs.bytes_read.clear()
    manager = LogManager.open(ROOT, SETTINGS, fs)
    assert manager.end_offset(Partition(0)) == 205
    assert fs.bytes_read[str(segment(0))] < before
    assert content(manager) == [batch(label, label) for label in range(205)]


@pytest.mark.parametrize(
    "line", ["5 0 10", "6 0 10", "6 0 100000", "6 0 -1", "6 3 0", "6 0 123", "6 0", "x", "6 0 0"]
)
def test_a_wrong_hint_of_a_position_is_not_believed(line: str) -> None:
    for torn in (b"", b"torn"):
        fs = log_of([*BATCHES, torn], point=6)
        fs.open(POSITIONS, create=True).pwrite([f"0\n1\n__consumer_offsets 0 {line}\n".encode()], 0)
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert manager.failed_partitions == {}
        assert content(manager) == BATCHES
        assert manager.end_offset(Partition(0)) == 6
