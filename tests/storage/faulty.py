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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from storage.filesystem import File

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

    def write(self, data: bytes, offset: int) -> None:
        end = offset + len(data)
        if end > len(self.data):
            self.resize(end)
        self.data[offset:end] = data
        self.dirty.update(range(offset // SECTOR, -(-end // SECTOR)))

    def resize(self, size: int) -> None:
        old = len(self.data)
        if size < old:
            del self.data[size:]
        else:
            self.data.extend(bytes(size - old))
        self.dirty.update(range(min(size, old) // SECTOR, -(-max(size, old) // SECTOR)))

    def sync(self, start: int = 0, end: int | None = None) -> None:
        """Make the sectors of a range durable, and as much length as they need."""
        if end is None:
            self.durable = bytearray(self.data)
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


Names = dict[Path, _Inode | None]
"""None stands for a directory."""
Change = Callable[[Names], None]


def _drop(path: Path) -> Change:
    def drop(names: Names) -> None:
        names.pop(path, None)

    return drop


class FaultyFileSystem:
    """See the module; `operations` counts what could fail, and `fail_at` chooses one of them."""

    def __init__(self, root: Path, rng: random.Random | None = None) -> None:
        self.rng = rng or random.Random(0)
        self.operations = 0
        self.fail_at: int | None = None
        self.fault = Fault.IO_ERROR
        self.only: str | None = None
        """If given, only operations of this name are counted."""
        self.crashed = False
        self.log: list[str] = []
        self._names: Names = {root: None}
        self._durable: Names = {root: None}
        self._changes: dict[Path, list[Change]] = {}
        self.locks: dict[int, object] = {}
        """Which open file holds the lock on a file."""
        self.life = 0
        """How often the process was started again; files of an earlier life are gone."""

    # -------------------------------------------------------------- faults

    def fail(self, fault: Fault, after: int = 0, *, only: str | None = None) -> None:
        """Let the operation after the next `after` ones fail, of those named `only` if given."""
        self.fault, self.only, self.operations, self.fail_at = fault, only, 0, after

    def restart(self, *, power_loss: bool) -> None:
        """Start again after a crash, or crash now."""
        self.crashed, self.fail_at = False, None
        self.life += 1
        self.locks.clear()
        if not power_loss:
            return
        for changes in self._changes.values():
            for change in changes[: self.rng.randint(0, len(changes))]:
                change(self._durable)
        self._changes.clear()
        # What was in a directory that did not make it is not reachable.
        self._durable = {p: i for p, i in self._durable.items() if p.parent == p or self._reachable(p)}
        self._names = dict(self._durable)
        for inode in {id(i): i for i in self._names.values() if i is not None}.values():
            inode.lose_power(self.rng)

    def _reachable(self, path: Path) -> bool:
        root = next(iter(self._durable))
        return path == root or all(p in self._durable for p in path.parents if p.is_relative_to(root))

    def step(self, name: str, part: Callable[[float], None] | None = None) -> None:
        """Before an operation: fail if it is the chosen one, perhaps with a `part` of it done."""
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
                    raise Crash
                code = errno.ENOSPC if self.fault is Fault.FULL else errno.EIO
                raise OSError(code, os.strerror(code))

    # -------------------------------------------------------------- names

    def _change(self, directory: Path, change: Change) -> None:
        change(self._names)
        self._changes.setdefault(directory, []).append(change)

    def inode(self, path: Path) -> _Inode:
        """The file of that name; tests change its bytes directly."""
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
        inode = self._names[path]
        if inode is None:
            raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
        return inode

    def open(self, path: Path, *, create: bool = False) -> File:
        """See FileSystem."""
        if self.crashed:
            raise Crash
        if path not in self._names:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "No such file", str(path))
            if path.parent not in self._names:
                raise FileNotFoundError(errno.ENOENT, "No such directory", str(path.parent))
            self.step("create")
            inode = _Inode()

            def link(names: Names) -> None:
                names[path] = inode

            self._change(path.parent, link)
        return FaultyFile(self, self.inode(path))

    def open_read(self, path: Path) -> File:
        """See FileSystem."""
        return self.open(path)

    def exists(self, path: Path) -> bool:
        """See FileSystem."""
        return path in self._names

    def listdir(self, path: Path) -> list[str]:
        """See FileSystem."""
        return sorted(name.name for name in self._names if name.parent == path and name != path)

    def mkdir(self, path: Path) -> None:
        """See FileSystem."""
        for directory in (*reversed(path.parents), path):
            root = next(iter(self._names))
            if directory.is_relative_to(root) and directory not in self._names:
                self.step("mkdir")

                def make(names: Names, directory: Path = directory) -> None:
                    names[directory] = None

                self._change(directory.parent, make)

    def rename(self, source: Path, target: Path) -> None:
        """See FileSystem."""
        assert source.parent == target.parent
        inode = self.inode(source)

        def move(names: Names) -> None:
            names.pop(source, None)
            names[target] = inode

        def part(share: float) -> None:
            if share == 1:
                self._change(source.parent, move)

        self.step("rename", part)
        self._change(source.parent, move)

    def remove(self, path: Path) -> None:
        """See FileSystem."""
        if path in self._names:
            self.step("remove")
            self._change(path.parent, _drop(path))

    def rmdir(self, path: Path) -> None:
        """See FileSystem."""
        if path in self._names:
            if self.listdir(path):
                raise OSError(errno.ENOTEMPTY, "Directory not empty", str(path))
            self.step("rmdir")
            self._change(path.parent, _drop(path))

    def fsync_dir(self, path: Path) -> None:
        """See FileSystem."""

        def changes(share: float) -> None:
            # Unlike pages, changes of names are not forgotten by a sync that failed.
            pending = self._changes.pop(path, [])
            count = int(len(pending) * share)
            for change in pending[:count]:
                change(self._durable)
            if count < len(pending):
                self._changes[path] = pending[count:]

        self.step("fsync_dir", changes)
        changes(1)


class FaultyFile:
    """An open file of a `FaultyFileSystem`."""

    def __init__(self, fs: FaultyFileSystem, inode: _Inode) -> None:
        self._fs = fs
        self._inode = inode
        self._life = fs.life
        self._closed = False

    def _check(self) -> None:
        if self._fs.crashed or self._life != self._fs.life:
            raise Crash
        if self._closed:
            raise OSError(errno.EBADF, "Bad file descriptor")

    def pread(self, size: int, offset: int) -> bytes:
        """See File."""
        self._check()
        return bytes(self._inode.data[offset : offset + size])

    def pwrite(self, buffers: Sequence[bytes], offset: int) -> None:
        """See File."""
        self._check()
        data = b"".join(buffers)
        self._fs.step("pwrite", lambda share: self._inode.write(data[: int(len(data) * share)], offset))
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

        self._fs.step("pwrite_durable", part)
        self._inode.write(data, offset)
        self._inode.sync(offset, offset + len(data))

    def allocate(self, size: int) -> None:
        """See File."""
        self._check()
        if size > len(self._inode.data):
            self._fs.step("allocate")
            self._inode.resize(size)

    def truncate(self, size: int) -> None:
        """See File."""
        self._check()
        self._fs.step("truncate", lambda share: self._inode.resize(size) if share == 1 else None)
        self._inode.resize(size)

    def size(self) -> int:
        """See File."""
        self._check()
        return len(self._inode.data)

    def fsync(self) -> None:
        """See File."""
        self._check()
        self._fs.step("fsync", self._fail_sync)
        self._inode.sync()

    def fdatasync(self) -> None:
        """See File."""
        self._check()
        self._fs.step("fdatasync", self._fail_sync)
        self._inode.sync()

    def _fail_sync(self, share: float) -> None:
        inode = self._inode
        for sector in sorted(inode.dirty):
            if self._fs.rng.random() < share:
                inode.sync(sector * SECTOR, min(len(inode.data), (sector + 1) * SECTOR))
        if self._fs.fault is not Fault.CRASH:
            inode.dirty.clear()

    def lock(self) -> bool:
        """See File."""
        self._check()
        return self._fs.locks.setdefault(id(self._inode), self) is self

    def close(self) -> None:
        """See File."""
        if self._fs.locks.get(id(self._inode)) is self:
            del self._fs.locks[id(self._inode)]
        self._closed = True
