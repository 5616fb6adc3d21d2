# SPDX-License-Identifier: Apache-2.0
"""Kafka's `OffsetCheckpointFile`: an offset for each partition of a data directory.

Three parts, in lines: the version 0, the number of entries, and `topic partition offset` for each.
"""

from collections.abc import Mapping
from pathlib import Path

from storage.filesystem import FileSystem, atomic_write, read_file

TopicPartition = tuple[str, int]


def read_offsets(fs: FileSystem, path: Path) -> dict[TopicPartition, int] | None:
    """The offsets in the file; None when there is none, or when it makes no sense.

    What it says only spares work or tells damage from a torn write, so that, as in Kafka, a node starts
    without it too.
    """
    try:
        lines = read_file(fs, path).decode("utf-8", "replace").split("\n")
    except FileNotFoundError:
        return None
    try:
        if int(lines[0]) != 0:
            return None
        count = int(lines[1])
        offsets = {}
        for line in lines[2 : 2 + count]:
            topic, partition, offset = line.split()
            offsets[topic, int(partition)] = int(offset)
    except (ValueError, IndexError):
        return None
    return offsets if len(offsets) == count else None


def write_offsets(fs: FileSystem, path: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the file, durably. Raises OSError."""
    lines = ["0", str(len(offsets))]
    lines += (f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))
    atomic_write(fs, path, "".join(line + "\n" for line in lines).encode())
