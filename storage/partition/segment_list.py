# SPDX-License-Identifier: Apache-2.0
"""Which segments a partition must have: a line with base offset and size for each that is not written to any more.

The log itself does not show that one is missing: compaction leaves gaps. `rolled-segments` in the partition's
directory does. It is on disk before a segment goes, and lists one only once that is on disk, so that it never
asks for too much; a segment may be longer than it says. A broker does not keep it: see `open_journals`.
"""

from collections.abc import Mapping
from pathlib import Path

from protocol.names import Offset
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import ROLLED_SEGMENTS_FILE, segment_name
from storage.errors import CorruptLog

_VERSION = "0"


def read_rolled(fs: FileSystem, directory: Path) -> dict[Offset, int] | None:
    """The least size of each segment that must be there, by base offset; None where nothing was noted.

    Raises CorruptLog when the file makes no sense, and OSError.
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
    """Replace the file. Durable on return. Raises OSError."""
    lines = [_VERSION, str(len(sizes)), *(f"{base} {size}" for base, size in sorted(sizes.items()))]
    atomic_write(fs, directory / ROLLED_SEGMENTS_FILE, "".join(line + "\n" for line in lines).encode())


def find_missing(
    directory: Path, noted: Mapping[Offset, int], found: Mapping[Offset, int]
) -> CorruptLog | None:
    """The first segment that is missing or shorter than noted; both are sizes by base offset."""
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
