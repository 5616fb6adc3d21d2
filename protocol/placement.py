# SPDX-License-Identifier: Apache-2.0
"""The partition of `__consumer_offsets` to which a group belongs, and explanations for misplaced groups."""

from collections.abc import Collection, Iterable
from typing import Final

from protocol.java_hash import java_string_hash
from protocol.newtypes import GroupId, Partition

COUNTS_MAX: Final = 1_000
"""The largest number of partitions, or else four times the present one, that is tried to explain misplaced groups."""
NAMES_MAX: Final = 20
GROWN_MIN: Final = 5
"""The fewest misplaced groups that a smaller number of partitions explains other than by chance."""
GROWN_PARTITIONS_MIN: Final = 3
"""The fewest partitions with misplaced groups that are not explained by exchanged directories."""
SAME_PLACE_MIN: Final = 2
"""The fewest groups in one partition that do not belong to the same other one by chance."""


def partition_for(group_id: GroupId, num_partitions: int) -> Partition:
    """Return abs(hashCode) modulo the number of partitions; abs of the smallest int is 0 (Utils.abs)."""
    return Partition(_hash(group_id) % num_partitions)


def _hash(group_id: GroupId) -> int:
    hashed = java_string_hash(group_id)
    if hashed < 0:
        hashed = 0 if hashed == -(1 << 31) else -hashed
    return hashed


class GroupPlacementTally:
    """The groups found in one of `num_partitions` partitions, and the partitions to which they belong."""

    __slots__ = ("earlier", "elsewhere", "groups", "later", "names", "num_partitions", "partition")

    def __init__(self, partition: Partition, num_partitions: int) -> None:
        self.partition = partition
        self.num_partitions = num_partitions
        self.groups = 0
        """The number of all groups in the partition."""
        self.elsewhere: dict[Partition, int] = {}
        """The number of groups that belong to each other partition."""
        self.names: list[GroupId] = []
        """The first NAMES_MAX groups that belong to another partition."""
        self.earlier: Collection[int] = range(partition + 1, num_partitions)
        """The smaller numbers of partitions with which all groups in `elsewhere` would be in their place."""
        self.later: Collection[int] = range(num_partitions + 1, max(COUNTS_MAX, 4 * num_partitions))
        """The larger numbers of partitions with which all groups would be in their place."""

    def add_group(self, group_id: GroupId) -> None:
        """Count a group of the partition."""
        self.groups += 1
        hashed = _hash(group_id)
        home = Partition(hashed % self.num_partitions)
        if self.later:
            self.later = [count for count in self.later if hashed % count == self.partition]
        if home == self.partition:
            return
        self.earlier = [count for count in self.earlier if hashed % count == self.partition]
        self.elsewhere[home] = self.elsewhere.get(home, 0) + 1
        if len(self.names) < NAMES_MAX:
            self.names.append(group_id)

    @property
    def misplaced_group_count(self) -> int:
        """The number of groups that belong to another partition."""
        return sum(self.elsewhere.values())

    @property
    def common_other_home_partition(self) -> Partition | None:
        """The one other partition to which all groups belong; None if they do not."""
        if len(self.elsewhere) == 1 and self.misplaced_group_count == self.groups:
            return next(iter(self.elsewhere))
        return None


def find_swapped_directories(placements: Iterable[GroupPlacementTally]) -> dict[Partition, Partition]:
    """Return each partition whose directory seems to be that of another partition, with the other partition.

    One group alone proves nothing. Returns an empty dict if the topic seems to have got more partitions: then many
    partitions hold groups that were placed by the smaller number of partitions.
    """
    misplaced = [each for each in placements if each.elsewhere]
    if len(misplaced) >= GROWN_PARTITIONS_MIN and infer_earlier_partition_count(misplaced) is not None:
        return {}
    return {
        each.partition: each.common_other_home_partition
        for each in misplaced
        if each.common_other_home_partition is not None and each.groups >= SAME_PLACE_MIN
    }


def infer_earlier_partition_count(placements: Iterable[GroupPlacementTally]) -> int | None:
    """Return the smaller number of partitions by which all misplaced groups were placed, None if there is none.

    A topic that has got more partitions has such groups.
    """
    misplaced = [each for each in placements if each.elsewhere]
    if sum(each.misplaced_group_count for each in misplaced) < GROWN_MIN:
        return None
    return max(
        set(misplaced[0].earlier).intersection(*(each.earlier for each in misplaced[1:])), default=None
    )


def infer_later_partition_count(placements: Iterable[GroupPlacementTally]) -> int | None:
    """Return the larger number of partitions by which all groups were placed, None if they are in their places."""
    placements = [each for each in placements if each.groups]
    if not any(each.elsewhere for each in placements):
        return None
    return min(set(placements[0].later).intersection(*(each.later for each in placements[1:])), default=None)
