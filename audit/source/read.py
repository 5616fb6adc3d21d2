# SPDX-License-Identifier: Apache-2.0
"""Reading a range of the log into Arrow batches."""

import os
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from audit.source.plan import Range
from storage.columns.decode import decode
from storage.columns.walk import Chunk, walk

FILE_COLUMNS = ("file", "partition")


def read_range(part: Range, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a range with the columns of these names. Raises OSError."""
    assert part.file is not None
    fd = os.open(part.file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        read = reader(fd)
        for chunk in walk(read, part.start, part.end, base_offset=part.base_offset, newest=part.last):
            yield from rows(chunk, part.file, part.partition, columns)
    finally:
        os.close(fd)


def reader(fd: int) -> Callable[[int, int], bytes]:
    """A function that reads so many bytes at a position of an open file, fewer only at its end."""
    return lambda position, size: os.pread(fd, size, position)


def rows(chunk: Chunk, file: str, partition: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of a chunk, with what is known of its file."""
    for decoded in decode(chunk, [*(name for name in columns if name not in FILE_COLUMNS), "position"]):
        count = decoded.num_rows
        facts = {
            "file": pa.DictionaryArray.from_arrays(
                pa.repeat(pa.scalar(0, pa.int32()), count), pa.array([file])
            ),
            "partition": pa.repeat(pa.scalar(partition, pa.int32()), count),
        }
        arrays = [facts[name] if name in facts else decoded.column(name) for name in columns]
        yield pa.RecordBatch.from_arrays(arrays, list(columns))
