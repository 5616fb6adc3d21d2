# SPDX-License-Identifier: Apache-2.0
"""Writes long messages of kafka-python's schemas in steps, so that other tasks need not wait for a whole one.

An array may be an iterator in place of a list: its items are taken one by one, written and forgotten, and a None among
them only yields to the event loop. The written bytes are held in pieces, which are never joined, because that alone
takes milliseconds for tens of megabytes.
"""

from collections import Counter
from collections.abc import Generator, Iterable
from typing import Any, Final

from kafka.protocol.schemas.fields.codecs import EncodeBuffer, Int32, UnsignedVarInt32

from protocol.errors import MessageTooLarge

ITEMS_PER_STEP: Final = 50
"""The number of items written before a yield to the event loop: some 200 microseconds."""

ERROR_CODE: Final = "error_code"

PIECE_BYTES: Final = 128 * 1024


class StepwiseMessageWriter:
    """Writes one message in steps. kafka-python's fields and classes are not typed: they are `Any` here."""

    def __init__(self, version: int, *, flexible: bool, bytes_max: int, errors: Counter[int]) -> None:
        self._version = version
        self._flexible = flexible
        self._bytes_max = bytes_max
        self._errors = errors  # by code, of the items of all arrays
        self._out: Any = EncodeBuffer(PIECE_BYTES)
        self._pieces: list[bytes] = []
        self._cut_bytes = 0
        self._items_in_step = 0

    def write_message_in_steps(self, schema: Any, message: Any) -> Generator[None, None, list[bytes]]:
        """Write the message, whose StructField is `schema`; returns its pieces. Raises MessageTooLarge."""
        yield from self._struct(schema, message)
        self._cut()
        return self._pieces

    def _struct(self, schema: Any, value: Any) -> Generator[None, None, None]:
        version, flexible = self._version, self._flexible
        for field in schema.untagged_fields(version):
            items = getattr(value, field.name)
            if field.is_struct_array() and items is not None:
                yield from self._array(field.array_of, items)
            else:
                field.encode_into(items, self._out, version=version, compact=flexible, tagged=flexible)
        if flexible:
            schema.tagged_fields(version).encode_into(value, self._out, version=version)

    def _array(self, schema: Any, items: Iterable[Any]) -> Generator[None, None, None]:
        place = None
        if isinstance(items, list):
            self._count(len(items))
        else:
            self._cut()
            place = len(self._pieces)
            self._pieces.append(b"")  # replaced by the count, once that is known
        written = yield from self._items(schema, items)
        if place is not None:
            self._cut()
            self._count(written)
            self._cut()
            self._pieces[place] = self._pieces.pop()

    def _items(self, schema: Any, items: Iterable[Any]) -> Generator[None, None, int]:
        """Write the items and return their number."""
        encode = schema.compiled_encode_into(self._version, compact=self._flexible, tagged=self._flexible)
        inner = [field for field in schema.untagged_fields(self._version) if field.is_struct_array()]
        may_fail = ERROR_CODE in schema.fields
        written = 0
        for item in items:
            if item is None:
                yield
                continue
            written += 1
            if may_fail and item.error_code:
                self._errors[item.error_code] += 1
            if inner and self._is_long(item, inner):
                yield from self._struct(schema, item)
            else:
                encode(item, self._out)
            if self._out.pos >= PIECE_BYTES:
                self._cut()
                self._items_in_step = ITEMS_PER_STEP  # bytes take time, too
            self._items_in_step += 1
            if self._items_in_step >= ITEMS_PER_STEP:
                self._items_in_step = 0
                yield
        return written

    def _is_long(self, item: Any, inner: list[Any]) -> bool:
        """Return whether an item's arrays are to be written in steps; if not, count their items and errors."""
        arrays = [(field, getattr(item, field.name)) for field in inner]
        for _, values in arrays:
            if values is not None and (not isinstance(values, list) or len(values) > ITEMS_PER_STEP):
                return True
        for field, values in arrays:
            if values is not None:
                self._items_in_step += len(values)
                if ERROR_CODE in field.fields:
                    self._errors.update(value.error_code for value in values if value.error_code)
        return False

    def _count(self, count: int) -> None:
        if self._flexible:
            UnsignedVarInt32.encode_into(self._out, count + 1)
        else:
            Int32.encode_into(self._out, count)

    def _cut(self) -> None:
        out = self._out
        if out.pos:
            self._cut_bytes += out.pos
            if self._cut_bytes > self._bytes_max:
                raise MessageTooLarge(f"more than {self._bytes_max} bytes")
            self._pieces.append(bytes(memoryview(out.buf)[: out.pos]))
            out.pos = 0
