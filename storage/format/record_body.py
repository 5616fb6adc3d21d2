# SPDX-License-Identifier: Apache-2.0
"""The records of a batch v2 behind its header: only this module reads and writes their fields.

    size             zig-zag varint, of the bytes behind this field
    attributes       i8, of which no bit has a meaning yet
    timestamp delta  zig-zag varint, from the base timestamp
    offset delta     zig-zag varint, from the base offset
    key size         zig-zag varint, -1 for null; then the key
    value size       zig-zag varint, -1 for null: a tombstone; then the value
    headers          their number as a zig-zag varint; then the headers, which are skipped

Kafka's class is `DefaultRecord`. `raw_records` reads records in plain steps; `iter_body` does the same unrolled, since
it reads every record that is not read in bulk, and a call for each varint would double its time; test_one_owner.py
keeps them, and the bulk path of `storage.columns`, equal.
"""

from collections.abc import Iterator
from typing import Final

from protocol.frozen_struct import FrozenStruct
from protocol.newtypes import Offset
from storage.errors import CorruptBatch
from storage.format.batch_format import LOG_APPEND_TIME, Batch
from storage.format.varints import TABLE_SIZE, ZIGZAG, encode_signed_varint, read_zigzag

RECORD_BYTES_MIN: Final = 7
"""The least size of a record: a byte each for size, attributes, two deltas, two sizes and number of headers."""

BatchRecord = tuple[Offset, int, bytes | None, bytes | None]
"""The offset, timestamp in milliseconds, key and value of a record."""

NO_TIMESTAMP_DELTA: Final = b"\x00\x00"
"""The attributes, none of which is set, and a timestamp delta of 0."""
_STARTS: Final = tuple(NO_TIMESTAMP_DELTA + delta for delta in ZIGZAG)
ONE_BYTE_DELTAS: Final = 1 << 6
TWO_BYTE_DELTAS: Final = 1 << 13
"""The offset deltas below which one byte, or two bytes, are enough."""
NO_HEADERS: Final = b"\x00"


class RawRecord(FrozenStruct, frozen=True):
    """A record of a batch v2: its start and end in the body, and the fields that cleaning needs."""

    start: int
    end: int
    offset: Offset
    timestamp: int
    """The time by its delta, in milliseconds; the batch's counts instead if LOG_APPEND_TIME is set."""
    key: bytes | None
    value: bytes | None
    after_timestamp: int
    """The position behind its timestamp; before it are size, attributes and timestamp."""

    @property
    def is_tombstone(self) -> bool:
        """True if the record deletes earlier records of its key."""
        return self.value is None


# ------------------------------------------------------------------ reading


def raw_records(batch: Batch, body: bytes) -> Iterator[RawRecord]:
    """Yield the records in the decompressed body of a batch v2, with their positions.

    Raises CorruptBatch if they contradict the header or their own lengths, at once or after the records before
    the damage.
    """
    pos = 0
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    try:
        for _ in range(batch.count):
            start = pos
            size, pos = read_zigzag(body, pos)
            end = pos + size
            timestamp_delta, after_timestamp = read_zigzag(body, pos + 1)
            offset_delta, pos = read_zigzag(body, after_timestamp)
            key, pos = read_field(body, pos)
            value, pos = read_field(body, pos)
            # No length was checked yet; this check finds any that was too long.
            if pos > end or end > len(body):
                raise _ends_wrongly(batch, end, len(body), pos)
            offset, timestamp = Offset(base_offset + offset_delta), base_timestamp + timestamp_delta
            yield RawRecord(start, end, offset, timestamp, key, value, after_timestamp)
            pos = end
    except CorruptBatch:
        raise
    except (IndexError, ValueError) as error:
        raise CorruptBatch(batch.position, f"a record is damaged: {error}") from error
    check_end(batch, pos, len(body))


# Unrolled, and so far longer than a function should be.
def iter_body(batch: Batch, body: bytes) -> Iterator[BatchRecord]:  # noqa: C901, PLR0912, PLR0915
    """Yield the records in the decompressed body of a batch v2, without positions, but faster than `raw_records`.

    Raises CorruptBatch if they contradict the header or their own lengths, at once or after the records before
    the damage.
    """
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    fixed_timestamp = batch.attributes & LOG_APPEND_TIME != 0
    timestamp = batch.max_timestamp
    size = len(body)
    pos = 0
    try:
        for _ in range(batch.count):
            # A varint of one byte is read inline, since most are no longer.
            number = body[pos]
            if number < 0x80:
                end = pos + 1 + ((number >> 1) ^ -(number & 1))
                pos += 1
            else:
                number, pos = read_zigzag(body, pos)
                end = pos + number
            pos += 1  # attributes
            number = body[pos]
            if number < 0x80:
                number = (number >> 1) ^ -(number & 1)
                pos += 1
            else:
                number, pos = read_zigzag(body, pos)
            if not fixed_timestamp:
                timestamp = base_timestamp + number
            number = body[pos]
            if number < 0x80:
                offset = base_offset + ((number >> 1) ^ -(number & 1))
                pos += 1
            elif body[pos + 1] < 0x80:
                # Two bytes, from the 65th record of a batch on.
                number = number & 0x7F | body[pos + 1] << 7
                offset = base_offset + ((number >> 1) ^ -(number & 1))
                pos += 2
            else:
                number, pos = read_zigzag(body, pos)
                offset = base_offset + number
            number = body[pos]
            if number < 0x80:
                number = (number >> 1) ^ -(number & 1)
                pos += 1
            else:
                number, pos = read_zigzag(body, pos)
            key = None
            if number >= 0:
                key = body[pos : pos + number]
                pos += number
            number = body[pos]
            if number < 0x80:
                number = (number >> 1) ^ -(number & 1)
                pos += 1
            else:
                number, pos = read_zigzag(body, pos)
            value = None
            if number >= 0:
                value = body[pos : pos + number]
                pos += number
            if pos > end or end > size:
                raise _ends_wrongly(batch, end, size, pos)
            yield Offset(offset), timestamp, key, value
            pos = end
    except CorruptBatch:
        raise
    except (IndexError, ValueError) as error:
        raise CorruptBatch(batch.position, f"a record is damaged: {error}") from error
    check_end(batch, pos, size)


def read_field(body: bytes, pos: int) -> tuple[bytes | None, int]:
    """Read the key or the value whose size is at `pos`; return it and its end, which may be behind the body.

    Raises IndexError and ValueError for a size that cannot be read.
    """
    size, pos = read_zigzag(body, pos)
    if size < 0:
        return None, pos
    return body[pos : pos + size], pos + size


def find_field_positions(body: bytes, pos: int) -> tuple[int, int, int]:
    """Return where the offset delta, the key's size and the end of the record at `pos` are.

    Raises IndexError and ValueError if the record is cut short before its key.
    """
    number = body[pos]
    if number < 0x80:
        pos += 1
        end = pos + ((number >> 1) ^ -(number & 1))
    else:
        number, pos = read_zigzag(body, pos)
        end = pos + number
    pos += 1  # attributes
    while body[pos] > 0x7F:
        pos += 1
    delta = pos = pos + 1
    while body[pos] > 0x7F:
        pos += 1
    return delta, pos + 1, end


def _ends_wrongly(batch: Batch, end: int, size: int, value_end: int) -> CorruptBatch:
    return CorruptBatch(batch.position, f"a record ends at byte {end} of {size}, its value at {value_end}")


def check_end(batch: Batch, end: int, size: int) -> None:
    """Raise CorruptBatch if the last record does not end where the body does."""
    if end != size:
        raise CorruptBatch(batch.position, f"{size - end} bytes follow its {batch.count} records")


# ------------------------------------------------------------------ writing


def encode_attributes_and_deltas(offset_delta: int) -> bytes:
    """Encode a record's attributes, a timestamp delta of 0, and its offset delta, which follow its size."""
    return (
        _STARTS[offset_delta]
        if offset_delta < TABLE_SIZE
        else b"\x00\x00" + encode_signed_varint(offset_delta)
    )


def encode_offset_deltas(first: int, count: int) -> bytes:
    """Encode `count` consecutive offset deltas below TWO_BYTE_DELTAS, without anything between them."""
    return b"".join(ZIGZAG[first : first + count])


def count_same_size_deltas(first_offset_delta: int) -> int:
    """Return how many offset deltas, from this one on, are encoded in as many bytes as this one.

    `first_offset_delta` must be below TWO_BYTE_DELTAS.
    """
    return (ONE_BYTE_DELTAS if first_offset_delta < ONE_BYTE_DELTAS else TWO_BYTE_DELTAS) - first_offset_delta


def size_field(size: int) -> bytes:
    """Encode the size that precedes a record, a key or a value."""
    return ZIGZAG[size] if size < TABLE_SIZE else encode_signed_varint(size)


def encode_field(content: bytes | None) -> bytes:
    """Encode the size of a key or a value, and then the key or value; null is a tombstone's value."""
    return b"\x01" if content is None else size_field(len(content)) + content


def encode_record_with_timestamp_delta(body: bytes, record: RawRecord, delta: int) -> bytes:
    """Encode a body's record with another timestamp delta, and so perhaps another size."""
    _, pos = read_zigzag(body, record.start)
    rest = body[pos : pos + 1] + encode_signed_varint(delta) + body[record.after_timestamp : record.end]
    return size_field(len(rest)) + rest
