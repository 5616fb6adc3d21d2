# SPDX-License-Identifier: Apache-2.0
"""Finds the batches of a file, even if it is damaged, in chunks of bounded size.

Every byte between two positions belongs to exactly one piece: a batch, or bytes that are no batch. A piece belongs
to the range that it starts in, so ranges that start with a batch can be read independently.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from crc32c import crc32c

from protocol.newtypes import Offset
from storage.errors import CorruptBatch, IncompleteBatch
from storage.format.batch import find_whole_batch_start, read_checked_batch
from storage.format.batch_format import (
    CRC_START,
    EXTENT_BYTES,
    HEADER_BYTES,
    LENGTH_MIN,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    Batch,
    batch_extent,
    length_and_checksum,
)

CHUNK_BYTES: Final = 8 << 20
"""The bytes of a file that are read at once, unless a single batch is longer."""
BATCH_BYTES_LIMIT: Final = 256 << 20
"""The limit of a batch's size; a longer one is taken for damage, so that a wrong length cannot fill the memory."""

_SCAN_BYTES: Final = 1 << 20

Read = Callable[[int, int], bytes]
"""Reads `size` bytes of the file from `position` on, fewer only at its end; called with (position, size)."""


class BadPieceReason(msgspec.Struct, frozen=True):
    """The reason why a piece is no good batch.

    `reason` is None for the tail of the newest segment, which is no damage. `header` says whether the piece starts
    with the header of a batch of version 2, which may be what is damaged.
    """

    reason: str | None
    header: bool
    crc_ok: bool | None = None


class Chunk(msgspec.Struct):
    """Pieces that follow each other in a file; `data` holds them all, and starts at `position` in the file.

    Piece i is `data[starts[i]:ends[i]]`; `damages` has the pieces that are no good batches. If the pieces do not
    follow each other in the file, `positions` has the position of each.
    """

    data: bytes
    position: int
    starts: list[int]
    ends: list[int]
    damages: dict[int, BadPieceReason]
    positions: list[int] | None = None

    @property
    def end(self) -> int:
        """The position in the file behind the last piece."""
        return self.position + (self.ends[-1] if self.ends else 0)


def iter_segment_chunks(
    read: Read,
    start: int,
    end: int,
    *,
    is_newest_segment: bool,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Chunk]:
    """Yield the pieces of a segment that start at a position from `start` up to `end`, or up to the file's end.

    The tail of the newest segment, which is written to, may be incomplete without being damage. Errors of `read` pass
    through.
    """
    walker = _Walker(read, newest=is_newest_segment)
    position = start
    while position < end:
        data = read(position, chunk_bytes)
        starts, ends = find_leading_valid_batch_bounds(data, end - position)
        if starts:
            chunk = Chunk(data, position, starts, ends, {})
        elif data:
            chunk = walker.damaged_piece(position)
        else:
            return
        yield chunk
        position = chunk.end


def find_split_positions_and_offsets(read: Read, size: int, step: int) -> list[tuple[int, int]]:
    """Return positions and base offsets of good batches, `step` or more apart, to cut a segment of `size` bytes at.

    They are found by a walk over the headers, and exclude the start of the file.
    """
    found: list[tuple[int, int]] = []
    position, wanted = 0, step
    while position < size:
        data = read(position, _SCAN_BYTES)
        pos, cut = _skip(data, wanted - position)
        if cut is not None and read_checked_batch_at(read, position + pos) is not None:
            found.append((position + pos, cut))
            wanted = position + pos + step
        elif pos == 0 or cut is not None:
            # Damage, or the end: continue at the next good batch.
            following = find_next_batch_start(read, position + pos)[0]
            if following is None:
                break
            position = following
            continue
        position += pos
    return [place for place in found if place[0] < size]


def _skip(data: bytes, wanted: int) -> tuple[int, int | None]:
    """Return where a walk over the headers ends, and the base offset of the first batch at `wanted` or later."""
    pos = 0
    while pos + EXTENT_BYTES <= len(data):
        extent = batch_extent(data, pos)
        if extent is None:
            break
        if pos >= wanted:
            return pos, extent.base_offset
        pos = extent.end
    return pos, None


def read_checked_batch_at(read: Read, position: int) -> Batch | None:
    """Return the batch at a position, or None if no good one starts at it."""
    head = read(position, HEADER_BYTES)
    extent = batch_extent(head, 0) if len(head) >= EXTENT_BYTES else None
    if extent is None or extent.end > BATCH_BYTES_LIMIT:
        return None
    try:
        return read_checked_batch(read(position, extent.end))
    except CorruptBatch:
        return None


def find_leading_valid_batch_bounds(data: bytes, limit: int) -> tuple[list[int], list[int]]:
    """Return the starts, before `limit`, and the ends of the good batches at the start of `data`."""
    view = memoryview(data)
    starts: list[int] = []
    ends: list[int] = []
    size = len(data)
    pos = 0
    while pos < limit and pos + HEADER_BYTES <= size:
        if data[pos + MAGIC_AT] == MAGIC:
            length, checksum = length_and_checksum(data, pos)
            end = pos + LOG_OVERHEAD_BYTES + length
            if length < LENGTH_MIN or end > size or crc32c(view[pos + CRC_START : end]) != checksum:
                break
        else:
            try:
                end = read_checked_batch(data, pos).end
            except CorruptBatch:
                break
        starts.append(pos)
        ends.append(end)
        pos = end
    return starts, ends


class _Walker:
    """Finds the piece at a position at which no good batch starts in a chunk."""

    def __init__(self, read: Read, *, newest: bool) -> None:
        self._read = read
        self._newest = newest

    def damaged_piece(self, position: int) -> Chunk:
        """Return the one piece at `position`: a batch longer than a chunk, or damage."""
        head = self._read(position, HEADER_BYTES)
        extent = batch_extent(head, 0) if len(head) >= EXTENT_BYTES else None
        size = extent.end if extent else 0
        if not extent or size > BATCH_BYTES_LIMIT:
            what = f"a batch claims to have {size} bytes" if extent else "no record batch starts here"
            return self._no_batch(position, len(head), what)
        data = self._read(position, size)
        try:
            batch = read_checked_batch(data)
        except IncompleteBatch:
            return self._no_batch(position, len(head), "the file ends within a batch")
        except CorruptBatch as error:
            return self._corrupt(position, data, error.reason)
        return Chunk(data, position, [0], [batch.end], {})

    def _corrupt(self, position: int, data: bytes, reason: str) -> Chunk:
        """Return a damaged piece, of its header's length unless that length is wrong."""
        following = self._read(position + len(data), EXTENT_BYTES)
        fits = not following or (len(following) == EXTENT_BYTES and batch_extent(following, 0) is not None)
        if not fits or self._begins_within(position, len(data)):
            return self._no_batch(position, len(data), reason)
        return Chunk(data, position, [0], [len(data)], {0: BadPieceReason(reason, _has_header(data), False)})

    def _begins_within(self, position: int, size: int) -> bool:
        """Return whether a good batch begins behind `position` in these `size` bytes; it may end behind them.

        A batch that ends more than _SCAN_BYTES behind them is missed.
        """
        data = self._read(position + 1, size - 1 + _SCAN_BYTES)
        return _find(data, stop=size - 1) is not None

    def _no_batch(self, position: int, head_bytes: int, reason: str) -> Chunk:
        """Return the bytes up to the next good batch, or to the end of the file, as one piece."""
        found, zeros, end = find_next_batch_start(self._read, position)
        size = (end if found is None else found) - position
        head = self._read(position, min(size, HEADER_BYTES))
        readable = _has_header(head)
        incomplete = reason.startswith("the file ends") or head_bytes < EXTENT_BYTES
        if found is None and self._newest and (incomplete or zeros):
            damage = BadPieceReason(None, readable)
        else:
            after = (
                f"the next good batch is {size} bytes on"
                if found
                else f"none follows in the last {size} bytes"
            )
            damage = BadPieceReason(f"{reason}; {after}", readable, False if readable else None)
        # The bytes themselves are useless, and may be too many to hold.
        return Chunk(head, position, [0], [size], {0: damage})


def find_next_batch_start(read: Read, position: int) -> tuple[int | None, bool, int]:
    """Return the start of the next good batch behind `position`, whether only zeros follow, and where the search ended.

    A batch longer than half of CHUNK_BYTES may be missed.
    """
    zeros = True
    window = position
    while True:
        data = read(window, CHUNK_BYTES)
        found = _find(data[1:] if window == position else data)
        if found is not None:
            return window + found + (window == position), False, window
        zeros = zeros and data.count(0) == len(data)
        if len(data) < CHUNK_BYTES:
            return None, zeros, window + len(data)
        window += CHUNK_BYTES // 2


def _find(data: bytes, *, stop: int | None = None) -> int | None:
    return find_whole_batch_start(data, Offset(0), 1 << 63, stop=stop)


def _has_header(head: bytes) -> bool:
    """Return whether the bytes start with the header of a batch of version 2, whatever its length field says."""
    return len(head) >= HEADER_BYTES and batch_extent(head, 0) is not None and head[MAGIC_AT] == MAGIC
