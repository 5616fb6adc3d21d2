# SPDX-License-Identifier: Apache-2.0
"""The node's journal: what makes a flush durable with one write, however many partitions it touches.

A file is a header and then frames, one for each flush; all numbers are big-endian:

    header  magic 8 bytes, version u16, 6 zero bytes, number u64, void_from u64, salt 8 bytes, crc32c u32;
            it has the first 4096 bytes of the file to itself
    frame   magic u32, payload length u32, flush u64, synced u64, crc32c u32, payload
    payload for each entry: partition i32, base offset i64, batch length u32, batch

Flushes count up by one over all files. `synced` is the last flush that was known to be on disk when the
frame was written: that tells a loss of what nobody was promised from damage (see `journal_reader`). The
checksum of a frame starts from its file's random salt, so neither a frame of a file's earlier life (space
is used again) nor bytes that a client put into a commit can pass for one. `void_from`, where it is not 0,
says that frames of *older* files from that flush on were never accepted; `LogManager.repair` writes it.

To change this format, raise VERSION, and let the reader take both.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from struct import Struct
from typing import Final

from crc32c import crc32c

from storage.filesystem import File, FileSystem
from storage.layout import (
    CLEANER_OFFSET_FILE,
    POSITION_FILE,
    RECOVERY_POINT_FILE,
    SPARE_JOURNAL,
    TEMPORARY_SUFFIX,
    journal_name,
    parse_journal,
)

VERSION: Final = 1
FILE_MAGIC: Final = b"GKJOURNL"
FRAME_MAGIC: Final = 0x474B4631
HEADER_BLOCK_BYTES: Final = 4096
"""The header's own block: no later write touches it."""
HEADER: Final = Struct(">8sH6xQQ8s")
CHECKSUM: Final = Struct(">I")
FRAME: Final = Struct(">IIQQI")
FRAME_FACTS: Final = Struct(">IQQ")
"""What the checksum covers of a frame's head: length, flush, synced."""
ENTRY: Final = Struct(">iqI")

_BESIDE_JOURNALS: Final = frozenset(
    {
        CLEANER_OFFSET_FILE,
        SPARE_JOURNAL,
        RECOVERY_POINT_FILE,
        POSITION_FILE,
        RECOVERY_POINT_FILE + TEMPORARY_SUFFIX,
        POSITION_FILE + TEMPORARY_SUFFIX,
    }
)

Entry = tuple[int, int, bytes]
"""partition, base offset, batch"""


class Journal:
    """A journal file that is written to. Methods raise OSError; then the file must not be written again."""

    __slots__ = ("_allocated", "_end", "_file", "_seed", "_step", "number", "path", "unsynced")

    def __init__(self, file: File, path: Path, number: int, salt: bytes, step_bytes: int) -> None:
        self.number = number
        self.path = path
        self.unsynced = False
        """Whether something was written that no sync has followed."""
        self._file = file
        self._seed = crc32c(salt)
        self._step = step_bytes
        self._end = HEADER_BLOCK_BYTES
        self._allocated = file.size()

    @classmethod
    def create(
        cls, fs: FileSystem, directory: Path, number: int, *, step_bytes: int, void_from: int = 0
    ) -> "Journal":
        """A new journal, durably there, in the space of the spare one if there is one.

        Space is taken `step_bytes` at a time, ahead of the frames, so that a full disk is found before
        anything is written, and a durable frame need not wait for the file to grow.
        """
        spare = directory / SPARE_JOURNAL
        path = directory / journal_name(number)
        salt = os.urandom(8)
        facts = HEADER.pack(FILE_MAGIC, VERSION, number, void_from, salt)
        file = fs.open(spare, create=True)
        try:
            file.allocate(max(step_bytes, HEADER_BLOCK_BYTES))
            file.pwrite([facts, CHECKSUM.pack(crc32c(facts))], 0)
            file.fsync()
            fs.rename(spare, path)
            fs.fsync_dir(directory)
            return cls(file, path, number, salt, step_bytes)
        except BaseException:
            file.close()
            raise

    @property
    def size_bytes(self) -> int:
        """What the frames take."""
        return self._end - HEADER_BLOCK_BYTES

    def append(self, flush: int, synced: int, entries: Sequence[Entry], *, durable: bool) -> None:
        """Write one frame; with `durable` it is on disk on return."""
        payload = encode_entries(entries)
        facts = FRAME_FACTS.pack(len(payload), flush, synced)
        checksum = crc32c(payload, crc32c(facts, self._seed))
        frame = (FRAME.pack(FRAME_MAGIC, len(payload), flush, synced, checksum), payload)
        end = self._end + FRAME.size + len(payload)
        if end > self._allocated:
            size = -(-end // self._step) * self._step
            self._file.allocate(size)
            self._allocated = size
        if durable:
            self._file.pwrite_durable(frame, self._end)
        else:
            self.unsynced = True
            self._file.pwrite(frame, self._end)
        self._end = end

    def sync(self) -> None:
        """Make every frame durable that was written before the call."""
        # Cleared first: a frame that another thread appends meanwhile sets it again.
        self.unsynced = False
        try:
            self._file.fdatasync()
        except BaseException:
            self.unsynced = True
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """A frame's payload."""
    parts: list[bytes] = []
    for partition, base_offset, batch in entries:
        parts += (ENTRY.pack(partition, base_offset, len(batch)), batch)
    return b"".join(parts)


def retire(fs: FileSystem, path: Path, *, spare_bytes_max: int) -> None:
    """Remove a journal that is no longer needed, or keep its space for the next one. Raises OSError."""
    spare = path.with_name(SPARE_JOURNAL)
    if not fs.exists(spare) and _size(fs, path) <= spare_bytes_max:
        fs.rename(path, spare)
    else:
        fs.remove(path)


def clear_journals(fs: FileSystem, directories: Iterable[Path], kept: Collection[Path]) -> None:
    """Remove what nodes that are gone have left in `directories`, but for what is `kept`. Raises OSError."""
    for directory in directories:
        for name in fs.listdir(directory):
            path = directory / name
            if path not in kept and (parse_journal(name) is not None or name in _BESIDE_JOURNALS):
                fs.remove(path)
        if not fs.listdir(directory):
            fs.rmdir(directory)
            fs.fsync_dir(directory.parent)


def _size(fs: FileSystem, path: Path) -> int:
    file = fs.open_read(path)
    try:
        return file.size()
    finally:
        file.close()
