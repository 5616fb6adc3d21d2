# SPDX-License-Identifier: Apache-2.0
"""Finds the records of many batches, all in one buffer."""

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec
import numpy as np

from storage.columns.batch_finder import Chunk
from storage.columns.batches import BatchColumns
from storage.columns.numbers import Bools, BulkReader, Longs
from storage.columns.record_by_record_decoder import Row, batch_rows
from storage.errors import CorruptBatch
from storage.format.batch import decompress_batch_body, read_unchecked_batch
from storage.format.batch_format import COMPRESSION_MASK, HEADER_BYTES, MAGIC
from storage.format.record_body import RECORD_BYTES_MIN
from storage.format.varints import read_zigzag


class BulkReadLimits(NamedTuple):
    """The limits of how much is read together."""

    bodies_bytes: int = 32 << 20
    """The bytes of decompressed records at once, unless a single batch has more."""
    many: int = 100
    """The number of batches from which reading their n-th records together is faster than batch by batch."""


BOUNDS: Final = BulkReadLimits()


class ChunkRows(msgspec.Struct):
    """The rows of the pieces of a chunk from number `first` up to `stop`.

    Row i belongs to piece `pieces[i]`. It is a record whose bytes behind its size go from `starts[i]` to `ends[i]`
    of the buffer; or, if `ends[i]` is -1, its content is in `slow[i]`.
    """

    first: int
    stop: int
    buffer: BulkReader
    pieces: Longs
    starts: Longs
    ends: Longs
    slow: dict[int, Row]
    damages: dict[int, str]
    """The errors of pieces whose checksum is right."""


def find_records(
    chunk: Chunk, batches: BatchColumns, first: int, slowly: Collection[int], bounds: BulkReadLimits = BOUNDS
) -> ChunkRows:
    """Return the rows of a chunk from piece `first` on, up to the bounds.

    The pieces in `slowly` are decoded record by record.
    """
    stop, begins, ends, buffer = _unpack(chunk, batches, first, bounds.bodies_bytes)
    count = batches.count[first:stop].copy()
    # A count of more records than the bytes can hold is rejected before any space is taken for them.
    fit = (batches.magic[first:stop] == MAGIC) & (count > 0) & (count * RECORD_BYTES_MIN <= ends - begins)
    for index in [*chunk.damages, *slowly]:
        if first <= index < stop:
            fit[index - first] = False
    count[~fit] = 0
    record_starts, record_ends, good = record_bounds(buffer, begins, ends, count, bounds.many)
    if good.all():
        pieces = np.repeat(np.arange(first, stop), count)
        return ChunkRows(first, stop, buffer, pieces, record_starts, record_ends, {}, {})
    return _with_slow(chunk, first, buffer, count, record_starts, record_ends, good)


def _unpack(
    chunk: Chunk, batches: BatchColumns, first: int, bodies_bytes: int
) -> tuple[int, Longs, Longs, BulkReader]:
    """Return up to which piece the buffer goes, where the records of each begin and end, and the buffer."""
    begins = np.array(chunk.starts[first:], np.int64) + HEADER_BYTES
    ends = np.array(chunk.ends[first:], np.int64)
    packed = (batches.magic[first:] == MAGIC) & (batches.attributes[first:] & COMPRESSION_MASK != 0)
    packed &= batches.has_header[first:]
    size = len(chunk.data)
    parts = [chunk.data]
    stop = len(chunk.starts)
    for number in np.flatnonzero(packed).tolist():
        index = first + number
        if size - len(chunk.data) >= bodies_bytes:
            stop = index
            break
        try:
            body = decompress_batch_body(
                read_unchecked_batch(chunk.data[chunk.starts[index] : chunk.ends[index]])
            )
        except CorruptBatch:
            body = b""  # The slow way will report the error.
        begins[number], ends[number] = size, size + len(body)
        size += len(body)
        parts.append(body)
    buffer = batches.buffer if len(parts) == 1 else BulkReader(b"".join(parts))
    return stop, begins[: stop - first], ends[: stop - first], buffer


def record_bounds(
    buffer: BulkReader, begins: Longs, ends: Longs, counts: Longs, many: int
) -> tuple[Longs, Longs, Bools]:
    """Return where the records of many bodies start, behind their sizes, and where they end.

    Body i goes from `begins[i]` to `ends[i]`, and should be filled by `counts[i]` records. While `many` bodies or more
    are left, their next records are read together. The last array has for each body whether its records fill it; if
    they do not, their starts and ends mean nothing.
    """
    first = np.cumsum(counts) - counts
    starts = np.zeros(int(counts.sum()), np.int64)
    stops = np.full(len(starts), -1, np.int64)
    position = begins.copy()
    active = np.flatnonzero(counts > 0)
    number = 0
    while len(active) >= many:
        size, start, good = buffer.signed_varints_at(position[active])
        stop = start + size
        good &= (size >= 0) & (stop <= ends[active])
        rows = first[active] + number
        starts[rows], stops[rows] = start, stop
        position[active] = np.where(good, stop, -1)
        number += 1
        active = active[good & (counts[active] > number)]
    for index in active.tolist():
        row = int(first[index])
        place, begin, end = int(position[index]), row + number, row + int(counts[index])
        position[index] = _bounds_of_one(
            buffer.data, place, int(ends[index]), starts[begin:end], stops[begin:end]
        )
    return starts, stops, (counts > 0) & (position == ends)


def _bounds_of_one(data: bytes, position: int, end: int, starts: Longs, stops: Longs) -> int:
    """Set the bounds of the records in one space; return where the last record ends, or -1."""
    found_starts: list[int] = []
    found_stops: list[int] = []
    try:
        for _ in range(len(starts)):
            size = data[position]
            if size < 0x80:
                position += 1
            elif data[position + 1] < 0x80:
                size = size & 0x7F | data[position + 1] << 7
                position += 2
            else:
                size, position = read_zigzag(data, position)
                size = size << 1 if size >= 0 else 1
            if size & 1:
                return -1
            found_starts.append(position)
            position += size >> 1
            if position > end:
                return -1
            found_stops.append(position)
    except (IndexError, ValueError):
        return -1
    starts[:] = found_starts
    stops[:] = found_stops
    return position


def _with_slow(
    chunk: Chunk, first: int, buffer: BulkReader, count: Longs, starts: Longs, ends: Longs, good: Bools
) -> ChunkRows:
    """Return the rows if some pieces are not `good`, and so are read slowly; each of these has at least one row."""
    slow_rows: dict[int, list[Row]] = {}
    damages: dict[int, str] = {}
    for number in np.flatnonzero(~good).tolist():
        index = first + number
        slow_rows[number] = [{}]
        if index not in chunk.damages:
            slow_rows[number], damage = batch_rows(chunk.data[chunk.starts[index] : chunk.ends[index]])
            if damage is not None:
                damages[index] = damage
    rows = np.where(good, count, 0)
    rows[list(slow_rows)] = [len(found) for found in slow_rows.values()]
    pieces = np.repeat(np.arange(len(rows)), rows)
    bulk = good[pieces]
    kept = np.repeat(good, count)
    all_starts = np.zeros(len(pieces), np.int64)
    all_ends = np.full(len(pieces), -1, np.int64)
    all_starts[bulk], all_ends[bulk] = starts[kept], ends[kept]
    begin = np.cumsum(rows) - rows
    slow = {
        int(begin[number]) + nth: row for number, found in slow_rows.items() for nth, row in enumerate(found)
    }
    return ChunkRows(first, first + len(rows), buffer, pieces + first, all_starts, all_ends, slow, damages)
