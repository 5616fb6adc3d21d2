# SPDX-License-Identifier: Apache-2.0
"""Reads batches: finds them, checks that they are whole, and reads the records in them.

This module reads RecordBatch v2; `old_messages` reads the message sets that brokers wrote before it.
"""

from collections.abc import Iterator
from zlib import crc32

from crc32c import crc32c

from protocol.newtypes import Offset
from storage.errors import CorruptBatch, IncompleteBatch
from storage.format.batch_builder import BATCH_BYTES_MAX, BatchBuilder
from storage.format.batch_format import (
    CRC_START,
    HEADER,
    HEADER_BYTES,
    LENGTH_MIN,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    MAGIC_AT,
    Batch,
    batch_extent,
)
from storage.format.compression import decompress
from storage.format.old_messages import iter_message_records, read_message
from storage.format.record_body import BatchRecord, iter_body

__all__ = [
    "BATCH_BYTES_MAX",
    "Batch",
    "BatchBuilder",
    "decompress_batch_body",
    "find_whole_batch_start",
    "iter_batches",
    "iter_records",
    "read_checked_batch",
    "read_unchecked_batch",
]


def read_unchecked_batch(buffer: bytes, position: int = 0) -> Batch:
    """Return the batch at `position`, without a check of its checksum.

    Raises IncompleteBatch if the buffer ends before the batch does, CorruptBatch if it cannot be a batch.
    """
    left = len(buffer) - position
    if left > MAGIC_AT and buffer[position + MAGIC_AT] < MAGIC:
        return read_message(buffer, position)
    if left < HEADER_BYTES:
        raise IncompleteBatch(position, f"{left} bytes are left, and a header has {HEADER_BYTES}")
    (
        base_offset,
        length,
        leader_epoch,
        magic,
        checksum,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = HEADER.unpack_from(buffer, position)
    size = length + LOG_OVERHEAD_BYTES
    if size < HEADER_BYTES:
        raise CorruptBatch(position, f"length {length}, and the least is {LENGTH_MIN}")
    if magic != MAGIC:
        raise CorruptBatch(position, f"magic {magic} is not known")
    if base_offset < 0 or last_offset_delta < 0 or count < 0:
        raise CorruptBatch(
            position, f"base offset {base_offset}, last offset delta {last_offset_delta}, {count} records"
        )
    if size > left:
        raise IncompleteBatch(position, f"{left} bytes are left of {size}")
    return Batch(
        buffer,
        position,
        size,
        base_offset,
        base_offset + last_offset_delta,
        leader_epoch,
        magic,
        checksum,
        attributes,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )


def read_checked_batch(buffer: bytes, position: int = 0) -> Batch:
    """Return the batch at `position` if its length, magic and checksum are right.

    Raises IncompleteBatch and CorruptBatch, which name the position and the reason.
    """
    batch = read_unchecked_batch(buffer, position)
    if batch.magic < MAGIC:
        actual = crc32(memoryview(buffer)[position + MAGIC_AT : batch.end])
    else:
        actual = crc32c(memoryview(buffer)[position + CRC_START : batch.end])
    if actual != batch.checksum:
        raise CorruptBatch(position, f"checksum {actual:#010x}, but the header has {batch.checksum:#010x}")
    return batch


def iter_batches(buffer: bytes, position: int = 0, *, check: bool = False) -> Iterator[Batch]:
    """Yield the batches from `position` to the end of the buffer; with `check`, verify their checksums.

    Raises IncompleteBatch and CorruptBatch, after the batches before the damage.
    """
    read = read_checked_batch if check else read_unchecked_batch
    end = len(buffer)
    while position < end:
        batch = read(buffer, position)
        yield batch
        position += batch.size_bytes


def decompress_batch_body(batch: Batch) -> bytes:
    """Return the decompressed records of a batch v2. Raises CorruptBatch if they cannot be decompressed."""
    body = batch.buffer[batch.position + HEADER_BYTES : batch.end]
    if not batch.compression:
        return body
    try:
        return decompress(batch.compression, body)
    except ValueError as error:
        raise CorruptBatch(batch.position, str(error)) from error


def iter_records(batch: Batch | bytes) -> Iterator[BatchRecord]:
    """Iterate over the records of a batch (or of the batch that some bytes start with); skip their headers.

    Raises CorruptBatch if the records contradict the header or their own lengths, at once or after the
    records before the damage.
    """
    if isinstance(batch, bytes):
        batch = read_unchecked_batch(batch)
    if batch.magic < MAGIC:
        return iter_message_records(batch)
    return iter_body(batch, decompress_batch_body(batch))


def find_whole_batch_start(
    data: bytes, offset: Offset, span: int = 1 << 31, *, stop: int | None = None
) -> int | None:
    """Return where in `data` the first whole batch of version 2 starts, before `stop` if that is given.

    Only a batch counts whose first offset is one of the `span` offsets from `offset` on.
    """
    magic = bytes((MAGIC,))
    end = len(data) if stop is None else stop + MAGIC_AT
    found = data.find(magic, MAGIC_AT, end)
    while found >= 0:
        pos = found - MAGIC_AT
        if pos + HEADER_BYTES <= len(data):
            extent = batch_extent(data, pos)
            # Check only possible numbers: most bytes of this value are no magic.
            if extent is not None and extent.end <= len(data) and 0 <= extent.base_offset - offset < span:
                try:
                    read_checked_batch(data, pos)
                except CorruptBatch:
                    pass
                else:
                    return pos
        found = data.find(magic, found + 1, end)
    return None
