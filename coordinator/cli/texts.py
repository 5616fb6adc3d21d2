# SPDX-License-Identifier: Apache-2.0
"""Words that several commands put together."""

from collections.abc import Sequence
from typing import Final

NAMED_MAX: Final = 5


def counted(number: int, thing: str) -> str:
    """`1 group`, `2 groups`: `thing` is one of them."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def some(things: Sequence[object]) -> str:
    """The first few of them, and how many more there are."""
    more = len(things) - NAMED_MAX
    return f"{', '.join(map(str, things[:NAMED_MAX]))}{f' and {more} more' if more > 0 else ''}"
