# SPDX-License-Identifier: Apache-2.0
"""The port to the disk: the few file operations that the log uses, and their real implementation.

Every operation may block, and raises OSError. Tests replace it by a file system that fails, tears
writes and forgets writes that were not synced.
"""

import errno
import fcntl
import os
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, Protocol

from storage.disk.layout import TEMPORARY_SUFFIX

FILE_MODE: Final = 0o640
"""The mode of new files: only the owner may write, and only its group read, for backups and the audit."""
DIRECTORY_MODE: Final = 0o750
_BUFFERS_PER_WRITE: Final = 1024
"""IOV_MAX on Linux and macOS."""
_NO_FLAG_SUPPORT: Final = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})
_FULL_FSYNC: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
_OFD_SETLK: Final[int | None] = getattr(fcntl, "F_OFD_SETLK", None)
_FLOCK: Final = Struct("hhqqi")
_BOOT_ID_FILE: Final = Path("/proc/sys/kernel/random/boot_id")
_NO_DIR_LOCKS: Final = _NO_FLAG_SUPPORT | {errno.EBADF, errno.EISDIR, errno.EPERM, errno.ENOLCK}
"""The errors of a file system that cannot lock directories, such as NFS."""


class File(Protocol):
    """An open file; positions are explicit, so there is no cursor to share."""

    def pread(self, size: int, offset: int) -> bytes:
        """Return `size` bytes from `offset`, fewer only at the end of the file."""

    def pwrite(self, buffers: Sequence[bytes], offset: int) -> None:
        """Write all buffers, one after the other; after an error any part of them may have been written."""

    def pwrite_durable(self, buffers: Sequence[bytes], offset: int) -> None:
        """Write all buffers as `pwrite` does; on return they survive a power loss."""

    def allocate(self, size: int) -> None:
        """Make the file at least `size` bytes long, and allocate the space for them; new bytes are zero."""

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""

    def size(self) -> int:
        """Return the file's length in bytes."""

    def is_any_file_at_path(self, path: Path) -> bool:
        """Return whether any file exists at `path`; cheaper than `is_still_at_path`, for a check after each write."""

    def is_still_at_path(self, path: Path) -> bool:
        """Return whether this file is still found under `path`: not removed, replaced, or moved with its directory."""

    def fsync(self) -> None:
        """Make content and length durable. After an error it is unknown which writes are durable."""

    def fdatasync(self) -> None:
        """Sync as `fsync` does, without times and other metadata that reading does not need."""

    def try_lock(self) -> bool:
        """Lock the file against other processes until it is closed; return False if another process has it."""

    def close(self) -> None:
        """Close the file; closing twice is allowed."""


class Space(NamedTuple):
    """The space on the file system of a directory, in bytes; `free` is the part that this process may still use."""

    free: int
    size: int


class FileSystem(Protocol):
    """The files and directories of a file system, by name."""

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing. Raises FileNotFoundError, unless `create` makes the file."""

    def open_read(self, path: Path) -> File:
        """Open for reading only."""

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory of that name."""

    def listdir(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted; empty if there is no such directory."""

    def mkdir(self, path: Path) -> None:
        """Make a directory and its parents, if they do not exist yet."""

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file, and replace `target` if that exists."""

    def remove(self, path: Path) -> None:
        """Remove a file if it exists."""

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory if it exists."""

    def fsync_dir(self, path: Path) -> None:
        """Make creations, renames and removals in a directory durable."""

    def try_lock_directory(self, path: Path) -> File | None:
        """Lock a directory itself until the returned file is closed; return None if another process has the lock."""

    def space(self, path: Path) -> Space:
        """Return the space on the file system that holds a directory."""

    def boot_id(self) -> bytes:
        """Return 16 bytes that are the same until the machine starts again: until then no write is lost."""

    def random_bytes(self, size: int) -> bytes:
        """Return `size` bytes that no other file or machine has: for ids, and for the salts of checksums."""


Buffer = bytes | memoryview


class FileDescriptorCalls(Protocol):
    """The calls of the operating system that may do less than was requested; `os` has them."""

    def pread(self, fd: int, length: int, offset: int, /) -> bytes:
        """Return at most `length` bytes from `offset`."""

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int, flags: int = 0, /) -> int:
        """Write some of the bytes; return how many."""

    def fdatasync(self, fd: int, /) -> None:
        """Make earlier writes durable."""


class RealFile:
    """A file of the operating system."""

    __slots__ = ("_durable_flag", "_fd", "_identity", "_system")

    def __init__(self, fd: int, system: FileDescriptorCalls = os) -> None:
        self._fd = fd
        self._system = system
        self._identity: tuple[int, int] | None = None
        # A flag per write, not O_DSYNC at open: the same file also takes writes that need not be durable.
        self._durable_flag: int | None = getattr(system, "RWF_DSYNC", None)

    def pread(self, size: int, offset: int) -> bytes:
        """Return `size` bytes from `offset`, fewer only at the end; a short read is continued."""
        data = self._system.pread(self._fd, size, offset)
        if len(data) == size or not data:
            return data
        parts = [data]
        missing = size - len(data)
        while missing:
            data = self._system.pread(self._fd, missing, offset + size - missing)
            if not data:
                break
            parts.append(data)
            missing -= len(data)
        return b"".join(parts)

    def pwrite(self, buffers: Sequence[bytes], offset: int) -> None:
        """Write all buffers from `offset` on, into the page cache."""
        self._write(buffers, offset, 0)

    def pwrite_durable(self, buffers: Sequence[bytes], offset: int) -> None:
        """Write all buffers durably: in one system call if Linux has RWF_DSYNC, else with an fdatasync."""
        if self._durable_flag is not None:
            try:
                self._write(buffers, offset, self._durable_flag)
                return
            except OSError as error:
                if error.errno not in _NO_FLAG_SUPPORT:
                    raise
                self._durable_flag = None
        self._write(buffers, offset, 0)
        self.fdatasync()

    def _write(self, buffers: Sequence[bytes], offset: int, flags: int) -> None:
        for start in range(0, len(buffers), _BUFFERS_PER_WRITE):
            some = buffers[start : start + _BUFFERS_PER_WRITE]
            size = sum(map(len, some))
            written = self._system.pwritev(self._fd, some, offset, flags)
            # A short write is legal, but rare: after a signal, or with the last bytes of a full disk.
            rest = memoryview(b"".join(some))[written:] if written < size else memoryview(b"")
            while rest:
                written = self._system.pwritev(self._fd, [rest], offset + size - len(rest), flags)
                if not written:
                    raise OSError(errno.EIO, "a write made no progress")
                rest = rest[written:]
            offset += size

    def allocate(self, size: int) -> None:
        """Allocate the space with posix_fallocate; without it set only the length."""
        have = self.size()
        if have >= size:
            return
        try:
            getattr(self._system, "posix_fallocate")(self._fd, have, size - have)  # noqa: B009 - macOS has none
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _NO_FLAG_SUPPORT:
                raise
            os.ftruncate(self._fd, size)

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        """Return the file's length in bytes."""
        return os.fstat(self._fd).st_size

    def is_any_file_at_path(self, path: Path) -> bool:
        """Return whether any file is found under `path`.

        No stat: if a file's time was read since its last write, Linux gives the next write a time of its own
        (multigrain timestamps), and so a change of the inode, which costs a synced write 20 us.
        """
        return os.access(path, os.F_OK)

    def is_still_at_path(self, path: Path) -> bool:
        """Return whether this inode is still the one under `path`."""
        if self._identity is None:
            own = os.fstat(self._fd)
            self._identity = (own.st_ino, own.st_dev)
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return (found.st_ino, found.st_dev) == self._identity

    def fsync(self) -> None:
        """Make content and length durable, through the cache of the drive as well."""
        _sync(self._fd)

    def fdatasync(self) -> None:
        """Make the content durable, with only the metadata that reading needs."""
        if _FULL_FSYNC is None and hasattr(self._system, "fdatasync"):
            self._system.fdatasync(self._fd)
        else:
            _sync(self._fd)

    def try_lock(self) -> bool:
        """Lock the file until it is closed; return False if another process has it.

        Kafka locks with fcntl, so on Linux the lock keeps out a broker as well.
        """
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _OFD_SETLK is not None:
                fcntl.fcntl(self._fd, _OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            if error.errno not in _NO_FLAG_SUPPORT:
                raise
        return True

    def fileno(self) -> int:
        """Return the descriptor, for a child process that inherits the file."""
        return self._fd

    def close(self) -> None:
        """Close the descriptor; closing twice is allowed."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1  # after an error of close() the number may be another file's
            os.close(fd)


def _sync(fd: int) -> None:
    # On macOS fsync stops at the drive's cache.
    if _FULL_FSYNC is None:
        os.fsync(fd)
    else:
        fcntl.fcntl(fd, _FULL_FSYNC)


class RealFileSystem:
    """The operating system's files; reads and writes go through `system`."""

    _system: FileDescriptorCalls = os

    def __init__(self, system: FileDescriptorCalls = os) -> None:
        self._system = system

    def open(self, path: Path, *, create: bool = False) -> File:
        """Open for reading and writing; with `create` make a missing file with FILE_MODE."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return RealFile(os.open(path, flags, FILE_MODE), self._system)

    def open_read(self, path: Path) -> File:
        """Open for reading only."""
        return RealFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), self._system)

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory of that name."""
        return path.exists()

    def listdir(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted; empty if there is no such directory."""
        try:
            return sorted(entry.name for entry in path.iterdir())
        except FileNotFoundError:
            return []

    def mkdir(self, path: Path) -> None:
        """Make a directory and its parents with DIRECTORY_MODE, if they do not exist yet."""
        path.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file, and replace `target` if that exists."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file if it exists."""
        path.unlink(missing_ok=True)

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory if it exists."""
        try:
            path.rmdir()
        except FileNotFoundError:
            return

    def fsync_dir(self, path: Path) -> None:
        """Make creations, renames and removals in a directory durable."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _sync(fd)
        finally:
            os.close(fd)

    def try_lock_directory(self, path: Path) -> File | None:
        """Lock a directory itself with flock; if the file system cannot, the returned file locks nothing."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                os.close(fd)
                return None
            if error.errno not in _NO_DIR_LOCKS:
                os.close(fd)
                raise
        return RealFile(fd)

    def space(self, path: Path) -> Space:
        """Return the space on the file system that holds a directory, without the reserve for root."""
        found = os.statvfs(path)
        return Space(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)

    def boot_id(self) -> bytes:
        """Return the kernel's id of this start of the machine, 16 bytes; a new one in each process if it has none."""
        return _boot_id()

    def random_bytes(self, size: int) -> bytes:
        """Return `size` bytes of the kernel's randomness."""
        return os.urandom(size)


@cache
def _boot_id() -> bytes:
    try:
        return uuid.UUID(_BOOT_ID_FILE.read_text().strip()).bytes
    except (OSError, ValueError):
        return os.urandom(16)  # of this process only: each start may be after a power loss


def new_uuid(fs: FileSystem) -> bytes:
    """Return a random UUID, version 4, as its 16 bytes."""
    return uuid.UUID(bytes=fs.random_bytes(16), version=4).bytes


def read_file(fs: FileSystem, path: Path) -> bytes:
    """Return the whole content of a file. Raises FileNotFoundError and other OSErrors."""
    file = fs.open_read(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def atomic_write(fs: FileSystem, path: Path, data: bytes) -> None:
    """Replace the content of `path` durably: after a crash it is the old content or the new, never a mixture.

    Raises OSError; then the file keeps its old content.
    """
    replace_file_content(fs, path, data, sync=True)
    fs.fsync_dir(path.parent)


def replace_file_content(fs: FileSystem, path: Path, data: bytes, *, sync: bool = False) -> None:
    """Replace the content of `path`: a reader sees the old or the new; after a power loss too only with `sync`.

    Raises OSError; then the file keeps its old content.
    """
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    file = fs.open(temporary, create=True)
    try:
        file.truncate(0)
        file.pwrite([data], 0)
        if sync:
            file.fsync()
    finally:
        file.close()
    fs.rename(temporary, path)
