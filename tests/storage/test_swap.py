# SPDX-License-Identifier: Apache-2.0
"""Cleaned segments take the place of others, wherever that is interrupted."""

import random
from pathlib import Path

import pytest

from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.partition_cleaning import write_cleaned_segments
from storage.cleaner.plan import CleanerSettings
from storage.disk.filesystem import FileSystem
from storage.errors import StorageError
from storage.log_manager import LogManager
from storage.partition.swap import finish_or_undo_swaps
from storage.settings import LogSettings
from tests.storage.cleaning import NOW, RETENTION, History, build, content, replay
from tests.storage.every_fault import EVERY_FAULT
from tests.storage.faulty import Crash, Fault, FaultyFileSystem

ROOT = Path("/data")
DIRECTORY = ROOT / "__consumer_offsets-0"
SETTINGS = LogSettings(segment_bytes=1_500, index_interval_bytes=200, journal_step_bytes=8192)


def cleaner_of(manager: LogManager, fs: FileSystem, now_ms: int = NOW) -> LogCleaner:
    settings = CleanerSettings(min_cleanable_dirty_ratio=0, delete_retention_ms=RETENTION)
    return LogCleaner(manager, settings, lambda job: write_cleaned_segments(fs, job), lambda: now_ms)


def prepared(seed: int) -> tuple[FaultyFileSystem, LogManager, History]:
    """A log that was cleaned once, and then written to, so that the next cleaning removes tombstones."""
    fs = FaultyFileSystem(ROOT, random.Random(seed))
    manager = LogManager.open(ROOT, SETTINGS, fs)
    history = History(manager, 0)
    history.random(random.Random(7), 40, transactions=False)
    manager.checkpoint_journal()
    cleaner_of(manager, fs).clean_dirtiest()
    history.random(random.Random(8), 60, transactions=False)
    manager.checkpoint_journal()
    return fs, manager, history


def operations() -> int:
    """How many operations of the second cleaning can fail."""
    fs, manager, _ = prepared(0)
    fs.operations = 0
    assert cleaner_of(manager, fs, NOW + RETENTION).clean_dirtiest() is not None
    return fs.operations


@pytest.mark.parametrize("power_loss", [False, True])
@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_any_operation_of_a_cleaning_may_fail(fault: Fault, power_loss: bool) -> None:
    for operation in range(operations()):
        fs, manager, history = prepared(operation)
        fs.fail(fault, operation)
        try:
            cleaner_of(manager, fs, NOW + RETENTION).clean_dirtiest()
        except StorageError:
            if manager.append_failure is not None:
                manager.recover_all_after_failure()
            assert replay(content(manager, 0)) == history.state, fs.log
        except Crash:
            assert fault is Fault.CRASH
        fs.restart(power_loss=power_loss)
        manager = LogManager.open(ROOT, SETTINGS, fs)
        assert manager.failed_partitions == {}, fs.log
        assert replay(content(manager, 0)) == history.state, fs.log
        assert not [
            name for name in fs.listdir(DIRECTORY) if name.endswith((".cleaned", ".swap", ".deleted"))
        ]
        # And it goes on.
        history.manager = manager
        history.random(random.Random(9), 30, transactions=False)
        manager.checkpoint_journal()
        cleaner_of(manager, fs, NOW + RETENTION).clean_dirtiest()
        assert replay(content(manager, 0)) == history.state, fs.log
        manager.close()
        fs.restart(power_loss=True)
        assert replay(content(LogManager.open(ROOT, SETTINGS, fs), 0)) == history.state


def put(fs: FaultyFileSystem, name: str, data: bytes = b"") -> None:
    file = fs.open(DIRECTORY / name, create=True)
    file.truncate(0)
    file.pwrite([data], 0)


def files(fs: FaultyFileSystem, *names: str) -> list[str]:
    """Make files with these names, finish what they say, and return those that are left."""
    fs.mkdir(DIRECTORY)
    for name in names:
        put(fs, name)
    finish_or_undo_swaps(fs, DIRECTORY)
    return fs.listdir(DIRECTORY)


A, B, C = (f"{base:020d}" for base in (0, 100, 200))


def test_files_of_an_unfinished_cleaning_are_removed() -> None:
    fs = FaultyFileSystem(ROOT)
    left = files(fs, f"{A}.log", f"{A}.index", f"{A}.log.cleaned", f"{A}.index.cleaned", f"{B}.log.deleted")
    assert left == [f"{A}.index", f"{A}.log"]


def test_a_swap_beside_a_cleaned_file_of_the_same_segment_is_not_whole() -> None:
    fs = FaultyFileSystem(ROOT)
    assert files(fs, f"{A}.log", f"{A}.log.swap", f"{A}.index.cleaned") == [f"{A}.log"]
    # One before it is.
    left = files(fs, f"{A}.log", f"{B}.log", f"{A}.log.swap", f"{C}.log.cleaned")
    assert left == [f"{A}.log", f"{B}.log"]


def test_a_swap_replaces_all_segments_that_begin_within_it() -> None:
    fs = FaultyFileSystem(ROOT)
    fs.mkdir(DIRECTORY)
    for base, name in ((0, A), (100, B), (200, C)):
        put(fs, f"{name}.log", build(base, [(b"k", b"v")]))
        put(fs, f"{name}.index")
        put(fs, f"{name}.snapshot")
    swapped = build(0, [(b"k", b"v")]) + build(150, [(b"l", b"w")])
    put(fs, f"{A}.log.swap", swapped)
    put(fs, f"{A}.timeindex.swap")
    assert finish_or_undo_swaps(fs, DIRECTORY)
    assert fs.listdir(DIRECTORY) == [
        f"{A}.log", f"{A}.snapshot", f"{A}.timeindex", f"{C}.index", f"{C}.log", f"{C}.snapshot",
    ]  # fmt: skip
    assert bytes(fs.inode(DIRECTORY / f"{A}.log").data) == swapped
    assert not finish_or_undo_swaps(fs, DIRECTORY)


def test_the_rest_of_a_swap_whose_log_has_its_name_already() -> None:
    fs = FaultyFileSystem(ROOT)
    left = files(fs, f"{A}.log", f"{A}.index.swap", f"{A}.timeindex.swap", f"{B}.log.deleted", f"{C}.log")
    assert left == [f"{A}.index", f"{A}.log", f"{A}.timeindex", f"{C}.log"]


def test_a_log_that_was_opened_again_is_not_swapped_into() -> None:
    fs, manager, history = prepared(0)

    def run(job: object) -> object:
        from storage.cleaner.partition_cleaning import CleaningJob

        assert isinstance(job, CleaningJob)
        result = write_cleaned_segments(fs, job)
        manager.recover_all_after_failure()
        return result

    settings = CleanerSettings(min_cleanable_dirty_ratio=0)
    assert LogCleaner(manager, settings, run, lambda: NOW).clean_dirtiest() is None  # type: ignore[arg-type]
    assert replay(content(manager, 0)) == history.state
    assert not fs.exists(ROOT / "cleaner-offset-checkpoint") or manager.append_failure is None
