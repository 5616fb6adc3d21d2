# SPDX-License-Identifier: Apache-2.0
"""Reading journals back after a crash: which frames count, what was torn, and what is damage.

A frame that cannot be read ends its file: whoever wrote it was stopped, and nobody was told that it is
safe. Zeros behind the last frame are space that was taken ahead, and other bytes an earlier life's frames.
But when a later frame of the same file says that the unreadable one was on disk already, somebody was
told; then it is damage, nothing is thrown away, and the node does not start.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from crc32c import crc32c

from storage.errors import CorruptLog
from storage.filesystem import FileSystem, read_file
from storage.journal import (
    CHECKSUM,
    ENTRY,
    FILE_MAGIC,
    FRAME,
    FRAME_FACTS,
    FRAME_MAGIC,
    HEADER,
    HEADER_BLOCK_BYTES,
    VERSION,
    Entry,
)
from storage.layout import parse_journal

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
    number: int
    void_from: int
    frames: tuple[Frame, ...]
    lost_bytes: int


def read_journals(fs: FileSystem, directory: Path, *, last_flush: int | None = None) -> list[JournalContents]:
    """All journals, oldest first, without the frames that are void.

    `last_flush`, if given, is the last flush that was accepted: later ones are void too. Raises CorruptLog
    for damage, and OSError.
    """
    numbers = [
        (number, name) for name in fs.listdir(directory) if (number := parse_journal(name)) is not None
    ]
    journals: list[JournalContents] = []
    limit = last_flush
    for number, name in sorted(numbers, reverse=True):
        contents = read_journal(fs, directory / name, number)
        if limit is not None:
            frames = tuple(frame for frame in contents.frames if frame.flush <= limit)
            contents = msgspec.structs.replace(contents, frames=frames)
        if contents.void_from:
            limit = contents.void_from - 1 if limit is None else min(limit, contents.void_from - 1)
        journals.append(contents)
    journals.reverse()
    return journals


def read_journal(fs: FileSystem, path: Path, number: int) -> JournalContents:
    """One journal file. Raises CorruptLog for damage, and OSError."""
    data = read_file(fs, path)
    facts = data[: HEADER.size]
    if (
        len(data) < HEADER_BLOCK_BYTES
        or CHECKSUM.unpack_from(data, HEADER.size)[0] != crc32c(facts)
        or facts[: len(FILE_MAGIC)] != FILE_MAGIC
    ):
        # It got its name only after its header was on disk, so this is no torn write.
        raise CorruptLog(path, "the journal's header is damaged", position=0)
    _, version, stored_number, void_from, salt = HEADER.unpack(facts)
    if version != VERSION or stored_number != number:
        raise CorruptLog(path, f"journal {stored_number} of version {version}", position=0)
    seed = crc32c(salt)
    frames: list[Frame] = []
    position = HEADER_BLOCK_BYTES
    while (frame := _frame_at(data, position, seed)) is not None:
        if frames and frame.flush != frames[-1].flush + 1:
            raise CorruptLog(path, f"flush {frame.flush} follows {frames[-1].flush}", position=position)
        frames.append(frame)
        position = frame.end
    later = list(_later_frames(data, position, seed))
    if later and max(frame.synced for frame in later) >= _expected_flush(frames, later):
        raise CorruptLog(
            path, f"a frame is damaged, and flush {later[0].flush} follows it", position=position
        )
    lost = later[-1].end - position if later else _torn_bytes(data, position, frames)
    return JournalContents(path, number, void_from, tuple(frames), lost)


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
        yield partition, base_offset, data[position : position + length]
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
