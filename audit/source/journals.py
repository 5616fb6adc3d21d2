# SPDX-License-Identifier: Apache-2.0
"""The journals of a log: batches that a node has acknowledged, and may not have in its segments yet.

A live node writes, checkpoints and removes them at any time. The result is their content at one moment; `read` finds
out where the batches are by the time that they are needed, in the journal or in a segment.
"""

from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from protocol.newtypes import Partition
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import journal_dirs
from storage.errors import CorruptLog
from storage.journal.journal import ENTRY, FRAME
from storage.journal.journal_reader import JournalContents, read_journals

_ATTEMPTS: Final = 5


class JournalPartitionBatches(msgspec.Struct, frozen=True):
    """The batches of one partition in one journal: `positions` and `base_offsets`, packed as 64-bit numbers."""

    path: str
    partition: int
    positions: bytes
    base_offsets: bytes

    def batch_positions_and_base_offsets(self) -> Iterator[tuple[int, int]]:
        """Return the position and the base offset of each batch."""
        return zip(array("q", self.positions), array("q", self.base_offsets), strict=True)


class JournalDamage(msgspec.Struct, frozen=True):
    """A damaged journal, with which its node would not start."""

    path: str
    position: int
    reason: str


class DirectoryJournals(msgspec.Struct, frozen=True):
    """All journals of a log directory: their batches by partition, and their damages."""

    parts: dict[int, list[JournalPartitionBatches]]
    damages: list[JournalDamage]


def read_directory_journals(log_dir: Path) -> DirectoryJournals:
    """Return the content of the journals in a log directory. Raises OSError if they cannot be read."""
    found = DirectoryJournals({}, [])
    names = [path.name for path in log_dir.iterdir()]
    for directory in sorted(journal_dirs(names, log_dir)):
        try:
            contents = _read(directory)
        except CorruptLog as error:
            found.damages.append(JournalDamage(error.path, error.position or 0, error.reason))
            continue
        for journal in contents:
            _add(found.parts, journal)
    return found


def _read(directory: Path) -> list[JournalContents]:
    """Return the journals in a directory. Raises CorruptLog if they are damaged at every attempt.

    A frame that was being written when it was read, and was on disk when a later one was read, seems damaged; and a
    finished journal is removed.
    """
    for attempt in range(_ATTEMPTS):
        try:
            return read_journals(RealFileSystem(), directory)
        except (CorruptLog, FileNotFoundError) as error:
            if attempt + 1 == _ATTEMPTS and isinstance(error, CorruptLog):
                raise
    return []


def _add(parts: dict[int, list[JournalPartitionBatches]], journal: JournalContents) -> None:
    positions: dict[Partition, array[int]] = {}
    offsets: dict[Partition, array[int]] = {}
    for frame in journal.frames:
        position = frame.position + FRAME.size
        for entry in frame.entries:
            position += ENTRY.size
            positions.setdefault(entry.partition, array("q")).append(position)
            offsets.setdefault(entry.partition, array("q")).append(entry.base_offset)
            position += len(entry.batch)
    for partition, where in positions.items():
        part = JournalPartitionBatches(
            str(journal.path), partition, where.tobytes(), offsets[partition].tobytes()
        )
        parts.setdefault(partition, []).append(part)
