# SPDX-License-Identifier: Apache-2.0
"""The lock that lets only one process use a data directory."""

import os
from contextlib import ExitStack
from pathlib import Path

from storage.disk.filesystem import File, FileSystem, RealFile, read_file
from storage.disk.layout import LOCK_FILE
from storage.errors import DirectoryLocked, StorageError, storage_error


class DirectoryLock:
    """The lock on a data directory, held until `release`, or the end of the process, however it ends.

    It locks the file that Kafka locks, and the directory itself, because that file may be removed.
    """

    def __init__(self, *files: File) -> None:
        self._files = files

    @classmethod
    def acquire(cls, fs: FileSystem, data_dir: Path) -> "DirectoryLock":
        """Lock `data_dir`. Raises DirectoryLocked, with the holder's process id, and OSError."""
        directory = fs.try_lock_directory(data_dir)
        if directory is None:
            raise DirectoryLocked(data_dir, _pid_in(fs, data_dir))
        try:
            file = fs.open(data_dir / LOCK_FILE, create=True)
        except BaseException:
            directory.close()
            raise
        lock = cls(file, directory)
        try:
            holder = None if file.try_lock() else file.pread(32, 0)
            if holder is None:
                file.truncate(0)
                file.pwrite([f"{os.getpid()}\n".encode()], 0)
        except BaseException:
            lock.release()
            raise
        if holder is not None:
            lock.release()
            raise DirectoryLocked(data_dir, _pid(holder))
        return lock

    @classmethod
    def create_directory_and_acquire(cls, fs: FileSystem, data_dir: Path) -> "DirectoryLock":
        """Make `data_dir` if it is missing, and lock it. Raises DirectoryLocked and StorageError."""
        try:
            fs.mkdir(data_dir)
            return cls.acquire(fs, data_dir)
        except FileExistsError as error:
            raise StorageError(data_dir, "this is a file, and a directory is needed here") from error
        except NotADirectoryError as error:
            raise StorageError(data_dir, "a part of this path is a file, and not a directory") from error
        except OSError as error:
            raise storage_error(data_dir, error, "locking") from error

    def filenos(self) -> tuple[int, ...]:
        """Return the descriptors of the locked files: the lock is held as long as any process has them open."""
        return tuple(file.fileno() for file in self._files if isinstance(file, RealFile))

    def release(self) -> None:
        """Release the lock. The file stays: removing it would let two processes lock two files of one name."""
        with ExitStack() as stack:  # a file that cannot be closed does not keep the others locked
            for file in self._files:
                stack.callback(file.close)


def find_lock_conflict(fs: FileSystem, data_dir: Path) -> DirectoryLocked | None:
    """Return the error that names the process using `data_dir`, or None; change nothing. Raises OSError."""
    directory = fs.try_lock_directory(data_dir)
    if directory is None:
        return DirectoryLocked(data_dir, _pid_in(fs, data_dir))
    try:
        file = fs.open(data_dir / LOCK_FILE)
    except FileNotFoundError:
        return None
    finally:
        directory.close()
    try:
        return None if file.try_lock() else DirectoryLocked(data_dir, _pid(file.pread(32, 0)))
    finally:
        file.close()


def _pid_in(fs: FileSystem, data_dir: Path) -> int | None:
    try:
        return _pid(read_file(fs, data_dir / LOCK_FILE))
    except FileNotFoundError:
        return None


def _pid(content: bytes) -> int | None:
    # Empty if the holder is a Kafka broker, or has not written it yet.
    text = content.strip()
    return int(text) if text.isdigit() else None
