# SPDX-License-Identifier: Apache-2.0
"""Directories that an older version left (`older/`) open with all that they hold, and are watched from then on."""

import tarfile
from pathlib import Path

import pytest

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import RealFileSystem
from storage.errors import CorruptLog
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.recovery.full_check import check_directory
from storage.recovery.journal_loss import find_damage, recover_despite_loss
from storage.recovery.shared_directory import SharedDirectoryFiles
from storage.settings import LogSettings
from tests.storage.account import contents
from tests.storage.strategies import batch
from tests.storage.test_never_older import NOW

FS = RealFileSystem()
SETTINGS = LogSettings(segment_bytes=700, journal_step_bytes=8192)
EXPECTED = [batch(label, label) for label in range(32)]


def unpacked(tmp_path: Path, how: str) -> Path:
    data_dir = tmp_path / how
    with tarfile.open(Path(__file__).parent / "older" / f"{how}.tar.gz") as archive:
        for member in archive:
            if member.isfile():
                file = archive.extractfile(member)
                assert file is not None
                (data_dir / member.name).parent.mkdir(parents=True, exist_ok=True)
                (data_dir / member.name).write_bytes(file.read())
    return data_dir


@pytest.mark.parametrize("how", ["clean", "unclean", "shared"])
def test_a_directory_of_an_older_version_opens_and_is_watched_from_then_on(tmp_path: Path, how: str) -> None:
    data_dir = unpacked(tmp_path, how)
    assert check_directory(FS, data_dir).is_undamaged
    manager = LogManager.open(data_dir, SETTINGS, RealFileSystem())
    assert manager.failed_partitions == {}
    assert manager.cuts == ()
    assert {p: contents(manager, p) for p in range(3)} == dict.fromkeys(range(3), EXPECTED)
    manager.append([Entry(Partition(0), Offset(32), batch(32, 32))], sync=True)
    gone = manager.get_or_create_log(Partition(1)).segments[0].path
    manager.close()
    assert check_directory(FS, data_dir).is_undamaged
    gone.unlink()
    manager = LogManager.open(data_dir, SETTINGS, RealFileSystem())
    assert manager.failed_partitions.keys() == {1}
    assert contents(manager, 0) == [*EXPECTED, batch(32, 32)]
    manager.close()


def test_several_nodes_open_what_several_nodes_of_an_older_version_left(tmp_path: Path) -> None:
    data_dir = unpacked(tmp_path, "shared")
    shared, settled = SharedDirectoryFiles.open(data_dir, SETTINGS, RealFileSystem())
    assert (settled.failed, list(settled.cuts)) == ({}, [])
    manager = LogManager.open_in_shared_directory(data_dir, SETTINGS, shared.topic_id, 1, RealFileSystem())
    for partition in range(3):
        manager.adopt(Partition(partition), *shared.get_partition_recovery_point(Partition(partition)))
        assert contents(manager, partition) == EXPECTED
        shared.save_release_position(Partition(partition), manager.release(Partition(partition)))
    manager.close()
    shared.replay_and_remove_node_journal(1, [])
    shared.close(clean=True)
    assert check_directory(FS, data_dir).is_undamaged


def test_a_damaged_journal_of_an_older_version_can_be_given_up(tmp_path: Path) -> None:
    data_dir = unpacked(tmp_path, "unclean")
    (path,) = (data_dir / "journal").glob("*.journal")
    with path.open("r+b") as file:
        file.seek(4096 + 300)
        file.write(b"\xff" * 20)
    with pytest.raises(CorruptLog, match="a frame is damaged"):
        LogManager.open(data_dir, SETTINGS, RealFileSystem())
    assert len(find_damage(FS, data_dir, SETTINGS.topic)) == 1
    done = recover_despite_loss(FS, data_dir, SETTINGS, NOW)
    assert [each.name for each in done.aside] == [f"damaged-20260102T030405Z-journal-{path.name}"]
    manager = LogManager.open(data_dir, SETTINGS, RealFileSystem())
    for partition in range(3):
        found = contents(manager, partition)
        assert 20 <= len(found) < 32
        assert found == EXPECTED[: len(found)]
        assert done.ends[Partition(partition)] == len(found)
    manager.close()
