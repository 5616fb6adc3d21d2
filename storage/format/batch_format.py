# SPDX-License-Identifier: Apache-2.0
"""The envelope of a RecordBatch v2: its 61 header bytes, its attribute bits, and its varints.

See Kafka's `DefaultRecordBatch` and `DefaultRecord`, and KIP-98, which brought this format.
"""

from struct import Struct
from typing import Final

from protocol.structs import Frozen

MAGIC: Final = 2
HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and length, which the length does not count."""
CRC_START: Final = 21
"""The checksum covers everything from here, the attributes, to the end."""

MAGIC_AT: Final = 16
"""The byte that says which format follows is at this place in all of them."""
MESSAGE_BYTES_MIN: Final = 14
"""The least that follows the offset and length of a message before v2: checksum to two empty lengths."""

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
DELETE_HORIZON: Final = 0x40
"""The base timestamp is the time until which tombstones of this batch are kept (KIP-534)."""

HEADER: Final = Struct(">qiibIhiqqqhii")
PREFIX: Final = Struct(">qiibI")
"""base offset, length, leader epoch, magic, checksum"""
EXTENT: Final = Struct(">qiibIhi")
"""The header up to the last offset delta."""
EXTENT_BYTES: Final = EXTENT.size
"""A message before v2 is no shorter, if it has a key of at least one byte."""
SUFFIX: Final = Struct(">hiqqqhii")
"""attributes, last offset delta, base and max timestamp, producer id and epoch, base sequence, count"""


class Batch(Frozen, frozen=True):
    """A batch's header, and where in `buffer` the batch lies; nothing is copied.

    A message of an older format is a batch of its own, with -1 for what it does not have. If compressed it
    holds many, of which its offset is the last; `count` is 1 all the same.
    """

    buffer: bytes
    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int
    checksum: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def end(self) -> int:
        """The position after the batch."""
        return self.position + self.size_bytes

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last one; compaction may have removed the record that had that."""
        return self.last_offset + 1

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."""
        return self.attributes & COMPRESSION_MASK

    @property
    def is_transactional(self) -> bool:
        """Whether its records wait for a marker."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_control(self) -> bool:
        """Whether it holds a transaction's marker, and so no record of a group."""
        return self.attributes & CONTROL != 0

    @property
    def data(self) -> bytes:
        """A copy of the batch's own bytes."""
        return self.buffer[self.position : self.position + self.size_bytes]


BatchRecord = tuple[int, int, bytes | None, bytes | None]
"""offset, timestamp in milliseconds, key, value"""


def batch_extent(data: bytes, pos: int) -> tuple[int, int, int] | None:
    """First offset, the offset after the last, and the end of the batch at `pos`; None if none can be there.

    `EXTENT_BYTES` must be left. The end may lie behind the data.
    """
    base_offset, length, _, magic, _, _, delta = EXTENT.unpack_from(data, pos)
    if magic == MAGIC and length >= HEADER_BYTES - LOG_OVERHEAD_BYTES and delta >= 0:
        return base_offset, base_offset + delta + 1, pos + LOG_OVERHEAD_BYTES + length
    if 0 <= magic < MAGIC and length >= MESSAGE_BYTES_MIN:
        return base_offset, base_offset + 1, pos + LOG_OVERHEAD_BYTES + length
    return None


_FACTS: Final = Struct(">qiibIhiqq")
"""The header up to the largest timestamp."""


def batch_facts(data: bytes, pos: int = 0) -> tuple[int, int, int, int]:
    """Of the batch at `pos`: first offset, the one after the last, leader's epoch, largest timestamp.

    Epoch and timestamp are -1 for a message before v2. Raises ValueError for no batch.
    """
    left = len(data) - pos
    if left >= HEADER_BYTES:
        base_offset, length, epoch, magic, _, _, delta, _, timestamp = _FACTS.unpack_from(data, pos)
        if magic == MAGIC and length >= HEADER_BYTES - LOG_OVERHEAD_BYTES and delta >= 0:
            return base_offset, base_offset + delta + 1, epoch, timestamp
    extent = batch_extent(data, pos) if left >= EXTENT_BYTES else None
    if extent is None:
        raise ValueError("these bytes are no record batch")
    return extent[0], extent[1], -1, -1


def zigzag(value: int) -> bytes:
    """A signed varint, as records use it for every length and delta."""
    number = value << 1 if value >= 0 else ~(value << 1)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


TABLE_SIZE: Final = 8192
"""Numbers below this have a varint of at most two bytes."""

ZIGZAG: Final = tuple(zigzag(number) for number in range(TABLE_SIZE))


def read_zigzag(data: bytes, pos: int) -> tuple[int, int]:
    """The signed varint at `pos`, and where it ends. Raises IndexError and, above 64 bits, ValueError."""
    number = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), pos
        shift += 7
        if shift > 63:
            raise ValueError(f"a varint of more than 10 bytes ends at byte {pos}")


_MAX_TIMESTAMP: Final = Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35


def max_timestamp(batch: bytes) -> int:
    """The largest timestamp in a batch of version 2, from its header; -1 for an older or a cut one."""
    if len(batch) < HEADER_BYTES or batch[MAGIC_AT] != MAGIC:
        return -1
    return int(_MAX_TIMESTAMP.unpack_from(batch, _MAX_TIMESTAMP_AT)[0])
