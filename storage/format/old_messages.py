# SPDX-License-Identifier: Apache-2.0
"""Reads the messages of brokers before 0.11: magic 0, and magic 1, which has a timestamp (KIP-32).

A message with a compression codec is a wrapper: its value is a set of messages. Inside a wrapper of magic
1 offsets count from 0 (KIP-31), and the wrapper has the offset of its last message. No broker writes these
any more, but a broker's log may still hold them. Not read: lz4 with magic 0, whose frames are not lz4's.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from protocol.newtypes import LeaderEpoch, Offset
from storage.errors import CorruptBatch, IncompleteBatch
from storage.format.batch_format import (
    LOG_APPEND_TIME,
    LOG_OVERHEAD_BYTES,
    MESSAGE_BYTES_MIN,
    Batch,
)
from storage.format.compression import decompress
from storage.format.record_body import BatchRecord

_HEAD: Final = Struct(">qiIbb")
"""The offset, length, checksum, magic and attributes of a message."""
_TIMESTAMP: Final = Struct(">q")
_LENGTH: Final = Struct(">i")


def read_message(buffer: bytes, position: int) -> Batch:
    """Return the message at `position`, whose magic is 0 or 1, without a check of its checksum.

    Raises IncompleteBatch if the buffer ends before the message does, CorruptBatch if it cannot be a message.
    """
    left = len(buffer) - position
    if left < LOG_OVERHEAD_BYTES + MESSAGE_BYTES_MIN:
        raise IncompleteBatch(position, f"{left} bytes are left, too few for a message")
    offset, length, checksum, magic, attributes = _HEAD.unpack_from(buffer, position)
    least = MESSAGE_BYTES_MIN + (_TIMESTAMP.size if magic else 0)
    if length < least or offset < 0:
        raise CorruptBatch(position, f"offset {offset} and length {length} of a message with magic {magic}")
    size = length + LOG_OVERHEAD_BYTES
    if size > left:
        raise IncompleteBatch(position, f"{left} bytes are left of {size}")
    timestamp = _TIMESTAMP.unpack_from(buffer, position + _HEAD.size)[0] if magic else -1
    return Batch(
        buffer,
        position,
        size,
        base_offset=offset,
        last_offset=offset,
        leader_epoch=LeaderEpoch(-1),
        magic=magic,
        checksum=checksum,
        # The same bits for the codec and the kind of timestamp; the higher ones meant nothing yet.
        attributes=attributes & 0x0F,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=1,
    )


def iter_message_records(message: Batch) -> Iterator[BatchRecord]:
    """Yield the record of a message, or the records in a wrapper. Raises CorruptBatch."""
    key, value = _key_and_value(message)
    if not message.compression:
        yield message.base_offset, message.base_timestamp, key, value
        return
    try:
        inside = decompress(message.compression, value or b"")
        messages = list(_messages(inside))
    except ValueError as error:
        raise CorruptBatch(message.position, f"the wrapped messages are damaged: {error}") from error
    if not messages:
        raise CorruptBatch(message.position, "no messages are wrapped in it")
    base_offset = message.base_offset - messages[-1].base_offset if message.magic else 0
    for inner in messages:
        if inner.compression:
            raise CorruptBatch(message.position, "a wrapped message is a wrapper itself")
        timestamp = message if message.attributes & LOG_APPEND_TIME else inner
        yield Offset(base_offset + inner.base_offset), timestamp.base_timestamp, *_key_and_value(inner)


def _messages(data: bytes) -> Iterator[Batch]:
    position = 0
    while position < len(data):
        message = read_message(data, position)
        yield message
        position = message.end


def _key_and_value(message: Batch) -> tuple[bytes | None, bytes | None]:
    position = message.position + _HEAD.size + (_TIMESTAMP.size if message.magic else 0)
    fields: list[bytes | None] = []
    for _ in range(2):
        if position + 4 > message.end:
            raise CorruptBatch(message.position, "a message ends within its fields")
        (size,) = _LENGTH.unpack_from(message.buffer, position)
        position += 4
        if size > message.end - position:
            raise CorruptBatch(
                message.position, f"a field of {size} bytes, {message.end - position} are left"
            )
        fields.append(message.buffer[position : position + size] if size >= 0 else None)
        position += max(size, 0)
    return fields[0], fields[1]
