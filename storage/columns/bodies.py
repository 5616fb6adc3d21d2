# SPDX-License-Identifier: Apache-2.0
"""Where the records of many batches are, all in one buffer."""

from collections.abc import Collection
from struct import Struct
from typing import Final

import msgspec
import numpy as np

from storage.batch import batch_body, read_batch
from storage.batch_format import COMPRESSION_MASK, HEADER_BYTES, MAGIC, MAGIC_AT, read_zigzag
from storage.columns.numbers import Longs
from storage.columns.one_by_one import Row, batch_rows
from storage.columns.walk import Chunk
from storage.errors import CorruptBatch

BODIES_BYTES: Final = 32 << 20
"""So many bytes of decompressed records are looked at at once, unless a single batch has more."""

_ATTRIBUTES_AT: Final = 22
_COUNT: Final = Struct(">i")
_COUNT_AT: Final = 57


class Bodies(msgspec.Struct):
    """The rows of the pieces of a chunk from number `first` up to `stop`.

    Row i belongs to piece `pieces[i]`. It is a record whose bytes behind its size go from `starts[i]` to `ends[i]`
    of `data`; or, where `ends[i]` is -1, its content is in `slow[i]`.
    """

    first: int
    stop: int
    data: bytes
    pieces: Longs
    starts: Longs
    ends: Longs
    slow: dict[int, Row]
    damages: dict[int, str]
    """What is wrong with pieces whose checksum is right."""


def gather(chunk: Chunk, first: int, slowly: Collection[int]) -> Bodies:
    """The rows of a chunk from piece `first` on, as many pieces as memory allows; some of them read `slowly`."""
    gatherer = _Gatherer(chunk, first)
    count = len(chunk.starts)
    while gatherer.stop < count and gatherer.unpacked_bytes < BODIES_BYTES:
        gatherer.add(slowly=gatherer.stop in slowly)
    return gatherer.bodies()


class _Gatherer:
    def __init__(self, chunk: Chunk, first: int) -> None:
        self._chunk = chunk
        self._first = first
        self.stop = first
        self.unpacked_bytes = 0
        self._unpacked: list[bytes] = []
        self._rows: list[int] = []
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._slow: dict[int, Row] = {}
        self._damages: dict[int, str] = {}

    def add(self, *, slowly: bool) -> None:
        """Take the next piece."""
        index = self.stop
        before = len(self._starts)
        if index in self._chunk.damages:
            self._add_slow(index, [{}])
        elif slowly or not self._add_bulk(self._chunk.starts[index], self._chunk.ends[index]):
            del self._starts[before:], self._ends[before:]
            rows, damage = batch_rows(self._chunk.data[self._chunk.starts[index] : self._chunk.ends[index]])
            self._add_slow(index, rows)
            if damage is not None:
                self._damages[index] = damage
        self._rows.append(len(self._starts) - before)
        self.stop += 1

    def _add_slow(self, index: int, rows: list[Row]) -> None:
        self._slow.update(enumerate(rows, len(self._starts)))
        self._starts += [0] * len(rows)
        self._ends += [-1] * len(rows)

    def _add_bulk(self, start: int, end: int) -> bool:
        data = self._chunk.data
        if data[start + MAGIC_AT] != MAGIC:
            return False
        count = _COUNT.unpack_from(data, start + _COUNT_AT)[0]
        if not data[start + _ATTRIBUTES_AT] & COMPRESSION_MASK:
            return record_bounds(data, start + HEADER_BYTES, end, count, 0, self._starts, self._ends)
        try:
            body = batch_body(read_batch(data[start:end]))
        except CorruptBatch:
            return False
        base = len(data) + self.unpacked_bytes
        if not record_bounds(body, 0, len(body), count, base, self._starts, self._ends):
            return False
        self._unpacked.append(body)
        self.unpacked_bytes += len(body)
        return True

    def bodies(self) -> Bodies:
        """What was taken."""
        return Bodies(
            first=self._first,
            stop=self.stop,
            data=b"".join([self._chunk.data, *self._unpacked]) if self._unpacked else self._chunk.data,
            pieces=np.repeat(np.arange(self._first, self.stop), np.array(self._rows, np.int64)),
            starts=np.array(self._starts, np.int64),
            ends=np.array(self._ends, np.int64),
            slow=self._slow,
            damages=self._damages,
        )


def record_bounds(
    body: bytes, position: int, end: int, count: int, base: int, starts: list[int], ends: list[int]
) -> bool:
    """Add where `count` records between two positions start, behind their sizes, and end, each plus `base`.

    False, after some of them, when they do not fill the space exactly or there is none.
    """
    try:
        for _ in range(count):
            size = body[position]
            if size < 0x80:
                position += 1
            elif body[position + 1] < 0x80:
                size = size & 0x7F | body[position + 1] << 7
                position += 2
            else:
                size, position = read_zigzag(body, position)
                size = size << 1 if size >= 0 else 1
            if size & 1:
                return False
            starts.append(position + base)
            position += size >> 1
            if position > end:
                return False
            ends.append(position + base)
    except (IndexError, ValueError):
        return False
    return position == end and count > 0
