# SPDX-License-Identifier: Apache-2.0
"""What says to mypyc how to compile a class. Not compiled itself: where nothing is, it does nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

__all__ = ["mypyc_attr"]

Class = TypeVar("Class", bound=type)

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr  # which is there when something is compiled, and not when it runs
else:

    def mypyc_attr(**_: bool) -> Callable[[Class], Class]:
        """Leave the class as it is."""
        return lambda kind: kind
