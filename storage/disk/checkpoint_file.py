# SPDX-License-Identifier: Apache-2.0
"""The files of a checkpoint: each partition's recovery point, and its position in the segments.

The first is Kafka's `OffsetCheckpointFile`: the version 0, the number of entries, and a line of `topic
partition offset` for each. The second is ours, of the same form with more numbers, and only a hint: it
saves the walk over the last segment, and is ignored if the segment disagrees.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import FileSystem, atomic_write, read_file, replace_file_content
from storage.disk.layout import LOG_START_FILE

TopicPartition = tuple[str, Partition]


class SegmentPosition(msgspec.Struct, frozen=True):
    """The byte position of `offset` in the segment at `base_offset`; no batch need have the offset yet."""

    offset: Offset
    base_offset: Offset
    position: int


def read_offsets(fs: FileSystem, path: Path) -> dict[TopicPartition, Offset] | None:
    """Return the offsets in the file; None if it is missing or invalid.

    A node also starts without the file, as in Kafka: the offsets only save work, or distinguish damage from a
    torn write. Raises OSError.
    """
    return parse_offsets(_contents(fs, path))


def read_partition_log_start(fs: FileSystem, data_dir: Path, key: TopicPartition) -> Offset:
    """Return the offset at which a broker noted that a partition starts, 0 if it noted none.

    Batches that end before it no longer count, although they are still in the segments (LogManager.loadLog). Raises
    OSError.
    """
    return (read_offsets(fs, data_dir / LOG_START_FILE) or {}).get(key, Offset(0))


def parse_offsets(data: bytes) -> dict[TopicPartition, Offset] | None:
    """Return the offsets in the bytes of such a file; None if they are invalid."""
    rows = _parsed(data, numbers=1)
    return None if rows is None else {key: Offset(offset) for key, (offset,) in rows.items()}


def read_positions(fs: FileSystem, path: Path) -> dict[TopicPartition, SegmentPosition]:
    """Return the positions in the file; empty if it is missing or invalid. Raises OSError."""
    rows = _parsed(_contents(fs, path), numbers=3) or {}
    return {
        key: SegmentPosition(Offset(offset), Offset(base_offset), position)
        for key, (offset, base_offset, position) in rows.items()
    }


def read_highest_offsets(
    fs: FileSystem, directories: Iterable[Path], name: str
) -> dict[TopicPartition, Offset]:
    """Return each partition's highest offset in the files `name` of these directories. Raises OSError."""
    highest: dict[TopicPartition, Offset] = {}
    for directory in directories:
        for key, offset in (read_offsets(fs, directory / name) or {}).items():
            highest[key] = max(offset, highest.get(key, offset))
    return highest


def merge_node_offset_files(fs: FileSystem, data_dir: Path, directories: Iterable[Path], name: str) -> None:
    """Write each partition's highest offset in the files `name` of all directories to the data directory's file.

    `directories` belong to nodes that are gone. Raises OSError.
    """
    before = read_offsets(fs, data_dir / name) or {}
    highest = read_highest_offsets(fs, (data_dir, *directories), name)
    if highest != before:
        write_offsets(fs, data_dir / name, highest)


def write_offsets(fs: FileSystem, path: Path, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Replace the file of offsets durably. Raises OSError."""
    atomic_write(fs, path, _text({key: (offset,) for key, offset in offsets.items()}))


def write_positions(fs: FileSystem, path: Path, positions: Mapping[TopicPartition, SegmentPosition]) -> None:
    """Replace the file of positions, without a sync, because it is only a hint. Raises OSError."""
    rows = {key: (at.offset, at.base_offset, at.position) for key, at in positions.items()}
    replace_file_content(fs, path, _text(rows))


def _contents(fs: FileSystem, path: Path) -> bytes:
    """Return the file's bytes; none if there is no file, which means the same as an empty one."""
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
