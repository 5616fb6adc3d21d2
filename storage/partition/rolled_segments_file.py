# SPDX-License-Identifier: Apache-2.0
"""The list of the segments that a partition must have: base offset and size of each that is not written any more.

The log itself does not show a missing segment, because compaction leaves gaps. `rolled-segments` in the partition's
directory does. It is on disk before a segment is removed, and lists one only once that is on disk, so that it never
demands too much; a segment may be longer than listed. A broker does not maintain it: see `journal_registry`.
"""

from collections.abc import Mapping
from pathlib import Path

from protocol.newtypes import Offset
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import ROLLED_SEGMENTS_FILE, segment_name
from storage.errors import CorruptLog

_VERSION = "0"


def read_required_segment_sizes(fs: FileSystem, directory: Path) -> dict[Offset, int] | None:
    """Return the least size of each segment that must exist, by base offset; None if there is no list.

    Raises CorruptLog if the file is invalid, and OSError.
    """
    path = directory / ROLLED_SEGMENTS_FILE
    try:
        lines = read_file(fs, path).decode("utf-8", "replace").split("\n")
    except FileNotFoundError:
        return None
    try:
        version, count = lines[0], int(lines[1])
        sizes = {Offset(int(base)): int(size) for base, size in map(str.split, lines[2 : 2 + count])}
    except (ValueError, IndexError) as error:
        raise CorruptLog(path, "it does not say which segments there are") from error
    if version != _VERSION or len(sizes) != count:
        raise CorruptLog(path, "it does not say which segments there are")
    return sizes


def write_rolled(fs: FileSystem, directory: Path, sizes: Mapping[Offset, int]) -> None:
    """Replace the list of segments. Durable on return. Raises OSError."""
    lines = [_VERSION, str(len(sizes)), *(f"{base} {size}" for base, size in sorted(sizes.items()))]
    atomic_write(fs, directory / ROLLED_SEGMENTS_FILE, "".join(line + "\n" for line in lines).encode())


def find_missing_segment_error(
    directory: Path, noted: Mapping[Offset, int], found: Mapping[Offset, int]
) -> CorruptLog | None:
    """Return the error of the first segment that is missing or shorter than noted, or None."""
    for base_offset, size in sorted(noted.items()):
        path = directory / segment_name(base_offset)
        has = found.get(base_offset)
        if has is None:
            until = min((base for base in (*noted, *found) if base > base_offset), default=None)
            offsets = f"from {base_offset} on" if until is None else f"{base_offset} to {until - 1}"
            return CorruptLog(path, f"the segment is missing, with offsets {offsets}")
        if has < size:
            return CorruptLog(path, f"the segment was cut, it had {size} bytes", position=has)
    return None
