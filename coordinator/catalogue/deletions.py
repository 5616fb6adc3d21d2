# SPDX-License-Identifier: Apache-2.0
"""Records which partitions may still hold offsets in which deleted topics; pure.

Topics are numbered as they are deleted, in the order of the deletions in the catalogue's file. A partition's leader
reports up to which number it has dropped the offsets in deleted topics, once that is durable. It takes no commit to a
new topic of the same name before the report is on disk: so in a partition without the report, all offsets under such a
name belong to the deleted topic, and the next leader may drop them, after a restart as well.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from protocol.newtypes import Partition


class TopicDeletionBatch(NamedTuple):
    """The topics of one deletion."""

    number: int
    """The number of the last topic in `names`."""
    version: int
    """The version of the topics at which nodes learned of it; 0 for deletions before the last start."""
    names: Sequence[str]


class StoredDeletions(NamedTuple):
    """The deletions that a file has to hold."""

    before: int
    """The number of the last topic before the first of `gone`."""
    gone: Sequence[Sequence[str]]
    dropped: Mapping[int, Sequence[Partition]]
    """By number, the partitions that have dropped the offsets in the topics up to it; others are left out."""


NOTHING = StoredDeletions(0, (), {})


class DeletedTopicsWithOffsets:
    """The deletions of topics in which some partition may still hold offsets."""

    def __init__(self, partitions: int, before: int = 0) -> None:
        """Begin with no offsets left in the first `before` deleted topics."""
        self.number = before
        """The number of topics that have been deleted."""
        self._recent: deque[TopicDeletionBatch] = deque()
        self._dropped = [before] * partitions
        self._behind: set[Partition] = set()
        """The partitions that may still hold offsets in the first of `_recent`."""

    def note_deleted(self, names: Sequence[str], version: int = 0) -> None:
        """Note that these topics are deleted since this version."""
        self.number += len(names)
        self._recent.append(TopicDeletionBatch(self.number, version, names))
        if len(self._recent) == 1:
            self._find_behind()

    def number_at(self, version: int) -> int:
        """Return the number of the last topic that is deleted at a version."""
        number = self._before
        for gone in self._recent:
            if gone.version > version:
                break
            number = gone.number
        return number

    @property
    def _before(self) -> int:
        return self._recent[0].number - len(self._recent[0].names) if self._recent else self.number

    def record_drops_through(self, partition: Partition, up_to_number: int) -> bool:
        """Note that a partition holds no offsets in the topics deleted up to this number.

        Returns whether that is news. `forget_dropped` forgets the topics that all partitions have dropped.
        """
        before = self._dropped[partition]
        if up_to_number <= before:
            return False
        self._dropped[partition] = up_to_number
        if self._recent and up_to_number >= self._recent[0].number:
            self._behind.discard(partition)
        return any(before < gone.number <= up_to_number for gone in self._recent)

    def forget_dropped(self, is_damaged: Callable[[Partition], bool] = lambda _partition: False) -> None:
        """Forget the deleted topics in which no partition holds offsets.

        Damaged partitions do not count, because they have no leader that could drop anything.
        """
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

    def undropped_topics(self, partition: Partition) -> list[str]:
        """Return the deleted topics whose offsets the partition may still hold, each once."""
        return list(
            dict.fromkeys(
                name for gone in self.undropped_deletions_after(partition, 0) for name in gone.names
            )
        )

    def undropped_deletions_after(self, partition: Partition, number: int) -> list[TopicDeletionBatch]:
        """Return the deletions after this number whose offsets the partition may still hold."""
        after = max(self._dropped[partition], number)
        return [gone for gone in self._recent if gone.number > after]

    def to_stored_deletions(self) -> StoredDeletions:
        """Return all deletions that must outlive a restart."""
        before = self._before
        dropped: dict[int, list[Partition]] = {}
        if self._recent:
            for partition, number in enumerate(self._dropped):
                if number > before:
                    dropped.setdefault(number, []).append(Partition(partition))
        return StoredDeletions(before, tuple(gone.names for gone in self._recent), dropped)

    @property
    def offsets_partition_count(self) -> int:
        """The number of partitions of `__consumer_offsets`."""
        return len(self._dropped)

    def __len__(self) -> int:
        return len(self._recent)
