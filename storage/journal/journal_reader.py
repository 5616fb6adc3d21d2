# SPDX-License-Identifier: Apache-2.0
"""Reads journals back after a crash, and decides which frames count, which were torn, and which are damaged.

A frame that cannot be read ends its file: its writer was stopped, and has not acknowledged it. Zeros behind
the last frame are space allocated ahead, and other bytes are frames of an earlier use. But if a later
frame of the same file says that the unreadable one was on disk already, it may have been acknowledged; then
it is damage, nothing is thrown away, and the node does not start. A file that is shorter than it
says was cut, and the lost frames may have been acknowledged: that is damage, too.
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
    """One flush in a journal. `position` is its start in the file, `end` the start of the next one."""

    flush: int
    synced: int
    position: int
    end: int
    entries: tuple[Entry, ...]


class JournalContents(msgspec.Struct, frozen=True):
    """A journal file: its good frames, and the state of the bytes behind them.

    `lost_bytes` is the least size of the unreadable frames, 0 if the file ends as it should.
    """

    path: Path
    version: int
    number: int
    salt: bytes
    discarded_from: int
    frames: tuple[Frame, ...]
    lost_bytes: int
    damage: CorruptLog | None = None
    """The damage of a journal that was read leniently, or None."""


class Header(msgspec.Struct, frozen=True):
    """The header of a journal; `size` is the least size of the file."""

    version: int
    number: int
    discarded_from: int
    salt: bytes
    size: int


def read_journals(fs: FileSystem, directory: Path, *, last_flush: int | None = None) -> list[JournalContents]:
    """Read all journals, oldest first, without the frames that were never accepted.

    `last_flush`, if given, is the last flush that was accepted: later ones are left out too. Raises CorruptLog
    for damage, and OSError.
    """
    journals = [
        read_journal(fs, directory / name, number)
        for name in fs.listdir(directory)
        if (number := parse_journal(name)) is not None
    ]
    return exclude_discarded_frames(journals, last_flush)


def exclude_discarded_frames(
    journals: Sequence[JournalContents], last_flush: int | None = None
) -> list[JournalContents]:
    """Return the journals of one directory, oldest first, without the frames that a later journal revokes.

    `last_flush`, if given, is the last flush that was accepted: later ones are left out too.
    """
    kept: list[JournalContents] = []
    limit = last_flush
    for journal in sorted(journals, key=lambda each: each.number, reverse=True):
        frames = journal.frames
        if limit is not None:
            frames = tuple(frame for frame in frames if frame.flush <= limit)
        if journal.discarded_from:
            limit = journal.discarded_from - 1 if limit is None else min(limit, journal.discarded_from - 1)
        kept.append(msgspec.structs.replace(journal, frames=frames))
    kept.reverse()
    return kept


def read_journal(fs: FileSystem, path: Path, number: int, *, leniently: bool = False) -> JournalContents:
    """Read one journal file. Raises CorruptLog for damage, and OSError.

    With `leniently` damage is noted instead, and `frames` are all readable ones, before and behind it;
    only a damaged header raises then.
    """
    data = read_file(fs, path)
    header = _header(fs, path, data)
    if header.number != number:
        raise CorruptLog(path, f"its header names journal {header.number}", position=0)
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
        path, header.version, number, header.salt, header.discarded_from, tuple(frames), lost, damage
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
        # The file got its name only after its header was on disk, so this is no torn write.
        size = f", and it has {len(data)} bytes" if len(data) < HEADER_BLOCK_BYTES else ""
        raise CorruptLog(path, f"the journal's header is damaged{size}", position=0)
    if version not in (1, VERSION):
        raise CorruptLog(path, f"a journal of version {version}", position=0)
    _, version, number, discarded_from, salt, *sizes = layout.unpack(facts)
    # Version 1 does not note its size.
    least = max(sizes[0], _grown_to(fs, data, salt)) if sizes else len(data)
    return Header(version, number, discarded_from, salt, least)


def _grown_to(fs: FileSystem, data: bytes, salt: bytes) -> int:
    facts = data[GROWTH_POSITION : GROWTH_POSITION + GROWTH.size]
    if CHECKSUM.unpack_from(data, GROWTH_POSITION + GROWTH.size)[0] != crc32c(facts, crc32c(salt)):
        return 0  # the file has not grown, or this is a growth of an earlier use
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
    # If even the file's first frame is unreadable, it was at most the one before the next readable.
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
    """Yield good frames anywhere behind `position`."""
    found = data.find(_FRAME_MAGIC_BYTES, position + 1)
    while found >= 0:
        frame = _frame_at(data, found, seed)
        if frame is not None:
            yield frame
            found = frame.end - 1
        found = data.find(_FRAME_MAGIC_BYTES, found + 1)


def _torn_bytes(data: bytes, position: int, frames: Sequence[Frame]) -> int:
    """Return the number of bytes of a torn last frame, by what is left of its head; 0 if there is none."""
    if position + FRAME.size > len(data):
        return 0
    magic, length, flush, _, _ = FRAME.unpack_from(data, position)
    # In reused space the bytes that follow are mostly an old frame, whose flush is lower.
    if magic != FRAME_MAGIC or (frames and flush <= frames[-1].flush):
        return 0
    return min(FRAME.size + int(length), len(data) - position)
