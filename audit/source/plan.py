# SPDX-License-Identifier: Apache-2.0
"""What there is to read in some log directories, cut into ranges that can be read apart from each other.

A range is part of a segment, known by its bytes and by its offsets: should the file be replaced before it is read,
as compaction does, the offsets say what to read instead. A live directory is only looked at: nothing is locked or
written. Journals are listed before the segments, so that a batch which moves from one into the other is seen.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from audit.errors import AuditError
from storage.layout import OFFSETS_TOPIC, parse_partition_dir, parse_segment

RANGE_BYTES: Final = 64 << 20
"""A segment longer than this is read in several ranges."""


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """Batches of one partition: those that start in `file` at a position from `start` up to `end`.

    Of offset `first_offset` up to `next_offset` (None: whatever comes) if the file is another by then than `file_id`
    says. `last` marks the end of the partition, where the newest segment ends.
    """

    directory: str
    partition: int
    file: str | None
    file_id: tuple[int, int]
    base_offset: int
    start: int
    end: int
    first_offset: int
    next_offset: int | None
    last: bool


class Listed(msgspec.Struct, frozen=True):
    """A segment as it was when its directory was listed."""

    path: str
    file_id: tuple[int, int]
    base_offset: int
    size_bytes: int


def plan(log_dirs: Sequence[str], *, range_bytes: int = RANGE_BYTES) -> list[Range]:
    """The ranges of all partitions under some directories, each partition's in the order of its log.

    A log directory holds directories named __consumer_offsets-<partition>, or is one of them. Raises AuditError
    where there is none.
    """
    ranges: list[Range] = []
    for log_dir in log_dirs:
        partitions = partition_dirs(Path(log_dir))
        if not partitions:
            raise AuditError(f"{log_dir}: no directory {OFFSETS_TOPIC}-<partition> is in it")
        for partition, directory in partitions:
            ranges += _partition_ranges(directory, partition, range_bytes)
    return ranges


def partition_dirs(log_dir: Path) -> list[tuple[int, Path]]:
    """The partitions in a log directory, by number. Raises AuditError when it cannot be listed."""
    own = parse_partition_dir(log_dir.absolute().name, OFFSETS_TOPIC)
    if own is not None:
        return [(own, log_dir)]
    try:
        names = sorted(path.name for path in log_dir.iterdir())
    except OSError as error:
        raise AuditError(f"{log_dir}: {error.strerror or error}") from error
    found = [(parse_partition_dir(name, OFFSETS_TOPIC), log_dir / name) for name in names]
    return sorted((partition, path) for partition, path in found if partition is not None)


def list_segments(directory: Path) -> list[Listed]:
    """The segments of a partition, oldest first; one that goes away meanwhile is left out."""
    segments = []
    for name in _names(directory):
        base_offset = parse_segment(name)
        if base_offset is None:
            continue
        path = directory / name
        try:
            facts = path.stat()
        except FileNotFoundError:
            continue
        segments.append(Listed(str(path), (facts.st_dev, facts.st_ino), base_offset, facts.st_size))
    return sorted(segments, key=lambda segment: segment.base_offset)


def _names(directory: Path) -> list[str]:
    try:
        return [path.name for path in directory.iterdir()]
    except FileNotFoundError:
        return []


def _partition_ranges(directory: Path, partition: int, range_bytes: int) -> list[Range]:
    segments = list_segments(directory)
    ranges: list[Range] = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        ranges.append(
            Range(
                directory=str(directory),
                partition=partition,
                file=segment.path,
                file_id=segment.file_id,
                base_offset=segment.base_offset,
                start=0,
                end=segment.size_bytes,
                first_offset=segment.base_offset,
                next_offset=None if following is None else following.base_offset,
                last=following is None,
            )
        )
    return ranges
