# SPDX-License-Identifier: Apache-2.0
"""The node's journal, which makes a flush durable with one write, however many partitions it touches.

A file is a header and then frames, one for each flush; all numbers are big-endian:

    header  magic 8 bytes, version u16, 6 zero bytes, number u64, discarded_from u64, salt 8 bytes, size u64,
            crc32c u32; it has the first 4096 bytes of the file to itself. Version 1 has no size
    growth  at byte 512: size u64, boot 16 bytes, crc32c u32 from the salt; only if the file has grown
    frame   magic u32, payload length u32, flush u64, synced u64, crc32c u32, payload
    payload for each entry: partition i32, base offset i64, batch length u32, batch

Flush numbers rise by one over all files. `synced` is the last flush that was known to be on disk when the frame was
written: by it `journal_reader` distinguishes damage from a loss of unacknowledged flushes. The checksum of a frame
starts from its file's random salt, so neither a frame of the file's earlier use (space is reused) nor bytes that a
client put into a commit can pass for one. `discarded_from`, if it is not 0, says that frames of *older* files from that
flush on were never accepted; `LogManager.recover_all_after_failure` writes it.

Space is allocated before frames are written into it, and the file notes its size, so that a shorter file is
known to be cut, at any place. `size` of the header was on disk before the file got its name. `size` of a growth
was on disk before any frame behind it if `boot` is zero; else it is valid as long as the machine has not started
again, since a power loss may undo it together with unacknowledged flushes.

To change this format, raise VERSION, and let the reader take both.
"""

import errno
from collections.abc import Callable, Sequence
from pathlib import Path
from struct import Struct
from typing import Final

from crc32c import crc32c

from protocol.compiled_struct import FieldsValue
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import File, FileSystem
from storage.disk.layout import SPARE_JOURNAL, journal_name

VERSION: Final = 2
FILE_MAGIC: Final = b"GKJOURNL"
FRAME_MAGIC: Final = 0x474B4631
HEADER_BLOCK_BYTES: Final = 4096
"""The size of the header's own block, which no later frame touches."""
HEADER: Final = Struct(">8sH6xQQ8sQ")
HEADER_V1: Final = Struct(">8sH6xQQ8s")
GROWTH: Final = Struct(">Q16s")
GROWTH_POSITION: Final = 512
"""The position of the growth, in a sector of its own: writing it cannot tear the header."""
SYNCED: Final = bytes(16)
"""The `boot` of a growth that was on disk before any frame behind it was written."""
CHECKSUM: Final = Struct(">I")
FRAME: Final = Struct(">IIQQI")
FRAME_FACTS: Final = Struct(">IQQ")
"""The fields of a frame's head that the checksum covers: length, flush, synced."""
ENTRY: Final = Struct(">iqI")
_PACK_ENTRY: Final[Callable[[int, int, int], bytes]] = ENTRY.pack


@mypyc_attr(acyclic=True)
class Entry(FieldsValue):
    """A batch of a partition, in a frame; it begins at `base_offset`."""

    __match_args__: Final = ("partition", "base_offset", "batch")
    __slots__ = __match_args__

    def __init__(self, partition: Partition, base_offset: Offset, batch: bytes) -> None:
        self.partition: Final = partition
        self.base_offset: Final = base_offset
        self.batch: Final = batch


class Journal:
    """A journal file that is written to. Methods raise OSError; then the file must not be written again."""

    __slots__ = (
        "_allocated",
        "_boot",
        "_end",
        "_file",
        "_seed",
        "_step",
        "number",
        "path",
        "salt",
        "unsynced",
    )

    def __init__(
        self, file: File, path: Path, number: int, salt: bytes, *, step_bytes: int, boot: bytes
    ) -> None:
        self.number = number
        self.path = path
        self.salt = salt
        """The random bytes that distinguish this file from any other of its name."""
        self.unsynced = False
        """True if a write was not followed by a sync yet."""
        self._file = file
        self._boot = boot
        self._seed = crc32c(salt)
        self._step = step_bytes
        self._end = HEADER_BLOCK_BYTES
        self._allocated = file.size()

    @classmethod
    def create(
        cls, fs: FileSystem, directory: Path, number: int, *, step_bytes: int, discarded_from: int = 0
    ) -> "Journal":
        """Create a journal durably, in the space of the spare one if there is one.

        Space is allocated `step_bytes` at a time, ahead of the frames, so that a full disk is found before
        anything is written, and a durable frame need not wait for the file to grow.
        """
        spare = directory / SPARE_JOURNAL
        path = directory / journal_name(number)
        salt = fs.random_bytes(8)
        file = fs.open(spare, create=True)
        try:
            file.allocate(max(step_bytes, HEADER_BLOCK_BYTES))
            facts = HEADER.pack(FILE_MAGIC, VERSION, number, discarded_from, salt, file.size())
            file.pwrite([facts, CHECKSUM.pack(crc32c(facts))], 0)
            file.fsync()
            fs.rename(spare, path)
            fs.fsync_dir(directory)
            return cls(file, path, number, salt, step_bytes=step_bytes, boot=fs.boot_id())
        except BaseException:
            file.close()
            raise

    @property
    def size_bytes(self) -> int:
        """The bytes of the frames."""
        return self._end - HEADER_BLOCK_BYTES

    def append(self, flush: int, synced: int, entries: Sequence[Entry], *, durable: bool) -> None:
        """Write one frame; with `durable` it is on disk on return, and the path still names a file."""
        payload = encode_entries(entries)
        facts = FRAME_FACTS.pack(len(payload), flush, synced)
        checksum = crc32c(payload, crc32c(facts, self._seed))
        frame = (FRAME.pack(FRAME_MAGIC, len(payload), flush, synced, checksum), payload)
        end = self._end + FRAME.size + len(payload)
        if end > self._allocated:
            self._grow(-(-end // self._step) * self._step, durable=durable)
        if durable:
            self._file.pwrite_durable(frame, self._end)
            if not self._file.is_any_file_at_path(self.path):
                raise self._gone()
        else:
            self.unsynced = True
            self._file.pwrite(frame, self._end)
        self._end = end

    def _grow(self, size: int, *, durable: bool) -> None:
        self._file.allocate(size)
        facts = GROWTH.pack(size, SYNCED if durable else self._boot)
        if durable:
            self._file.fsync()
        self._file.pwrite([facts, CHECKSUM.pack(crc32c(facts, self._seed))], GROWTH_POSITION)
        if durable:
            self._file.fsync()
        self._allocated = size

    def check_file_present(self) -> None:
        """Raise FileNotFoundError if a start would not find the file: it was removed, replaced, or moved away."""
        if not self._file.is_still_at_path(self.path):
            raise self._gone()

    def _gone(self) -> FileNotFoundError:
        return FileNotFoundError(errno.ENOENT, "the journal was removed, or moved away", str(self.path))

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
        """Close the journal's file."""
        self._file.close()


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """Encode entries as a frame's payload."""
    parts: list[bytes] = []
    for entry in entries:
        batch = entry.batch
        parts.append(_PACK_ENTRY(entry.partition, entry.base_offset, len(batch)))
        parts.append(batch)
    return b"".join(parts)


def remove_or_recycle(fs: FileSystem, path: Path, *, spare_bytes_max: int) -> None:
    """Remove a journal that is no longer needed, or keep its space for the next one. Raises OSError."""
    spare = path.with_name(SPARE_JOURNAL)
    if not fs.exists(spare) and _size(fs, path) <= spare_bytes_max:
        fs.rename(path, spare)
    else:
        fs.remove(path)


def _size(fs: FileSystem, path: Path) -> int:
    file = fs.open_read(path)
    try:
        return file.size()
    finally:
        file.close()
