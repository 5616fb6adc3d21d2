# SPDX-License-Identifier: Apache-2.0
"""Writes the decode function of one message and version.

The code reads without checking the end of the buffer: a fixed-size read past it raises, and a slice past it
leaves `pos` behind the end, which the last lines of every function check. Lengths below 128 of the flexible
versions, which are one byte, are handled in line; longer ones by `protocol.wire`. Requests that may have tens of
thousands of items have a second function, a generator that yields to the event loop now and then.
"""

from typing import Final

from protocol.bounds import ITEMS_MAX, LEAVING_MAX, PROTOCOLS_MAX
from protocol.codegen.layout import (
    FixedFields,
    Step,
    encode_defaults,
    fields_in_wire_order,
    find_row_fields,
    find_row_fields_in_version,
    match_one_string_layout,
    min_bytes,
)
from protocol.codegen.message_classes import cast_to_named, default, python_type, value_type
from protocol.codegen.schema import Field, Message
from protocol.codegen.source import SourceWriter

# The number of items from which on trying to read them as rows pays (measured: 9 to 10).
ROWS_FROM_ITEMS: Final = 10
ITEMS_PER_STEP: Final = 500
"""The number of structs read before a generator yields to the event loop: some 200 microseconds."""


def message_items_max(message: str) -> int | None:
    """Return the most items of a message's arrays together; None for responses, which we request ourselves."""
    if not message.endswith("Request"):
        return None
    return {"JoinGroupRequest": PROTOCOLS_MAX, "LeaveGroupRequest": LEAVING_MAX}.get(message, ITEMS_MAX)


def is_decoded_in_steps(message: Message) -> bool:
    """Return whether a message may be so long that it is read in steps."""
    return message_items_max(message.name) == ITEMS_MAX and any(field.is_array for field in message.fields)


class DecoderWriter:
    """Writes one decode function into `source`; a generator if `in_steps`."""

    def __init__(self, source: SourceWriter, version: int, *, flexible: bool, in_steps: bool = False) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible
        self._in_steps = in_steps
        self._items_max: int | None = None

    def write_function_body(self, message: Message) -> None:
        """Write the body of `decode(buf, pos)`."""
        line = self._source.add_line
        self._items_max = message_items_max(message.name)
        if any(field.is_array and self._version in field.versions for field in message.fields):
            line("size = len(buf)")
            if self._items_max is not None:
                line("items = 0")
        if self._in_steps:
            line(f"left = {ITEMS_PER_STEP}")
        with self._source.block("try:"):
            self._struct(message.fields, "", in_array=False)
        with self._source.block("except (IndexError, error):"):
            line(f'raise Truncated("{message.name}") from None')
        with self._source.block("if pos > len(buf):"):
            line(f'raise Truncated("{message.name}")')
        line(f"return {self._construct(message.name, message.fields, '')}")

    def _struct(self, fields: tuple[Field, ...], prefix: str, *, in_array: bool) -> None:
        todo = fields_in_wire_order(fields, self._version)
        while todo:
            step = todo.pop(0)
            if isinstance(step, FixedFields):
                follower = todo.pop(0) if todo else None
                self._run(step, follower, prefix, in_array=in_array)
            else:
                self._variable(step, prefix, may_be_empty=False)
        if self._flexible:
            with self._source.block("if buf[pos]:"):
                self._source.add_line("pos = skip_tags(buf, pos)")
            with self._source.block("else:"):
                self._source.add_line("pos += 1")

    def _run(self, run: FixedFields, follower: Step | None, prefix: str, *, in_array: bool) -> None:
        """Write the read of neighbours of fixed size, with the length of the field behind them."""
        line = self._source.add_line
        names = [prefix + field.name for field in run.fields]
        if self._flexible and run.fmt == "i" and isinstance(follower, Field):
            line(f"{names[0]} = int32_at(buf, pos)")
            line("pos += 4")
            self._variable(follower, prefix, may_be_empty=in_array)
            return
        fmt, advance = run.fmt, run.size_bytes
        if isinstance(follower, Field):
            length_fmt, length_bytes = self._length_format(follower)
            names.append("n")
            fmt += length_fmt
            advance += length_bytes
        unpack = self._source.structs.add_unpacker(fmt)
        targets = ", ".join(names) if len(names) > 1 else f"({names[0]},)"
        line(f"{targets} = {unpack}(buf, pos)")
        line(f"pos += {advance}")
        if isinstance(follower, Field):
            self._after_length(follower, prefix, may_be_empty=in_array)

    def _variable(self, field: Field, prefix: str, *, may_be_empty: bool) -> None:
        """Write the read of a length and of its string, bytes or array."""
        length_fmt, length_bytes = self._length_format(field)
        if self._flexible:
            self._source.add_line("n = buf[pos]")
        else:
            self._source.add_line(f"(n,) = {self._source.structs.add_unpacker(length_fmt)}(buf, pos)")
            self._source.add_line(f"pos += {length_bytes}")
        self._after_length(field, prefix, may_be_empty=may_be_empty)

    def _length_format(self, field: Field) -> tuple[str, int]:
        """Return the format of a length, and the bytes to advance: 0 for a varint, which its reader reads again."""
        if self._flexible:
            return "B", 0
        return ("h", 2) if field.type == "string" and not field.is_array else ("i", 4)

    def _after_length(self, field: Field, prefix: str, *, may_be_empty: bool) -> None:
        if field.is_array:
            self._array(field, prefix)
        elif self._flexible:
            self._compact(field, prefix, may_be_empty=may_be_empty)
        else:
            self._classic(field, prefix)

    def _compact(self, field: Field, prefix: str, *, may_be_empty: bool) -> None:
        """Write the read of a string or bytes whose varint, of which `n` is the first byte, is at `pos`."""
        line, block = self._source.add_line, self._source.block
        target, nullable = prefix + field.name, self._version in field.nullable
        declared = f"{target}: {python_type(field)}" if nullable else target
        if may_be_empty:
            with block("if n == 1:"):
                line(f"{declared} = {self._empty(field)}")
                line("pos += 1")
            declared = target
        with block(("elif" if may_be_empty else "if") + " 0 < n < 128:"):
            line("end = pos + n")
            line(f"{declared} = {self._slice(field, 'pos + 1')}")
            line("pos = end")
        if nullable:
            with block("elif n == 0:"):
                line(f"{target} = None")
                line("pos += 1")
        kind = f"nullable_{field.type}" if nullable else field.type
        with block("else:"):
            line(f'{target}, pos = read_compact_{kind}(buf, pos, "{field.name}")')

    def _classic(self, field: Field, prefix: str) -> None:
        """Write the read of a string or bytes of length `n` at `pos`."""
        line, block = self._source.add_line, self._source.block
        target, nullable = prefix + field.name, self._version in field.nullable
        with block("if n >= 0:"):
            line("end = pos + n")
            line(f"{target}{': ' + python_type(field) if nullable else ''} = {self._slice(field, 'pos')}")
            line("pos = end")
        if nullable:
            with block("elif n == -1:"):
                line(f"{target} = None")
        with block("else:"):
            line(f'raise bad_length_error(n, "{field.name}")')

    @staticmethod
    def _slice(field: Field, start: str) -> str:
        return f"text_at(buf, {start}, end)" if field.type == "string" else f"buf[{start}:end]"

    @staticmethod
    def _empty(field: Field) -> str:
        return '""' if field.type == "string" else 'b""'

    def _array(self, field: Field, prefix: str) -> None:
        """Write the read of an array: its count is `n`, or the varint at `pos`, of which `n` is the first byte."""
        line, block = self._source.add_line, self._source.block
        target, nullable = prefix + field.name, self._version in field.nullable
        count = f"{target}_count"
        if self._flexible:
            line(f"{count} = n - 1")
            with block(f"if {count} < 127:"):
                line("pos += 1")
            with block("else:"):
                line(f"{count}, pos = read_compact_count(buf, pos)")
        else:
            line(f"{count} = n")
        item_bytes = min_bytes(field.fields, self._version, flexible=self._flexible) if field.fields else 4
        if nullable:
            with block(f"if {count} == -1:"):
                line(f"{target}: {python_type(field)} = None")
        with block(f"{'elif' if nullable else 'if'} not 0 <= {count} * {item_bytes} <= size - pos:"):
            line(f'raise bad_count_error({count}, "{field.name}", size - pos)')
        if nullable:
            with block("else:"):
                self._items(field, target, count, declared=target)
        else:
            self._items(field, target, count, declared=f"{target}: {value_type(field)}")

    def _items(self, field: Field, target: str, count: str, *, declared: str) -> None:
        line = self._source.add_line
        if self._items_max is not None:
            line(f"items += {count}")
            with self._source.block(f"if items > {self._items_max}:"):
                line(f'raise item_limit_error("{field.name}", {self._items_max})')
        if not field.fields:
            with self._source.block(f"if {count} < len(UNPACK_INT32S):"):
                line(f"{declared} = [*UNPACK_INT32S[{count}](buf, pos)]")
            with self._source.block("else:"):
                line(f'{target} = [*array_struct("i", {count}).unpack_from(buf, pos)]')
            line(f"pos += 4 * {count}")
            return
        line(f"{declared} = []")
        run = self._rows_of(field)
        if run is not None:
            self._rows(field, run, target, count)
        prefix = field.item_variable_name + "_"
        with self._source.block(f"for _ in range({count}):"):
            self._struct(field.fields, prefix, in_array=True)
            line(f"{target}.append({self._construct(field.type, field.fields, prefix)})")
            if self._in_steps:
                line("left -= 1")
                with self._source.block("if not left:"):
                    line(f"left = {ITEMS_PER_STEP}")
                    line("yield")

    def _rows_of(self, field: Field) -> FixedFields | None:
        """Return the fields of an array's rows, if it is read as rows: only in requests, and not in steps."""
        if (
            self._items_max is None
            or self._in_steps
            or match_one_string_layout(fields_in_wire_order(field.fields, self._version)) is None
        ):
            return None
        return find_row_fields_in_version(field, self._version)

    def _rows(self, field: Field, run: FixedFields, target: str, count: str) -> None:
        """Write the read of a long array at once if its items can be rows."""
        line, block = self._source.add_line, self._source.block
        all_fields = find_row_fields(field)
        assert all_fields is not None
        rows = f"{target}_rows"
        tail = 'b"\\1\\0"' if self._flexible else 'b"\\0\\0"'
        line(f"{rows}: EncodedRows | None = None")
        with block(f"if {count} >= {ROWS_FROM_ITEMS}:"):
            line(f"{rows} = read_rows_if_uniform(buf, pos, {count}, {run.size_bytes}, {tail})")
            with block(f"if {rows} is not None:"):
                line(f"pos += len({rows}.data)")
                line(f"{count} = 0")
                if run != all_fields:
                    row = bytes(run.size_bytes) + encode_defaults(all_fields.fields[len(run.fields) :])
                    line(
                        f"{rows} = EncodedRows({rows}.to_bytes_by_template({run.size_bytes}, {row!r}), {len(row)})"
                    )

    def _construct(self, name: str, fields: tuple[Field, ...], prefix: str) -> str:
        """Return the constructor's call: by position, which is fastest, with defaults for absent fields."""
        values = [
            cast_to_named(field, prefix + field.name) if self._version in field.versions else default(field)
            for field in fields
        ]
        values += [f"{prefix}{field.name}_rows" for field in fields if self._rows_of(field) is not None]
        return f"{name}({', '.join(values)})"
