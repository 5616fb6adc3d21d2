# SPDX-License-Identifier: Apache-2.0
"""Which offsets in deleted topics may still be in which partitions; pure.

Topics are numbered as they go, in the order in which the catalogue's file has their deletions. A partition's leader
says up to which number it has dropped what was committed in such topics, once that is durable. It takes no commit to a
topic that was made anew under such a name before that is on disk: so in a partition for which it is not, whatever is
found of such a name is of the deleted topic, and the next leader may drop it, after a start as well.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from protocol.names import Partition


class DeletedTopic(NamedTuple):
    """Topics that went together."""

    number: int
    """That of the last of them."""
    version: int
    """The version of the topics in which nodes heard of it; 0 for those that went before the last start."""
    names: Sequence[str]


class StoredDeletions(NamedTuple):
    """What a file has to hold of all this."""

    before: int
    """The number of the last topic before the first of `gone`."""
    gone: Sequence[Sequence[str]]
    dropped: Mapping[int, Sequence[Partition]]
    """The partitions that have dropped what went up to a number, by that; those that have dropped none are left out."""


NOTHING = StoredDeletions(0, (), {})


class Deletions:
    """The deletions that are not confirmed yet for every partition."""

    def __init__(self, partitions: int, before: int = 0) -> None:
        """Nothing is left of the first `before` deleted topics."""
        self.number = before
        """How many topics have gone."""
        self._recent: deque[DeletedTopic] = deque()
        self._dropped = [before] * partitions
        self._behind: set[Partition] = set()
        """The partitions that may still hold offsets in the first of `_recent`."""

    def went(self, names: Sequence[str], version: int = 0) -> None:
        """These topics are gone since this version."""
        self.number += len(names)
        self._recent.append(DeletedTopic(self.number, version, names))
        if len(self._recent) == 1:
            self._find_behind()

    def number_at(self, version: int) -> int:
        """The number of the last topic that is gone at a version."""
        number = self._before
        for gone in self._recent:
            if gone.version > version:
                break
            number = gone.number
        return number

    @property
    def _before(self) -> int:
        return self._recent[0].number - len(self._recent[0].names) if self._recent else self.number

    def dropped(self, partition: Partition, number: int) -> bool:
        """A partition holds no offsets in topics that went up to this number.

        Returns whether that was not known before. What all have dropped is forgotten by `forget_dropped`.
        """
        before = self._dropped[partition]
        if number <= before:
            return False
        self._dropped[partition] = number
        if self._recent and number >= self._recent[0].number:
            self._behind.discard(partition)
        return any(before < gone.number <= number for gone in self._recent)

    def forget_dropped(self, is_damaged: Callable[[Partition], bool] = lambda _partition: False) -> None:
        """Forget the topics that no partition can hold; the damaged ones have no leader that could drop anything."""
        if not self._recent or not all(map(is_damaged, self._behind)):
            return  # nearly always, and found by the first that is behind
        numbers = (n for p, n in enumerate(self._dropped) if not is_damaged(Partition(p)))
        least = min(numbers, default=self.number)
        while self._recent and self._recent[0].number <= least:
            self._recent.popleft()
        self._find_behind()

    def _find_behind(self) -> None:
        first = self._recent[0].number if self._recent else 0
        self._behind = {Partition(p) for p, number in enumerate(self._dropped) if number < first}

    def left(self, partition: Partition) -> list[str]:
        """The topics that went and whose offsets the partition may still hold, each once."""
        return list(dict.fromkeys(name for gone in self.gone_after(partition, 0) for name in gone.names))

    def gone_after(self, partition: Partition, number: int) -> list[DeletedTopic]:
        """The topics that went after the one of this number and whose offsets the partition may still hold."""
        after = max(self._dropped[partition], number)
        return [gone for gone in self._recent if gone.number > after]

    def kept(self) -> StoredDeletions:
        """All that must outlive a start."""
        before = self._before
        dropped: dict[int, list[Partition]] = {}
        if self._recent:
            for partition, number in enumerate(self._dropped):
                if number > before:
                    dropped.setdefault(number, []).append(Partition(partition))
        return StoredDeletions(before, tuple(gone.names for gone in self._recent), dropped)

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return len(self._dropped)

    def __len__(self) -> int:
        return len(self._recent)
