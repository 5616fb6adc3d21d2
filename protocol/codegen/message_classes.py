# SPDX-License-Identifier: Apache-2.0
"""Writes the classes: one FieldsValue per message and nested struct, with every field of every version."""

from collections.abc import Iterator
from typing import Final

from protocol.codegen.layout import find_row_fields
from protocol.codegen.schema import Field, Message
from protocol.codegen.source import row_type

_PYTHON_TYPES = {
    "bool": "bool",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "int",
    "uuid": "bytes",
    "string": "str",
    "bytes": "bytes",
}

NAMED: Final = {
    "committed_offset": "Offset",
    "group_id": "GroupId",
    "leader": "MemberId",
    "member_id": "MemberId",
}
"""The types of `protocol.newtypes` by the names of the fields that have them."""


def python_type(field: Field) -> str:
    """Return the annotation of a field, with None if any version allows null, or null is the default."""
    return f"{value_type(field)} | None" if may_be_none(field) else value_type(field)


def value_type(field: Field) -> str:
    """Return the type of a field's values other than null."""
    base = field.type if field.fields else find_newtype_of_field(field) or _PYTHON_TYPES[field.type]
    return f"list[{base}]" if field.is_array else base


def find_newtype_of_field(field: Field) -> str | None:
    """Return the type of `protocol.newtypes` for a field; None if it has none, or may be null."""
    return None if field.is_array or may_be_none(field) else NAMED.get(field.name)


def may_be_none(field: Field) -> bool:
    """Return whether the field may be null in some version."""
    return field.nullable.max >= field.nullable.min or field.default == "null"


def default(field: Field) -> str:
    """Return the schema's default, as an expression."""
    if field.default == "null":
        return "None"
    if field.is_array:
        return "[]"
    if field.type == "bool":
        return "True" if field.default == "true" else "False"
    if field.type == "uuid":
        return "ZERO_UUID"
    if field.type == "bytes":
        return 'b""'
    if field.type == "string":
        return cast_to_named(field, f'"{field.default or ""}"')
    return cast_to_named(field, str(int(field.default or 0)))


def non_row_field_expression(field: Field) -> str:
    """Return the value of a field that rows do not have: an empty string, or else the schema's default."""
    return '""' if field.type == "string" else default(field)


def cast_to_named(field: Field, value: str) -> str:
    """Return the expression `value` with a call of its field's type in `protocol.newtypes`, which mypyc omits."""
    name = find_newtype_of_field(field)
    return value if name is None else f"{name}({value})"


def render_classes(message: Message) -> Iterator[str]:
    """Yield the source lines of a message's classes: those of the nested structs, then that of the message."""
    yield from _nested(message.fields)
    yield from _class(message.name, message.fields)


def _nested(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        if field.fields:
            yield from _nested(field.fields)
            yield from _class(field.type, field.fields)


def rows_attribute_name(field: Field) -> str:
    """Return the name of the attribute with an array's rows."""
    return f"{field.item_variable_name}_rows"


def _class(name: str, fields: tuple[Field, ...]) -> Iterator[str]:
    in_rows = [field for field in fields if find_row_fields(field) is not None]
    yield "@mypyc_attr(acyclic=True)"
    yield f"class {name}(FieldsValue):"
    yield f"    __match_args__: Final = ({''.join(f'{_quoted(field.name)}, ' for field in fields)})".replace(
        ", )", ",)"
    )
    if in_rows:
        slots = [f"_{field.name}" if field in in_rows else field.name for field in fields]
        slots += [rows_attribute_name(field) for field in in_rows]
        yield f"    __slots__ = ({', '.join(map(_quoted, sorted(slots)))},)"
    else:
        yield "    __slots__ = __match_args__"
    yield ""
    yield "    def __init__("
    yield "        self,"
    for field in fields:
        yield f"        {field.name}: {python_type(field)} = {'EMPTY' if field.is_array else default(field)},"
    for field in in_rows:
        yield f"        {rows_attribute_name(field)}: EncodedRows | None = None,"
    yield "    ) -> None:"
    for field in fields:
        # A list of its own, because all that are made without one share EMPTY, which must not change.
        value = f"{field.name} if {field.name} is not EMPTY else []" if field.is_array else field.name
        yield f"        self.{'_' if field in in_rows else ''}{field.name}: Final = {value}"
    for field in in_rows:
        yield f"        self.{rows_attribute_name(field)} = {rows_attribute_name(field)}"
    yield ""
    for field in in_rows:
        yield from _items_of_rows(field)
    yield ""


def _items_of_rows(field: Field) -> Iterator[str]:
    """Write the property of the array, which turns rows into its items, and drops them, at the first access."""
    run = find_row_fields(field)
    assert run is not None
    places = {one.name: place for place, one in enumerate(run.fields)}
    values = [
        cast_to_named(one, f"row[{places[one.name]}]")
        if one.name in places
        else non_row_field_expression(one)
        for one in field.fields
    ]
    yield "    @property"
    yield f"    def {field.name}(self) -> {python_type(field)}:"
    yield f"        rows = self.{rows_attribute_name(field)}"
    yield "        if rows is not None:"
    yield f"            row: {row_type(run.fmt)}"
    yield f'            for row in rows.unpack("{run.fmt}"):'
    yield f"                self._{field.name}.append({field.type}({', '.join(values)}))"
    yield f"            self.{rows_attribute_name(field)} = None"
    yield f"        return self._{field.name}"
    yield ""


def _quoted(name: str) -> str:
    return f'"{name}"'
