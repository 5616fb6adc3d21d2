# SPDX-License-Identifier: Apache-2.0
"""Writes the encode function of one message and version.

A message of fixed size is one Struct. An array of structs of fixed size is one Struct as well, whose format
is the item's, repeated. Anything else is a list of parts that are joined. The empty section of tagged fields
that ends a struct of a flexible version is a pad byte of the Struct before it.
"""

from protocol.codegen.layout import Run, Step, steps
from protocol.codegen.schema import Field, Message
from protocol.codegen.source import Source
from protocol.codegen.types import may_be_none


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
                self._refuse_null(step, f"{owner}.{step.name}")
                self._source.line(f"out.append({self._variable(step, f'{owner}.{step.name}')})")
            if last and self._flexible:
                self._source.line('out.append(b"\\0")')

    def _pack(self, run: Run, owner: str, *, last: bool) -> str:
        fmt = run.fmt + ("x" if last and self._flexible else "")
        values = ", ".join(f"{owner}.{field.name}" for field in run.fields)
        return f"{self._source.structs.pack(fmt)}({values})"

    def _variable(self, field: Field, value: str) -> str:
        """Return the expression of a string or bytes with its length."""
        kind = f"compact_{field.type}" if self._flexible else field.type
        packed = f"pack_{kind}({value})"
        if self._version not in field.nullable:
            return packed
        null = 'b"\\0"' if self._flexible else f"NULL_{'INT16' if field.type == 'string' else 'INT32'}"
        return f"{null} if {value} is None else {packed}"

    def _refuse_null(self, field: Field, value: str) -> None:
        """Refuse a null that other versions allow; where none does, the type checker has found it."""
        if may_be_none(field) and self._version not in field.nullable:
            with self._source.block(f"if {value} is None:"):
                self._source.line(f'raise UnexpectedNull("{field.name}")')

    def _array(self, field: Field, owner: str) -> None:
        items = field.name if owner == "message" else f"{owner}_{field.name}"
        self._source.line(f"{items} = {owner}.{field.name}")
        self._refuse_null(field, items)
        if self._version in field.nullable:
            with self._source.block(f"if {items} is None:"):
                self._source.line(f"out.append({self._null_count()})")
            with self._source.block("else:"):
                self._items(field, items)
        else:
            self._items(field, items)

    def _null_count(self) -> str:
        return 'b"\\0"' if self._flexible else "NULL_INT32"

    def _items(self, field: Field, items: str) -> None:
        line = self._source.line
        line(f"out.append({f'uvarint(len({items}) + 1)' if self._flexible else f'PACK_INT32(len({items}))'})")
        if not field.fields:
            line(f'out.append(repeated("i", len({items})).pack(*{items}))')
            return
        parts = steps(field.fields, self._version)
        item = field.item_name
        if len(parts) == 1 and isinstance(parts[0], Run):
            self._fixed_items(parts[0], items, item)
            return
        with self._source.block(f"for {item} in {items}:"):
            if self._is_run_string_run(parts):
                self._item_with_one_string(parts, item)
            else:
                self._struct(parts, item)

    def _fixed_items(self, run: Run, items: str, item: str) -> None:
        """Write all items by one call: twice as fast as a call for each."""
        line = self._source.line
        line(f"{item}_values: list[int] = []")
        with self._source.block(f"for {item} in {items}:"):
            for field in run.fields:
                line(f"{item}_values.append({item}.{field.name})")
        fmt = run.fmt + ("x" if self._flexible else "")
        line(f'out.append(repeated("{fmt}", len({items})).pack(*{item}_values))')

    @staticmethod
    def _is_run_string_run(parts: list[Step]) -> bool:
        kinds = [isinstance(part, Run) for part in parts]
        return kinds in ([True, False], [True, False, True]) and _is_string(parts[1])

    def _item_with_one_string(self, parts: list[Step], item: str) -> None:
        """Write an item whose string is mostly empty (the metadata of an offset) by one Struct when it is."""
        line = self._source.line
        before, string, *after = parts
        assert isinstance(before, Run)
        assert isinstance(string, Field)
        tail = after[0] if after else Run(())
        assert isinstance(tail, Run)
        fmt = before.fmt + ("B" if self._flexible else "h") + tail.fmt + ("x" if self._flexible else "")
        values = [f"{item}.{field.name}" for field in before.fields]
        values.append("1" if self._flexible else "0")
        values += [f"{item}.{field.name}" for field in tail.fields]
        with self._source.block(f'if {item}.{string.name} == "":'):
            line(f"out.append({self._source.structs.pack(fmt)}({', '.join(values)}))")
        with self._source.block("else:"):
            self._struct(parts, item)


def _is_string(step: Step) -> bool:
    return isinstance(step, Field) and step.type == "string" and not step.is_array
