# SPDX-License-Identifier: Apache-2.0
"""What is noted about each partition at a checkpoint: up to where it is on disk, and where that is.

The first is Kafka's `OffsetCheckpointFile`: the version 0, the number of entries, and a line of `topic
partition offset` for each. The second is ours, of the same form with more numbers, and only a hint: it
spares walking over the last segment, and is not believed where the segment says otherwise.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from protocol.names import Offset, Partition
from storage.disk.filesystem import FileSystem, atomic_write, read_file, replace_file
from storage.disk.layout import LOG_START_FILE

TopicPartition = tuple[str, Partition]


class Position(msgspec.Struct, frozen=True):
    """Where `offset` is, or comes next: at this byte of the segment with this base offset."""

    offset: Offset
    base_offset: Offset
    position: int


def read_offsets(fs: FileSystem, path: Path) -> dict[TopicPartition, Offset] | None:
    """The offsets in the file; None when there is none, or when it makes no sense.

    What it says only spares work or tells damage from a torn write, so that, as in Kafka, a node starts
    without it too. Raises OSError.
    """
    return parse_offsets(_contents(fs, path))


def read_log_start(fs: FileSystem, data_dir: Path, key: TopicPartition) -> Offset:
    """Return the offset at which a broker noted that a partition starts, 0 where it noted none.

    Batches that end before it no longer count, although they are still in the segments (LogManager.loadLog). Raises
    OSError.
    """
    return (read_offsets(fs, data_dir / LOG_START_FILE) or {}).get(key, Offset(0))


def parse_offsets(data: bytes) -> dict[TopicPartition, Offset] | None:
    """The offsets in the bytes of such a file; None when they make no sense."""
    rows = _parsed(data, numbers=1)
    return None if rows is None else {key: Offset(offset) for key, (offset,) in rows.items()}


def read_positions(fs: FileSystem, path: Path) -> dict[TopicPartition, Position]:
    """The positions in the file; empty when there is none, or when it makes no sense. Raises OSError."""
    rows = _parsed(_contents(fs, path), numbers=3) or {}
    return {
        key: Position(Offset(offset), Offset(base_offset), position)
        for key, (offset, base_offset, position) in rows.items()
    }


def read_highest(fs: FileSystem, directories: Iterable[Path], name: str) -> dict[TopicPartition, Offset]:
    """Of the files of that name the highest offset of each partition: each was true, and stays so. Raises OSError."""
    highest: dict[TopicPartition, Offset] = {}
    for directory in directories:
        for key, offset in (read_offsets(fs, directory / name) or {}).items():
            highest[key] = max(offset, highest.get(key, offset))
    return highest


def gather_offsets(fs: FileSystem, data_dir: Path, directories: Iterable[Path], name: str) -> None:
    """Note in the data directory's file what nodes that are gone have noted in theirs. Raises OSError."""
    before = read_offsets(fs, data_dir / name) or {}
    highest = read_highest(fs, (data_dir, *directories), name)
    if highest != before:
        write_offsets(fs, data_dir / name, highest)


def write_offsets(fs: FileSystem, path: Path, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Replace the file, durably. Raises OSError."""
    atomic_write(fs, path, _text({key: (offset,) for key, offset in offsets.items()}))


def write_positions(fs: FileSystem, path: Path, positions: Mapping[TopicPartition, Position]) -> None:
    """Replace the file. Not synced: whatever a crash leaves of it, it is only a hint. Raises OSError."""
    rows = {key: (at.offset, at.base_offset, at.position) for key, at in positions.items()}
    replace_file(fs, path, _text(rows))


def _contents(fs: FileSystem, path: Path) -> bytes:
    """The file's bytes; none where there is no file, which says as much as an empty one."""
    try:
        return read_file(fs, path)
    except FileNotFoundError:
        return b""


def _parsed(data: bytes, *, numbers: int) -> dict[TopicPartition, tuple[int, ...]] | None:
    lines = data.decode("utf-8", "replace").split("\n")
    try:
        version, count = int(lines[0]), int(lines[1])
        rows = {}
        for line in lines[2 : 2 + count]:
            topic, partition, *rest = line.split()
            rows[topic, Partition(int(partition))] = tuple(map(int, rest))
    except (ValueError, IndexError):
        return None
    whole = version == 0 and len(rows) == count and all(len(row) == numbers for row in rows.values())
    return rows if whole else None


def _text(rows: Mapping[TopicPartition, tuple[int, ...]]) -> bytes:
    lines = ["0", str(len(rows))]
    for (topic, partition), numbers in sorted(rows.items()):
        lines.append(" ".join([topic, str(partition), *map(str, numbers)]))
    return "".join(line + "\n" for line in lines).encode()
