# SPDX-License-Identifier: Apache-2.0
"""Disks for tests of the catalogue: one that works when told to, and one that loses power at a chosen moment."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from storage.disk.filesystem import File, RealFile, RealFileSystem


class ManualThread:
    """An io thread whose calls run when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Callable[[], Any], Callable[[Any], None]]] = []

    def submit_with_callback(self, call: Callable[[], Any], on_done: Callable[[Any], None]) -> None:
        self.waiting.append((call, on_done))

    def run_one(self, error: BaseException | None = None) -> None:
        """Run the oldest call, or fail it with `error`."""
        call, on_done = self.waiting.pop(0)
        if error is None:
            try:
                result = call()
            except Exception as raised:  # noqa: BLE001 - as the real thread does
                result = raised
        else:
            result = error
        on_done(result)

    def run_all(self) -> None:
        while self.waiting:
            self.run_one()

    def close(self) -> None:
        """There is nothing to end."""


class UnsyncedFile(RealFile):
    """A file that never waits for the disk."""

    def fsync(self) -> None:
        return


class UnsyncedFileSystem(RealFileSystem):
    """The real files for tests that lose no power: syncing is most of the time that a change takes."""

    def open(self, path: Path, *, create: bool = False) -> File:
        return UnsyncedFile(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644))

    def fsync_dir(self, path: Path) -> None:
        return


class PowerLoss(BaseException):
    """The machine stopped here: nothing that comes after it in the program happens."""


class FragileFileSystem(RealFileSystem):
    """The real files, until `operations_left` is used up; the operation that comes then does not happen.

    `log` tells what was done. A write may be torn instead of left out: `torn_bytes` of it get there.
    """

    def __init__(self, operations_left: int, torn_bytes: int = 0) -> None:
        self.operations_left = operations_left
        self.torn_bytes = torn_bytes
        self.log: list[str] = []

    def step(self, what: str) -> None:
        if self.operations_left == 0:
            raise PowerLoss(what)
        self.operations_left -= 1
        self.log.append(what)

    def open(self, path: Path, *, create: bool = False) -> File:
        self.step("open")
        return FragileFile(self, super().open(path, create=create))

    def rename(self, source: Path, target: Path) -> None:
        self.step("rename")
        super().rename(source, target)

    def fsync_dir(self, path: Path) -> None:
        self.step("fsync_dir")
        super().fsync_dir(path)


class FragileFile:
    """A file of a FragileFileSystem; what only reads, or locks, passes through."""

    def __init__(self, fs: FragileFileSystem, file: File) -> None:
        self._fs = fs
        self._file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def truncate(self, size: int) -> None:
        self._fs.step("truncate")
        self._file.truncate(size)

    def pwrite(self, buffers: Sequence[bytes], offset: int) -> None:
        try:
            self._fs.step("pwrite")
        except PowerLoss:
            self._file.pwrite([b"".join(buffers)[: self._fs.torn_bytes]], offset)
            raise
        self._file.pwrite(buffers, offset)

    def fsync(self) -> None:
        self._fs.step("fsync")
        self._file.fsync()
