# SPDX-License-Identifier: Apache-2.0
"""The primitive fields of a record's key and value (KIP-482 for the compact ones)."""

from struct import Struct
from typing import Final

from storage.errors import CorruptRecord, RecordTooLarge
from storage.format.varints import encode_unsigned_varint

SHORT_STRING_MAX: Final = 32_767

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_NULL_STRING: Final = b"\xff\xff"
_LENGTHS: Final[tuple[bytes, ...]] = tuple(_SHORT.pack(size) for size in range(256))


def encode_short_length(name: str, size: int) -> bytes:
    """Encode the two length bytes of a STRING. Raises RecordTooLarge, with `name`, above 32,767 bytes."""
    if size < len(_LENGTHS):
        return _LENGTHS[size]
    if size > SHORT_STRING_MAX:
        raise RecordTooLarge(f"{name} has {size} bytes, and a record can hold {SHORT_STRING_MAX}")
    return _SHORT.pack(size)


def encode_short_string(name: str, value: str) -> bytes:
    """Encode a STRING: two length bytes and UTF-8. Raises RecordTooLarge, with `name`, above 32,767 bytes."""
    data = value.encode()
    return encode_short_length(name, len(data)) + data


def encode_nullable_string(name: str, value: str | None) -> bytes:
    """Encode a STRING or null, which has the length -1."""
    return _NULL_STRING if value is None else encode_short_string(name, value)


def encode_compact_string(value: str | None) -> bytes:
    """Encode a COMPACT_STRING or null: length + 1 as an unsigned varint, then UTF-8."""
    if value is None:
        return b"\x00"
    data = value.encode()
    return encode_unsigned_varint(len(data) + 1) + data


class FieldReader:
    """Reads one field after the other; every method raises CorruptRecord past the end of the bytes."""

    __slots__ = ("_data", "_pos", "_what")

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._pos = 0
        self._what = what

    def _take(self, size: int) -> int:
        start = self._pos
        if size < 0:
            raise CorruptRecord(f"{self._what}: length {size} at byte {start}")
        if size > len(self._data) - start:
            raise CorruptRecord(
                f"{self._what}: needs {size} bytes at byte {start}, {len(self._data) - start} are left"
            )
        self._pos = start + size
        return start

    def int16(self) -> int:
        """Read an INT16 field."""
        value: int = _SHORT.unpack_from(self._data, self._take(2))[0]
        return value

    def int32(self) -> int:
        """Read an INT32 field."""
        value: int = _INT.unpack_from(self._data, self._take(4))[0]
        return value

    def int64(self) -> int:
        """Read an INT64 field."""
        value: int = _LONG.unpack_from(self._data, self._take(8))[0]
        return value

    def uvarint(self) -> int:
        """Read an unsigned varint of at most 32 bits."""
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self._data[self._take(1)]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise CorruptRecord(f"{self._what}: a varint of more than 5 bytes ends at byte {self._pos}")

    def bytes_of_size(self, size: int) -> bytes:
        """Read `size` bytes; a negative size is damage, since no bytes field of these records can be null."""
        start = self._take(size)
        return self._data[start : self._pos]

    def _text(self, size: int) -> str:
        # Java decodes invalid UTF-8 with U+FFFD, and so must we, to find the same group.
        return self.bytes_of_size(size).decode("utf-8", "replace")

    def string(self) -> str:
        """Read a STRING that cannot be null."""
        return self._text(self.int16())

    def nullable_string(self) -> str | None:
        """Read a STRING or null."""
        size = self.int16()
        return None if size == -1 else self._text(size)

    def compact_string(self) -> str:
        """Read a COMPACT_STRING that cannot be null."""
        return self._text(self.uvarint() - 1)

    def nullable_compact_string(self) -> str | None:
        """Read a COMPACT_STRING or null."""
        size = self.uvarint() - 1
        return None if size == -1 else self._text(size)

    def check_array_length(self, size: int) -> int:
        """Return `size`; raise CorruptRecord if it is negative or exceeds the number of bytes left."""
        if not 0 <= size <= len(self._data) - self._pos:
            raise CorruptRecord(f"{self._what}: an array of {size} elements at byte {self._pos}")
        return size

    def tags(self) -> dict[int, bytes]:
        """Read the tagged fields that end a flexible structure, by tag."""
        found = {}
        for _ in range(self.uvarint()):
            tag = self.uvarint()
            found[tag] = self.bytes_of_size(self.uvarint())
        return found
