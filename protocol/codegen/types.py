# SPDX-License-Identifier: Apache-2.0
"""Writes the classes: one Value per message and nested struct, with every field of every version."""

from collections.abc import Iterator
from typing import Final

from protocol.codegen.schema import Field, Message

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
"""Types of `protocol.names` by the names of the fields that have them."""


def python_type(field: Field) -> str:
    """Return the annotation of a field: null is in it when any version allows null, or it is the default."""
    return f"{value_type(field)} | None" if may_be_none(field) else value_type(field)


def value_type(field: Field) -> str:
    """Return the type of a field that is not null."""
    base = field.type if field.fields else named(field) or _PYTHON_TYPES[field.type]
    return f"list[{base}]" if field.is_array else base


def named(field: Field) -> str | None:
    """Return the type of `protocol.names` that a field has; None if it has none, or may be null."""
    return None if field.is_array or may_be_none(field) else NAMED.get(field.name)


def may_be_none(field: Field) -> bool:
    """Whether null is among the field's values in some version."""
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
        return as_named(field, f'"{field.default or ""}"')
    return as_named(field, str(int(field.default or 0)))


def as_named(field: Field, value: str) -> str:
    """Return a value as the type in `protocol.names` of its field: mypyc leaves that call out."""
    name = named(field)
    return value if name is None else f"{name}({value})"


def emit_classes(message: Message) -> Iterator[str]:
    """Write the nested structs first, then the message."""
    yield from _nested(message.fields)
    yield from _class(message.name, message.fields)


def _nested(fields: tuple[Field, ...]) -> Iterator[str]:
    for field in fields:
        if field.fields:
            yield from _nested(field.fields)
            yield from _class(field.type, field.fields)


def _class(name: str, fields: tuple[Field, ...]) -> Iterator[str]:
    yield "@mypyc_attr(acyclic=True)"
    yield f"class {name}(Value):"
    yield f"    __match_args__: Final = ({''.join(f'{quoted}, ' for quoted in _quoted(fields))})".replace(
        ", )", ",)"
    )
    yield "    __slots__ = __match_args__"
    yield ""
    yield "    def __init__("
    yield "        self,"
    for field in fields:
        yield f"        {field.name}: {python_type(field)} = {'EMPTY' if field.is_array else default(field)},"
    yield "    ) -> None:"
    for field in fields:
        # A list of its own: what is shared by all that are made without one must not be changed.
        value = f"{field.name} if {field.name} is not EMPTY else []" if field.is_array else field.name
        yield f"        self.{field.name}: Final = {value}"
    yield ""
    yield ""


def _quoted(fields: tuple[Field, ...]) -> Iterator[str]:
    return (f'"{field.name}"' for field in fields)
