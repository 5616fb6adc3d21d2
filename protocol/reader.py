# SPDX-License-Identifier: Apache-2.0
"""Reads any message of kafka-python's schemas, as strictly as Kafka does, into kafka-python's classes.

kafka-python's own decoders are written for a client that trusts its broker. They let pass what Kafka refuses
(short strings, null where none is allowed, negative counts), fail on text that is not UTF-8, which Kafka takes,
and need quadratic time for an endless varint. So its schemas, classes and encoders are used, not its decoders.

A reader is a closure `(buf, pos) -> (value, pos)`, made once per field and version. Like the hot decoders, readers
do not look where the buffer ends: see `protocol.wire`.
"""

import struct
from collections.abc import Callable
from struct import Struct
from typing import Any, Final
from uuid import UUID

from protocol.errors import InvalidLength, Truncated
from protocol.wire import INT16, INT32, MAX_STRING_BYTES, ZERO_UUID, bad_count, bad_length, read_uvarint

Reader = Callable[[bytes, int], tuple[Any, int]]
"""kafka-python's fields and classes are not typed: they are `Any` throughout this module."""

_FIXED: Final = {
    "bool": Struct(">?"),
    "int8": Struct(">b"),
    "int16": Struct(">h"),
    "uint16": Struct(">H"),
    "int32": Struct(">i"),
    "int64": Struct(">q"),
    "float64": Struct(">d"),
}
_BITFIELD: Final = Struct(">I").unpack_from
_NO_BITFIELD: Final = 1 << 31
"""Kafka's default of the authorized operations: they were not asked for."""


def read_message(reader: Reader, name: str, buf: bytes, pos: int) -> Any:
    """Return the message that starts at `pos`; bytes after it are ignored. Raises ProtocolError only."""
    try:
        message, end = reader(buf, pos)
    except (IndexError, struct.error):
        raise Truncated(name) from None
    if end > len(buf):
        raise Truncated(name)
    return message


def struct_reader(
    schema: Any, version: int, *, flexible: bool, cls: Any = None, optional: bool = False
) -> Reader:
    """Return the reader of a struct: `schema` is a StructField, `cls` its class when it is a whole message's."""
    make = schema.data_class if cls is None else cls
    fields = [
        (field.name, _field_reader(field, version, flexible)) for field in schema.untagged_fields(version)
    ]
    read_tags = _tags_reader(schema, version) if flexible else None

    def read(buf: bytes, pos: int) -> tuple[Any, int]:
        if optional:  # KIP-893: a byte that is negative for null
            null = buf[pos] > 127
            pos += 1
            if null:
                return None, pos
        # what kafka-python's decoders do too: __init__ would look every field up again
        message = object.__new__(make)
        message._version = version
        message.tags = message.unknown_tags = None
        for name, read_field in fields:
            value, pos = read_field(buf, pos)
            setattr(message, name, value)
        if read_tags is not None:
            pos = read_tags(message, buf, pos)
        return message, pos

    return read


def _tags_reader(schema: Any, version: int) -> Callable[[Any, bytes, int], int]:
    known = {
        field.tag: (field.name, _field_reader(field, version, flexible=True))
        for field in schema.fields.values()
        if field.for_version_q(version) and field.tagged_field_q(version)
    }

    def read(message: Any, buf: bytes, pos: int) -> int:
        count, pos = read_uvarint(buf, pos)
        for _ in range(count):
            tag, pos = read_uvarint(buf, pos)
            size, pos = read_uvarint(buf, pos)
            if tag in known:
                name, read_field = known[tag]
                value, pos = read_field(buf, pos)
                setattr(message, name, value)
            else:
                pos += size
        return pos

    return read


def _field_reader(field: Any, version: int, flexible: bool) -> Reader:
    nullable: bool = field.nullable_for_version_q(version)
    if field.is_struct_array():
        items = struct_reader(field.array_of, version, flexible=flexible)
        return _array_reader(field.name, items, flexible, nullable)
    if field.is_array():
        items = _scalar_reader(field.name, field.array_of.type_str, flexible, nullable=False)
        return _array_reader(field.name, items, flexible, nullable)
    if field.is_struct():
        return struct_reader(field, version, flexible=flexible, optional=nullable)
    return _scalar_reader(field.name, field.type_str, flexible, nullable)


def _scalar_reader(name: str, kind: str, flexible: bool, nullable: bool) -> Reader:
    if kind in _FIXED:
        return _fixed_reader(_FIXED[kind])
    if kind == "string":
        return _string_reader(name, flexible, nullable)
    if kind in {"bytes", "records"}:
        return _bytes_reader(name, flexible, nullable)
    return {"uuid": _read_uuid, "bitfield": _read_bitfield}[kind]


def _fixed_reader(fixed: Struct) -> Reader:
    unpack, size = fixed.unpack_from, fixed.size

    def read(buf: bytes, pos: int) -> tuple[Any, int]:
        return unpack(buf, pos)[0], pos + size

    return read


def _read_uuid(buf: bytes, pos: int) -> tuple[UUID | None, int]:
    end = pos + 16
    if end > len(buf):
        raise Truncated("a uuid")
    raw = buf[pos:end]
    return (None if raw == ZERO_UUID else UUID(bytes=raw)), end


def _read_bitfield(buf: bytes, pos: int) -> tuple[set[int] | None, int]:
    (bits,) = _BITFIELD(buf, pos)
    return (None if bits == _NO_BITFIELD else {bit for bit in range(32) if bits >> bit & 1}), pos + 4


def _length_reader(*, flexible: bool, classic: Callable[[bytes, int], tuple[Any, ...]], size: int) -> Reader:
    """Return the reader of a length: -1 is null, anything below is the caller's to refuse."""

    def read_compact(buf: bytes, pos: int) -> tuple[int, int]:
        length, pos = read_uvarint(buf, pos)
        return length - 1, pos

    def read_classic(buf: bytes, pos: int) -> tuple[int, int]:
        return classic(buf, pos)[0], pos + size

    return read_compact if flexible else read_classic


def _string_reader(name: str, flexible: bool, nullable: bool) -> Reader:
    read_length = _length_reader(flexible=flexible, classic=INT16, size=2)

    def read(buf: bytes, pos: int) -> tuple[str | None, int]:
        length, pos = read_length(buf, pos)
        if length < 0:
            if length == -1 and nullable:
                return None, pos
            raise bad_length(length, name)
        if length > MAX_STRING_BYTES:
            raise InvalidLength(f"{name}: a string of {length} bytes")
        end = pos + length
        return buf[pos:end].decode("utf-8", "replace"), end

    return read


def _bytes_reader(name: str, flexible: bool, nullable: bool) -> Reader:
    read_length = _length_reader(flexible=flexible, classic=INT32, size=4)

    def read(buf: bytes, pos: int) -> tuple[bytes | None, int]:
        length, pos = read_length(buf, pos)
        if length < 0:
            if length == -1 and nullable:
                return None, pos
            raise bad_length(length, name)
        end = pos + length
        return buf[pos:end], end

    return read


def _array_reader(name: str, read_item: Reader, flexible: bool, nullable: bool) -> Reader:
    read_length = _length_reader(flexible=flexible, classic=INT32, size=4)

    def read(buf: bytes, pos: int) -> tuple[list[Any] | None, int]:
        count, pos = read_length(buf, pos)
        if count == -1 and nullable:
            return None, pos
        if not 0 <= count <= len(buf) - pos:  # no item is smaller than a byte
            raise bad_count(count, name, len(buf) - pos)
        items = []
        for _ in range(count):
            item, pos = read_item(buf, pos)
            items.append(item)
        return items, pos

    return read
