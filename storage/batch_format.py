# SPDX-License-Identifier: Apache-2.0
"""The envelope of a RecordBatch v2: its 61 header bytes, its attribute bits, and its varints.

See Kafka's `DefaultRecordBatch` and `DefaultRecord`, and KIP-98, which brought this format.
"""

from struct import Struct
from typing import Final

MAGIC: Final = 2
HEADER_BYTES: Final = 61
LOG_OVERHEAD_BYTES: Final = 12
"""Base offset and length, which the length does not count."""
CRC_START: Final = 21
"""The checksum covers everything from here, the attributes, to the end."""

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20

HEADER: Final = Struct(">qiibIhiqqqhii")
PREFIX: Final = Struct(">qiibI")
"""base offset, length, leader epoch, magic, checksum"""
SUFFIX: Final = Struct(">hiqqqhii")
"""attributes, last offset delta, base and max timestamp, producer id and epoch, base sequence, count"""


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
