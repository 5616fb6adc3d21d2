# SPDX-License-Identifier: Apache-2.0
"""Facts about a log that are known before its segments are read: its partitions, and how far they are compacted."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from audit.errors import AuditError
from audit.source.directory_snapshot import DirectorySnapshot
from storage.disk.layout import OFFSETS_TOPIC

PARTITIONS_DEFAULT: Final = 50
"""Kafka's default of offsets.topic.num.partitions."""


class LogInventory(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions that were found, and their `directories`.

    The other mappings have an offset by partition. `cleaner_checkpoint`: up to where a cleaner has noted its progress;
    partitions without such a note are missing. `oldest_segment`: the base offset of the first segment, which keeps its
    name when compaction empties it. `newest_segment`: that of the active segment, which no cleaner touches.
    `log_start`: the offset at which the log starts, unless it is 0. `written_from`: the offset from which on a
    Groupkeeper node wrote the log; partitions that only a broker wrote are missing. `has_checkpoint` is True if the
    cleaner's file exists.
    """

    partitions: Sequence[int]
    directories: Mapping[int, str]
    cleaner_checkpoint: Mapping[int, int]
    oldest_segment: Mapping[int, int]
    newest_segment: Mapping[int, int]
    log_start: Mapping[int, int]
    written_from: Mapping[int, int]
    has_checkpoint: bool

    @property
    def cleaned_to(self) -> dict[int, int]:
        """The offset by partition below which compaction may have been; without a checkpoint: the newest segment."""
        return {**self.newest_segment, **self.cleaner_checkpoint}

    def infer_partition_count(self, given: int | None) -> int | None:
        """Return the number of partitions of the log, or None if the directories alone do not show it."""
        if given is not None:
            return given
        highest = max(self.partitions)
        if len(self.partitions) == highest + 1:
            return highest + 1
        return PARTITIONS_DEFAULT if highest < PARTITIONS_DEFAULT else None


def join_directory_snapshots(looks: Mapping[str, DirectorySnapshot]) -> LogInventory:
    """Join the snapshots of log directories, by their names, into one inventory.

    Raises AuditError if there is nothing to audit, or if a partition exists twice.
    """
    directories: dict[int, str] = {}
    oldest: dict[int, int] = {}
    newest: dict[int, int] = {}
    homes: dict[int, str] = {}
    checkpoint: dict[int, int] = {}
    log_start: dict[int, int] = {}
    written_from: dict[int, int] = {}
    for log_dir, look in looks.items():
        for partition, directory, oldest_segment, newest_segment in look.partitions:
            if partition in homes:
                raise AuditError(
                    f"{OFFSETS_TOPIC}-{partition} is in {homes[partition]} and in {log_dir}: "
                    "audit one replica at a time"
                )
            homes[partition], directories[partition] = log_dir, directory
            if oldest_segment is not None:
                oldest[partition] = oldest_segment
            if newest_segment is not None:
                newest[partition] = newest_segment
        checkpoint |= look.cleaner_checkpoint or {}
        log_start |= look.log_start or {}
        written_from |= look.written_from or {}
    if not directories:
        raise AuditError(f"{', '.join(looks)}: no directory {OFFSETS_TOPIC}-<partition> is in it")
    return LogInventory(
        partitions=sorted(directories),
        directories=directories,
        cleaner_checkpoint={
            partition: offset for partition, offset in checkpoint.items() if partition in directories
        },
        oldest_segment=oldest,
        newest_segment=newest,
        log_start=log_start,
        written_from=written_from,
        has_checkpoint=any(look.cleaner_checkpoint is not None for look in looks.values()),
    )
