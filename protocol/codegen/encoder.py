# SPDX-License-Identifier: Apache-2.0
"""Writes the encode function of one message and version.

A message of fixed size is one Struct. A long array of structs of fixed size is one Struct as well, whose format
is the item's, repeated; so is one whose items have a string each, if all of these are empty. Anything else is a list
of parts that are joined. The empty section of tagged fields that ends a struct of a flexible version is a pad byte of
the Struct before it. Compact lengths below 128, which are one byte, are handled in line.
"""

from typing import Final

from protocol.codegen.layout import OneString, Run, Step, one_string, steps
from protocol.codegen.schema import Field, Message
from protocol.codegen.source import Source
from protocol.codegen.types import may_be_none

# Below so many items of fixed size, a pack for each is faster than one for all (measured: they meet at 7).
ONE_PACK_FROM_ITEMS: Final = 8


class Encoder:
    """Writes one function into `source`."""

    def __init__(self, source: Source, version: int, *, flexible: bool) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible

    def emit(self, message: Message) -> None:
        """Write the body of `encode(message)`."""
        line = self._source.line
        parts = steps(message.fields, self._version)
        if len(parts) == 1 and isinstance(parts[0], Run):
            line(f"return {self._pack(parts[0], 'message', last=True)}")
            return
        line("out: list[bytes] = []")
        self._struct(parts, "message")
        line('return b"".join(out)')

    def _struct(self, parts: list[Step], owner: str) -> None:
        for step in parts:
            last = step is parts[-1]
            if isinstance(step, Run):
                self._source.line(f"out.append({self._pack(step, owner, last=last)})")
                continue
            if step.is_array:
                self._array(step, owner)
            else:
                self._string_or_bytes(step, f"{owner}.{step.name}")
            if last and self._flexible:
                self._source.line('out.append(b"\\0")')

    def _pack(self, run: Run, owner: str, *, last: bool) -> str:
        fmt = run.fmt + ("x" if last and self._flexible else "")
        values = ", ".join(f"{owner}.{field.name}" for field in run.fields)
        return f"{self._source.structs.pack(fmt)}({values})"

    def _string_or_bytes(self, field: Field, value: str) -> None:
        line = self._source.line
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
        """Refuse a null that other versions allow; where none does, the type checker finds it."""
        if may_be_none(field) and self._version not in field.nullable:
            with self._source.block(f"if {value} is None:"):
                self._source.line(f'raise UnexpectedNull("{field.name}")')

    def _array(self, field: Field, owner: str) -> None:
        items = field.name if owner == "message" else f"{owner}_{field.name}"
        self._source.line(f"{items} = {owner}.{field.name}")
        self._refuse_null(field, items)
        if self._version in field.nullable:
            with self._source.block(f"if {items} is None:"):
                self._source.line('out.append(b"\\0")' if self._flexible else "out.append(NULL_INT32)")
            with self._source.block("else:"):
                self._items(field, items)
        else:
            self._items(field, items)

    def _items(self, field: Field, items: str) -> None:
        line = self._source.line
        if self._flexible:
            line(f"n = len({items}) + 1")
            line("out.append(UVARINT[n] if n < 128 else uvarint(n))")
        else:
            line(f"out.append(PACK_INT32(len({items})))")
        if not field.fields:
            line(f'out.append(repeated("i", len({items})).pack(*{items}))')
            return
        item = field.item_name
        parts = steps(field.fields, self._version)
        if len(parts) == 1 and isinstance(parts[0], Run):
            self._fixed_items(parts[0], items, item)
            return
        layout = one_string(parts)
        if layout is None:
            with self._source.block(f"for {item} in {items}:"):
                self._struct(parts, item)
            return
        self._items_with_empty_string(layout, items, item)
        with self._source.block(f"if not {item}_values:"), self._source.block(f"for {item} in {items}:"):
            self._item_with_one_string(layout, parts, item)

    def _items_with_empty_string(self, layout: OneString, items: str, item: str) -> None:
        """Write many items by one call if all their strings are empty; else none, and no value is kept."""
        line, block = self._source.line, self._source.block
        line(f"{item}_values: list[Any] = []")
        with block(f"if len({items}) >= {ONE_PACK_FROM_ITEMS}:"):
            width = len(layout.before.fields) + 1 + len(layout.after.fields)
            line(f"{item}_values = [{self._empty_length()[1]}] * ({width} * len({items}))")
            line("at = 0")
            with block(f"for {item}_row in {items}:"):
                with block(f'if {item}_row.{layout.string.name} != "":'):
                    line(f"{item}_values.clear()")
                    line("break")
                before = len(layout.before.fields)
                places = [*range(before), *range(before + 1, width)]
                for place, field in zip(places, layout.before.fields + layout.after.fields, strict=True):
                    line(f"{item}_values[at + {place}] = {item}_row.{field.name}")
                line(f"at += {width}")
            with block(f"if {item}_values:"):
                fmt = layout.before.fmt + self._empty_length()[0] + layout.after.fmt
                fmt += "x" if self._flexible else ""
                line(f'out.append(repeated("{fmt}", len({items})).pack(*{item}_values))')

    def _empty_length(self) -> tuple[str, str]:
        """The format of an empty string's length, and the length."""
        return ("B", "1") if self._flexible else ("h", "0")

    def _fixed_items(self, run: Run, items: str, item: str) -> None:
        """Write many items by one call, which is faster than a call for each."""
        line, block = self._source.line, self._source.block
        with block(f"if len({items}) < {ONE_PACK_FROM_ITEMS}:"), block(f"for {item} in {items}:"):
            line(f"out.append({self._pack(run, item, last=True)})")
        with block("else:"):
            line(f"{item}_values: list[Any] = [0] * ({len(run.fields)} * len({items}))")
            line("at = 0")
            with block(f"for {item}_row in {items}:"):
                for place, field in enumerate(run.fields):
                    line(f"{item}_values[at + {place}] = {item}_row.{field.name}")
                line(f"at += {len(run.fields)}")
            fmt = run.fmt + ("x" if self._flexible else "")
            line(f'out.append(repeated("{fmt}", len({items})).pack(*{item}_values))')

    def _item_with_one_string(self, layout: OneString, parts: list[Step], item: str) -> None:
        """Write an item by one Struct when its string is empty."""
        tags = "x" if self._flexible else ""
        length_fmt, empty = self._empty_length()
        pack = self._source.structs.pack(layout.before.fmt + length_fmt + layout.after.fmt + tags)
        values = [f"{item}.{field.name}" for field in layout.before.fields]
        values += [empty, *(f"{item}.{field.name}" for field in layout.after.fields)]
        with self._source.block(f'if {item}.{layout.string.name} == "":'):
            self._source.line(f"out.append({pack}({', '.join(values)}))")
        with self._source.block("else:"):
            self._struct(parts, item)
