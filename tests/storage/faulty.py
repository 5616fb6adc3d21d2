# SPDX-License-Identifier: Apache-2.0
"""A file system in memory that fails on demand, and knows what a crash leaves.

Two crashes: the process is killed, and everything written stays; or the power goes, and what was not
synced stays or goes by chance: each sector of a file by itself, and of a directory's changes the first
few. A failed fsync is the nasty one of Linux: pages count as clean afterwards although they were lost.
"""

import enum
import errno
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storage.disk.filesystem import File, Space

SECTOR = 512


class Crash(BaseException):
    """The process ends here; only `FaultyFileSystem.restart` helps."""


class Fault(enum.Enum):
    """What happens to the operation that is chosen."""

    FULL = "ENOSPC, after part of the write"
    IO_ERROR = "EIO, after part of the write"
    CRASH = "the process is killed, after part of the operation"


@dataclass
class _Inode:
    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    dirty: set[int] = field(default_factory=set)
    written: int = 0
    """Nothing was ever written beyond this byte."""

    def write(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        if end > len(self.data):
            self.resize(end)
        self.data[offset:end] = data
        self.written = max(self.written, end)
        self.dirty.update(range(offset // SECTOR, -(-end // SECTOR)))

    def resize(self, size: int) -> None:
        old = len(self.data)
        if size < old:
            del self.data[size:]
        else:
            self.data.extend(bytes(size - old))
        self.dirty.update(range(min(size, old) // SECTOR, -(-max(size, old) // SECTOR)))

    def copied(self) -> "_Inode":
        """The same bytes, all of them durable."""
        return _Inode(bytearray(self.data), bytearray(self.data), written=self.written)

    def sync(self, start: int = 0, end: int | None = None) -> None:
        """Make the sectors of a range durable, and as much length as they need."""
        if end is None:
            end = len(self.data)
            del self.durable[end:]
            self.durable.extend(bytes(end - len(self.durable)))
            # Only what the kernel takes for dirty is written, whatever became of the rest.
            for sector in sorted(self.dirty):
                piece = slice(sector * SECTOR, (sector + 1) * SECTOR)
                self.durable[piece] = self.data[piece]
            self.dirty.clear()
            return
        if end > len(self.durable):
            self.durable.extend(bytes(end - len(self.durable)))
        for sector in range(start // SECTOR, -(-end // SECTOR)):
            piece = slice(sector * SECTOR, (sector + 1) * SECTOR)
            kept = min(len(self.durable), (sector + 1) * SECTOR)
            self.durable[sector * SECTOR : kept] = self.data[piece][: kept - sector * SECTOR]
            if kept >= min(len(self.data), (sector + 1) * SECTOR):
                self.dirty.discard(sector)

    def lose_power(self, rng: random.Random) -> None:
        size = rng.choice((len(self.data), len(self.durable)))
        kept = bytearray(self.durable[:size])
        kept.extend(bytes(size - len(kept)))
        for sector in self.dirty:
            if rng.random() < 0.5:
                piece = self.data[sector * SECTOR : (sector + 1) * SECTOR]
                piece = piece[: max(0, size - sector * SECTOR)]
                kept[sector * SECTOR : sector * SECTOR + len(piece)] = piece
        self.data, self.durable, self.dirty = kept, bytearray(kept), set()


Names = dict[str, _Inode | None]
"""By path, as text, since comparing Paths is slow; None stands for a directory."""
Change = Callable[[Names], None]


def _drop(name: str) -> Change:
    def drop(names: Names) -> None:
        names.pop(name, None)

    return drop


def _directory(name: str) -> str:
    return name.rpartition("/")[0]


class FaultyFileSystem:
    """See the module; `operations` counts what could fail, and `fail_at` chooses one of them."""

    def __init__(self, root: Path, rng: random.Random | None = None, *, machine: int = 0) -> None:
        self.rng = rng or random.Random(0)
        self._ids = random.Random(machine)  # other machines draw other ids and salts
        self.operations = 0
        self.fail_at: int | None = None
        self.fault = Fault.IO_ERROR
        self.only: str | None = None
        """If given, only operations of this name are counted."""
        self.crashed = False
        self.log: list[str] = []
        self.unreadable: set[str] = set()
        """Paths of files that the disk has lost: reading them is an error until they are taken out."""
        self.close_errors: list[Exception] = []
        """What the next closes of a file raise, the last one first."""
        self.bytes_read: Counter[str] = Counter()
        """By path."""
        self._root = str(root)
        self._names: Names = {self._root: None}
        self._durable: Names = {self._root: None}
        self._changes: dict[str, list[Change]] = {}
        self.locks: dict[int, object] = {}
        """Which open file holds the lock on a file."""
        self._locked_dirs: dict[str, FaultyFile] = {}
        self._boots = 0
        self.life = 0
        """How often the process was started again; files of an earlier life are gone."""
        self.on_crash: Callable[[], None] = lambda: None
        """Called when the process is killed in the middle of an operation."""

    # -------------------------------------------------------------- faults

    def fail(self, fault: Fault, after: int = 0, *, only: str | None = None) -> None:
        """Let the operation after the next `after` ones fail, of those named `only` if given."""
        self.fault, self.only, self.operations, self.fail_at = fault, only, 0, after

    def restart(self, *, power_loss: bool) -> None:
        """Start again after a crash, or crash now."""
        self.crashed, self.fail_at = False, None
        self.life += 1
        self.locks.clear()
        self._locked_dirs.clear()
        if not power_loss:
            return
        self._boots += 1
        for changes in self._changes.values():
            for change in changes[: self.rng.randint(0, len(changes))]:
                change(self._durable)
        self._changes.clear()
        # What was in a directory that did not make it is not reachable.
        lost = [name for name in self._durable if not self._reachable(name)]
        for name in lost:
            del self._durable[name]
        self._names.clear()
        self._names.update(self._durable)
        for inode in {id(i): i for i in self._names.values() if i is not None}.values():
            inode.lose_power(self.rng)

    def _reachable(self, name: str) -> bool:
        while name != self._root:
            name = _directory(name)
            if name not in self._durable:
                return False
        return True

    def step(self, name: str, part: Callable[[float], None] | None = None, path: str = "") -> None:
        """Before an operation, on `path` if that is known: fail if it is the chosen one, perhaps with a `part` done."""
        if self.crashed:
            raise Crash
        if self.only is None or self.only == name:
            self.operations += 1
            if self.fail_at is not None and self.operations > self.fail_at:
                self.fail_at = None
                self.log.append(f"{self.fault.name} in {name}")
                if part is not None:
                    part(self.rng.choice((0.0, 1.0, self.rng.random())))
                if self.fault is Fault.CRASH:
                    self.crashed = True
                    self.on_crash()
                    raise Crash
                code = errno.ENOSPC if self.fault is Fault.FULL else errno.EIO
                raise OSError(code, os.strerror(code))

    # -------------------------------------------------------------- names

    def _change(self, directory: str, change: Change) -> None:
        change(self._names)
        self._changes.setdefault(directory, []).append(change)

    def inode(self, path: Path) -> _Inode:
        """The file of that name; tests change its bytes directly."""
        inode = self._names.get(str(path))
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
        return inode

    def open(self, path: Path, *, create: bool = False) -> File:
        """See FileSystem."""
        if self.crashed:
            raise Crash
        name = str(path)
        if create and name not in self._names:
            if _directory(name) not in self._names:
                raise FileNotFoundError(errno.ENOENT, "No such directory", str(path.parent))
            self.step("create", None, name)
            inode = _Inode()

            def link(names: Names) -> None:
                names[name] = inode

            self._change(_directory(name), link)
        return FaultyFile(self, self.inode(path), name)

    def open_read(self, path: Path) -> File:
        """See FileSystem."""
        return self.open(path)

    def exists(self, path: Path) -> bool:
        """See FileSystem."""
        return str(path) in self._names

    def listdir(self, path: Path) -> list[str]:
        """See FileSystem."""
        start = f"{path}/"
        inside = (name[len(start) :] for name in self._names if name.startswith(start))
        return sorted(name for name in inside if "/" not in name)

    def mkdir(self, path: Path) -> None:
        """See FileSystem."""
        missing = [str(path)]
        while missing[-1] not in self._names:
            missing.append(_directory(missing[-1]))
        for name in missing[-2::-1]:
            self.step("mkdir", None, name)

            def make(names: Names, name: str = name) -> None:
                names[name] = None

            self._change(_directory(name), make)

    def rename(self, source: Path, target: Path) -> None:
        """See FileSystem."""
        assert source.parent == target.parent
        inode = self.inode(source)
        old, new = str(source), str(target)

        def move(names: Names) -> None:
            names.pop(old, None)
            names[new] = inode

        def part(share: float) -> None:
            if share == 1:
                self._change(_directory(old), move)

        self.step("rename", part, new)
        self._change(_directory(old), move)

    def remove(self, path: Path) -> None:
        """See FileSystem."""
        if str(path) in self._names:
            self.step("remove", None, str(path))
            self._change(_directory(str(path)), _drop(str(path)))

    def rmdir(self, path: Path) -> None:
        """See FileSystem."""
        if str(path) in self._names:
            if self.listdir(path):
                raise OSError(errno.ENOTEMPTY, "Directory not empty", str(path))
            self.step("rmdir", None, str(path))
            self._change(_directory(str(path)), _drop(str(path)))

    def fsync_dir(self, path: Path) -> None:
        """See FileSystem."""
        name = str(path)

        def changes(share: float) -> None:
            # Unlike pages, changes of names are not forgotten by a sync that failed.
            pending = self._changes.pop(name, [])
            count = int(len(pending) * share)
            for change in pending[:count]:
                change(self._durable)
            if count < len(pending):
                self._changes[name] = pending[count:]

        self.step("fsync_dir", changes, name)
        changes(1)

    def try_lock_directory(self, path: Path) -> File | None:
        """See FileSystem."""
        if str(path) in self._locked_dirs:
            return None
        lock = self._locked_dirs[str(path)] = FaultyFile(self, _Inode(), str(path))
        return lock

    def unlock_dir(self, file: "FaultyFile") -> None:
        """The lock on a directory was closed."""
        for name in [name for name, lock in self._locked_dirs.items() if lock is file]:
            del self._locked_dirs[name]

    def random_bytes(self, size: int) -> bytes:
        return self._ids.randbytes(size)

    def space(self, path: Path) -> Space:
        """See FileSystem; there is always room."""
        return Space(1 << 40, 1 << 41)

    def boot_id(self) -> bytes:
        """See FileSystem."""
        return (self._boots + 1).to_bytes(16, "big")  # all zeros stand for a growth that was synced

    def is_at(self, inode: _Inode, path: Path) -> bool:
        """Whether a path names this file."""
        return self._names.get(str(path)) is inode


class FaultyFile:
    """An open file of a `FaultyFileSystem`."""

    def __init__(self, fs: FaultyFileSystem, inode: _Inode, name: str) -> None:
        self._name = name
        self._fs = fs
        self._inode = inode
        self._life = fs.life
        self._closed = False

    def _check(self) -> None:
        if self._fs.crashed or self._life != self._fs.life:
            raise Crash
        if self._closed:
            raise OSError(errno.EBADF, "Bad file descriptor")

    def belongs_to(self, fs: FaultyFileSystem) -> bool:
        """Whether it was opened through this file system."""
        return self._fs is fs

    def pread(self, size: int, offset: int) -> bytes:
        """See File."""
        self._check()
        if self._name in self._fs.unreadable:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        data = bytes(self._inode.data[offset : offset + size])
        self._fs.bytes_read[self._name] += len(data)
        return data

    def pwrite(self, buffers: Sequence[bytes], offset: int) -> None:
        """See File."""
        self._check()
        data = b"".join(buffers)
        self._fs.step(
            "pwrite", lambda share: self._inode.write(data[: int(len(data) * share)], offset), self._name
        )
        self._inode.write(data, offset)

    def pwrite_durable(self, buffers: Sequence[bytes], offset: int) -> None:
        """See File."""
        self._check()
        data = b"".join(buffers)

        def part(share: float) -> None:
            # The write may be wholly in the cache, and only its way to the disk fail.
            self._inode.write(data, offset)
            self._inode.sync(offset, offset + int(len(data) * share))
            if self._fs.fault is not Fault.CRASH:
                self._inode.dirty.clear()

        self._fs.step("pwrite_durable", part, self._name)
        self._inode.write(data, offset)
        self._inode.sync(offset, offset + len(data))

    def allocate(self, size: int) -> None:
        """See File."""
        self._check()
        if size > len(self._inode.data):
            self._fs.step("allocate", None, self._name)
            self._inode.resize(size)

    def truncate(self, size: int) -> None:
        """See File."""
        self._check()
        self._fs.step("truncate", lambda share: self._inode.resize(size) if share == 1 else None, self._name)
        self._inode.resize(size)

    def size(self) -> int:
        """See File."""
        self._check()
        return len(self._inode.data)

    def is_any_file_at_path(self, path: Path) -> bool:
        """See File."""
        self._check()
        return self._fs.exists(path)

    def is_still_at_path(self, path: Path) -> bool:
        """See File."""
        self._check()
        return self._fs.is_at(self._inode, path)

    def fsync(self) -> None:
        """See File."""
        self._check()
        self._fs.step("fsync", self._fail_sync, self._name)
        self._inode.sync()

    def fdatasync(self) -> None:
        """See File."""
        self._check()
        self._fs.step("fdatasync", self._fail_sync, self._name)
        self._inode.sync()

    def _fail_sync(self, share: float) -> None:
        inode = self._inode
        for sector in sorted(inode.dirty):
            if self._fs.rng.random() < share:
                inode.sync(sector * SECTOR, min(len(inode.data), (sector + 1) * SECTOR))
        if self._fs.fault is not Fault.CRASH:
            inode.dirty.clear()

    def try_lock(self) -> bool:
        """See File."""
        self._check()
        return self._fs.locks.setdefault(id(self._inode), self) is self

    def close(self) -> None:
        """See File."""
        if self._fs.locks.get(id(self._inode)) is self:
            del self._fs.locks[id(self._inode)]
        self._fs.unlock_dir(self)
        self._closed = True
        if self._fs.close_errors:
            raise self._fs.close_errors.pop()
