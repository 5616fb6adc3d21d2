# SPDX-License-Identifier: Apache-2.0
"""Copies one partition's log, and compacts the copy with storage's own cleaner.

The copy is made of the batches that the audit reads, so a log that is written and compacted meanwhile can be copied,
too, and batches that only a node's journal holds are in the copy. Nothing is written except to the copy.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from audit.errors import AuditError
from audit.schema import CHANGED_MEANWHILE
from audit.source.plan import Range
from audit.source.read import read_range_chunks
from audit.source.remote import is_url
from audit.source.segments import list_partition_segments
from protocol.newtypes import Offset
from storage.cleaner.partition_cleaning import CleaningJob, CleaningResult, OldSegment
from storage.cleaner.plan import CleanerSettings
from storage.columns.batch_finder import Chunk
from storage.disk.filesystem import FileSystem, RealFileSystem
from storage.disk.layout import segment_name
from storage.errors import CorruptLog
from storage.format.batch_format import batch_extent
from storage.partition.swap import swap_in
from storage.settings import LogSettings

Clean = Callable[[FileSystem, CleaningJob], CleaningResult]
"""The function that compacts, as `storage.cleaner.partition_cleaning.clean`."""

_INDEX_INTERVAL_BYTES: Final = LogSettings().index_interval_bytes


class VanishedLog(Exception):
    """A part of the log went away before it was read, without a replacement."""


class LogCopy(msgspec.Struct, frozen=True):
    """A partition's log in a directory of its own, with the offsets from `start` up to `end`."""

    directory: Path
    start: int
    end: int


def check_work_dir(work: str, log_dirs: Sequence[str]) -> None:
    """Raise AuditError if copies of these logs cannot be made below `work`, or must not."""
    if not Path(work).is_dir():
        raise AuditError(f"--compacted {work}: there is no such directory")
    for log_dir in log_dirs:
        if is_url(log_dir):
            raise AuditError(f"--compacted: {log_dir} is no local directory, and so is not copied")
        if Path(work).resolve().is_relative_to(Path(log_dir).resolve()):
            raise AuditError(f"--compacted {work}: this is in {log_dir}, where an audit writes nothing")


def write_partition_log_copy(log: Iterable[Range], directory: Path) -> LogCopy | None:
    """Write the batches of a partition to an empty directory, segment by segment; return None if there are none.

    Raises CorruptLog for a log that is damaged or out of order, VanishedLog, and OSError.
    """
    start, end = -1, 0
    for part in log:
        for path, chunk in read_range_chunks(part):
            first, following = _extent(path, chunk, end)
            if first is None:
                continue
            start = first if start < 0 else start
            base_offset = first if part.segment is None else part.segment.base_offset
            _append(chunk, directory / segment_name(Offset(base_offset)))
            end = following
    return LogCopy(directory, start, end) if end else None


def _extent(path: str, chunk: Chunk, end: int) -> tuple[int | None, int]:
    """Return the first offset of a chunk's batches, and the one behind the last; `end` is the least allowed."""
    first = None
    for index, begin in enumerate(chunk.starts):
        position = chunk.position + begin if chunk.positions is None else chunk.positions[index]
        damage = chunk.damages.get(index)
        if damage is not None:
            _blame(path, position, damage.reason)
            continue
        extent = batch_extent(chunk.data, begin)
        assert extent is not None, "a piece without damage is a batch"
        if extent.base_offset < end:
            raise CorruptLog(path, f"offset {extent.base_offset} follows {end - 1}", position=position)
        first = extent.base_offset if first is None else first
        end = extent.next_offset
    return first, end


def _blame(path: str, position: int, reason: str | None) -> None:
    """Raise an error for a piece that is no batch, unless it is still being written."""
    if reason is None:
        return
    if reason.startswith(CHANGED_MEANWHILE):
        raise VanishedLog(reason)
    raise CorruptLog(path, reason, position=position)


def _append(chunk: Chunk, path: Path) -> None:
    with path.open("ab") as stream:
        for index, (begin, stop) in enumerate(zip(chunk.starts, chunk.ends, strict=True)):
            if index not in chunk.damages:
                stream.write(memoryview(chunk.data)[begin:stop])


def compact_log_copy(copy: LogCopy, now_ms: int, settings: CleanerSettings, clean: Clean) -> None:
    """Compact a copy up to its first open transaction, twice: as of `now_ms`, and after delete.retention.ms is over.

    The first time tombstones get the time of their deletion, and the second time they are dropped: neither may restore
    deleted state. Raises CorruptLog, OffsetMapTooSmall, and OSError.
    """
    for at_ms in (now_ms, now_ms + settings.delete_retention_ms + 1):
        cleaned_to = copy.start
        while cleaned_to < copy.end:
            reached = _compact_from(copy, cleaned_to, at_ms, settings, clean)
            if reached <= cleaned_to:
                break  # a transaction is open from this offset on
            cleaned_to = reached


def _compact_from(
    copy: LogCopy, first_dirty_offset: int, now_ms: int, settings: CleanerSettings, clean: Clean
) -> int:
    """Compact once, and return the offset up to which; that is not the end if the offset map has no room."""
    file_system = RealFileSystem()
    job = CleaningJob(
        directory=str(copy.directory),
        groups=[
            [OldSegment(Offset(found.base_offset), found.size_bytes)]
            for found in list_partition_segments(copy.directory)
        ],
        first_dirty_offset=Offset(first_dirty_offset),
        bound=Offset(copy.end),
        now_ms=now_ms,
        delete_retention_ms=settings.delete_retention_ms,
        dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
        io_bytes_per_second=None,
        index_interval_bytes=_INDEX_INTERVAL_BYTES,
    )
    result = clean(file_system, job)
    for cleaned in result.segments:
        swap_in(file_system, copy.directory, cleaned.base_offsets[0], cleaned.base_offsets)
    return result.end_offset
