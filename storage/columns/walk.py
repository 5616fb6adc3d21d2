# SPDX-License-Identifier: Apache-2.0
"""Finding the batches of a file, also where it is damaged, a bounded piece of it at a time.

Every byte between two positions belongs to exactly one piece: a batch, or bytes that are none. A piece belongs to
the range that it starts in, so ranges that start where a batch does can be read apart from each other.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

import msgspec
from crc32c import crc32c

from storage.batch import check_batch
from storage.batch_format import (
    CRC_START,
    EXTENT_BYTES,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    batch_extent,
)
from storage.errors import CorruptBatch, IncompleteBatch
from storage.segment import find_batch

CHUNK_BYTES: Final = 8 << 20
"""So much of a file is looked at at once, unless a single batch is longer."""
BATCH_BYTES_LIMIT: Final = 256 << 20
"""A batch that claims to be longer is taken for damage, so that a wrong length cannot fill the memory."""

_LENGTH_AND_CHECKSUM: Final = Struct(">i5xI")
_LENGTH_AT: Final = 8
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD_BYTES

Read = Callable[[int, int], bytes]
"""(position, size): so many bytes of the file from there on, fewer only at its end."""


class Damage(msgspec.Struct, frozen=True):
    """Why a piece is no good batch.

    `reason` is None for the tail of the newest segment, which is no damage. `header` says whether the piece starts
    with the header of a batch of version 2, which may be what is damaged.
    """

    reason: str | None
    header: bool
    crc_ok: bool | None = None


class Chunk(msgspec.Struct):
    """Pieces that follow each other in a file; `data` holds them all, and starts at `position` in the file.

    Piece i is `data[starts[i]:ends[i]]`; `damages` tells of those that are no good batches.
    """

    data: bytes
    position: int
    starts: list[int]
    ends: list[int]
    damages: dict[int, Damage]

    @property
    def end(self) -> int:
        """The position in the file behind the last piece."""
        return self.position + (self.ends[-1] if self.ends else 0)


def walk(
    read: Read,
    start: int,
    end: int,
    *,
    base_offset: int,
    newest: bool,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Chunk]:
    """The pieces of a segment that start at a position from `start` up to `end`, or up to the end of the file.

    `base_offset` is the segment's first offset, `newest` whether it is the one that is written to. What `read`
    raises passes through.
    """
    walker = _Walker(read, base_offset, newest=newest, chunk_bytes=chunk_bytes)
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


def good_batches(data: bytes, limit: int) -> tuple[list[int], list[int]]:
    """Where the whole batches at the start of `data` with right checksums begin, before `limit`, and end."""
    view = memoryview(data)
    unpack = _LENGTH_AND_CHECKSUM.unpack_from
    starts: list[int] = []
    ends: list[int] = []
    size = len(data)
    pos = 0
    while pos < limit and pos + HEADER_BYTES <= size:
        if data[pos + MAGIC_AT] == MAGIC:
            length, checksum = unpack(data, pos + _LENGTH_AT)
            end = pos + LOG_OVERHEAD_BYTES + length
            if length < _LENGTH_MIN or end > size or crc32c(view[pos + CRC_START : end]) != checksum:
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

    def __init__(self, read: Read, base_offset: int, *, newest: bool, chunk_bytes: int) -> None:
        self._read = read
        self._base_offset = base_offset
        self._newest = newest
        self._window_bytes = max(chunk_bytes, CHUNK_BYTES)

    def trouble(self, position: int) -> Chunk:
        """The one piece at `position`: a batch longer than a chunk, or what is wrong there."""
        head = self._read(position, HEADER_BYTES)
        extent = batch_extent(head, 0) if len(head) >= EXTENT_BYTES else None
        size = extent[2] if extent else 0
        if not extent or size > BATCH_BYTES_LIMIT:
            what = f"a batch claims to have {size} bytes" if extent else "no record batch starts here"
            return self._no_batch(position, len(head), what)
        data = self._read(position, size)
        try:
            batch = check_batch(data)
        except IncompleteBatch:
            return self._no_batch(position, len(head), "the file ends within a batch")
        except CorruptBatch as error:
            return self._corrupt(position, data, error)
        return Chunk(data, position, [0], [batch.end], {})

    def _corrupt(self, position: int, data: bytes, error: CorruptBatch) -> Chunk:
        """A piece of the length that its header says, if something that can be a batch follows it."""
        following = self._read(position + len(data), EXTENT_BYTES)
        if following and (len(following) < EXTENT_BYTES or batch_extent(following, 0) is None):
            return self._no_batch(position, len(data), error.reason)
        return Chunk(data, position, [0], [len(data)], {0: Damage(error.reason, _has_header(data), False)})

    def _no_batch(self, position: int, head_bytes: int, reason: str) -> Chunk:
        """The bytes up to the next good batch, or to the end of the file."""
        found, zeros, end = self._search(position)
        size = (end if found is None else found) - position
        head = self._read(position, min(size, HEADER_BYTES))
        readable = _has_header(head)
        incomplete = reason.startswith("the file ends") or head_bytes < EXTENT_BYTES
        if found is None and self._newest and (incomplete or zeros):
            damage = Damage(None, readable)
        else:
            behind = "nothing good follows" if found is None else "a good batch follows"
            damage = Damage(f"{reason}; {behind} after {size} bytes", readable, False if readable else None)
        # The bytes themselves are of no use to anybody; there may be too many of them to hold.
        return Chunk(head, position, [0], [size], {0: damage})

    def _search(self, position: int) -> tuple[int | None, bool, int]:
        """Where the next good batch behind `position` starts; whether all is zero before; where the search ended."""
        zeros = True
        step = self._window_bytes // 2
        window = position
        while True:
            data = self._read(window, self._window_bytes)
            found = find_batch(data[1:] if window == position else data, self._base_offset)
            if found is not None:
                return window + found + (window == position), False, window
            zeros = zeros and data.count(0) == len(data)
            if len(data) < self._window_bytes:
                return None, zeros, window + len(data)
            window += step


def _has_header(head: bytes) -> bool:
    """Whether the bytes start as a batch of version 2 does, whatever its length says."""
    return len(head) >= HEADER_BYTES and batch_extent(head, 0) is not None and head[MAGIC_AT] == MAGIC
