# SPDX-License-Identifier: Apache-2.0
"""The content of one log directory without the content of its segments."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from audit.errors import AuditError
from audit.source.segments import list_partition_segments, partition_dirs
from storage.disk.checkpoint_file import parse_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import (
    CLEANER_OFFSET_FILE,
    LOG_START_FILE,
    OFFSETS_TOPIC,
    TAKEN_OVER_FILE,
    parse_partition_dir,
)
from storage.errors import CorruptLog
from storage.journal.journal_registry import is_directory_unchanged
from storage.recovery.recovery import UNKNOWN_END


class PartitionSnapshot(NamedTuple):
    """One partition: its directory, and the base offsets of its oldest and newest segment, if it has any."""

    partition: int
    directory: str
    oldest_segment: int | None
    newest_segment: int | None


class DirectorySnapshot(msgspec.Struct, frozen=True):
    """One log directory with its partitions.

    `cleaner_checkpoint` and `log_start` are the contents of these files, or None without such a file. `written_from`
    has, by partition, the offset from which on a Groupkeeper node wrote; None if a broker was the last to write.
    """

    partitions: Sequence[PartitionSnapshot]
    cleaner_checkpoint: Mapping[int, int] | None
    log_start: Mapping[int, int] | None
    written_from: Mapping[int, int] | None


def take_directory_snapshot(log_dir: str) -> DirectorySnapshot:
    """Read the state of a local log directory. Raises AuditError."""
    place = Path(log_dir)
    partitions = []
    for partition, directory in partition_dirs(place):
        offsets = [segment.base_offset for segment in list_partition_segments(directory)]
        oldest, newest = (offsets[0], offsets[-1]) if offsets else (None, None)
        partitions.append(PartitionSnapshot(partition, str(directory), oldest, newest))
    home = _home(place)
    written_from = None
    if _is_ours(home):
        found = (each.partition for each in partitions)
        written_from = find_offsets_after_broker(_offsets(home / TAKEN_OVER_FILE) or {}, found)
    return DirectorySnapshot(
        partitions, _offsets(home / CLEANER_OFFSET_FILE), read_log_starts(place), written_from
    )


def find_offsets_after_broker(taken_over: Mapping[int, int], partitions: Iterable[int]) -> dict[int, int]:
    """Return, by partition, the offset from which on a node wrote: by `taken_over`, or 0 if not in it.

    Partitions whose offset is UNKNOWN_END are left out: a broker wrote them, and no node could read them yet.
    """
    found = {partition: taken_over.get(partition, 0) for partition in partitions}
    return {partition: offset for partition, offset in found.items() if offset != UNKNOWN_END}


def read_log_starts(log_dir: Path) -> dict[int, int] | None:
    """Return, by partition, the start offset that a broker noted; None if it noted none. Raises AuditError."""
    return _offsets(_home(log_dir) / LOG_START_FILE)


def _home(place: Path) -> Path:
    """Return the directory with the notes on partitions: their parent, also if one of them is named alone."""
    absolute = place.absolute()
    return place if parse_partition_dir(absolute.name, OFFSETS_TOPIC) is None else absolute.parent


def _is_ours(log_dir: Path) -> bool:
    try:
        return is_directory_unchanged(RealFileSystem(), log_dir)
    except CorruptLog:
        return True  # a node wrote it, or tried to
    except OSError as error:
        raise AuditError(f"{log_dir}: {error.strerror or error}") from error


def _offsets(path: Path) -> dict[int, int] | None:
    try:
        return parse_partition_offsets(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AuditError(f"{path}: {error.strerror or error}") from error


def parse_partition_offsets(checkpoint: bytes) -> dict[int, int]:
    """Return the offset of each partition of the offsets topic in a checkpoint file; empty if it is unreadable."""
    offsets = parse_offsets(checkpoint) or {}
    return {partition: offset for (topic, partition), offset in offsets.items() if topic == OFFSETS_TOPIC}
