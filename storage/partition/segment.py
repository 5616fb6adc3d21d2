# SPDX-License-Identifier: Apache-2.0
"""A segment, one `.log` file: batches one after the other, from a base offset that is the file's name."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from protocol.frozen_struct import FrozenStruct
from protocol.newtypes import Offset
from storage.disk.filesystem import File, FileSystem
from storage.disk.layout import LOG_SUFFIX, TXN_INDEX_SUFFIX, segment_name
from storage.errors import CorruptBatch, CorruptLog
from storage.format.batch import read_checked_batch
from storage.format.batch_format import (
    EXTENT_BYTES,
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    BatchSummary,
    batch_extent,
    max_timestamp,
)
from storage.partition.index import SegmentIndex, summarize_batches
from storage.settings import INDEX_INTERVAL_BYTES_DEFAULT

_SCAN_BYTES: Final = 1 << 20
_LOOK_BYTES: Final = 1 << 14


class ScanResult(FrozenStruct, frozen=True):
    """The good part of a segment: up to the byte `position`, where `next_offset` would follow.

    `damage` describes the error at that position, or is None at the end of the file.
    """

    position: int
    next_offset: Offset
    damage: str | None


class BatchesForOneWrite:
    """A run of batches that are written together, and their summaries, whose `position` is not valid yet."""

    __slots__ = ("batches", "size_bytes", "summaries")

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.summaries: list[BatchSummary] = []
        self.size_bytes = 0

    def add(self, batch: bytes, summary: BatchSummary) -> None:
        """Add a batch behind the others."""
        self.batches.append(batch)
        self.summaries.append(summary)
        self.size_bytes += len(batch)


class Segment:
    """A segment file, opened when it is first needed. Its methods raise OSError.

    `size_bytes` is the size of its batches; a failed write can leave more in the file, which the next one overwrites.
    """

    __slots__ = (
        "_create",
        "_file",
        "_first_timestamp",
        "_fs",
        "base_offset",
        "dirty",
        "index",
        "path",
        "size_bytes",
    )

    def __init__(
        self,
        fs: FileSystem,
        directory: Path,
        base_offset: Offset,
        *,
        create: bool,
        index_interval_bytes: int = INDEX_INTERVAL_BYTES_DEFAULT,
        suffix: str = "",
    ) -> None:
        self.base_offset = base_offset
        self.path = directory / segment_name(base_offset, LOG_SUFFIX + suffix)
        self.size_bytes = 0
        self.dirty = False
        """True if the segment was written, or cut, since the last `fsync`."""
        self.index = SegmentIndex(fs, directory, base_offset, index_interval_bytes, suffix)
        self._fs = fs
        self._create = create
        self._file: File | None = None
        self._first_timestamp: int | None = None
        if not create:
            self.size_bytes = self._open().size()

    def _open(self) -> File:
        if self._file is None:
            self._file = self._fs.open(self.path, create=self._create)
            self._create = False
        return self._file

    def write(self, run: BatchesForOneWrite) -> None:
        """Append batches, to the page cache."""
        self.dirty = True
        self._open().pwrite(run.batches, self.size_bytes)
        self.index.extend(self, run.summaries)
        self.size_bytes += run.size_bytes

    def cut(self, size: int) -> None:
        """Cut everything from byte `size` on."""
        self.dirty = True
        # A broker would rebuild it (LogSegment.recover). We need not: coordinators, Kafka's and ours, load up to
        # the end of the log and use the markers in it (CoordinatorLoaderImpl, LogReplay); only a read_committed
        # consumer of this very topic reads the index. An entry without its batches would be worse than none.
        self._fs.remove(self.path.with_suffix(TXN_INDEX_SUFFIX))
        self._open().truncate(size)
        self.size_bytes = size
        if size:
            self.index.distrust_files()
        else:
            self.index.clear()
            self._first_timestamp = None

    def read(self, position: int, size: int) -> bytes:
        """Return at most `size` bytes from `position`, and none behind `size_bytes`."""
        try:
            return self._open().pread(min(size, self.size_bytes - position), position)
        except OSError as error:
            error.filename = error.filename or str(self.path)
            raise

    def read_first_batch_timestamp(self) -> int:
        """Return the largest timestamp of the first batch, in milliseconds; the segment must not be empty."""
        if self._first_timestamp is None:
            self._first_timestamp = max_timestamp(self.read(0, HEADER_BYTES))
        return self._first_timestamp

    def check_file_present(self) -> None:
        """Raise FileNotFoundError if the path names no file any more, or another one."""
        if self._file is not None and not self._file.is_still_at_path(self.path):
            raise FileNotFoundError(errno.ENOENT, "the segment was removed, or moved away", str(self.path))

    def fsync(self) -> None:
        """Make the content durable; the log syncs the directory entry."""
        if self.dirty:
            self._open().fsync()
            self.dirty = False

    def close(self) -> None:
        """Close the file; using the segment opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def find(self, offset: Offset, position: int = 0) -> int:
        """Return the start of the batch that holds `offset`, or of the next existing one; `size_bytes` if none.

        The search begins at `position`, which must be the start of a batch, or at the position from the index.
        Raises CorruptLog.
        """
        if position == 0 and self.size_bytes > _LOOK_BYTES:
            position = self.position_before(offset)
        while position < self.size_bytes:
            data = self.read(position, _SCAN_BYTES)
            pos = 0
            while pos + EXTENT_BYTES <= len(data):
                extent = batch_extent(data, pos)
                if extent is None:
                    raise CorruptLog(self.path, "no record batch starts here", position=position + pos)
                if extent.next_offset > offset:
                    return position + pos
                pos = extent.end
            if pos == 0:
                raise CorruptLog(self.path, "it ends within the header of a record batch", position=position)
            position += pos
        return self.size_bytes

    def position_before(self, offset: Offset) -> int:
        """Return the start of a batch at or before `offset`, from the index; 0 if the index has none, or is wrong."""
        position, last_offset = self.index.find(offset)
        if position:
            found = next(self.summaries(position), None)
            if found is None or found.last_offset != last_offset:
                self.index.distrust_files()
                return 0
        return position

    def summaries(self, position: int) -> Iterator[BatchSummary]:
        """Yield the whole batches from `position` on, which must be the start of one."""
        size = _LOOK_BYTES
        while position < self.size_bytes:
            data = self.read(position, size)
            following = position
            for summary in summarize_batches(data, position):
                yield summary
                following = summary.end_position
            if following == position:
                extent = batch_extent(data, 0) if len(data) >= EXTENT_BYTES else None
                if extent is None or extent.end <= size or position + extent.end > self.size_bytes:
                    return
                size = extent.end
            else:
                position = following
                size = min(4 * size, _SCAN_BYTES)

    def verify_batches(
        self, *, verify_from: Offset, gaps: bool, start: ScanResult | None = None
    ) -> ScanResult:
        """Walk over the batches; verify the checksum of those with offsets from `verify_from` on.

        Without `gaps` these must also follow each other offset by offset, as they were appended; before
        `verify_from` compaction may have removed some. `start` is the place to start from, by default the first batch.
        """
        position, offset = (0, self.base_offset) if start is None else (start.position, start.next_offset)
        while position < self.size_bytes:
            data = self.read(position, _SCAN_BYTES)
            pos, offset, damage = _scan_chunk(data, offset, verify_from, gaps=gaps)
            if damage is None and pos == 0:
                # A batch larger than what was read: take it whole.
                extent = batch_extent(data, 0) if len(data) >= EXTENT_BYTES else None
                data = self.read(position, extent.end if extent else 0)
                pos, offset, damage = _scan_chunk(data, offset, verify_from, gaps=gaps)
                if damage is None and pos == 0:
                    damage = f"a batch starts with {len(data)} bytes left, and is longer"
            position += pos
            if damage is not None:
                return ScanResult(position, offset, damage)
        return ScanResult(position, offset, None)


def _scan_chunk(
    data: bytes, offset: Offset, verify_from: Offset, *, gaps: bool
) -> tuple[int, Offset, str | None]:
    """Return the end of the whole batches at the start of `data`, the next offset, and the error at the end."""
    pos, size = 0, len(data)
    while pos + EXTENT_BYTES <= size:
        extent = batch_extent(data, pos)
        if extent is None:
            return pos, offset, "no record batch starts here"
        # An old message with others in it does not hold its first offset.
        is_gap = extent.base_offset > offset >= verify_from and not gaps and data[pos + MAGIC_AT] == MAGIC
        if extent.base_offset < offset or is_gap:
            return pos, offset, f"a batch with base offset {extent.base_offset} where {offset} comes next"
        if extent.end > size:
            break
        if extent.next_offset > verify_from:
            try:
                read_checked_batch(data, pos)
            except CorruptBatch as error:
                return pos, offset, error.reason
        pos, offset = extent.end, extent.next_offset
    return pos, offset, None
