# SPDX-License-Identifier: Apache-2.0
"""What lies beside the segments and has to be known before they are read: which partitions, and how far compacted."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from audit.errors import AuditError
from audit.source.segments import list_segments, partition_dirs
from storage.checkpoint_file import read_offsets
from storage.filesystem import RealFileSystem
from storage.layout import CLEANER_OFFSET_FILE, OFFSETS_TOPIC

LOG_START_FILE: Final = "log-start-offset-checkpoint"
"""Kafka's, in a log directory: by partition the offset before which somebody had everything deleted."""
PARTITIONS_DEFAULT: Final = 50
"""Kafka's default of offsets.topic.num.partitions."""


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions that were found, and their `directories`.

    `cleaner_checkpoint` has those partitions for which a cleaner has noted how far it came. `newest_segment` has the
    base offset of the segment that is written to, which no cleaner touches; `log_start` the offset at which a log
    starts that does not at 0. `has_checkpoint` says whether the cleaner's file was there at all.
    """

    partitions: Sequence[int]
    directories: Mapping[int, str]
    cleaner_checkpoint: Mapping[int, int]
    newest_segment: Mapping[int, int]
    log_start: Mapping[int, int]
    has_checkpoint: bool

    @property
    def cleaned_to(self) -> dict[int, int]:
        """By partition the offset below which compaction may have been; without a checkpoint: the newest segment."""
        return {**self.newest_segment, **self.cleaner_checkpoint}

    def num_partitions(self, given: int | None) -> int | None:
        """How many partitions the log has in all; None where the directories alone do not tell."""
        if given is not None:
            return given
        highest = max(self.partitions)
        if len(self.partitions) == highest + 1:
            return highest + 1
        return PARTITIONS_DEFAULT if highest < PARTITIONS_DEFAULT else None


def take_inventory(log_dirs: Iterable[str]) -> Inventory:
    """Look at local log directories. Raises AuditError where there is nothing to audit, or a partition twice."""
    found: dict[int, Path] = {}
    checkpoint: dict[int, int] = {}
    log_start: dict[int, int] = {}
    has_checkpoint = False
    for log_dir in map(Path, log_dirs):
        for partition, directory in partition_dirs(log_dir):
            if partition in found:
                raise AuditError(
                    f"{OFFSETS_TOPIC}-{partition} is in {found[partition].parent} and in {directory.parent}: "
                    "audit one replica at a time"
                )
            found[partition] = directory
        checkpoint |= _offsets(log_dir / CLEANER_OFFSET_FILE)
        log_start |= _offsets(log_dir / LOG_START_FILE)
        has_checkpoint |= (log_dir / CLEANER_OFFSET_FILE).exists()
    if not found:
        raise AuditError(
            f"{', '.join(map(str, log_dirs))}: no directory {OFFSETS_TOPIC}-<partition> is in it"
        )
    segments = {partition: list_segments(directory) for partition, directory in found.items()}
    return Inventory(
        partitions=sorted(found),
        directories={partition: str(directory) for partition, directory in found.items()},
        cleaner_checkpoint={
            partition: offset for partition, offset in checkpoint.items() if partition in found
        },
        newest_segment={
            partition: listed[-1].base_offset for partition, listed in segments.items() if listed
        },
        log_start=log_start,
        has_checkpoint=has_checkpoint,
    )


def _offsets(path: Path) -> dict[int, int]:
    try:
        offsets = read_offsets(RealFileSystem(), path) or {}
    except OSError as error:
        raise AuditError(f"{path}: {error.strerror or error}") from error
    return {partition: offset for (topic, partition), offset in offsets.items() if topic == OFFSETS_TOPIC}
