# SPDX-License-Identifier: Apache-2.0
"""What says to mypyc how to compile something. Not compiled itself: where nothing is, it does nothing.

`i64` is an integer that a compiled function keeps in a register; in a calculation that leaves 64 bits it wraps there.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

__all__ = ["i64", "mypyc_attr", "trait"]

Class = TypeVar("Class", bound=type)

if TYPE_CHECKING:
    # It is there when something is compiled, and not when it runs.
    from mypy_extensions import i64, mypyc_attr, trait
else:
    i64 = int

    def mypyc_attr(**_: bool) -> Callable[[Class], Class]:
        """Leave the class as it is."""
        return lambda kind: kind

    def trait(kind: Class) -> Class:
        """Leave the class as it is."""
        return kind
