# SPDX-License-Identifier: Apache-2.0
"""Pages of long lists. Pure.

A page continues after the last row of the page before, not at a row number: so no node holds a list between two
requests, each sends only as many rows as a page has, and a row that comes or goes shifts no page.
"""

from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar

Position = tuple[int | str, int | str]
"""The place of a row in its order; it differs for all rows."""
T = TypeVar("T")

LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 500
PAGE_CHARACTERS_MAX: Final = 100_000


class PageRow(Protocol):
    """A row of a list."""

    @property
    def characters(self) -> int:
        """The length of the names in it, which clients choose."""


R = TypeVar("R", bound=PageRow)


def check_limit(limit: int) -> None:
    """Raise ValueError for a number of rows that no page may have."""
    if not 1 <= limit <= LIMIT_MAX:
        raise ValueError(f"limit: expected a number from 1 to {LIMIT_MAX}")


def cut_page(
    rows: Iterable[R], limit: int, characters_max: int = PAGE_CHARACTERS_MAX
) -> tuple[list[R], bool]:
    """Return the rows of one page, and whether any row is left for the next page.

    A page with `characters_max` characters gets no further row, because clients choose how long names are.
    """
    shown: list[R] = []
    characters = 0
    for row in rows:
        if len(shown) == limit or characters > characters_max:
            return shown, True
        shown.append(row)
        characters += row.characters
    return shown, False


def is_before(one: Position, other: Position, *, descending: bool) -> bool:
    """Return whether a position comes before another one."""
    return one > other if descending else one < other


class FirstOf(Generic[T]):
    """Collects the first things after a position; they may be offered in any order."""

    def __init__(self, count: int, after: Position | None, *, descending: bool) -> None:
        """Keep the first `count`."""
        self._count = count
        self._after = after
        self._descending = descending
        self._last: Position | None = None
        """The position at which a thing is behind `count` others."""
        self._kept: list[tuple[Position, T]] = []

    def offer(self, position: Position, thing: T) -> None:
        """Keep a thing if it is among the first so far."""
        if self._after is not None and not is_before(self._after, position, descending=self._descending):
            return
        if self._last is not None and not is_before(position, self._last, descending=self._descending):
            return
        self._kept.append((position, thing))
        if len(self._kept) >= 4 * self._count:
            self._cut()
            self._last = self._kept[-1][0]

    def _cut(self) -> None:
        self._kept.sort(key=_position, reverse=self._descending)
        del self._kept[self._count :]

    def in_order(self) -> list[T]:
        """Return the first things, in order."""
        self._cut()
        return [thing for _, thing in self._kept]


def _position(kept: tuple[Position, object]) -> Position:
    return kept[0]
