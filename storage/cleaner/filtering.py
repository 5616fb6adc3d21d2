# SPDX-License-Identifier: Apache-2.0
"""Removes records from a batch, as Kafka's `MemoryRecords.filterTo` does.

First and last offset, producer and leader stay the same. The first time that a batch is cleaned with
tombstones in it, or with a marker that nothing needs any more, it gets a *delete horizon* (KIP-534): the time
until which these are kept. The horizon replaces the base timestamp, and sets an attribute.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final
from zlib import crc32

from protocol.newtypes import Offset
from storage.format.batch import decompress_batch_body
from storage.format.batch_format import (
    COMPRESSION_MASK,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NONE,
    Batch,
    encode_batch,
)
from storage.format.old_messages import iter_message_records
from storage.format.record_body import encode_record_with_timestamp_delta, raw_records

_MESSAGE: Final = Struct(">qi")
_OLD_HEAD: Final = Struct(">bb")
_LONG: Final = Struct(">q")
_INT: Final = Struct(">i")


Keep = Callable[[Offset, bytes | None, bool], bool]
"""Decides whether to keep a record, by its offset, its key, and whether it is a tombstone."""


def filter_batch(
    batch: Batch,
    keep: Keep,
    *,
    new_horizon: int,
    is_marker_of_nothing: bool = False,
) -> bytes | None:
    """Return the batch v2 with only the records to keep; None if none is left.

    If it needs a delete horizon and has none yet, the horizon becomes `new_horizon`. Raises CorruptBatch.
    """
    body = decompress_batch_body(batch)
    records = list(raw_records(batch, body))
    kept = [record for record in records if keep(record.offset, record.key, record.is_tombstone)]
    if not kept:
        return None
    needs_horizon = is_marker_of_nothing or (
        not batch.is_control and any(record.is_tombstone for record in kept)
    )
    set_horizon = needs_horizon and batch.delete_horizon is None
    if len(kept) == len(records) and not set_horizon:
        return batch.data
    attributes, base_timestamp = batch.attributes, batch.base_timestamp
    if set_horizon:
        attributes |= DELETE_HORIZON
        base_timestamp = new_horizon
        parts = [
            encode_record_with_timestamp_delta(body, record, record.timestamp - new_horizon)
            for record in kept
        ]
    else:
        parts = [body[record.start : record.end] for record in kept]
    newest = batch.max_timestamp
    if not attributes & LOG_APPEND_TIME:
        newest = max(record.timestamp for record in kept)
    return _build(batch, attributes, base_timestamp, newest, len(kept), b"".join(parts))


def encode_empty_batch(batch: Batch) -> bytes:
    """Return the batch v2 without records, which marks its offsets as gone (DefaultRecordBatch.writeEmptyHeader)."""
    # The attributes keep the kind of batch, but no compression and no horizon.
    attributes = batch.attributes & ~COMPRESSION_MASK & ~DELETE_HORIZON
    return _build(batch, attributes, NONE, batch.max_timestamp, 0, b"")


def _build(batch: Batch, attributes: int, base_timestamp: int, newest: int, count: int, body: bytes) -> bytes:
    """Return the batch with other records: its offsets, producer and leader stay."""
    return encode_batch(
        body,
        base_offset=batch.base_offset,
        last_offset_delta=batch.last_offset - batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=newest,
        count=count,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )


def filter_old_message(message: Batch, keep: Keep) -> bytes | None:
    """Return the kept records of a message before v2, each as its own message; None if none is left.

    Raises CorruptBatch.
    """
    records = list(iter_message_records(message))
    kept = [record for record in records if keep(record[0], record[2], record[3] is None)]
    if not kept:
        return None
    if len(kept) == len(records):
        return message.data
    return b"".join(_message(message, *record) for record in kept)


def _message(like: Batch, offset: Offset, timestamp: int, key: bytes | None, value: bytes | None) -> bytes:
    """Encode one uncompressed message; of the wrapper's attributes only the kind of timestamp is left."""
    parts = [_OLD_HEAD.pack(like.magic, like.attributes & LOG_APPEND_TIME)]
    if like.magic:
        parts.append(_LONG.pack(timestamp))
    for field in (key, value):
        parts.append(_INT.pack(-1 if field is None else len(field)))
        parts.append(field or b"")
    content = b"".join(parts)
    return _MESSAGE.pack(offset, 4 + len(content)) + crc32(content).to_bytes(4, "big") + content
