# SPDX-License-Identifier: Apache-2.0
"""Reading journals back after a crash: which frames count, what was torn, and what is damage.

A frame that cannot be read ends its file: its writer was stopped, and has not acknowledged it. Zeros behind
the last frame are space that was taken ahead, and other bytes an earlier life's frames. But when a later
frame of the same file says that the unreadable one was on disk already, it may have been acknowledged; then
it is damage, nothing is thrown away, and the node does not start. A file that is shorter than it
says was cut, and whatever it held there may have been promised: that is damage, too.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from crc32c import crc32c

from storage.disk.filesystem import FileSystem, read_file
from storage.disk.layout import parse_journal
from storage.errors import CorruptLog
from storage.journal.journal import (
    CHECKSUM,
    ENTRY,
    FILE_MAGIC,
    FRAME,
    FRAME_FACTS,
    FRAME_MAGIC,
    GROWTH,
    GROWTH_POSITION,
    HEADER,
    HEADER_BLOCK_BYTES,
    HEADER_V1,
    SYNCED,
    VERSION,
    Entry,
)

_FRAME_MAGIC_BYTES = FRAME_MAGIC.to_bytes(4, "big")


class Frame(msgspec.Struct, frozen=True):
    """One flush. `position` is where it starts in its file, `end` where the next one does."""

    flush: int
    synced: int
    position: int
    end: int
    entries: tuple[Entry, ...]


class JournalContents(msgspec.Struct, frozen=True):
    """A journal file: its good frames, and what was found behind them.

    `lost_bytes` is how far unreadable frames reach at least, 0 when the file ends as it should.
    """

    path: Path
    version: int
    number: int
    salt: bytes
    void_from: int
    frames: tuple[Frame, ...]
    lost_bytes: int
    damage: CorruptLog | None = None
    """Of a journal that was read as far as it goes: what is wrong with it."""


class Header(msgspec.Struct, frozen=True):
    """What a journal says of itself; `size` is how long the file is at least."""

    version: int
    number: int
    void_from: int
    salt: bytes
    size: int


def read_journals(fs: FileSystem, directory: Path, *, last_flush: int | None = None) -> list[JournalContents]:
    """All journals, oldest first, without the frames that are void.

    `last_flush`, if given, is the last flush that was accepted: later ones are void too. Raises CorruptLog
    for damage, and OSError.
    """
    journals = [
        read_journal(fs, directory / name, number)
        for name in fs.listdir(directory)
        if (number := parse_journal(name)) is not None
    ]
    return without_void(journals, last_flush)


def without_void(journals: Sequence[JournalContents], last_flush: int | None = None) -> list[JournalContents]:
    """The journals of one directory, oldest first, without the frames that a later one declares void.

    `last_flush`, if given, is the last flush that was accepted: later ones are void too.
    """
    kept: list[JournalContents] = []
    limit = last_flush
    for journal in sorted(journals, key=lambda each: each.number, reverse=True):
        frames = journal.frames
        if limit is not None:
            frames = tuple(frame for frame in frames if frame.flush <= limit)
        if journal.void_from:
            limit = journal.void_from - 1 if limit is None else min(limit, journal.void_from - 1)
        kept.append(msgspec.structs.replace(journal, frames=frames))
    kept.reverse()
    return kept


def read_journal(fs: FileSystem, path: Path, number: int, *, leniently: bool = False) -> JournalContents:
    """One journal file. Raises CorruptLog for damage, and OSError.

    Read `leniently`, damage is noted instead, and `frames` are all that can be read, before it and behind it;
    only a damaged header raises then.
    """
    data = read_file(fs, path)
    header = _header(fs, path, data)
    if header.number != number:
        raise CorruptLog(path, f"it says that it is journal {header.number}", position=0)
    seed = crc32c(header.salt)
    frames: list[Frame] = []
    position = HEADER_BLOCK_BYTES
    while (frame := _frame_at(data, position, seed)) is not None:
        if frames and frame.flush != frames[-1].flush + 1:
            raise CorruptLog(path, f"flush {frame.flush} follows {frames[-1].flush}", position=position)
        frames.append(frame)
        position = frame.end
    later = list(_later_frames(data, position, seed))
    damage = _damage(path, len(data), position, header, frames, later)
    if damage is not None:
        if not leniently:
            raise damage
        frames += later
    lost = later[-1].end - position if later else _torn_bytes(data, position, frames)
    return JournalContents(
        path, header.version, number, header.salt, header.void_from, tuple(frames), lost, damage
    )


def _header(fs: FileSystem, path: Path, data: bytes) -> Header:
    version = int.from_bytes(data[8:10], "big")
    layout = HEADER_V1 if version == 1 else HEADER
    facts = data[: layout.size]
    if (
        len(data) < HEADER_BLOCK_BYTES
        or CHECKSUM.unpack_from(data, layout.size)[0] != crc32c(facts)
        or facts[: len(FILE_MAGIC)] != FILE_MAGIC
    ):
        # It got its name only after its header was on disk, so this is no torn write.
        size = f", and it has {len(data)} bytes" if len(data) < HEADER_BLOCK_BYTES else ""
        raise CorruptLog(path, f"the journal's header is damaged{size}", position=0)
    if version not in (1, VERSION):
        raise CorruptLog(path, f"a journal of version {version}", position=0)
    _, version, number, void_from, salt, *sizes = layout.unpack(facts)
    # Version 1 says nothing of its size.
    least = max(sizes[0], _grown_to(fs, data, salt)) if sizes else len(data)
    return Header(version, number, void_from, salt, least)


def _grown_to(fs: FileSystem, data: bytes, salt: bytes) -> int:
    facts = data[GROWTH_POSITION : GROWTH_POSITION + GROWTH.size]
    if CHECKSUM.unpack_from(data, GROWTH_POSITION + GROWTH.size)[0] != crc32c(facts, crc32c(salt)):
        return 0  # it has not grown, or what is here is of an earlier life of the file
    size, boot = GROWTH.unpack(facts)
    return int(size) if boot in (SYNCED, fs.boot_id()) else 0


def _damage(
    path: Path, size: int, position: int, header: Header, frames: Sequence[Frame], later: Sequence[Frame]
) -> CorruptLog | None:
    if later and max(frame.synced for frame in later) >= _expected_flush(frames, later):
        reason = f"a frame is damaged, and flush {later[0].flush} follows it"
        return CorruptLog(path, reason, position=position)
    if size < header.size:
        last = f"its last whole flush is {frames[-1].flush}" if frames else "no flush is left in it"
        reason = f"the file was cut, it had {header.size} bytes; {last}, and what came after that is lost"
        return CorruptLog(path, reason, position=size)
    return None


def _expected_flush(frames: Sequence[Frame], later: Sequence[Frame]) -> int:
    # Where even the file's first frame is unreadable, it was at most the one before the next readable.
    return frames[-1].flush + 1 if frames else later[0].flush - 1


def _frame_at(data: bytes, position: int, seed: int) -> Frame | None:
    if position + FRAME.size > len(data):
        return None
    magic, length, flush, synced, checksum = FRAME.unpack_from(data, position)
    start = position + FRAME.size
    if magic != FRAME_MAGIC or length > len(data) - start:
        return None
    payload = memoryview(data)[start : start + length]
    if crc32c(payload, crc32c(FRAME_FACTS.pack(length, flush, synced), seed)) != checksum:
        return None
    return Frame(flush, synced, position, start + length, tuple(_entries(data, start, start + length)))


def _entries(data: bytes, position: int, end: int) -> Iterator[Entry]:
    while position < end:
        partition, base_offset, length = ENTRY.unpack_from(data, position)
        position += ENTRY.size
        yield Entry(partition, base_offset, data[position : position + length])
        position += length


def _later_frames(data: bytes, position: int, seed: int) -> Iterator[Frame]:
    """Good frames anywhere behind `position`."""
    found = data.find(_FRAME_MAGIC_BYTES, position + 1)
    while found >= 0:
        frame = _frame_at(data, found, seed)
        if frame is not None:
            yield frame
            found = frame.end - 1
        found = data.find(_FRAME_MAGIC_BYTES, found + 1)


def _torn_bytes(data: bytes, position: int, frames: Sequence[Frame]) -> int:
    """How many bytes a torn last frame has, by what is left of its head."""
    if position + FRAME.size > len(data):
        return 0
    magic, length, flush, _, _ = FRAME.unpack_from(data, position)
    # Where space was used again, what follows is mostly an old frame, whose flush is lower.
    if magic != FRAME_MAGIC or (frames and flush <= frames[-1].flush):
        return 0
    return min(FRAME.size + int(length), len(data) - position)
