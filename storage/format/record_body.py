# SPDX-License-Identifier: Apache-2.0
"""The records of a batch v2 behind its header: all that knows their fields reads and writes them here.

    size             zig-zag varint, of what follows it
    attributes       i8, no bit of which means anything yet
    timestamp delta  zig-zag varint, from the base timestamp
    offset delta     zig-zag varint, from the base offset
    key size         zig-zag varint, -1 for null; then the key
    value size       zig-zag varint, -1 for null: a tombstone; then the value
    headers          their number as a zig-zag varint; then the headers, which are passed over

Kafka's `DefaultRecord`. `raw_records` reads that in plain steps; `iter_body` does the same unrolled, since a call for
each varint would double its time, and every record that is read one by one passes there; test_one_owner.py
holds them, and the bulk way of `storage.columns`, equal.
"""

from collections.abc import Iterator
from typing import Final

from protocol.names import Offset
from protocol.structs import Frozen
from storage.errors import CorruptBatch
from storage.format.batch_format import LOG_APPEND_TIME, Batch
from storage.format.varints import TABLE_SIZE, ZIGZAG, read_zigzag, zigzag

RECORD_BYTES_MIN: Final = 7
"""Size, attributes, two deltas, two sizes and the number of headers: a byte each."""

BatchRecord = tuple[Offset, int, bytes | None, bytes | None]
"""offset, timestamp in milliseconds, key, value"""

NO_TIMESTAMP_DELTA: Final = b"\x00\x00"
"""Attributes, of which there are none, and a timestamp delta of 0."""
_STARTS: Final = tuple(NO_TIMESTAMP_DELTA + delta for delta in ZIGZAG)
ONE_BYTE_DELTAS: Final = 1 << 6
TWO_BYTE_DELTAS: Final = 1 << 13
"""Below these an offset delta has one byte, and two."""
NO_HEADERS: Final = b"\x00"


class RawRecord(Frozen, frozen=True):
    """A record of a batch v2: where it starts and ends in the body, and what is needed to judge it."""

    start: int
    end: int
    offset: Offset
    timestamp: int
    """By its delta, in milliseconds; that of the batch counts instead where LOG_APPEND_TIME is set."""
    key: bytes | None
    value: bytes | None
    after_timestamp: int
    """Where what follows its timestamp starts; before it are size, attributes and timestamp."""

    @property
    def is_tombstone(self) -> bool:
        """Whether it removes what earlier records say of its key."""
        return self.value is None


# ------------------------------------------------------------------ reading


def raw_records(batch: Batch, body: bytes) -> Iterator[RawRecord]:
    """The records in the decompressed body of a batch v2, and where they lie in it.

    Raises CorruptBatch where they are not what the header and their own lengths say, at once or after the records
    before that.
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
            # Every length was taken as it came; here it shows whether one of them was too long.
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


# Unrolled, and so far beyond what a function should be.
def iter_body(batch: Batch, body: bytes) -> Iterator[BatchRecord]:  # noqa: C901, PLR0912, PLR0915
    """What the records in the decompressed body of a batch v2 say; `raw_records` without their places, and faster.

    Raises CorruptBatch where they are not what the header and their own lengths say, at once or after the records
    before that.
    """
    base_offset = batch.base_offset
    base_timestamp = batch.base_timestamp
    fixed_timestamp = batch.attributes & LOG_APPEND_TIME != 0
    timestamp = batch.max_timestamp
    size = len(body)
    pos = 0
    try:
        for _ in range(batch.count):
            # One byte of a varint is read here and now, since most are no longer.
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
                # Of two bytes from the 65th record of a batch on.
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
    """The key or the value whose size is at `pos`, and where it ends, which may be behind the body.

    Raises IndexError and ValueError for a size that cannot be read.
    """
    size, pos = read_zigzag(body, pos)
    if size < 0:
        return None, pos
    return body[pos : pos + size], pos + size


def skip_to_key(body: bytes, pos: int) -> tuple[int, int, int]:
    """Of the record at `pos`: where its offset delta is, where its key begins with its size, and where it ends.

    Raises IndexError and ValueError when it is cut short there.
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
    """Raise CorruptBatch where the last record does not end where the body does."""
    if end != size:
        raise CorruptBatch(batch.position, f"{size - end} bytes follow its {batch.count} records")


# ------------------------------------------------------------------ writing


def record_start(offset_delta: int) -> bytes:
    """What follows a record's size: attributes, a timestamp delta of 0, and its offset delta."""
    return _STARTS[offset_delta] if offset_delta < TABLE_SIZE else b"\x00\x00" + zigzag(offset_delta)


def offset_deltas(first: int, count: int) -> bytes:
    """So many offset deltas below TWO_BYTE_DELTAS, one higher each time, without anything between them."""
    return b"".join(ZIGZAG[first : first + count])


def same_delta_size(offset_delta: int) -> int:
    """How many offset deltas from this one on have as many bytes, for deltas below TWO_BYTE_DELTAS."""
    return (ONE_BYTE_DELTAS if offset_delta < ONE_BYTE_DELTAS else TWO_BYTE_DELTAS) - offset_delta


def size_field(size: int) -> bytes:
    """A record's size, or that of its key or value, before what it is the size of."""
    return ZIGZAG[size] if size < TABLE_SIZE else zigzag(size)


def field(content: bytes | None) -> bytes:
    """A key or a value after its size; null is a tombstone's value."""
    return b"\x01" if content is None else size_field(len(content)) + content


def with_timestamp(body: bytes, record: RawRecord, delta: int) -> bytes:
    """The record of a body with another timestamp delta, and so perhaps another size."""
    _, pos = read_zigzag(body, record.start)
    rest = body[pos : pos + 1] + zigzag(delta) + body[record.after_timestamp : record.end]
    return size_field(len(rest)) + rest
