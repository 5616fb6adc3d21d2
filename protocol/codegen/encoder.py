# SPDX-License-Identifier: Apache-2.0
"""Writes the encode function of one message and version.

A message of fixed size is one Struct. Anything else is a list of parts that are joined; an array that was read, or
made, as rows (`protocol.rows`) is one part. The empty section of tagged fields that ends a struct of a flexible
version is a pad byte of the Struct before it. Compact lengths below 128, which are one byte, are handled in line.
"""

from typing import Final

from protocol.codegen.layout import (
    FixedFields,
    FixedFieldsAndString,
    Step,
    fields_in_wire_order,
    find_row_fields_in_version,
    match_one_string_layout,
    min_bytes,
)
from protocol.codegen.message_classes import may_be_none, rows_attribute_name
from protocol.codegen.schema import Field, Message
from protocol.codegen.source import SourceWriter

PACKERS: Final = {"i": "pack_int32", "ih": "pack_partition_error", "ihx": "pack_tagged_partition_error"}
"""The functions, by format, that are quicker than a Struct if the numbers are small."""

EMPTY_COMPACT: Final = 1
"""The length of an empty compact string."""


class EncoderWriter:
    """Writes one encode function into `source`."""

    def __init__(self, source: SourceWriter, version: int, *, flexible: bool) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible

    def write_function_body(self, message: Message) -> None:
        """Write the body of `encode(message)`."""
        line = self._source.add_line
        parts = fields_in_wire_order(message.fields, self._version)
        if len(parts) == 1 and isinstance(parts[0], FixedFields):
            line(f"return {self._pack(parts[0], 'message', last=True)}")
            return
        line("out: list[bytes] = []")
        self._struct(parts, "message")
        line('return b"".join(out)')

    def _struct(self, parts: list[Step], owner: str) -> None:
        for step in parts:
            last = step is parts[-1]
            if isinstance(step, FixedFields):
                self._source.add_line(f"out.append({self._pack(step, owner, last=last)})")
                continue
            if step.is_array:
                self._array(step, owner)
            else:
                self._string_or_bytes(step, f"{owner}.{step.name}")
            if last and self._flexible:
                self._source.add_line('out.append(b"\\0")')

    def _pack(self, run: FixedFields, owner: str, *, last: bool) -> str:
        fmt = run.fmt + ("x" if last and self._flexible else "")
        values = ", ".join(f"{owner}.{field.name}" for field in run.fields)
        return f"{PACKERS.get(fmt) or self._source.structs.add_packer(fmt)}({values})"

    def _string_or_bytes(self, field: Field, value: str) -> None:
        line = self._source.add_line
        if self._version in field.nullable:
            null = "NULL_INT16" if field.type == "string" else "NULL_INT32"
            packed = f"pack_{'compact_' if self._flexible else ''}{field.type}({value})"
            null = 'b"\\0"' if self._flexible else null
            line(f"out.append({null} if {value} is None else {packed})")
            return
        self._refuse_null(field, value)
        if not self._flexible:
            line(f"out.append(pack_{field.type}({value}))")
            return
        line(f"raw = {value}{'.encode()' if field.type == 'string' else ''}")
        line("n = len(raw) + 1")
        line(f"out.append(UVARINT[n] + raw if n < 128 else pack_compact_{field.type}({value}))")

    def _refuse_null(self, field: Field, value: str) -> None:
        """Write the refusal of a null that only other versions allow; if none does, mypy finds it."""
        if may_be_none(field) and self._version not in field.nullable:
            with self._source.block(f"if {value} is None:"):
                self._source.add_line(f'raise UnexpectedNull("{field.name}")')

    def _array(self, field: Field, owner: str) -> None:
        run = find_row_fields_in_version(field, self._version)
        if run is None:
            self._list(field, owner)
            return
        rows = f"{owner}_{rows_attribute_name(field)}"
        self._source.add_line(f"{rows} = {owner}.{rows_attribute_name(field)}")
        with self._source.block(f"if {rows} is not None:"):
            self._rows(field, run, rows)
        with self._source.block("else:"):
            self._list(field, owner)

    def _list(self, field: Field, owner: str) -> None:
        items = field.name if owner == "message" else f"{owner}_{field.name}"
        self._source.add_line(f"{items} = {owner}.{field.name}")
        self._refuse_null(field, items)
        if self._version in field.nullable:
            with self._source.block(f"if {items} is None:"):
                self._source.add_line('out.append(b"\\0")' if self._flexible else "out.append(NULL_INT32)")
            with self._source.block("else:"):
                self._items(field, items)
        else:
            self._items(field, items)

    def _count(self, count: str) -> None:
        line = self._source.add_line
        if self._flexible:
            line(f"n = {count} + 1")
            line("out.append(UVARINT[n] if n < 128 else pack_uvarint(n))")
        else:
            line(f"out.append(PACK_INT32({count}))")

    def _rows(self, field: Field, run: FixedFields, rows: str) -> None:
        """Write an array of rows: their fields, then an empty string, if items have one, and no error."""
        self._count(f"{rows}.count")
        item = bytearray(min_bytes(field.fields, self._version, flexible=self._flexible))
        if (
            self._flexible
            and match_one_string_layout(fields_in_wire_order(field.fields, self._version)) is not None
        ):
            item[run.size_bytes] = EMPTY_COMPACT
        self._source.add_line(f"out.append({rows}.to_bytes_by_template({run.size_bytes}, {bytes(item)!r}))")

    def _items(self, field: Field, items: str) -> None:
        line = self._source.add_line
        self._count(f"len({items})")
        if not field.fields:
            line(f'out.append(array_struct("i", len({items})).pack(*{items}))')
            return
        item = field.item_variable_name
        parts = fields_in_wire_order(field.fields, self._version)
        layout = match_one_string_layout(parts)
        with self._source.block(f"for {item} in {items}:"):
            if layout is None:
                self._struct(parts, item)
            else:
                self._item_with_one_string(layout, parts, item)

    def _empty_length(self) -> tuple[str, str]:
        """Return the format of an empty string's length, and the length."""
        return ("B", str(EMPTY_COMPACT)) if self._flexible else ("h", "0")

    def _item_with_one_string(self, layout: FixedFieldsAndString, parts: list[Step], item: str) -> None:
        """Write an item by one Struct if its string is empty."""
        tags = "x" if self._flexible else ""
        length_fmt, empty = self._empty_length()
        pack = self._source.structs.add_packer(layout.before.fmt + length_fmt + layout.after.fmt + tags)
        values = [f"{item}.{field.name}" for field in layout.before.fields]
        values += [empty, *(f"{item}.{field.name}" for field in layout.after.fields)]
        with self._source.block(f'if {item}.{layout.string.name} == "":'):
            self._source.add_line(f"out.append({pack}({', '.join(values)}))")
        with self._source.block("else:"):
            self._struct(parts, item)
