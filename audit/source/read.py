# SPDX-License-Identifier: Apache-2.0
"""Reads a range of the log into Arrow batches, also while the log is written and compacted."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from audit.schema import CHANGED_MEANWHILE, FILE_COLUMNS
from audit.source.journals import JournalDamage, JournalPartitionBatches
from audit.source.plan import Range
from audit.source.segments import SegmentFile, list_partition_segments, open_for_reading
from storage.columns.batch_finder import (
    CHUNK_BYTES,
    BadPieceReason,
    Chunk,
    Read,
    iter_segment_chunks,
    read_checked_batch_at,
)
from storage.columns.decode import decode
from storage.format.batch_format import EXTENT_BYTES, BatchExtent, batch_extent
from storage.journal.journal import ENTRY

_ATTEMPTS: Final = 20

FileChunk = tuple[str, Chunk]
"""Pieces, with the path of the file that contains them."""


def read_part(part: Range | JournalDamage, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range with the columns of these names; each batch is of one file. Raises OSError."""
    if isinstance(part, JournalDamage):
        yield from decode_chunk_rows(part.path, None, make_damage_chunk(part.position, part.reason), columns)
        return
    for path, chunk in read_range_chunks(part):
        yield from decode_chunk_rows(path, part.partition, chunk, columns)


def decode_chunk_rows(
    path: str, partition: int | None, chunk: Chunk, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk, with the columns about its file."""
    names = [name for name in columns if name not in FILE_COLUMNS.names]
    for decoded in decode(chunk, names or ["position"]):
        count = decoded.num_rows
        zeros = pa.repeat(pa.scalar(0, pa.int32()), count)
        facts = {
            "file": pa.DictionaryArray.from_arrays(zeros, pa.array([path])),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        }
        arrays = [facts[name] if name in facts else decoded.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, list(columns))


def make_damage_chunk(position: int, reason: str) -> Chunk:
    """Return a chunk without bytes, which only reports damage."""
    return Chunk(b"", position, [0], [0], {0: BadPieceReason(reason, False)})


def read_range_chunks(part: Range) -> Iterator[FileChunk]:
    """Yield the pieces of a range, in the order of the log. Raises OSError."""
    reached = part.first_offset
    for path, chunk in skip_before_log_start(_segment_or_offsets(part), part.first_offset, part.log_start):
        yield path, chunk
        reached = max(reached, next_offset(chunk))
    for journal in part.journal:
        for path, chunk in _journal(part, journal, reached):
            yield path, chunk
            reached = max(reached, next_offset(chunk))


def skip_before_log_start(
    chunks: Iterable[FileChunk], first_offset: int, log_start: int
) -> Iterator[FileChunk]:
    """Yield the chunks, of which the first starts at `first_offset`, without the pieces that end before `log_start`.

    Bytes that are no batch are left out, too, if a batch behind them shows that they end before the start.
    """
    reached = first_offset
    doubtful: list[tuple[str, Chunk, list[int]]] = []
    """The bytes that are no batch, and that no batch has followed yet."""
    for path, chunk in chunks:
        if reached >= log_start:
            yield path, chunk
            continue
        keep: list[int] = []
        held: list[int] = []
        for index in range(len(chunk.starts)):
            extent = _extent(chunk, index)
            if extent is None:
                (keep if reached >= log_start else held).append(index)
                continue
            if reached < log_start < extent.base_offset:
                yield from _picked(doubtful)
                keep += held
            if extent.next_offset > log_start:
                keep.append(index)
            doubtful, held = [], []
            reached = max(reached, extent.next_offset)
        if held:
            doubtful.append((path, chunk, held))
        if keep:
            yield path, _pick(chunk, keep)
    yield from _picked(doubtful)


def _picked(pieces: Iterable[tuple[str, Chunk, list[int]]]) -> Iterator[FileChunk]:
    return ((path, _pick(chunk, keep)) for path, chunk, keep in pieces)


def _segment_or_offsets(part: Range) -> Iterator[FileChunk]:
    segment = part.segment
    if segment is None:
        return
    try:
        with open_for_reading(segment.path) as (read, file_id):
            if file_id == segment.file_id:
                for chunk in iter_segment_chunks(read, part.start, part.end, is_newest_segment=part.last):
                    yield segment.path, chunk
                return
    except FileNotFoundError:
        pass
    yield from _by_offsets(part, part.first_offset, part.next_offset)


def _by_offsets(part: Range, first: int, stop: int | None) -> Iterator[FileChunk]:
    """Yield the batches that start at an offset from `first` up to `stop`, wherever they are by now."""
    for _ in range(_ATTEMPTS):
        segments = list_partition_segments(Path(part.directory))
        if not segments:
            break
        try:
            for segment, newest in _holding(segments, first, stop):
                with open_for_reading(segment.path) as (read, _):
                    for chunk in iter_segment_chunks(read, 0, segment.size_bytes, is_newest_segment=newest):
                        cut = _within(chunk, first, stop)
                        if cut.starts:
                            yield segment.path, cut
                            first = max(first, next_offset(cut))
            return
        except FileNotFoundError:
            continue  # Replaced once more: go on behind the batches that were read.
    until = "its end" if stop is None else f"offset {stop}"
    reason = f"{CHANGED_MEANWHILE}: what was there from offset {first} up to {until} is gone"
    yield part.segment.path if part.segment else part.directory, make_damage_chunk(part.start, reason)


def _holding(segments: Sequence[SegmentFile], first: int, stop: int | None) -> list[tuple[SegmentFile, bool]]:
    """Return the segments that can hold such offsets, and whether each is the newest."""
    following = [*(segment.base_offset for segment in segments[1:]), None]
    return [
        (segment, end is None)
        for segment, end in zip(segments, following, strict=True)
        if (end is None or end > first) and (stop is None or segment.base_offset < stop)
    ]


def _within(chunk: Chunk, first: int, stop: int | None) -> Chunk:
    """Return the pieces that start at such an offset; bytes that are no batch go with the batch before them."""
    keep: list[int] = []
    inside = False
    for index in range(len(chunk.starts)):
        extent = _extent(chunk, index)
        if extent is not None:
            inside = extent.base_offset >= first and (stop is None or extent.base_offset < stop)
        if inside:
            keep.append(index)
    return _pick(chunk, keep)


def _pick(chunk: Chunk, keep: Sequence[int]) -> Chunk:
    if len(keep) == len(chunk.starts):
        return chunk
    return msgspec.structs.replace(
        chunk,
        starts=[chunk.starts[index] for index in keep],
        ends=[chunk.ends[index] for index in keep],
        damages={new: chunk.damages[old] for new, old in enumerate(keep) if old in chunk.damages},
        positions=[chunk.positions[index] for index in keep] if chunk.positions is not None else None,
    )


def _extent(chunk: Chunk, index: int) -> BatchExtent | None:
    """Return the extent of a good piece, or None."""
    start = chunk.starts[index]
    if index in chunk.damages or start + EXTENT_BYTES > len(chunk.data):
        return None
    return batch_extent(chunk.data, start)


def next_offset(chunk: Chunk) -> int:
    """Return the offset behind the last good piece; 0 if there is none."""
    for index in reversed(range(len(chunk.starts))):
        extent = _extent(chunk, index)
        if extent is not None:
            return extent.next_offset
    return 0


def _journal(part: Range, journal: JournalPartitionBatches, reached: int) -> Iterator[FileChunk]:
    """Yield the batches of a journal from offset `reached` on; from the segments, if the journal is gone by now."""
    wanted = [
        (position, offset)
        for position, offset in journal.batch_positions_and_base_offsets()
        if offset >= reached
    ]
    if not wanted:
        return
    try:
        with open_for_reading(journal.path) as (read, _):
            for chunk in _gathered(read, journal.partition, wanted):
                yield journal.path, chunk
                reached = max(reached, next_offset(chunk))
    except FileNotFoundError:
        pass
    if reached <= wanted[-1][1]:
        # Its space is reused, or it is gone: then its batches are in segments.
        yield from _by_offsets(part, reached, wanted[-1][1] + 1)


def _gathered(read: Read, partition: int, wanted: Sequence[tuple[int, int]]) -> Iterator[Chunk]:
    """Yield the batches at these positions as chunks, up to the first one that is gone."""
    data: list[bytes] = []
    positions: list[int] = []
    size = 0
    for position, offset in wanted:
        # The space of a journal is reused: the entry must be the one that was listed.
        if ENTRY.unpack(read(position - ENTRY.size, ENTRY.size))[:2] != (partition, offset):
            break
        batch = read_checked_batch_at(read, position)
        if batch is None or batch.base_offset != offset:
            break
        data.append(batch.data)
        positions.append(position)
        size += batch.size_bytes
        if size >= CHUNK_BYTES:
            yield _joined(data, positions)
            data, positions, size = [], [], 0
    if data:
        yield _joined(data, positions)


def _joined(data: Sequence[bytes], positions: list[int]) -> Chunk:
    starts, end = [], 0
    ends = []
    for one in data:
        starts.append(end)
        end += len(one)
        ends.append(end)
    return Chunk(b"".join(data), positions[0], starts, ends, {}, positions)
