# SPDX-License-Identifier: Apache-2.0
"""One process per data directory."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.disk.filesystem import RealFileSystem
from storage.disk.lock import DirectoryLock, find_lock_conflict
from storage.errors import DirectoryLocked, StorageError
from storage.log_manager import LogManager
from storage.settings import LogSettings

pytestmark = pytest.mark.process

HOLD = """
import sys
from pathlib import Path
from storage.disk.filesystem import RealFileSystem
from storage.log_manager import LogManager
from storage.settings import LogSettings
manager = LogManager.open(Path(sys.argv[1]), LogSettings(), RealFileSystem())
print("open", flush=True)
sys.stdin.read()
"""


def holder(data_dir: Path) -> subprocess.Popen[str]:
    """Another process that has the directory open, until it is killed or its input ends."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(data_dir)],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    return process


def test_a_second_process_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        with pytest.raises(DirectoryLocked, match=f"in use by process {process.pid}$") as refused:
            LogManager.open(tmp_path, LogSettings(), RealFileSystem())
        assert refused.value.pid == process.pid
        process.kill()
        process.wait()
        # The lock ends with the process, however it ends.
        LogManager.open(tmp_path, LogSettings(), RealFileSystem()).close()


def test_the_same_process_is_refused_too(tmp_path: Path) -> None:
    manager = LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    for _ in range(2):
        with pytest.raises(DirectoryLocked, match=f"process {os.getpid()}$"):
            LogManager.open(tmp_path, LogSettings(), RealFileSystem())
    manager.close()
    LogManager.open(tmp_path, LogSettings(), RealFileSystem()).close()


@pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="Kafka's kind of lock is only seen on Linux")
def test_a_lock_as_a_broker_takes_it_is_respected_and_seen(tmp_path: Path) -> None:
    # Java's FileChannel.lock is a POSIX lock, which belongs to a process: so another process tries it.
    code = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    attempt = [sys.executable, "-c", code, str(tmp_path / ".lock")]
    lock = DirectoryLock.acquire(RealFileSystem(), tmp_path)
    assert subprocess.run(attempt, check=False, capture_output=True).returncode != 0
    lock.release()
    assert subprocess.run(attempt, check=False).returncode == 0

    (tmp_path / ".lock").write_text("")
    code = code.replace("fcntl.lockf(open", "f = open(sys.argv[1], 'r+'); fcntl.lockf(f", 1).replace(
        "f(sys.argv[1], 'r+'), ", "f, "
    )
    with subprocess.Popen(
        [sys.executable, "-c", code + "; print('locked', flush=True); sys.stdin.read()", attempt[-1]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(DirectoryLocked, match="another process"):
            DirectoryLock.acquire(RealFileSystem(), tmp_path)
        process.kill()


def test_a_second_process_is_refused_where_somebody_removed_the_locks_file(tmp_path: Path) -> None:
    with holder(tmp_path) as process:
        (tmp_path / ".lock").unlink()
        with pytest.raises(DirectoryLocked, match=r"in use by another process$"):
            LogManager.open(tmp_path, LogSettings(), RealFileSystem())
        assert find_lock_conflict(RealFileSystem(), tmp_path) is not None
        assert not (tmp_path / ".lock").exists(), "nobody changed anything"
        process.kill()
        process.wait()
        LogManager.open(tmp_path, LogSettings(), RealFileSystem()).close()


def test_a_file_in_the_place_of_the_directory_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "afile").touch()
    with pytest.raises(StorageError, match="afile: this is a file, and a directory is needed here"):
        DirectoryLock.create_directory_and_acquire(RealFileSystem(), tmp_path / "afile")
    with pytest.raises(StorageError, match="below: a part of this path is a file, and not a directory"):
        DirectoryLock.create_directory_and_acquire(RealFileSystem(), tmp_path / "afile" / "below")
