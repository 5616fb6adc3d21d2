# SPDX-License-Identifier: Apache-2.0
"""One batch with fewer records, as Kafka's `MemoryRecords.filterTo` leaves it.

First and last offset, producer and leader stay what they were. The first time that a batch is cleaned with
tombstones in it, or with a marker that nothing needs any more, it gets a *delete horizon* (KIP-534): the time
until which these are kept. It takes the place of the base timestamp, and an attribute says so.
"""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final, NamedTuple
from zlib import crc32

from crc32c import crc32c

from storage.errors import CorruptBatch
from storage.format.batch import batch_body
from storage.format.batch_format import (
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MAGIC,
    PREFIX,
    SUFFIX,
    Batch,
    read_zigzag,
    zigzag,
)
from storage.format.compression import compress
from storage.format.old_messages import iter_messages

NO_TIMESTAMP: Final = -1
_MESSAGE: Final = Struct(">qi")
_OLD_HEAD: Final = Struct(">bb")
_LONG: Final = Struct(">q")
_INT: Final = Struct(">i")


class RawRecord(NamedTuple):
    """A record of a batch v2: where it starts and ends in the body, and what is needed to judge it."""

    start: int
    end: int
    offset: int
    timestamp: int
    key: bytes | None
    is_tombstone: bool
    after_timestamp: int
    """Where what follows its timestamp starts; before it are size, attributes and timestamp."""


Keep = Callable[[int, bytes | None, bool], bool]
"""Whether to keep a record, by offset, key, and whether it is a tombstone."""


def raw_records(batch: Batch, body: bytes) -> Iterator[RawRecord]:
    """The records of a batch v2, undecoded. Raises CorruptBatch."""
    pos = 0
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    try:
        for _ in range(batch.count):
            start = pos
            size, pos = read_zigzag(body, pos)
            end = pos + size
            delta, after = read_zigzag(body, pos + 1)
            offset_delta, pos = read_zigzag(body, after)
            size, pos = read_zigzag(body, pos)
            key = None
            if size >= 0:
                key = body[pos : pos + size]
                pos += size
            size, pos = read_zigzag(body, pos)
            if pos > end or end > len(body):
                raise CorruptBatch(batch.position, f"a record ends at byte {end} of {len(body)}")
            yield RawRecord(
                start, end, base_offset + offset_delta, base_timestamp + delta, key, size < 0, after
            )
            pos = end
    except (IndexError, ValueError) as error:
        if isinstance(error, CorruptBatch):
            raise
        raise CorruptBatch(batch.position, f"a record is damaged: {error}") from error
    if pos != len(body):
        raise CorruptBatch(batch.position, f"{len(body) - pos} bytes follow its {batch.count} records")


def delete_horizon(batch: Batch) -> int | None:
    """Until when, in milliseconds, tombstones of this batch are kept; None if it was never cleaned with any."""
    return batch.base_timestamp if batch.attributes & DELETE_HORIZON else None


def filter_batch(
    batch: Batch,
    keep: Keep,
    *,
    new_horizon: int,
    is_marker_of_nothing: bool = False,
) -> bytes | None:
    """The batch v2 with the records that are kept; None if that is none of them.

    Where a delete horizon is needed and there is none yet, it becomes `new_horizon`. Raises CorruptBatch.
    """
    body = batch_body(batch)
    records = list(raw_records(batch, body))
    kept = [record for record in records if keep(record.offset, record.key, record.is_tombstone)]
    if not kept:
        return None
    needs_horizon = is_marker_of_nothing or (
        not batch.is_control and any(record.is_tombstone for record in kept)
    )
    set_horizon = needs_horizon and delete_horizon(batch) is None
    if len(kept) == len(records) and not set_horizon:
        return batch.data
    attributes, base_timestamp = batch.attributes, batch.base_timestamp
    if set_horizon:
        attributes |= DELETE_HORIZON
        base_timestamp = new_horizon
        parts = [_with_timestamp(body, record, record.timestamp - new_horizon) for record in kept]
    else:
        parts = [body[record.start : record.end] for record in kept]
    newest = batch.max_timestamp
    if not attributes & LOG_APPEND_TIME:
        newest = max(record.timestamp for record in kept)
    return _build(batch, attributes, base_timestamp, newest, len(kept), b"".join(parts))


def _with_timestamp(body: bytes, record: RawRecord, delta: int) -> bytes:
    """The record with another timestamp delta, and so perhaps another size."""
    _, pos = read_zigzag(body, record.start)
    rest = body[pos : pos + 1] + zigzag(delta) + body[record.after_timestamp : record.end]
    return zigzag(len(rest)) + rest


def empty_batch(batch: Batch) -> bytes:
    """A batch v2 without records, which says that these offsets are gone (DefaultRecordBatch.writeEmptyHeader)."""
    # Of the attributes what kind of batch it is, but no compression, and no horizon.
    attributes = batch.attributes & ~0x07 & ~DELETE_HORIZON
    return _build(batch, attributes, NO_TIMESTAMP, batch.max_timestamp, 0, b"")


def _build(batch: Batch, attributes: int, base_timestamp: int, newest: int, count: int, body: bytes) -> bytes:
    codec = attributes & 0x07
    if codec:
        body = compress(codec, body)
    suffix = SUFFIX.pack(
        attributes,
        batch.last_offset - batch.base_offset,
        base_timestamp,
        newest,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    length = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(body)
    checksum = crc32c(body, crc32c(suffix))
    prefix = PREFIX.pack(batch.base_offset, length, batch.leader_epoch, MAGIC, checksum)
    return b"".join((prefix, suffix, body))


def filter_message(message: Batch, keep: Keep) -> bytes | None:
    """A message before v2 with the records that are kept, each by itself; None if that is none of them.

    Raises CorruptBatch.
    """
    records = list(iter_messages(message))
    kept = [record for record in records if keep(record[0], record[2], record[3] is None)]
    if not kept:
        return None
    if len(kept) == len(records):
        return message.data
    return b"".join(_message(message, *record) for record in kept)


def _message(like: Batch, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    """One uncompressed message; of the attributes of the wrapper only the kind of timestamp is left."""
    parts = [_OLD_HEAD.pack(like.magic, like.attributes & LOG_APPEND_TIME)]
    if like.magic:
        parts.append(_LONG.pack(timestamp))
    for field in (key, value):
        parts.append(_INT.pack(-1 if field is None else len(field)))
        parts.append(field or b"")
    content = b"".join(parts)
    return _MESSAGE.pack(offset, 4 + len(content)) + crc32(content).to_bytes(4, "big") + content
