# SPDX-License-Identifier: Apache-2.0
"""The base of the values of which every request makes many: messages and their rows, offsets, members.

mypyc compiles them to structs in C: reading a field is one load, and not a search in the type as for objects of types
that are not compiled, msgspec's included; numbers are in the struct itself. They hold no cycles, so the garbage
collector does not track them (`acyclic`), which saves 16 bytes each, and its walk over all of them. Values that are
read often, held in thousands or made by the hundred for a request have this base; others are msgspec Structs, which are
shorter to write (`protocol.frozen_struct`).
"""

from typing import Any, Final, TypeVar

from protocol.mypyc_shim import mypyc_attr

V = TypeVar("V", bound="FieldsValue")

EMPTY: Final[list[Any]] = []
"""The default of a list argument, which the constructor replaces with a new list."""


@mypyc_attr(acyclic=True)
class FieldsValue:
    """A value with the fields that its `__match_args__` names, which make its equality and repr.

    The constructor takes the fields in this order, or by name. Fields that are Final never change.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and fields_as_dict(self) == fields_as_dict(other)

    def __hash__(self) -> int:
        return hash(tuple(fields_as_dict(self).values()))

    def __repr__(self) -> str:
        fields = [f"{name}={value!r}" for name, value in fields_as_dict(self).items()]
        return f"{type(self).__name__}({', '.join(fields)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(fields_as_dict(self).values())


def fields_as_dict(value: Any) -> dict[str, Any]:
    """Return the fields of a value by name, in order."""
    names: tuple[str, ...] = type(value).__match_args__
    return {name: getattr(value, name) for name in names}


def copy_with_fields(value: V, /, **changes: Any) -> V:
    """Return a copy with some fields replaced; raises TypeError for a field that the value does not have."""
    made: V = type(value)(**{**fields_as_dict(value), **changes})
    return made
