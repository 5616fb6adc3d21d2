# SPDX-License-Identifier: Apache-2.0
"""The decorators and types by which mypyc compiles code; they do nothing without compilation. Not compiled itself.

`i64` is an integer that a compiled function holds in a register; results beyond 64 bits wrap.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

__all__ = ["i64", "mypyc_attr", "trait"]

Class = TypeVar("Class", bound=type)

if TYPE_CHECKING:
    # The package is installed for compiling, and not at run time.
    from mypy_extensions import i64, mypyc_attr, trait
else:
    i64 = int

    def mypyc_attr(**_: bool) -> Callable[[Class], Class]:
        """Return a decorator that leaves the class unchanged."""
        return lambda kind: kind

    def trait(kind: Class) -> Class:
        """Leave the class unchanged."""
        return kind
