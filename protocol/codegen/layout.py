# SPDX-License-Identifier: Apache-2.0
"""The layout of one version of a struct on the wire: its fields in order, neighbours of fixed size together."""

from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import Final

from protocol.codegen.schema import Field

FORMATS: Final = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uuid": "16s"}
SIZES: Final = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uuid": 16}


@dataclass(frozen=True, slots=True)
class FixedFields:
    """Neighbours of fixed size, read and written by one Struct."""

    fields: tuple[Field, ...]

    @property
    def fmt(self) -> str:
        return "".join(FORMATS[field.type] for field in self.fields)

    @property
    def size_bytes(self) -> int:
        return sum(SIZES[field.type] for field in self.fields)


Step = FixedFields | Field


def is_fixed(field: Field) -> bool:
    """Return whether every value of the field has the same size."""
    return not field.is_array and field.type in FORMATS


def fields_in_wire_order(fields: tuple[Field, ...], version: int) -> list[Step]:
    """Return the fields of this version in the order on the wire."""
    present = (field for field in fields if version in field.versions)
    out: list[Step] = []
    for fixed, group in groupby(present, key=is_fixed):
        if fixed:
            out.append(FixedFields(tuple(group)))
        else:
            out.extend(group)
    return out


def min_bytes(fields: tuple[Field, ...], version: int, *, flexible: bool) -> int:
    """Return the least bytes that one such struct takes; a count of items is checked against it."""
    total = 1 if flexible else 0
    for field in fields:
        if version in field.versions:
            total += SIZES[field.type] if is_fixed(field) else _min_prefix_bytes(field, flexible=flexible)
    return total


def _min_prefix_bytes(field: Field, *, flexible: bool) -> int:
    if flexible:
        return 1
    return 2 if field.type == "string" and not field.is_array else 4


def encode_defaults(fields: tuple[Field, ...]) -> bytes:
    """Return the defaults of fields of fixed size, as bytes on the wire."""
    return b"".join(int(one.default or 0).to_bytes(SIZES[one.type], "big", signed=True) for one in fields)


@dataclass(frozen=True, slots=True)
class FixedFieldsAndString:
    """The layout of a struct with one string among fields of fixed size, such as a partition's committed offset.

    There the string is the metadata, which few clients set: with an empty string the struct has a fixed size.
    """

    before: FixedFields
    string: Field
    after: FixedFields


def find_row_fields(field: Field) -> FixedFields | None:
    """Return the fields in a row of this array (`protocol.rows`), by its newest version; None if it has no rows.

    Items can be rows if only their fields of fixed size have values: their one string, if they have one, is empty, and
    their error 0.
    """
    return _shown(field, field.versions.max) if field.is_struct_array else None


def find_row_fields_in_version(field: Field, version: int) -> FixedFields | None:
    """Return the row fields of this version if those of `find_row_fields` begin with them, else None."""
    rows = find_row_fields(field)
    run = None if rows is None else _shown(field, version)
    if rows is None or run is None or rows.fields[: len(run.fields)] != run.fields:
        return None
    return run


def _shown(field: Field, version: int) -> FixedFields | None:
    parts = fields_in_wire_order(field.fields, version)
    layout = match_one_string_layout(parts)
    if layout is not None:
        shown, rest = layout.before.fields, layout.after.fields
    elif len(parts) == 1 and isinstance(parts[0], FixedFields):
        shown = tuple(takewhile(lambda one: one.name != "error_code", parts[0].fields))
        rest = parts[0].fields[len(shown) :]
    else:
        return None
    return FixedFields(shown) if [one.name for one in rest] in ([], ["error_code"]) else None


def match_one_string_layout(parts: list[Step]) -> FixedFieldsAndString | None:
    """Return the layout if `parts` are fields of fixed size, one string, and perhaps more of fixed size, else None."""
    match parts:
        case [FixedFields() as before, Field(type="string", is_array=False) as string]:
            return FixedFieldsAndString(before, string, FixedFields(()))
        case [
            FixedFields() as before,
            Field(type="string", is_array=False) as string,
            FixedFields() as after,
        ]:
            return FixedFieldsAndString(before, string, after)
        case _:
            return None
