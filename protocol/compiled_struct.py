# SPDX-License-Identifier: Apache-2.0
"""The base of the values that every request makes many of: messages and their rows, offsets, members.

mypyc compiles them to structs in C: reading a field is one load, where it is a search in the type for an object of
a type that is not compiled, msgspec's as well; numbers stand in the struct itself. They hold no cycles, so the garbage
collector need not know them (`acyclic`): that saves 16 bytes each, and its walk over all of them. What is read often,
kept in thousands or made by the hundred for a request is one of these; the others are msgspec Structs, which are
shorter to write (`protocol.structs`).
"""

from typing import Any, Final, TypeVar

from protocol.mypyc_shim import mypyc_attr

V = TypeVar("V", bound="FieldsValue")

EMPTY: Final[list[Any]] = []
"""The default of a field that is a list: who leaves it out gets a new one."""


@mypyc_attr(acyclic=True)
class FieldsValue:
    """Has the fields that its `__match_args__` names, equals what has the same ones, and shows them.

    The constructor takes them in this order, or by name. Those that are Final never change.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and fields_of(self) == fields_of(other)

    def __hash__(self) -> int:
        return hash(tuple(fields_of(self).values()))

    def __repr__(self) -> str:
        fields = [f"{name}={value!r}" for name, value in fields_of(self).items()]
        return f"{type(self).__name__}({', '.join(fields)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(fields_of(self).values())


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a value by name, in order."""
    names: tuple[str, ...] = type(value).__match_args__
    return {name: getattr(value, name) for name in names}


def replaced(value: V, /, **changes: Any) -> V:
    """Return a value with other fields than this one; raises TypeError for one that it does not have."""
    made: V = type(value)(**{**fields_of(value), **changes})
    return made
