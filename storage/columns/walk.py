# SPDX-License-Identifier: Apache-2.0
"""Finding the batches of a file, also where it is damaged, a bounded piece of it at a time.

Every byte between two positions belongs to exactly one piece: a batch, or bytes that are none. A piece belongs to
the range that it starts in, so ranges that start where a batch does can be read apart from each other.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from crc32c import crc32c

from protocol.names import Offset
from storage.errors import CorruptBatch, IncompleteBatch
from storage.format.batch import check_batch, find_batch
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
"""So much of a file is looked at at once, unless a single batch is longer."""
BATCH_BYTES_LIMIT: Final = 256 << 20
"""A batch that claims to be longer is taken for damage, so that a wrong length cannot fill the memory."""

_SCAN_BYTES: Final = 1 << 20

Read = Callable[[int, int], bytes]
"""(position, size): so many bytes of the file from there on, fewer only at its end."""


class BadPiece(msgspec.Struct, frozen=True):
    """Why a piece is no good batch.

    `reason` is None for the tail of the newest segment, which is no damage. `header` says whether the piece starts
    with the header of a batch of version 2, which may be what is damaged.
    """

    reason: str | None
    header: bool
    crc_ok: bool | None = None


class Chunk(msgspec.Struct):
    """Pieces that follow each other in a file; `data` holds them all, and starts at `position` in the file.

    Piece i is `data[starts[i]:ends[i]]`; `damages` has those that are no good batches. Where the pieces do not
    follow each other in the file, `positions` has the position of each.
    """

    data: bytes
    position: int
    starts: list[int]
    ends: list[int]
    damages: dict[int, BadPiece]
    positions: list[int] | None = None

    @property
    def end(self) -> int:
        """The position in the file behind the last piece."""
        return self.position + (self.ends[-1] if self.ends else 0)


def walk(
    read: Read,
    start: int,
    end: int,
    *,
    newest: bool,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Chunk]:
    """The pieces of a segment that start at a position from `start` up to `end`, or up to the end of the file.

    `newest` says whether the segment is the one that is written to. What `read` raises passes through.
    """
    walker = _Walker(read, newest=newest)
    position = start
    while position < end:
        data = read(position, chunk_bytes)
        starts, ends = good_batches(data, end - position)
        if starts:
            chunk = Chunk(data, position, starts, ends, {})
        elif data:
            chunk = walker.trouble(position)
        else:
            return
        yield chunk
        position = chunk.end


def boundaries(read: Read, size: int, step: int) -> list[tuple[int, int]]:
    """Positions and base offsets of good batches that a segment of `size` bytes can be cut at, `step` or more apart.

    Found by walking over the headers. The start of the file is not among them.
    """
    found: list[tuple[int, int]] = []
    position, wanted = 0, step
    while position < size:
        data = read(position, _SCAN_BYTES)
        pos, cut = _skip(data, wanted - position)
        if cut is not None and check_at(read, position + pos) is not None:
            found.append((position + pos, cut))
            wanted = position + pos + step
        elif pos == 0 or cut is not None:
            # Damage, or the end: go on where the next good batch is.
            following = next_good_batch(read, position + pos)[0]
            if following is None:
                break
            position = following
            continue
        position += pos
    return [place for place in found if place[0] < size]


def _skip(data: bytes, wanted: int) -> tuple[int, int | None]:
    """How far one gets over the headers in `data`, and the base offset there once that is `wanted` or further."""
    pos = 0
    while pos + EXTENT_BYTES <= len(data):
        extent = batch_extent(data, pos)
        if extent is None:
            break
        if pos >= wanted:
            return pos, extent.base_offset
        pos = extent.end
    return pos, None


def check_at(read: Read, position: int) -> Batch | None:
    """The batch at a position, if a good one is there."""
    head = read(position, HEADER_BYTES)
    extent = batch_extent(head, 0) if len(head) >= EXTENT_BYTES else None
    if extent is None or extent.end > BATCH_BYTES_LIMIT:
        return None
    try:
        return check_batch(read(position, extent.end))
    except CorruptBatch:
        return None


def good_batches(data: bytes, limit: int) -> tuple[list[int], list[int]]:
    """Where the whole batches at the start of `data` with right checksums begin, before `limit`, and end."""
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
                end = check_batch(data, pos).end
            except CorruptBatch:
                break
        starts.append(pos)
        ends.append(end)
        pos = end
    return starts, ends


class _Walker:
    """What to do where no good batch starts."""

    def __init__(self, read: Read, *, newest: bool) -> None:
        self._read = read
        self._newest = newest

    def trouble(self, position: int) -> Chunk:
        """The one piece at `position`: a batch longer than a chunk, or what is wrong there."""
        head = self._read(position, HEADER_BYTES)
        extent = batch_extent(head, 0) if len(head) >= EXTENT_BYTES else None
        size = extent.end if extent else 0
        if not extent or size > BATCH_BYTES_LIMIT:
            what = f"a batch claims to have {size} bytes" if extent else "no record batch starts here"
            return self._no_batch(position, len(head), what)
        data = self._read(position, size)
        try:
            batch = check_batch(data)
        except IncompleteBatch:
            return self._no_batch(position, len(head), "the file ends within a batch")
        except CorruptBatch as error:
            return self._corrupt(position, data, error.reason)
        return Chunk(data, position, [0], [batch.end], {})

    def _corrupt(self, position: int, data: bytes, reason: str) -> Chunk:
        """A piece of the length that its header says, unless that is what is wrong with it."""
        following = self._read(position + len(data), EXTENT_BYTES)
        fits = not following or (len(following) == EXTENT_BYTES and batch_extent(following, 0) is not None)
        if not fits or self._begins_within(position, len(data)):
            return self._no_batch(position, len(data), reason)
        return Chunk(data, position, [0], [len(data)], {0: BadPiece(reason, _has_header(data), False)})

    def _begins_within(self, position: int, size: int) -> bool:
        """Whether a good batch begins behind `position` and in these `size` bytes; it may end behind them.

        One that ends more than _SCAN_BYTES behind them is missed.
        """
        data = self._read(position + 1, size - 1 + _SCAN_BYTES)
        return _find(data, stop=size - 1) is not None

    def _no_batch(self, position: int, head_bytes: int, reason: str) -> Chunk:
        """The bytes up to the next good batch, or to the end of the file."""
        found, zeros, end = next_good_batch(self._read, position)
        size = (end if found is None else found) - position
        head = self._read(position, min(size, HEADER_BYTES))
        readable = _has_header(head)
        incomplete = reason.startswith("the file ends") or head_bytes < EXTENT_BYTES
        if found is None and self._newest and (incomplete or zeros):
            damage = BadPiece(None, readable)
        else:
            after = (
                f"the next good batch is {size} bytes on"
                if found
                else f"none follows in the last {size} bytes"
            )
            damage = BadPiece(f"{reason}; {after}", readable, False if readable else None)
        # The bytes themselves are of no use to anybody; there may be too many of them to hold.
        return Chunk(head, position, [0], [size], {0: damage})


def next_good_batch(read: Read, position: int) -> tuple[int | None, bool, int]:
    """Where the next good batch behind `position` starts; whether all is zero before; where the search ended.

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
    return find_batch(data, Offset(0), 1 << 63, stop=stop)


def _has_header(head: bytes) -> bool:
    """Whether the bytes start as a batch of version 2 does, whatever its length says."""
    return len(head) >= HEADER_BYTES and batch_extent(head, 0) is not None and head[MAGIC_AT] == MAGIC
