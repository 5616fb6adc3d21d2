# SPDX-License-Identifier: Apache-2.0
"""The real disk, with operations that wait, or fail, when a test wants them to."""

import errno
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from storage.disk.filesystem import File, RealFile, RealFileSystem, Space

JOURNAL = "/journal/"
SEGMENTS = "__consumer_offsets-"
WRITES = frozenset({"pwrite", "pwrite_durable", "allocate"})
SYNCS = frozenset({"pwrite_durable", "fdatasync", "fsync"})
READS = frozenset({"pread"})


class Disk(RealFileSystem):
    """Files whose writes and syncs can be held back (`hold`) and made to fail (`fail`)."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._held: frozenset[str] = frozenset()
        self._held_where = ""
        self._failure: Callable[[str, str], bool] = lambda _name, _path: False
        self._errno = errno.EIO
        self._after = False
        self.waiting = 0
        """How many operations wait now."""
        self.operations: list[tuple[str, str]] = []
        """Name and path of every operation."""
        self.failures = 0
        self.room: Space | None = None
        """What it says of its room; None for the truth."""

    def space(self, path: Path) -> Space:
        """See FileSystem."""
        return self.room or super().space(path)

    # --- what a test asks for ---

    @contextmanager
    def hold(self, names: frozenset[str] = SYNCS, where: str = JOURNAL) -> Iterator[None]:
        """Let these operations wait until the block ends, or `let_go` is called."""
        self.hold_back(names, where)
        try:
            yield
        finally:
            self.let_go()

    def hold_back(self, names: frozenset[str], where: str) -> None:
        """The same until `let_go` is called."""
        with self._lock:
            self._held, self._held_where = names, where

    def let_go(self) -> None:
        """Let everything go on that waits."""
        with self._lock:
            self._held = frozenset()
            self._lock.notify_all()

    def fail(
        self,
        names: frozenset[str] = SYNCS,
        *,
        code: int = errno.EIO,
        where: str = JOURNAL,
        times: int | None = None,
        after: bool = False,
    ) -> None:
        """Let these operations fail, for ever or so many `times`.

        With `after` a write is made and only then fails, as one whose way to the disk is broken: it can be read
        as long as the machine runs.
        """
        left = [times]

        def chosen(name: str, path: str) -> bool:
            if name not in names or where not in path or left[0] == 0:
                return False
            if left[0] is not None:
                left[0] -= 1
            return True

        with self._lock:
            self._failure, self._errno, self._after = chosen, code, after

    def heal(self) -> None:
        """Let nothing fail any more."""
        with self._lock:
            self._failure = lambda _name, _path: False

    def count(self, *names: str, where: str = JOURNAL) -> int:
        """How many operations of these names there were."""
        with self._lock:
            return sum(name in names and where in path for name, path in self.operations)

    # --- what files ask ---

    def step(self, name: str, path: str, write: Callable[[], None] | None = None) -> None:
        with self._lock:
            self.waiting += 1
            while name in self._held and self._held_where in path:
                self._lock.wait()
            self.waiting -= 1
            self.operations.append((name, path))
            if not self._failure(name, path):
                return
            self.failures += 1
            code = self._errno
        if self._after and write is not None:
            write()
        raise OSError(code, os.strerror(code))

    def open(self, path: Path, *, create: bool = False) -> File:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return DiskFile(self, str(path), os.open(path, flags, 0o644))


class DiskFile(RealFile):
    """A file of a Disk."""

    __slots__ = ("_disk", "_path")

    def __init__(self, disk: Disk, path: str, fd: int) -> None:
        super().__init__(fd)
        self._disk = disk
        # A journal is made under another name, in the same directory.
        self._path = path

    def pread(self, size: int, offset: int) -> bytes:
        self._disk.step("pread", self._path)
        return super().pread(size, offset)

    def pwrite(self, buffers: Sequence[bytes], offset: int) -> None:
        self._disk.step("pwrite", self._path, lambda: RealFile.pwrite(self, buffers, offset))
        super().pwrite(buffers, offset)

    def pwrite_durable(self, buffers: Sequence[bytes], offset: int) -> None:
        self._disk.step("pwrite_durable", self._path, lambda: RealFile.pwrite(self, buffers, offset))
        super().pwrite_durable(buffers, offset)

    def allocate(self, size: int) -> None:
        if size > self.size():
            self._disk.step("allocate", self._path)
        super().allocate(size)

    def truncate(self, size: int) -> None:
        self._disk.step("truncate", self._path)
        super().truncate(size)

    def fsync(self) -> None:
        self._disk.step("fsync", self._path)
        super().fsync()

    def fdatasync(self) -> None:
        self._disk.step("fdatasync", self._path)
        super().fdatasync()
