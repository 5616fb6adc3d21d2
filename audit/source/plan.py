# SPDX-License-Identifier: Apache-2.0
"""The plan of reading some log directories, in ranges that can be read independently.

A range is part of a segment, known by its bytes and by its offsets: if the file is replaced before it is read, as by
compaction, the offsets select what to read instead. A live directory is only read: nothing is locked or written.
Journals are read before the segments are listed, so that a batch which moves from one into the other is found.
"""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from audit.errors import AuditError
from audit.source.directory_snapshot import read_log_starts
from audit.source.journals import JournalDamage, JournalPartitionBatches, read_directory_journals
from audit.source.segments import SegmentFile, list_partition_segments, open_for_reading, partition_dirs
from storage.columns.batch_finder import find_split_positions_and_offsets
from storage.disk.layout import OFFSETS_TOPIC, journal_dirs

RANGE_BYTES: Final = 64 << 20
"""The length above which a segment is read in several ranges."""
TASK_BYTES: Final = 8 << 20
"""The length of the ranges that one task reads together."""


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of one partition: those that start in `segment` at a position from `start` up to `end`.

    If the file has been replaced by the time it is read, those from offset `first_offset` up to `next_offset` (None:
    without a limit). The `last` range of a partition goes up to the end of the newest segment, and has the batches of
    `journal` that come after it, too. Batches that end before `log_start` no longer count.
    """

    directory: str
    partition: int
    segment: SegmentFile | None
    start: int
    end: int
    first_offset: int
    next_offset: int | None
    last: bool
    log_start: int = 0
    journal: tuple[JournalPartitionBatches, ...] = ()


Task = tuple[Range | JournalDamage, ...]
"""The ranges that one task reads."""


def plan(
    log_dirs: Sequence[str],
    *,
    range_bytes: int = RANGE_BYTES,
    task_bytes: int = TASK_BYTES,
    tasks_wanted: int | None = None,
) -> list[Task]:
    """Return the tasks for some directories, with each partition's ranges in the order of its log.

    A task has `task_bytes` or little more. With `tasks_wanted` it may have up to RANGE_BYTES, if about that many tasks
    remain.
    A log directory holds directories named __consumer_offsets-<partition>, or is one of them. Raises AuditError if
    there is none, or if they cannot be read.
    """
    check_log_dirs(log_dirs)
    parts: list[Range | JournalDamage] = []
    for log_dir in log_dirs:
        try:
            parts += _plan(Path(log_dir), range_bytes)
        except OSError as error:
            raise AuditError(f"{error.filename or log_dir}: {error.strerror or error}") from error
    if tasks_wanted is not None:
        total = sum(_length(part) for part in parts)
        task_bytes = max(task_bytes, min(RANGE_BYTES, total // tasks_wanted))
    return _tasks(parts, task_bytes)


def check_log_dirs(log_dirs: Sequence[str]) -> None:
    """Raise AuditError for a directory that does not exist, or has no log."""
    for log_dir in map(Path, log_dirs):
        # A new node has its journal and nothing else.
        if not partition_dirs(log_dir) and not journal_dirs(
            [path.name for path in log_dir.iterdir()], log_dir
        ):
            raise AuditError(f"{log_dir}: no directory {OFFSETS_TOPIC}-<partition> is in it")


def _plan(log_dir: Path, range_bytes: int) -> list[Range | JournalDamage]:
    found = read_directory_journals(log_dir)
    partitions = dict(partition_dirs(log_dir))
    for partition in found.parts:
        partitions.setdefault(partition, log_dir / f"{OFFSETS_TOPIC}-{partition}")
    starts = read_log_starts(log_dir) or {}
    parts: list[Range | JournalDamage] = list(found.damages)
    for partition, directory in sorted(partitions.items()):
        journal = tuple(found.parts.get(partition, ()))
        parts += _ranges(directory, partition, range_bytes, journal, starts.get(partition, 0))
    return parts


def _ranges(
    directory: Path,
    partition: int,
    range_bytes: int,
    journal: tuple[JournalPartitionBatches, ...],
    log_start: int,
) -> list[Range]:
    segments = _from_start(list_partition_segments(directory), log_start)
    pieces = [
        (segment, start, end, offset)
        for segment in segments
        for start, end, offset in _cut(segment, range_bytes)
    ]
    ranges = []
    for number, (segment, start, end, offset) in enumerate(pieces):
        last = number + 1 == len(pieces)
        ranges.append(
            Range(
                directory=str(directory),
                partition=partition,
                segment=segment,
                start=start,
                end=end,
                first_offset=offset,
                next_offset=None if last else pieces[number + 1][3],
                last=last,
                log_start=log_start,
                journal=journal if last else (),
            )
        )
    if not ranges and journal:
        # The first segment is still to come.
        only = Range(
            directory=str(directory),
            partition=partition,
            segment=None,
            start=0,
            end=0,
            first_offset=0,
            next_offset=0,
            last=True,
            journal=journal,
        )
        return [only]
    return ranges


def _from_start(segments: list[SegmentFile], log_start: int) -> list[SegmentFile]:
    """Return the segments without those that end before the log starts."""
    first = max(bisect_right(segments, log_start, key=lambda segment: segment.base_offset) - 1, 0)
    return segments[first:]


def _cut(segment: SegmentFile, range_bytes: int) -> list[tuple[int, int, int]]:
    """Return the start, end and first offset of each range of a segment."""
    places = [(0, segment.base_offset)]
    if segment.size_bytes > range_bytes:
        try:
            with open_for_reading(segment.path) as (read, file_id):
                if file_id == segment.file_id:
                    places += find_split_positions_and_offsets(read, segment.size_bytes, range_bytes)
        except FileNotFoundError:
            pass  # Replaced: it will be read by its offsets.
    ends = [position for position, _ in places[1:]] + [segment.size_bytes]
    return [(position, end, offset) for (position, offset), end in zip(places, ends, strict=True)]


def _tasks(parts: Sequence[Range | JournalDamage], task_bytes: int) -> list[Task]:
    tasks: list[Task] = []
    gathered: list[Range | JournalDamage] = []
    size = 0
    for part in parts:
        length = _length(part)
        if gathered and size + length > task_bytes:
            tasks.append(tuple(gathered))
            gathered, size = [], 0
        gathered.append(part)
        size += length
    if gathered:
        tasks.append(tuple(gathered))
    return tasks


def _length(part: Range | JournalDamage) -> int:
    return part.end - part.start if isinstance(part, Range) else 0
