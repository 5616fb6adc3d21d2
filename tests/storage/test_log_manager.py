# SPDX-License-Identifier: Apache-2.0
"""LogManager's contract where no disk fails, and how it fails when one does."""

import errno
import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import File, RealFileSystem
from storage.errors import LogNotWritable, StorageError, StorageFull
from storage.format.batch import iter_batches
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.recovery import partitions_on_disk
from storage.settings import LogSettings
from tests.storage.faulty import Fault, FaultyFileSystem
from tests.storage.strategies import batch

ROOT = Path("/data")
SETTINGS = LogSettings(segment_bytes=2000, journal_step_bytes=8192)


def opened(fs: FaultyFileSystem | None = None) -> tuple[LogManager, FaultyFileSystem]:
    """A manager on a disk in memory."""
    fs = fs or FaultyFileSystem(ROOT)
    return LogManager.open(ROOT, SETTINGS, fs), fs


def content(manager: LogManager, partition: int) -> list[bytes]:
    """All batches of a partition."""
    data, following = manager.read(Partition(partition), Offset(0), 1 << 20)
    while following < manager.end_offset(Partition(partition)):
        more, following = manager.read(Partition(partition), following, 1 << 20)
        data += more
    return [one.data for one in iter_batches(data, check=True)]


def append(manager: LogManager, label: int, *partitions: int, sync: bool = True) -> None:
    """One record to each partition."""
    ends = [(partition, manager.end_offset(partition)) for partition in map(Partition, partitions)]
    manager.append([Entry(p, end, batch(label, end)) for p, end in ends], sync=sync)


def test_end_offset_counts_what_still_waits_for_its_segment() -> None:
    manager, fs = opened()
    five, six = Partition(5), Partition(6)
    assert manager.end_offset(five) == 0
    manager.append(
        [
            Entry(five, Offset(0), batch(1, 0, 3)),
            Entry(six, Offset(0), batch(1, 0)),
            Entry(five, Offset(3), batch(2, 3)),
        ],
        sync=True,
    )
    assert (
        manager.end_offset(five),
        manager.end_offset(six),
        manager.get_or_create_log(five).end_offset,
    ) == (4, 1, 0)
    assert manager.pending_segment_bytes == len(batch(1, 0, 3) + batch(1, 0) + batch(2, 3))
    assert (
        manager.write_behind()
        == manager.get_or_create_log(five).size_bytes + manager.get_or_create_log(six).size_bytes
    )
    assert (manager.pending_segment_bytes, manager.get_or_create_log(five).end_offset) == (0, 4)
    assert partitions_on_disk(fs, ROOT, "__consumer_offsets") == [5, 6]


def test_a_read_sees_all_that_was_accepted() -> None:
    manager, _ = opened()
    for label in range(50):
        append(manager, label, 0, sync=label % 2 == 0)
        if label == 20:
            manager.write_behind()
    assert content(manager, 0) == [batch(label, label) for label in range(50)]
    assert manager.read(Partition(0), Offset(50), 100) == (b"", 50)
    assert manager.read(Partition(9), Offset(0), 100) == (b"", 0)


def test_write_behind_stops_at_its_limit() -> None:
    manager, _ = opened()
    for label in range(10):
        append(manager, label, 0, 1, 2)
    whole = manager.pending_segment_bytes
    written = manager.write_behind(1)
    assert 0 < written < whole
    assert manager.pending_segment_bytes == whole - written
    manager.write_behind(whole)
    assert manager.pending_segment_bytes == 0


def test_a_wrong_base_offset_is_refused_and_changes_nothing() -> None:
    manager, _ = opened()
    append(manager, 1, 0)
    partition = Partition(0)
    for offsets in ([0], [2], [1, 1]):
        entries = [Entry(partition, Offset(offset), batch(2, offset)) for offset in offsets]
        with pytest.raises(ValueError, match="the log ends at"):
            manager.append(entries, sync=True)
    assert manager.append_failure is None
    assert manager.end_offset(Partition(0)) == 1
    manager.append([], sync=True)
    append(manager, 2, 0)
    assert content(manager, 0) == [batch(1, 0), batch(2, 1)]


def test_a_checkpoint_empties_the_journal_and_loses_nothing() -> None:
    manager, fs = opened()
    for label in range(20):
        append(manager, label, 0, 1)
    assert manager.journal_bytes > 0
    manager.checkpoint_journal()
    assert (manager.journal_bytes, manager.pending_segment_bytes) == (0, 0)
    assert fs.listdir(ROOT / "journal") == [f"{2:020d}.journal", "spare"]
    manager.checkpoint_journal()
    assert fs.listdir(ROOT / "journal") == [f"{2:020d}.journal", "spare"]
    append(manager, 20, 0)
    fs.restart(power_loss=True)
    manager, _ = opened(fs)
    assert content(manager, 0) == [batch(label, label) for label in range(21)]
    assert content(manager, 1) == [batch(label, label) for label in range(20)]


def test_a_clean_close_leaves_what_a_broker_expects_and_nothing_else() -> None:
    manager, fs = opened()
    for label in range(30):
        append(manager, label, 0, 1)
    manager.close()
    manager.close()
    assert [name for name in fs.listdir(ROOT) if not name.startswith("__consumer_offsets-")] == [
        ".kafka_cleanshutdown",
        ".lock",
        "open-journals",
        "recovery-point-offset-checkpoint",
        "recovery-point-positions",
    ]
    mark = json.loads(fs.inode(ROOT / ".kafka_cleanshutdown").data)
    stop = mark.pop("id")
    assert mark == {"version": 0, "brokerEpoch": -1}
    assert json.loads(fs.inode(ROOT / "open-journals").data) == {"version": 1, "journals": {}, "closed": stop}
    points = fs.inode(ROOT / "recovery-point-offset-checkpoint").data
    assert points == b"0\n2\n__consumer_offsets 0 30\n__consumer_offsets 1 30\n"
    with pytest.raises(LogNotWritable, match="closed"):
        append(manager, 99, 0)
    fs.restart(power_loss=True)
    manager, _ = opened(fs)
    assert not fs.exists(ROOT / ".kafka_cleanshutdown")
    assert content(manager, 0) == [batch(label, label) for label in range(30)]


def test_all_partitions_share_one_topic_id_also_after_a_restart() -> None:
    manager, fs = opened()
    append(manager, 1, 3, 8)
    manager.close()
    manager, _ = opened(fs)
    append(manager, 1, 12)
    manager.close()
    texts = {
        bytes(fs.inode(ROOT / f"__consumer_offsets-{partition}" / "partition.metadata").data)
        for partition in (3, 8, 12)
    }
    assert len(texts) == 1


def test_directories_of_other_topics_are_not_ours() -> None:
    fs = FaultyFileSystem(ROOT)
    for name in (
        "other-3",
        "__consumer_offsets-3.0123-delete",
        "__consumer_offsets-03",
        "__consumer_offsets-x",
    ):
        fs.mkdir(ROOT / name)
    manager, _ = opened(fs)
    assert partitions_on_disk(fs, ROOT, "__consumer_offsets") == []
    manager.close()
    assert len(fs.listdir(ROOT)) == 9


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("fault", [Fault.FULL, Fault.IO_ERROR])
def test_after_a_failed_append_all_others_fail_until_the_repair(fault: Fault, sync: bool) -> None:
    manager, fs = opened()
    append(manager, 1, 0)
    fs.fail(fault, only="pwrite_durable" if sync else "pwrite")
    with pytest.raises(StorageFull if fault is Fault.FULL else StorageError, match="appending failed"):
        append(manager, 66, 0, 1, sync=sync)
    assert manager.append_failure is not None
    for use in (
        lambda: append(manager, 2, 0, sync=sync),
        manager.sync,
        manager.checkpoint_journal,
        manager.write_behind,
        lambda: manager.read(Partition(0), Offset(0), 1),
    ):
        with pytest.raises(LogNotWritable, match="an earlier write failed"):
            use()
    manager.recover_all_after_failure()
    assert manager.append_failure is None
    assert (manager.end_offset(0), manager.end_offset(1)) == (1, 0)
    append(manager, 3, 0, 1)
    fs.restart(power_loss=True)
    manager, _ = opened(fs)
    assert content(manager, 0) == [batch(1, 0), batch(3, 1)]
    assert content(manager, 1) == [batch(3, 0)]


def test_a_repair_that_fails_can_be_tried_again() -> None:
    manager, fs = opened()
    append(manager, 1, 0)
    fs.fail(Fault.IO_ERROR, only="pwrite_durable")
    with pytest.raises(StorageError):
        append(manager, 66, 0)
    attempts = 0
    while manager.append_failure is not None:
        fs.fail(Fault.FULL, attempts)
        try:
            manager.recover_all_after_failure()
        except StorageFull:
            attempts += 1
            with pytest.raises(LogNotWritable):
                append(manager, 67, 0)
    assert attempts > 5
    fs.fail_at = None
    append(manager, 2, 0)
    assert content(manager, 0) == [batch(1, 0), batch(2, 1)]


def test_a_full_disk_is_found_before_anything_is_written() -> None:
    manager, fs = opened()
    fs.fail(Fault.FULL, only="allocate")
    before = b""
    while manager.append_failure is None:
        before = bytes(fs.inode(ROOT / "journal" / f"{1:020d}.journal").data)
        with suppress(StorageFull):
            append(manager, 1, 0)
    assert manager.end_offset(Partition(0)) > 10
    assert fs.inode(ROOT / "journal" / f"{1:020d}.journal").data == before


def test_a_failed_write_behind_can_be_tried_again_and_appends_go_on() -> None:
    manager, fs = opened()
    for label in range(60):
        append(manager, label, 0)
    for after in range(3):
        fs.fail(Fault.FULL, after, only="pwrite")
        with pytest.raises(StorageFull):
            manager.write_behind()
        append(manager, 60 + after, 0)
    assert manager.append_failure is None
    manager.write_behind()
    assert manager.pending_segment_bytes == 0
    assert content(manager, 0) == [batch(label, label) for label in range(63)]


def test_a_checkpoint_that_finds_no_space_changes_nothing() -> None:
    manager, fs = opened()
    for label in range(10):
        append(manager, label, 0, 1)
    for only in ("create", "pwrite", "create", "pwrite"):
        fs.fail(Fault.FULL, only=only)
        with pytest.raises(StorageFull):
            manager.checkpoint_journal()
        assert manager.append_failure is None
    append(manager, 10, 0)
    manager.checkpoint_journal()
    assert manager.journal_bytes == 0
    fs.restart(power_loss=True)
    manager, _ = opened(fs)
    assert content(manager, 0) == [batch(label, label) for label in range(11)]


def test_a_failed_sync_fails_the_manager() -> None:
    manager, fs = opened()
    append(manager, 1, 0, sync=False)
    fs.fail(Fault.IO_ERROR, only="fdatasync")
    with pytest.raises(StorageError, match="syncing failed"):
        manager.sync()
    with pytest.raises(LogNotWritable):
        append(manager, 2, 0, sync=False)
    manager.recover_all_after_failure()
    append(manager, 3, 0, sync=False)
    manager.sync()
    fs.restart(power_loss=True)
    manager, _ = opened(fs)
    assert content(manager, 0) == [batch(1, 0), batch(3, 1)]


def test_closing_a_failed_manager_raises_and_unlocks() -> None:
    manager, fs = opened()
    append(manager, 1, 0)
    fs.fail(Fault.IO_ERROR, only="pwrite_durable")
    with pytest.raises(StorageError):
        append(manager, 66, 0)
    with pytest.raises(LogNotWritable):
        manager.close()
    assert not fs.exists(ROOT / ".kafka_cleanshutdown")
    manager, _ = opened(fs)
    assert content(manager, 0)[0] == batch(1, 0)


@pytest.mark.parametrize("failures", [1, 2, 3, 20])
def test_files_that_cannot_be_closed_keep_the_directory_from_no_other(failures: int) -> None:
    manager, fs = opened()
    append(manager, 1, 0, 1)
    fs.close_errors = [OSError(errno.EIO, os.strerror(errno.EIO)) for _ in range(failures)]
    with pytest.raises(StorageError):
        manager.close()
    fs.close_errors.clear()
    manager, _ = opened(fs)
    assert content(manager, 0) == content(manager, 1) == [batch(1, 0)]


def test_opening_that_fails_unlocks() -> None:
    fs = FaultyFileSystem(ROOT)
    manager, _ = opened(fs)
    append(manager, 1, 0)
    manager.close()
    for after in range(5):
        fs.fail(Fault.FULL, after)  # an I/O error may cost a partition alone: see test_recovery
        with pytest.raises(StorageError):
            opened(fs)
    fs.fail_at = None
    manager, _ = opened(fs)
    assert content(manager, 0) == [batch(1, 0)]


# ------------------------------------------------------------------ threads


class SlowSyncFileSystem(RealFileSystem):
    """A real disk, whose syncs take until they are let go."""

    def __init__(self) -> None:
        self.syncing = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()

    def open(self, path: Path, *, create: bool = False) -> File:
        """A file whose `fsync` waits."""
        return SlowSyncFile(super().open(path, create=create), self)


class SlowSyncFile:
    """Passes everything on, after a wait where something is synced."""

    def __init__(self, file: File, fs: SlowSyncFileSystem) -> None:
        self._file = file
        self._fs = fs
        self.pread, self.pwrite, self.pwrite_durable = file.pread, file.pwrite, file.pwrite_durable
        self.allocate, self.truncate, self.size = file.allocate, file.truncate, file.size
        self.try_lock, self.close = file.try_lock, file.close
        self.is_any_file_at_path, self.is_still_at_path = file.is_any_file_at_path, file.is_still_at_path

    def _wait(self) -> None:
        if not self._fs.go_on.is_set():
            self._fs.syncing.set()
            assert self._fs.go_on.wait(120)

    def fsync(self) -> None:
        """Wait, then sync."""
        self._wait()
        self._file.fsync()

    def fdatasync(self) -> None:
        """Wait, then sync."""
        self._wait()
        self._file.fdatasync()


@pytest.mark.parametrize("step", ["checkpoint_journal", "sync"])
def test_appends_go_on_while_the_disk_is_synced(tmp_path: Path, step: str) -> None:
    fs = SlowSyncFileSystem()
    manager = LogManager.open(tmp_path, SETTINGS, fs)
    append(manager, 0, 0, sync=False)
    fs.go_on.clear()
    thread = threading.Thread(target=getattr(manager, step))
    thread.start()
    assert fs.syncing.wait(120)
    for label in range(1, 20):
        append(manager, label, 0, sync=False)
    assert manager.end_offset(Partition(0)) == 20
    fs.go_on.set()
    thread.join(120)
    assert content(manager, 0) == [batch(label, label) for label in range(20)]
    manager.close()


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let Python change from one thread to the next wherever it can, and not only every 5 ms."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_append_write_and_checkpoint_at_once_lose_nothing(
    tmp_path: Path, eager_threads: None
) -> None:
    manager = LogManager.open(tmp_path, SETTINGS, RealFileSystem())
    done = threading.Event()
    errors: list[StorageError] = []

    def keep_writing(step: str) -> None:
        try:
            while not done.is_set():
                getattr(manager, step)()
        except StorageError as error:
            errors.append(error)

    threads = [
        threading.Thread(target=keep_writing, args=(step,)) for step in ("write_behind", "checkpoint_journal")
    ]
    for thread in threads:
        thread.start()
    for label in range(400):
        append(manager, label, label % 3, sync=label % 7 == 0)
        if label % 50 == 0:
            content(manager, 0)
    done.set()
    for thread in threads:
        thread.join(120)
    assert errors == []
    expected: dict[int, list[int]] = {p: list(range(p, 400, 3)) for p in range(3)}
    manager.close()
    manager = LogManager.open(tmp_path, SETTINGS, RealFileSystem())
    for partition, labels in expected.items():
        found: Sequence[bytes] = content(manager, partition)
        assert found == [batch(label, offset) for offset, label in enumerate(labels)]
    manager.close()


def test_a_batch_may_come_at_any_moment_of_writing_behind(eager_threads: None) -> None:
    """Two threads change what waits for its segments: one by appending, one by writing it there."""
    manager = LogManager.open(Path("/data"), SETTINGS, FaultyFileSystem(Path("/data")))
    done = threading.Event()

    def keep_writing() -> None:
        while not done.is_set():
            manager.write_behind()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(keep_writing)
        for label in range(15_000):
            append(manager, label, label % 3, sync=False)
        done.set()
        writing.result(120)
    assert [manager.end_offset(Partition(p)) for p in range(3)] == [5_000] * 3
    manager.close()
