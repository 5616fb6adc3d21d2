# SPDX-License-Identifier: Apache-2.0
"""One process per data directory."""

import os
from pathlib import Path

from storage.errors import DirectoryLocked, storage_error
from storage.filesystem import File, FileSystem, RealFile
from storage.layout import LOCK_FILE


class DirectoryLock:
    """The lock on a data directory, held until `release`, or the end of the process, however it ends."""

    def __init__(self, file: File) -> None:
        self._file = file

    @classmethod
    def acquire(cls, fs: FileSystem, data_dir: Path) -> "DirectoryLock":
        """Lock `data_dir`. Raises DirectoryLocked, with the holder's process id, and OSError."""
        path = data_dir / LOCK_FILE
        file = fs.open(path, create=True)
        lock = cls(file)
        try:
            holder = None if file.lock() else file.pread(32, 0)
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
    def acquire_new(cls, fs: FileSystem, data_dir: Path) -> "DirectoryLock":
        """Lock `data_dir`, made if missing. Raises DirectoryLocked and StorageError."""
        try:
            fs.mkdir(data_dir)
            return cls.acquire(fs, data_dir)
        except OSError as error:
            raise storage_error(data_dir, error, "locking") from error

    def fileno(self) -> int:
        """The locked file's descriptor: the lock is held as long as any process has it open."""
        assert isinstance(self._file, RealFile), "only the operating system's files have descriptors"
        return self._file.fileno()

    def release(self) -> None:
        """Let go. The file stays: removing it would let two processes lock two files of one name."""
        self._file.close()


def find_holder(fs: FileSystem, data_dir: Path) -> DirectoryLocked | None:
    """Who uses `data_dir` now, or None; nothing in it is changed. Raises OSError."""
    try:
        file = fs.open(data_dir / LOCK_FILE)
    except FileNotFoundError:
        return None
    try:
        return None if file.lock() else DirectoryLocked(data_dir, _pid(file.pread(32, 0)))
    finally:
        file.close()


def _pid(content: bytes) -> int | None:
    # Empty when the holder is a Kafka broker, or has not come to writing it yet.
    text = content.strip()
    return int(text) if text.isdigit() else None
