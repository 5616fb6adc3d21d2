# SPDX-License-Identifier: Apache-2.0
"""Reads and writes Kafka's primitive types, if the generated codecs do not do so in line.

A reader takes `(buf, pos)` and returns the value with the position after it. A fixed-size read past the end raises
`IndexError` or `struct.error`, and a slice past the end returns a position past it; code that calls a whole decoder
turns both into `Truncated`, so that no read has to check by itself.
"""

from functools import lru_cache
from struct import Struct
from typing import Final

from protocol.bounds import TAGS_MAX
from protocol.errors import FrameTooLarge, InvalidLength, TooManyItems, UnexpectedNull

ZERO_UUID: Final = bytes(16)
"""Kafka's null for a uuid. Uuids are `bytes` of length 16 here: they are only used as keys."""

MAX_STRING_BYTES: Final = 0x7FFF
"""The limit of classic strings, whose length is an int16; Kafka applies it to compact ones, too."""

MAX_INT32: Final = 0x7FFFFFFF

CACHED_ARRAY_ITEMS: Final = 1024
"""The count up to which Struct objects of arrays are cached; longer ones are compiled for each message."""

INT16: Final = Struct(">h").unpack_from
INT32: Final = Struct(">i").unpack_from
PACK_INT16: Final = Struct(">h").pack
PACK_INT32: Final = Struct(">i").pack
NULL_INT16: Final = b"\xff\xff"
NULL_INT32: Final = b"\xff\xff\xff\xff"

UVARINT: Final[tuple[bytes, ...]] = tuple(bytes((value,)) for value in range(128))
"""The one-byte varints, by value."""

UNPACK_INT32S: Final = tuple(Struct(f">{count}i").unpack_from for count in range(65))
"""The unpackers of short arrays of partition indexes, by count."""


SMALL: Final = 256
"""Numbers from 0 to below this one, as in most fields, have their bytes prepared and are not packed."""
_PACK_RESULT: Final = Struct(">ih").pack
_INT32S: Final[tuple[bytes, ...]] = tuple(PACK_INT32(value) for value in range(SMALL))
_RESULTS: Final[tuple[bytes, ...]] = tuple(_PACK_RESULT(value, 0) for value in range(SMALL))
_TAGGED_RESULTS: Final[tuple[bytes, ...]] = tuple(result + b"\0" for result in _RESULTS)


def text_at(buf: bytes, start: int, end: int) -> str:
    """Return the text in these bytes, with U+FFFD for bytes that are not UTF-8, as in Java."""
    data = buf[start:end]
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Tried second, since it is slower and hardly ever needed.
        return data.decode("utf-8", "replace")


def read_uvarint(buf: bytes, pos: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 31 bits.

    Raises InvalidLength above that: at most five bytes are read (Kafka's ByteUtils.readUnsignedVarint).
    """
    value = shift = 0
    while True:
        byte = buf[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise InvalidLength(f"varint before byte {pos} is longer than five bytes")
    if value > MAX_INT32:
        raise InvalidLength(f"varint before byte {pos} is above {MAX_INT32}")
    return value, pos


def pack_uvarint(value: int) -> bytes:
    """Return a number encoded as an unsigned varint."""
    if value < 0x80:
        return UVARINT[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def skip_tags(buf: bytes, pos: int) -> int:
    """Return the position after a section of tagged fields (KIP-482), all of which are skipped.

    Raises TooManyItems above TAGS_MAX.
    """
    count, pos = read_uvarint(buf, pos)
    if count > TAGS_MAX:
        raise TooManyItems(f"{count} tagged fields")
    for _ in range(count):
        _tag, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
        pos += size
    return pos


def read_compact_string(buf: bytes, pos: int, name: str) -> tuple[str, int]:
    """Read a compact string of any length; raises UnexpectedNull, InvalidLength."""
    value, pos = read_compact_nullable_string(buf, pos, name)
    if value is None:
        raise UnexpectedNull(name)
    return value, pos


def read_compact_nullable_string(buf: bytes, pos: int, name: str) -> tuple[str | None, int]:
    """Read a compact string of any length, or null; raises InvalidLength."""
    size, pos = read_uvarint(buf, pos)
    if size == 0:
        return None, pos
    if size > MAX_STRING_BYTES + 1:
        raise InvalidLength(f"{name}: a string of {size - 1} bytes")
    end = pos + size - 1
    return text_at(buf, pos, end), end


def read_compact_bytes(buf: bytes, pos: int, name: str) -> tuple[bytes, int]:
    """Read compact bytes of any length; raises UnexpectedNull, InvalidLength."""
    size, pos = read_uvarint(buf, pos)
    if size == 0:
        raise UnexpectedNull(name)
    end = pos + size - 1
    return buf[pos:end], end


def read_compact_count(buf: bytes, pos: int) -> tuple[int, int]:
    """Read the length of a compact array: -1 for null; raises InvalidLength."""
    count, pos = read_uvarint(buf, pos)
    return count - 1, pos


def bad_count_error(count: int, name: str, left: int) -> UnexpectedNull | InvalidLength:
    """Return the error for an array whose count is negative, or whose items do not fit into the `left` bytes."""
    if count == -1:
        return UnexpectedNull(name)
    return InvalidLength(f"{name}: {count} items in {left} bytes")


def item_limit_error(name: str, limit: int) -> TooManyItems:
    """Return the error for a request with more items in its arrays than `limit`, noticed at the array `name`."""
    return TooManyItems(f"{name}: more than {limit} items in one request")


def bad_length_error(length: int, name: str) -> UnexpectedNull | InvalidLength:
    """Return the error for a classic string or bytes of negative length."""
    if length == -1:
        return UnexpectedNull(name)
    return InvalidLength(f"{name}: length {length}")


def pack_int32(value: int) -> bytes:
    """Return an encoded int32, big-endian."""
    return _INT32S[value] if 0 <= value < SMALL else PACK_INT32(value)


def pack_frame_length(length: int) -> bytes:
    """Return the four bytes of a frame's length. Raises FrameTooLarge beyond MAX_INT32."""
    if length > MAX_INT32:
        raise FrameTooLarge(f"a frame of {length} bytes")
    return PACK_INT32(length)


def pack_partition_error(index: int, error_code: int) -> bytes:
    """Return an encoded int32 and int16: a partition and its error code."""
    return _RESULTS[index] if error_code == 0 and 0 <= index < SMALL else _PACK_RESULT(index, error_code)


def pack_tagged_partition_error(index: int, error_code: int) -> bytes:
    """Return an encoded int32, an int16, and an empty section of tagged fields."""
    if error_code == 0 and 0 <= index < SMALL:
        return _TAGGED_RESULTS[index]
    return _PACK_RESULT(index, error_code) + b"\0"


def pack_compact_string(value: str) -> bytes:
    """Return an encoded compact string; raises InvalidLength above 32,767 bytes."""
    raw = value.encode()
    size = len(raw)
    if size < 127:
        return UVARINT[size + 1] + raw
    if size > MAX_STRING_BYTES:
        raise InvalidLength(f"a string of {size} bytes")
    return pack_uvarint(size + 1) + raw


def pack_string(value: str) -> bytes:
    """Return an encoded classic string; raises InvalidLength above 32,767 bytes."""
    raw = value.encode()
    if len(raw) > MAX_STRING_BYTES:
        raise InvalidLength(f"a string of {len(raw)} bytes")
    return PACK_INT16(len(raw)) + raw


def pack_compact_bytes(value: bytes) -> bytes:
    """Return bytes with a compact length before them."""
    return pack_uvarint(len(value) + 1) + value


def pack_bytes(value: bytes) -> bytes:
    """Return bytes with a classic length before them."""
    return PACK_INT32(len(value)) + value


@lru_cache(maxsize=CACHED_ARRAY_ITEMS)
def _repeated(unit: str, count: int) -> Struct:
    return Struct(">" + unit * count)


def array_struct(unit: str, count: int) -> Struct:
    """Return the Struct for `count` items of the struct format `unit`."""
    return _repeated(unit, count) if count <= CACHED_ARRAY_ITEMS else Struct(">" + unit * count)
