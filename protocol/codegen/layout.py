# SPDX-License-Identifier: Apache-2.0
"""What one version of a struct has on the wire: its fields in order, neighbours of fixed size together."""

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from protocol.codegen.schema import Field

FORMATS: Final = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uuid": "16s"}
SIZES: Final = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uuid": 16}


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbours of fixed size, read and written by one Struct."""

    fields: tuple[Field, ...]

    @property
    def fmt(self) -> str:
        return "".join(FORMATS[field.type] for field in self.fields)

    @property
    def size_bytes(self) -> int:
        return sum(SIZES[field.type] for field in self.fields)


Step = Run | Field


def is_fixed(field: Field) -> bool:
    """Whether every value of the field has the same size."""
    return not field.is_array and field.type in FORMATS


def steps(fields: tuple[Field, ...], version: int) -> list[Step]:
    """Return the fields of this version, in the order of the wire."""
    present = (field for field in fields if version in field.versions)
    out: list[Step] = []
    for fixed, group in groupby(present, key=is_fixed):
        if fixed:
            out.append(Run(tuple(group)))
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


@dataclass(frozen=True, slots=True)
class OneString:
    """The layout of a struct that has one string among fields of fixed size, as the offset of a partition.

    That string is its metadata, which hardly anybody sets: with an empty string the struct has a fixed size.
    """

    before: Run
    string: Field
    after: Run


def one_string(parts: list[Step]) -> OneString | None:
    """Return the parts of a struct that starts with a run and has one string, else None."""
    match parts:
        case [Run() as before, Field(type="string", is_array=False) as string]:
            return OneString(before, string, Run(()))
        case [Run() as before, Field(type="string", is_array=False) as string, Run() as after]:
            return OneString(before, string, after)
        case _:
            return None
