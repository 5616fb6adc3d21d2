# SPDX-License-Identifier: Apache-2.0
"""Partitions that move between the nodes of a shared directory: nothing is lost, nothing is there twice."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.newtypes import Offset, Partition
from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.partition_cleaning import (
    CleaningAborted,
    CleaningJob,
    CleaningResult,
    write_cleaned_segments,
)
from storage.cleaner.plan import CleanerSettings
from storage.disk.checkpoint_file import read_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import CLEANER_OFFSET_FILE, RECOVERY_POINT_FILE
from storage.errors import CorruptLog, DirectoryLocked, NotOwned
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.shared_directory import SharedDirectoryFiles
from tests.storage.cleaning import History, content, replay
from tests.storage.faulty import Crash, Fault, FaultyFileSystem
from tests.storage.machine import ROOT, SETTINGS
from tests.storage.sharing import PARTITIONS, SharingMachine
from tests.storage.strategies import batch

partition_lists = st.lists(st.integers(0, PARTITIONS - 1), min_size=1, max_size=4, unique=True)
steps = st.one_of(
    st.tuples(st.just("append"), partition_lists, st.booleans(), st.sampled_from([1, 1, 3, 20])),
    st.tuples(st.just("append"), partition_lists, st.booleans(), st.sampled_from([1, 1, 3, 20])),
    st.tuples(
        st.just("attempt"),
        st.integers(0, 3),
        st.sampled_from(["write_behind", "checkpoint_journal", "sync", "recover_all_after_failure"]),
    ),
    st.tuples(st.just("move"), st.integers(0, PARTITIONS - 1), st.integers(0, 3)),
    st.tuples(st.just("kill"), st.integers(0, 3)),
    st.tuples(st.just("stop"), st.integers(1, 4)),
    st.tuples(st.just("restart"), st.integers(1, 4), st.booleans()),
    st.tuples(st.just("fail"), st.sampled_from(list(Fault)), st.integers(0, 20)),
)


@given(st.integers(0, 1 << 32), st.integers(1, 4), st.lists(steps, max_size=50))
def test_any_life_of_several_nodes_with_any_faults(
    seed: int, nodes: int, life: list[tuple[object, ...]]
) -> None:
    machine = SharingMachine(seed, nodes)
    for name, *arguments in life:
        try:
            take(machine, str(name), arguments)
        except Crash:
            machine.restart(machine.rng.randint(1, 4), power_loss=machine.rng.random() < 0.5)
    machine.restart(3, power_loss=True)
    assert machine.stop(1)
    assert machine.stop(2)


def take(machine: SharingMachine, name: str, arguments: list[object]) -> None:
    """One step of a life."""
    match name, arguments:
        case "append", [list(partitions), bool(sync), int(count)]:
            machine.append(partitions, sync=sync, count=count)
        case "attempt", [int(node), str(step)]:
            chosen = machine.existing(node)
            if step != "recover_all_after_failure" or machine.managers[chosen].append_failure is not None:
                machine.attempt(chosen, step)
        case "move", [int(partition), int(to)]:
            machine.move(partition, to)
        case "kill", [int(node)]:
            machine.kill(node)
        case "stop", [int(nodes)]:
            machine.stop(nodes)
        case "restart", [int(nodes), bool(power_loss)]:
            machine.restart(nodes, power_loss=power_loss)
        case "fail", [Fault() as fault, int(after)]:
            machine.fs.fail(fault, after)
        case _:
            raise AssertionError(name)


@pytest.mark.parametrize("noted", [True, False])
def test_a_partition_goes_to_and_fro_and_the_journals_of_both_are_replayed(noted: bool) -> None:
    """Also when the file is lost that says how much of them the segments hold."""
    machine = SharingMachine(1, 2)
    for turn in range(6):
        machine.append([0], sync=noted, count=3)
        machine.move(0, turn)
        machine.append([0, 1], sync=noted)
    assert all(manager.journal_bytes for manager in machine.managers.values())
    if not noted:
        machine.fs.remove(ROOT / RECOVERY_POINT_FILE)
    machine.restart(1, power_loss=noted)
    assert machine.managers[1].end_offset(Partition(0)) == 6 * 4
    machine.restart(3, power_loss=noted)
    assert machine.managers[machine.owners[0]].end_offset(Partition(0)) == 6 * 4


def test_a_node_opens_no_partition_that_it_was_not_given() -> None:
    machine = SharingMachine(2, 2)
    machine.append(range(PARTITIONS), sync=True)
    node, other = 1, 2
    manager = machine.managers[node]
    machine.move(0, 1)  # the second
    assert machine.owners[0] == other
    for step in (
        lambda: manager.end_offset(Partition(0)),
        lambda: manager.get_or_create_log(Partition(0)),
        lambda: manager.read(Partition(0), Offset(0), 100),
    ):
        with pytest.raises(NotOwned, match="partition 0 is not this node's"):
            step()
    with pytest.raises(NotOwned):
        manager.append([Entry(Partition(0), Offset(1), batch(9, 1))], sync=True)
    assert manager.append_failure is None, "what is not ours is no fault of the disk"
    manager.append(
        [Entry(Partition(p), Offset(1), batch(9, 1)) for p, owner in machine.owners.items() if owner == node],
        sync=True,
    )


def test_a_dead_nodes_journal_is_settled_only_for_the_partitions_that_it_had() -> None:
    """The partition that it gave away may just be written by somebody else."""
    machine = SharingMachine(3, 2)
    machine.move(0, 0)
    machine.move(1, 0)
    machine.append([0, 1], sync=True, count=5)
    machine.move(0, 1)
    machine.append([0], sync=True, count=2)
    untouched = {
        name: bytes(machine.fs.inode(ROOT / "__consumer_offsets-0" / name).data)
        for name in machine.fs.listdir(ROOT / "__consumer_offsets-0")
    }
    assert machine.shared is not None
    machine.shared.replay_and_remove_node_journal(1, [Partition(1)])
    assert untouched == {
        name: bytes(machine.fs.inode(ROOT / "__consumer_offsets-0" / name).data)
        for name in machine.fs.listdir(ROOT / "__consumer_offsets-0")
    }
    assert machine.shared.get_partition_recovery_point(Partition(1))[0] == 5
    assert not machine.fs.exists(ROOT / "journal.1")


def test_damage_in_what_a_dead_node_left_keeps_its_journal_and_gives_the_partition_to_nobody() -> None:
    machine = SharingMachine(4, 2)
    machine.move(0, 0)
    machine.append([0], sync=True)
    assert machine.attempt(1, "checkpoint_journal")
    machine.append([0], sync=True)
    log = machine.fs.inode(ROOT / "__consumer_offsets-0" / f"{0:020d}.log")
    del log.data[:]
    assert machine.shared is not None
    settled = machine.shared.replay_and_remove_node_journal(1, [Partition(0)])
    assert list(settled.failed) == [0]
    assert [name for name in machine.fs.listdir(ROOT / "journal.1") if name.endswith(".journal")]
    replacement = LogManager.open_in_shared_directory(ROOT, SETTINGS, machine.shared.topic_id, 1, machine.fs)
    with pytest.raises(CorruptLog, match="offsets up to 1 were on disk"):
        replacement.adopt(Partition(0), *machine.shared.get_partition_recovery_point(Partition(0)))
    assert 0 in replacement.failed_partitions
    replacement.close()
    machine.shared.replay_and_remove_node_journal(1, ())
    machine.shared.close(clean=True)
    assert not machine.fs.exists(ROOT / ".kafka_cleanshutdown")
    machine.fs.restart(power_loss=False)
    alone = LogManager.open(ROOT, SETTINGS, machine.fs)
    assert list(alone.failed_partitions) == [0]
    alone.close()
    assert machine.fs.listdir(ROOT / "journal.1"), "what is needed to mend it was removed"


def test_a_partition_that_the_disk_cannot_read_at_a_start_is_given_to_nobody_and_loses_nothing() -> None:
    machine = SharingMachine(4, 2)
    machine.append([0, 1], sync=True)
    machine.fs.restart(power_loss=False)
    fs, log = machine.fs, ROOT / "__consumer_offsets-0" / f"{0:020d}.log"
    LogManager.open(ROOT, SETTINGS, fs).close()
    fs.remove(ROOT / ".kafka_cleanshutdown")
    fs.unreadable.add(str(log))
    shared, settled = SharedDirectoryFiles.open(ROOT, SETTINGS, fs)
    assert [str(error) for error in settled.failed.values()] == [
        f"{log}: recovering it failed: Input/output error"
    ]
    assert shared.failed.keys() == {0}
    shared.close(clean=True)
    assert not fs.exists(ROOT / ".kafka_cleanshutdown")
    fs.unreadable.clear()
    machine.restart(2, power_loss=True)


def test_the_directory_is_locked_as_long_as_it_is_shared(tmp_path: Path) -> None:
    shared, _ = SharedDirectoryFiles.open(tmp_path, SETTINGS, RealFileSystem())
    assert len(shared.lock_descriptors()) == 2
    with pytest.raises(DirectoryLocked):
        LogManager.open(tmp_path, SETTINGS, RealFileSystem())
    shared.close(clean=True)
    LogManager.open(tmp_path, SETTINGS, RealFileSystem()).close()


@pytest.mark.parametrize("ends", ["killed", "released"])
def test_up_to_where_a_node_has_compacted_is_known_to_the_next_one(ends: str) -> None:
    fs = FaultyFileSystem(ROOT)
    shared, _ = SharedDirectoryFiles.open(ROOT, SETTINGS, fs)
    first = LogManager.open_in_shared_directory(ROOT, SETTINGS, shared.topic_id, 1, fs)
    first.adopt(Partition(3), *shared.get_partition_recovery_point(Partition(3)))
    history = History(first, 3)
    for number in range(100):
        history.value(f"k{number % 4}", str(number))
    first.checkpoint_journal()
    options = CleanerSettings(min_cleanable_dirty_ratio=0.5)
    cleaning = LogCleaner(
        first, options, lambda job: write_cleaned_segments(fs, job), lambda: 1_700_000_000_000
    ).clean_dirtiest()
    assert cleaning is not None
    assert read_offsets(fs, ROOT / CLEANER_OFFSET_FILE) is None
    if ends == "killed":
        fs.restart(power_loss=True)
        shared, _ = SharedDirectoryFiles.open(ROOT, SETTINGS, fs)
    else:
        shared.save_release_position(Partition(3), first.release(Partition(3)))
        # Nothing may be swapped into a partition that is not this node's any more.
        assert (
            LogCleaner(
                first, options, lambda job: write_cleaned_segments(fs, job), lambda: 1_700_000_000_000
            ).clean_dirtiest()
            is None
        )
        first.close()
        shared.replay_and_remove_node_journal(1, [])
    assert read_offsets(fs, ROOT / CLEANER_OFFSET_FILE) == {("__consumer_offsets", 3): cleaning.end_offset}
    second = LogManager.open_in_shared_directory(ROOT, SETTINGS, shared.topic_id, 2, fs)
    second.adopt(Partition(3), *shared.get_partition_recovery_point(Partition(3)))
    assert replay(content(second, 3)) == history.state
    jobs: list[CleaningJob] = []

    def note(job: CleaningJob) -> CleaningResult:
        jobs.append(job)
        raise CleaningAborted

    history.manager = second
    for number in range(30):
        history.value(f"k{number % 4}", str(number))
    second.checkpoint_journal()
    LogCleaner(
        second, CleanerSettings(min_cleanable_dirty_ratio=0), note, lambda: 1_700_000_000_000
    ).clean_dirtiest()
    assert [job.first_dirty_offset for job in jobs] == [cleaning.end_offset]
