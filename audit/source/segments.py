# SPDX-License-Identifier: Apache-2.0
"""The segments of a partition at one moment, while the partition may be written and compacted."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from audit.errors import AuditError
from storage.columns.batch_finder import Read
from storage.disk.layout import OFFSETS_TOPIC, SWAP_SUFFIX, parse_partition_dir, parse_segment
from storage.format.batch_format import EXTENT_BYTES, batch_extent

_ATTEMPTS: Final = 20
"""The number of attempts to list a directory that changes each time."""
_SCAN_BYTES: Final = 1 << 20

FileId = tuple[int, int]
"""The device and inode of a file, which identify it whatever its name."""


class SegmentFile(msgspec.Struct, frozen=True):
    """A segment at the time when its directory was listed."""

    path: str
    file_id: FileId
    base_offset: int
    size_bytes: int


def partition_dirs(log_dir: Path) -> list[tuple[int, Path]]:
    """Return the partitions in a log directory, by number; the directory may be one of them itself.

    Raises AuditError if it cannot be listed.
    """
    own = parse_partition_dir(log_dir.absolute().name, OFFSETS_TOPIC)
    if own is not None:
        return [(own, log_dir)]
    try:
        found = [(parse_partition_dir(path.name, OFFSETS_TOPIC), path) for path in log_dir.iterdir()]
    except OSError as error:
        raise AuditError(f"{log_dir}: {error.strerror or error}") from error
    return sorted((partition, path) for partition, path in found if partition is not None)


def list_partition_segments(directory: Path) -> list[SegmentFile]:
    """Return the segments of a partition, oldest first; none if there is no such directory.

    Raises AuditError for a directory that changes all the time, OSError if it cannot be read.
    """
    for _ in range(_ATTEMPTS):
        names = _names(directory)
        segments = [found for name in names if (found := _segment(directory / name)) is not None]
        # A rename can hide a file from a listing that is under way.
        if _names(directory) == names and len(segments) == len(names):
            return _in_force(sorted(segments, key=lambda segment: segment.base_offset))
    raise AuditError(f"{directory}: its segments change too often to be listed")


def _names(directory: Path) -> set[str]:
    try:
        names = {path.name for path in directory.iterdir()}
    except FileNotFoundError:
        return set()
    return {name for name in names if parse_segment(name.removesuffix(SWAP_SUFFIX)) is not None}


def _segment(path: Path) -> SegmentFile | None:
    try:
        facts = path.stat()
    except FileNotFoundError:
        return None
    base_offset = parse_segment(path.name.removesuffix(SWAP_SUFFIX))
    assert base_offset is not None, f"{path} was listed as a segment"
    return SegmentFile(str(path), (facts.st_dev, facts.st_ino), base_offset, facts.st_size)


def _in_force(segments: list[SegmentFile]) -> list[SegmentFile]:
    """Leave out the segments that a finished compaction replaces: those that start within the extent of its file.

    That file exists before they are removed, and gets its name after that (Kafka's UnifiedLog.replaceSegments).
    """
    swaps = [segment for segment in segments if segment.path.endswith(SWAP_SUFFIX)]
    for swap in swaps:
        end = max(_next_offset(swap), swap.base_offset + 1)
        replaced = [
            segment
            for segment in segments
            if segment not in swaps and swap.base_offset <= segment.base_offset < end
        ]
        segments = [segment for segment in segments if segment not in replaced]
    return segments


def _next_offset(segment: SegmentFile) -> int:
    """Return the offset behind a segment's last batch, by the headers, as far as these can be read."""
    end = segment.base_offset
    try:
        with open_for_reading(segment.path) as (read, _):
            position = 0
            while len(data := read(position, _SCAN_BYTES)) >= EXTENT_BYTES:
                pos = 0
                while pos + EXTENT_BYTES <= len(data) and (extent := batch_extent(data, pos)) is not None:
                    end, pos = max(end, extent.next_offset), extent.end
                if pos == 0:
                    break
                position += pos
    except FileNotFoundError:
        pass  # It has its final name by now, and the segments that it replaces are gone.
    return end


@contextmanager
def open_for_reading(path: str) -> Iterator[tuple[Read, FileId]]:
    """Yield a function that reads a file, and the file's id; close the file in the end. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        facts = os.fstat(fd)
        yield _reader(fd), (facts.st_dev, facts.st_ino)
    finally:
        os.close(fd)


def _reader(fd: int) -> Read:
    def read(position: int, size: int) -> bytes:
        data = os.pread(fd, size, position)
        while 0 < len(data) < size:
            more = os.pread(fd, size - len(data), position + len(data))
            if not more:
                break
            data += more
        return data

    return read
