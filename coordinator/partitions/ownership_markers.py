# SPDX-License-Identifier: Apache-2.0
"""The book of a partition: which of its groups were taken over from the cluster that a gateway stands before.

Such a mark must outlive its group: a group that is deleted, or expires, must not be taken over a second time, with the
old offsets that the cluster still has. So it is a record of its own, an offset of a group that no client can have: for
the group "g" that of partition 0 of the "topic" g, in the group `__groupkeeper.adopted-<n>`, where n is the least
number with which that name belongs to the partition. Tools of Kafka read it, compaction keeps it, and it moves with its
partition. The number of the offset says what is true of the group.

One offset of the book is no mark: that of the "topic" with the book's own name counts how often a mark was taken away.
What was read of the cluster before that happened may be older than what was committed here meanwhile, so it is stored
only while the count is still the one that was heard before it was read.
"""

from functools import lru_cache
from typing import Final

from protocol.names import BOOK_PREFIX, GroupId, Partition
from protocol.placement import partition_for

ADOPTED: Final = 0
"""What is here of the group counts, and nothing is taken from the cluster any more."""
UNDER_WAY: Final = 1
"""The group is being taken over or given back: what the cluster has counts, and what is here of it is to go."""
BEGUN: Final = 2
"""As ADOPTED, of a group that began here: the cluster knew nothing of it. Such a mark need not be kept for ever."""
OURS: Final = (ADOPTED, BEGUN)


def is_book(group_id: GroupId) -> bool:
    """Whether this is the name of a book, which clients cannot use."""
    return group_id.startswith(BOOK_PREFIX)


def book_of(partition: Partition, num_partitions: int) -> GroupId:
    """The name of one partition's book."""
    return _names(num_partitions).of(partition)


class _Names:
    """The names of all books, found as they are asked for."""

    def __init__(self, num_partitions: int) -> None:
        self._num_partitions = num_partitions
        self._tried = 0
        self._found: dict[Partition, GroupId] = {}

    def of(self, partition: Partition) -> GroupId:
        assert 0 <= partition < self._num_partitions, f"partition {partition} of {self._num_partitions}"
        while partition not in self._found:
            name = GroupId(f"{BOOK_PREFIX}{self._tried}")
            self._tried += 1
            self._found.setdefault(partition_for(name, self._num_partitions), name)
        return self._found[partition]


@lru_cache(maxsize=4)
def _names(num_partitions: int) -> _Names:
    return _Names(num_partitions)
