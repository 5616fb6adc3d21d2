# SPDX-License-Identifier: Apache-2.0
"""Reads any message of kafka-python's schemas, as strictly as Kafka does, into kafka-python's classes.

kafka-python's own decoders are written for a client that trusts its broker. They accept what Kafka refuses
(short strings, null where none is allowed, negative counts), fail on text that is not UTF-8, which Kafka accepts,
and need quadratic time for an endless varint. So its schemas, classes and encoders are used, not its decoders.

A reader is a closure `(buf, pos) -> (value, pos)`, made once per field and version. Like the hot decoders, readers
do not check the end of the buffer: see `protocol.wire`. Values with arrays are read in steps, by a generator that
yields the number of items before it reads them: so their number can be bounded, and a long request yields to the event
loop.
"""

import struct
from collections.abc import Callable, Generator
from struct import Struct
from typing import Any, Final
from uuid import UUID

from protocol.bounds import TAGS_MAX
from protocol.errors import InvalidLength, TooManyItems, Truncated
from protocol.wire import (
    INT16,
    INT32,
    MAX_STRING_BYTES,
    ZERO_UUID,
    bad_count_error,
    bad_length_error,
    item_limit_error,
    read_uvarint,
)

Reader = Callable[[bytes, int], tuple[Any, int]]
"""Reads a value. kafka-python's fields and classes are not typed: they are `Any` throughout this module."""
Reading = Generator[int, None, tuple[Any, int]]
"""Yields the number of items that come next; returns the value and the position after it."""
StepReader = Callable[[bytes, int], Reading]

ITEMS_PER_STEP: Final = 100
"""The number of items read before a yield to the event loop: some 100 microseconds."""

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
"""Kafka's default for authorized operations that were not requested."""


def read_message_in_steps(
    reader: StepReader, name: str, buf: bytes, pos: int, items_max: int | None = None
) -> Generator[None, None, Any]:
    """Read the message that starts at `pos`, with a yield between steps; bytes after it are ignored.

    Raises ProtocolError only: TooManyItems if its arrays have more than `items_max` items together.
    """
    reading = reader(buf, pos)
    left = len(buf) if items_max is None else items_max  # no item is smaller than a byte
    try:
        while True:
            left -= next(reading)
            if left < 0:
                raise item_limit_error(name, items_max or len(buf))
            yield
    except StopIteration as done:
        message, end = done.value
    except (IndexError, struct.error):
        raise Truncated(name) from None
    if end > len(buf):
        raise Truncated(name)
    return message


def struct_reader(
    schema: Any, version: int, *, flexible: bool, cls: Any = None, optional: bool = False
) -> StepReader:
    """Return the reader of a struct: `schema` is a StructField, and `cls` the class of a whole message, else None."""
    make = schema.data_class if cls is None else cls
    fields = [
        (field.name, *_field_reader(field, version, flexible)) for field in schema.untagged_fields(version)
    ]
    read_tags = _tags_reader(schema, version) if flexible else None

    def read(buf: bytes, pos: int) -> Reading:
        if optional:  # KIP-893: a byte that is negative for null
            null = buf[pos] > 127
            pos += 1
            if null:
                return None, pos
        # as in kafka-python's decoders: __init__ would look every field up again
        message = object.__new__(make)
        message._version = version
        message.tags = message.unknown_tags = None
        if cls is not None:
            message._header = None  # its encoder reads it
        for name, read_field, read_in_steps in fields:
            if read_in_steps is not None:
                value, pos = yield from read_in_steps(buf, pos)
            else:
                value, pos = read_field(buf, pos)
            setattr(message, name, value)
        if read_tags is not None:
            pos = yield from read_tags(message, buf, pos)
        return message, pos

    return read


def _flat_struct_reader(schema: Any, version: int, *, flexible: bool) -> Reader:
    """Return the reader of a struct without arrays, structs or known tags: an item of a long list."""
    make = schema.data_class
    fields = [
        (field.name, _field_reader(field, version, flexible)[0]) for field in schema.untagged_fields(version)
    ]

    def read(buf: bytes, pos: int) -> tuple[Any, int]:
        message = object.__new__(make)
        message._version = version
        message.tags = message.unknown_tags = None
        for name, read_field in fields:
            value, pos = read_field(buf, pos)
            setattr(message, name, value)
        return message, _skip_tags(buf, pos) if flexible else pos

    return read


def _is_flat(schema: Any, version: int) -> bool:
    return not any(
        field.is_array() or field.is_struct() or field.tagged_field_q(version)
        for field in schema.fields.values()
        if field.for_version_q(version)
    )


def _read_tag_count(buf: bytes, pos: int) -> tuple[int, int]:
    count, pos = read_uvarint(buf, pos)
    if count > TAGS_MAX:
        raise TooManyItems(f"{count} tagged fields")
    return count, pos


def _skip_tags(buf: bytes, pos: int) -> int:
    count, pos = _read_tag_count(buf, pos)
    for _ in range(count):
        _tag, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
        pos += size
    return pos


def _tags_reader(schema: Any, version: int) -> Callable[[Any, bytes, int], Generator[int, None, int]]:
    known = {
        field.tag: (field.name, *_field_reader(field, version, flexible=True))
        for field in schema.fields.values()
        if field.for_version_q(version) and field.tagged_field_q(version)
    }

    def read(message: Any, buf: bytes, pos: int) -> Generator[int, None, int]:
        count, pos = _read_tag_count(buf, pos)
        for _ in range(count):
            tag, pos = read_uvarint(buf, pos)
            size, pos = read_uvarint(buf, pos)
            if tag not in known:
                pos += size
                continue
            name, read_field, read_in_steps = known[tag]
            if read_in_steps is not None:
                value, pos = yield from read_in_steps(buf, pos)
            else:
                value, pos = read_field(buf, pos)
            setattr(message, name, value)
        return pos

    return read


def _field_reader(field: Any, version: int, flexible: bool) -> tuple[Reader, StepReader | None]:
    """Return the reader of a field; the second one is used if it is read in steps, and else None."""
    nullable: bool = field.nullable_for_version_q(version)
    if field.is_struct_array():
        items = _struct_readers(field.array_of, version, flexible)
        return _unread, _array_reader(field.name, *items, flexible, nullable)
    if field.is_array():
        scalars = _scalar_reader(field.name, field.array_of.type_str, flexible, nullable=False)
        return _unread, _array_reader(field.name, scalars, None, flexible, nullable)
    if field.is_struct():
        return _unread, struct_reader(field, version, flexible=flexible, optional=nullable)
    return _scalar_reader(field.name, field.type_str, flexible, nullable), None


def _struct_readers(schema: Any, version: int, flexible: bool) -> tuple[Reader, StepReader | None]:
    """Return the reader of an array's items; the second one is used if they hold arrays, and else None."""
    if _is_flat(schema, version):
        return _flat_struct_reader(schema, version, flexible=flexible), None
    return _unread, struct_reader(schema, version, flexible=flexible)


def _unread(_buf: bytes, _pos: int) -> tuple[Any, int]:
    raise AssertionError("what is read in steps has no other reader")


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
    """Return the reader of a length: -1 is null, and the caller refuses anything below."""

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
            raise bad_length_error(length, name)
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
            raise bad_length_error(length, name)
        end = pos + length
        return buf[pos:end], end

    return read


def _count_reader(name: str, flexible: bool, nullable: bool) -> Reader:
    """Return the reader of the number of an array's items: -1 for null."""
    read_length = _length_reader(flexible=flexible, classic=INT32, size=4)

    def read(buf: bytes, pos: int) -> tuple[int, int]:
        count, pos = read_length(buf, pos)
        if count == -1 and nullable:
            return count, pos
        if not 0 <= count <= len(buf) - pos:  # no item is smaller than a byte
            raise bad_count_error(count, name, len(buf) - pos)
        return count, pos

    return read


def _array_reader(
    name: str, read_item: Reader, read_in_steps: StepReader | None, flexible: bool, nullable: bool
) -> StepReader:
    """Return a reader with a step before every ITEMS_PER_STEP items, or before each that is read in steps itself."""
    read_count = _count_reader(name, flexible, nullable)
    items_per_step = ITEMS_PER_STEP if read_in_steps is None else 1

    def read(buf: bytes, pos: int) -> Reading:
        count, pos = read_count(buf, pos)
        if count == -1:
            return None, pos
        items: list[Any] = []
        while len(items) < count:
            some = min(count - len(items), items_per_step)
            yield some
            for _ in range(some):
                if read_in_steps is None:
                    item, pos = read_item(buf, pos)
                else:
                    item, pos = yield from read_in_steps(buf, pos)
                items.append(item)
        return items, pos

    return read
