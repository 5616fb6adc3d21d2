# SPDX-License-Identifier: Apache-2.0
"""The disk of the simulated machine, as each of its processes has it."""

import errno
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.storage.faulty import Crash, Fault, FaultyFile, FaultyFileSystem

NEEDS_ROOM: Final = frozenset({"allocate", "create", "mkdir", "pwrite", "pwrite_durable", "rename"})
"""What a full disk refuses. Some of these need no new block now and then; a disk that copies on write refuses all."""
_IN_FILES: Final = ("/journal", "/__consumer_offsets-")


class MachineDisk(FaultyFileSystem):
    """What all processes share. Only its own methods are for the world; processes get a ProcessDisk each."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        super().__init__(root, rng)
        self.full = False
        """Whether there is no room left."""
        self.broken = False
        """Whether everything is an error."""

    def process(self, rng: random.Random, on_crash: Callable[[], None]) -> "ProcessDisk":
        """The disk for a new process."""
        return ProcessDisk(self, rng, on_crash)

    def take_nothing(self, *, full: bool) -> None:
        """From now on there is no room, or nothing works at all, reading included."""
        self.full, self.broken = full, not full
        if self.broken:
            self.unreadable.update(name for name, inode in self._names.items() if inode is not None)

    @property
    def is_good(self) -> bool:
        """Whether there is room, and all can be read."""
        return not (self.full or self.broken or self.unreadable)

    def lose_sectors(self, part: str) -> None:
        """Files with this in their names cannot be read from now on."""
        self.unreadable.update(
            name for name, inode in self._names.items() if inode is not None and part in name
        )

    def work_again(self) -> None:
        """From now on all works."""
        self.full = self.broken = False
        self.unreadable.clear()

    def lose_power(self) -> None:
        """Keep what was synced, and of the rest what chance keeps. All processes have ended."""
        super().restart(power_loss=True)

    def holds(self, needle: bytes, *, after_power_loss: bool) -> bool:
        """Whether these bytes stand in the log or in a journal, as they are on disk, or in the page cache."""
        names = self._durable if after_power_loss else self._names
        for name, inode in names.items():
            if inode is not None and any(part in name for part in _IN_FILES):
                data = inode.durable if after_power_loss else inode.data
                if data.find(needle, 0, inode.written) >= 0:
                    return True
        return False

    def copied(self) -> FaultyFileSystem:
        """Another disk with the files of this one, on which everything works."""
        copy = FaultyFileSystem(Path(self._root), random.Random(0))
        for name, inode in self._names.items():
            copy._names[name] = None if inode is None else inode.copied()
        copy._durable.update(copy._names)
        copy._boots = self._boots
        return copy

    def copy_to(self, directory: Path) -> None:
        """Write everything into a real directory."""
        root = len(self._root) + 1
        for name, inode in sorted(self._names.items()):
            path = directory / name[root:]
            if inode is None:
                path.mkdir(parents=True, exist_ok=True)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(inode.data)


class ProcessDisk(FaultyFileSystem):
    """The same files and names; faults and the end of the process are its own."""

    def __init__(self, machine: MachineDisk, rng: random.Random, on_crash: Callable[[], None]) -> None:
        super().__init__(Path(machine._root), rng)
        self._ids = random.Random(rng.random())
        self._machine = machine
        self._names, self._durable = machine._names, machine._durable
        self._changes = machine._changes
        self.locks, self._locked_dirs = machine.locks, machine._locked_dirs
        self.unreadable = machine.unreadable
        self.on_crash = on_crash
        self.trace: Callable[[str], None] | None = None
        self._spared = False

    def end(self) -> None:
        """The process has ended: its files and locks are closed."""
        self.life += 1
        self.crashed = True
        held: list[tuple[dict[object, object], object]] = [
            (locks, key)  # type: ignore[misc]
            for locks in (self.locks, self._locked_dirs)
            for key, file in locks.items()
            if isinstance(file, FaultyFile) and file.belongs_to(self)
        ]
        for locks, key in held:
            del locks[key]

    def boot_id(self) -> bytes:
        """The machine's: it changes with a loss of power only."""
        return self._machine.boot_id()

    @contextmanager
    def spared(self) -> Iterator[None]:
        """No operation fails meanwhile: it is the world that looks."""
        self._spared = True
        try:
            yield
        finally:
            self._spared = False

    def step(self, name: str, part: Callable[[float], None] | None = None, path: str = "") -> None:
        """Before an operation: also fails while the machine's disk takes nothing."""
        if self.crashed:
            raise Crash
        if self._spared:
            return
        if self.trace is not None:
            self.trace(f"{name} {path}")
        machine = self._machine
        if (machine.full and name in NEEDS_ROOM) or machine.broken:
            self.fault = Fault.FULL if machine.full else Fault.IO_ERROR
            if part is not None:
                part(self.rng.random())
            code = errno.ENOSPC if machine.full else errno.EIO
            raise OSError(code, os.strerror(code))
        super().step(name, part, path)
