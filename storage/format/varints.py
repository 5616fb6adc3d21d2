# SPDX-License-Identifier: Apache-2.0
"""Variable-length numbers, seven bits to the byte, lowest first: unsigned ones, and signed ones in zig-zag."""

from typing import Final

TABLE_SIZE: Final = 8192
"""The limit below which numbers from 0 on have a signed varint of at most two bytes."""


def encode_unsigned_varint(value: int) -> bytes:
    """Encode a number of at least 0 as an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_signed_varint(value: int) -> bytes:
    """Encode a signed varint, the form of every length and delta in a batch's records."""
    return encode_unsigned_varint(value << 1 if value >= 0 else ~(value << 1))


ZIGZAG: Final = tuple(encode_signed_varint(number) for number in range(TABLE_SIZE))
"""The signed varints of the numbers below TABLE_SIZE."""


def read_zigzag(data: bytes, pos: int) -> tuple[int, int]:
    """Return the signed varint at `pos`, and where it ends. Raises IndexError and, above 64 bits, ValueError."""
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
