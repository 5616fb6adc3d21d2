# SPDX-License-Identifier: Apache-2.0
"""What lies in one log directory, seen from outside of its segments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from audit.errors import AuditError
from audit.source.segments import list_segments, partition_dirs
from storage.disk.checkpoint_file import parse_offsets
from storage.disk.layout import CLEANER_OFFSET_FILE, LOG_START_FILE, OFFSETS_TOPIC


class LookedAt(NamedTuple):
    """One partition: its directory, and the base offsets of its oldest and newest segment, if it has any."""

    partition: int
    directory: str
    oldest_segment: int | None
    newest_segment: int | None


class Look(msgspec.Struct, frozen=True):
    """One log directory with its partitions.

    `cleaner_checkpoint` and `log_start` are what these files say; None where there is no such file.
    """

    partitions: Sequence[LookedAt]
    cleaner_checkpoint: Mapping[int, int] | None
    log_start: Mapping[int, int] | None


def look(log_dir: str) -> Look:
    """Look at a local log directory. Raises AuditError."""
    place = Path(log_dir)
    partitions = []
    for partition, directory in partition_dirs(place):
        offsets = [segment.base_offset for segment in list_segments(directory)]
        oldest, newest = (offsets[0], offsets[-1]) if offsets else (None, None)
        partitions.append(LookedAt(partition, str(directory), oldest, newest))
    return Look(partitions, _offsets(place / CLEANER_OFFSET_FILE), log_starts(place))


def log_starts(log_dir: Path) -> dict[int, int] | None:
    """By partition the offset at which a broker noted that it starts; None where it noted none. Raises AuditError."""
    return _offsets(log_dir / LOG_START_FILE)


def _offsets(path: Path) -> dict[int, int] | None:
    try:
        return offsets_in(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AuditError(f"{path}: {error.strerror or error}") from error


def offsets_in(checkpoint: bytes) -> dict[int, int]:
    """What a checkpoint file says of the partitions of the offsets topic; nothing, if it makes no sense."""
    offsets = parse_offsets(checkpoint) or {}
    return {partition: offset for (topic, partition), offset in offsets.items() if topic == OFFSETS_TOPIC}
