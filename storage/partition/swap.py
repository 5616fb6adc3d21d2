# SPDX-License-Identifier: Apache-2.0
"""Swaps cleaned segments into a log, as Kafka does (LocalLog.replaceSegments), and finishes swaps after a crash.

A cleaned segment is written as `.cleaned`. Once it is on disk its files become `.swap`: from then on it counts,
and the segments that it replaces do not. They become `.deleted`, and `.swap` is removed from its files' names. The next
program that opens the directory, ours or a Kafka broker, finishes a swap that was begun (LogLoader).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from protocol.newtypes import Offset
from storage.disk.filesystem import FileSystem
from storage.disk.layout import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    parse_base_offset_of_any_segment_file,
    parse_segment,
    segment_name,
)
from storage.partition.segment import Segment

_SNAPSHOT_SUFFIX: Final = ".snapshot"
"""The suffix of a broker's snapshot of its producers' state at the start of a segment."""


def swap_in(fs: FileSystem, directory: Path, base_offset: Offset, replaced: Sequence[Offset]) -> None:
    """Replace the segments with the base offsets `replaced` by the `.cleaned` one; durable on return.

    Its files must be on disk. After an OSError the swap's progress is unknown, and the directory must be opened
    again: `finish_or_undo_swaps`.
    """
    _rename(fs, directory, base_offset, CLEANED_SUFFIX, SWAP_SUFFIX)
    fs.fsync_dir(directory)
    for old in replaced:
        _rename(fs, directory, old, "", DELETED_SUFFIX)
        if old != base_offset:
            fs.remove(directory / segment_name(old, _SNAPSHOT_SUFFIX))
    fs.fsync_dir(directory)
    _rename(fs, directory, base_offset, SWAP_SUFFIX, "")
    fs.fsync_dir(directory)
    for old in replaced:
        _remove(fs, directory, old, DELETED_SUFFIX)


def _rename(fs: FileSystem, directory: Path, base_offset: Offset, old: str, new: str) -> None:
    for suffix in SEGMENT_SUFFIXES:
        source = directory / segment_name(base_offset, suffix + old)
        if fs.exists(source):
            fs.rename(source, directory / segment_name(base_offset, suffix + new))


def _remove(fs: FileSystem, directory: Path, base_offset: Offset, suffix: str = "") -> None:
    for each in SEGMENT_SUFFIXES:
        fs.remove(directory / segment_name(base_offset, each + suffix))


def remove_unswapped_files(fs: FileSystem, directory: Path, base_offsets: Iterable[Offset]) -> None:
    """Remove cleaned segments that were not swapped in. Raises OSError."""
    for base_offset in base_offsets:
        _remove(fs, directory, base_offset, CLEANED_SUFFIX)


def finish_or_undo_swaps(fs: FileSystem, directory: Path) -> bool:
    """Finish or undo a swap that a crash has interrupted (LogLoader.removeTempFilesAndCollectSwapFiles).

    Returns whether there was a swap; the directory's changes are not synced. Raises OSError.
    """
    names = fs.listdir(directory)
    cleaned = [name for name in names if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in names if name.endswith(SWAP_SUFFIX)]
    deleted = [name for name in names if name.endswith(DELETED_SUFFIX)]
    if not (cleaned or swaps or deleted):
        return False
    for name in deleted:
        fs.remove(directory / name)
    # If a segment has both a `.swap` and a `.cleaned`, the swap was not whole yet; one of a later segment never counts.
    first_cleaned = min((parse_base_offset_of_any_segment_file(name) for name in cleaned), default=None)
    for name in list(swaps):
        if first_cleaned is not None and parse_base_offset_of_any_segment_file(name) >= first_cleaned:
            fs.remove(directory / name)
            swaps.remove(name)
    for name in cleaned:
        fs.remove(directory / name)
    _remove_replaced(fs, directory, swaps)
    for name in swaps:
        fs.rename(directory / name, directory / name.removesuffix(SWAP_SUFFIX))
    return True


def current_segments(fs: FileSystem, directory: Path) -> dict[Offset, Path]:
    """Return the segments' files, by base offset, that `finish_or_undo_swaps` would keep; change nothing.

    Raises OSError.
    """
    names = fs.listdir(directory)
    cleaned = [parse_base_offset_of_any_segment_file(name) for name in names if name.endswith(CLEANED_SUFFIX)]
    starts = (parse_segment(name.removesuffix(SWAP_SUFFIX)) for name in names if name.endswith(SWAP_SUFFIX))
    begun = [start for start in starts if start is not None and not (cleaned and start >= min(cleaned))]
    end = max((_next_offset(fs, directory, base_offset) for base_offset in begun), default=0)
    found = {
        base_offset: directory / name
        for name in names
        if (base_offset := parse_segment(name)) is not None
        and not (begun and min(begun) <= base_offset < end)
    }
    return found | {base: directory / segment_name(base, LOG_SUFFIX + SWAP_SUFFIX) for base in begun}


def _remove_replaced(fs: FileSystem, directory: Path, swaps: Sequence[str]) -> None:
    """Remove the segments that begin within the segments being swapped in."""
    starts = [parse_segment(name.removesuffix(SWAP_SUFFIX)) for name in swaps]
    begun = [start for start in starts if start is not None]
    if not begun:
        return
    end = max(_next_offset(fs, directory, base_offset) for base_offset in begun)
    for name in fs.listdir(directory):
        base_offset = parse_segment(name)
        if base_offset is not None and min(begun) <= base_offset < end:
            _remove(fs, directory, base_offset)
            if base_offset not in begun:
                fs.remove(directory / segment_name(base_offset, _SNAPSHOT_SUFFIX))


def _next_offset(fs: FileSystem, directory: Path, base_offset: Offset) -> Offset:
    """Return the offset behind a `.swap` segment; one without batches replaces at least the segment of its name."""
    segment = Segment(fs, directory, base_offset, create=False, suffix=SWAP_SUFFIX)
    try:
        offset = Offset(base_offset + 1)
        for batch in segment.summaries(0):
            offset = batch.next_offset
        return offset
    finally:
        segment.close()
