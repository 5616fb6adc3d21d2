# SPDX-License-Identifier: Apache-2.0
"""The book of a partition: the marks of its groups that were taken over from the Kafka cluster behind a gateway.

A mark must outlive its group: a group that is deleted, or expires, must not be taken over a second time, with the
old offsets that the cluster still has. So a mark is a record of its own, an offset of a group that no client can have:
for the group "g" the offset of partition 0 of the "topic" g, in the group `__groupkeeper.adopted-<n>`, where n is the
least number with which that name belongs to the partition. Kafka's tools read it, compaction keeps it, and it moves
with its partition. The number of the offset is the state of the group: one of the constants below.

One offset of the book is no mark: the offset of the "topic" with the book's own name counts how often a mark was taken
away. A reading of the cluster from before that removal may be older than commits made here meanwhile, so a reading is
stored only if the count is still the one that was returned before the reading.
"""

from functools import lru_cache
from typing import Final

from protocol.newtypes import BOOK_PREFIX, GroupId, Partition
from protocol.placement import partition_for

ADOPTED: Final = 0
"""The group's offsets here count, and nothing is taken from the cluster any more."""
UNDER_WAY: Final = 1
"""The group is being taken over or given back: its offsets at the cluster count, those here are to be deleted."""
BEGUN: Final = 2
"""As ADOPTED, for a group that began here: the cluster did not have it. Such a mark need not be kept for ever."""
OURS: Final = (ADOPTED, BEGUN)


def is_markers_group(group_id: GroupId) -> bool:
    """Return whether a group id is the name of a book, which clients cannot use."""
    return group_id.startswith(BOOK_PREFIX)


def markers_group_id(partition: Partition, num_partitions: int) -> GroupId:
    """Return the name of one partition's book."""
    return _names(num_partitions).of(partition)


class _Names:
    """The names of all books, computed on demand."""

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
