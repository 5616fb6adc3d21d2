# SPDX-License-Identifier: Apache-2.0
"""Names in order, which may change during an iteration; pure."""

from bisect import bisect_left, bisect_right, insort
from typing import Final

BLOCK_NAMES_MAX: Final = 500


class OrderedNames:
    """Different names in order, in blocks, so that the cost of a change or lookup hardly grows with their number.

    An iteration asks for the names after the last one that it has got: it gets each name that is present all the while
    exactly once, even if other names are added or removed in between.
    """

    __slots__ = ("_blocks", "_firsts", "_names_max")

    def __init__(self, block_names_max: int = BLOCK_NAMES_MAX) -> None:
        self._names_max = block_names_max
        self._blocks: list[list[str]] = []  # none of them is empty
        self._firsts: list[str] = []  # the first name of each block

    def add(self, name: str) -> None:
        """Add a name that is not present yet."""
        if not self._blocks:
            self._blocks, self._firsts = [[name]], [name]
            return
        number = self._block_of(name)
        block = self._blocks[number]
        insort(block, name)
        self._firsts[number] = block[0]
        if len(block) > self._names_max:
            middle = len(block) // 2
            self._blocks[number : number + 1] = [block[:middle], block[middle:]]
            self._firsts.insert(number + 1, block[middle])

    def remove(self, name: str) -> None:
        """Remove a name that is present."""
        number = self._block_of(name)
        block = self._blocks[number]
        index = bisect_left(block, name)
        assert block[index] == name, f"{name!r} is not there"
        del block[index]
        if block:
            self._firsts[number] = block[0]
        else:
            del self._blocks[number], self._firsts[number]

    def next_block_after(self, last: str | None) -> list[str]:
        """Return at most one block of names after `last`, or the first block for None; an empty list at the end."""
        if last is None or not self._blocks:
            return self._blocks[0][:] if self._blocks else []
        number = self._block_of(last)
        names = self._blocks[number][bisect_right(self._blocks[number], last) :]
        if names or number + 1 == len(self._blocks):
            return names
        return self._blocks[number + 1][:]

    def _block_of(self, name: str) -> int:
        """Return the number of the block that has the name, or would have it."""
        return max(bisect_right(self._firsts, name) - 1, 0)
