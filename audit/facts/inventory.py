# SPDX-License-Identifier: Apache-2.0
"""What lies beside the segments and has to be known before they are read: which partitions, and how far compacted."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from audit.errors import AuditError
from audit.source.directory_snapshot import DirectorySnapshot
from storage.disk.layout import OFFSETS_TOPIC

PARTITIONS_DEFAULT: Final = 50
"""Kafka's default of offsets.topic.num.partitions."""


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions that were found, and their `directories`.

    `cleaner_checkpoint` has those partitions for which a cleaner has noted how far it came. `oldest_segment` has the
    base offset of the first segment, which keeps its name when compaction empties it, `newest_segment` that of the one
    that is written to, which no cleaner touches; `log_start` the offset at which a log starts that does not at 0.
    `written_from` has the offset from which on a node of this kind wrote it, and nothing of what only a broker wrote.
    `has_checkpoint` says whether the cleaner's file was there at all.
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
        """By partition the offset below which compaction may have been; without a checkpoint: the newest segment."""
        return {**self.newest_segment, **self.cleaner_checkpoint}

    def num_partitions(self, given: int | None) -> int | None:
        """How many partitions the log has in all; None where the directories alone do not say."""
        if given is not None:
            return given
        highest = max(self.partitions)
        if len(self.partitions) == highest + 1:
            return highest + 1
        return PARTITIONS_DEFAULT if highest < PARTITIONS_DEFAULT else None


def take_inventory(looks: Mapping[str, DirectorySnapshot]) -> Inventory:
    """What log directories hold together, by their names.

    Raises AuditError where there is nothing to audit, or a partition twice.
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
    return Inventory(
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
