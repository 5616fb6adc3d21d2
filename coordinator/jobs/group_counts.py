# SPDX-License-Identifier: Apache-2.0
"""Counts the groups of each state, and finds the most active of what may be hundreds of thousands."""

import heapq
from collections import Counter

import msgspec

from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.slices import Slices
from protocol.newtypes import GroupId


class GroupCounts(msgspec.Struct):
    """The counts of all groups of a node, except groups that come or go during the count."""

    states: Counter[str] = msgspec.field(default_factory=Counter)
    """The number of groups in each state, by the state's name for clients."""
    commits: list[tuple[int, GroupId]] = msgspec.field(default_factory=list)
    """The groups that have committed most, with the number of offsets since they are in memory; most first."""
    rebalances: list[tuple[int, GroupId]] = msgspec.field(default_factory=list)
    """The groups that have rebalanced most, with the number of times since they are in memory; most first."""


class _Top:
    """The `size` groups with the highest counts of those that were offered."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lowest_first: list[tuple[int, GroupId]] = []

    def offer(self, count: int, group_id: GroupId) -> None:
        """Consider a group; one with a count of 0 is in no list."""
        if not count:
            return
        if len(self._lowest_first) < self._size:
            heapq.heappush(self._lowest_first, (count, group_id))
        elif self._size and count > self._lowest_first[0][0]:
            heapq.heapreplace(self._lowest_first, (count, group_id))

    def highest_first(self) -> list[tuple[int, GroupId]]:
        """Return the groups that are left, with their counts."""
        return sorted(self._lowest_first, reverse=True)


async def count_groups(manager: GroupMetadataManager, top: int = 0) -> GroupCounts:
    """Count the groups in slices between which the event loop serves others; find the `top` most active groups."""
    counts = GroupCounts()
    commits, rebalances = _Top(top), _Top(top)
    slices = Slices(manager.clock.nanos)
    for shard in list(manager.owned_partitions.values()):
        for kept in list(shard.groups.values()):
            counts.states[kept.group.state.value] += 1
            commits.offer(kept.commits, kept.group_id)
            rebalances.offer(kept.rebalances, kept.group_id)
            if slices.is_over:
                await slices.yield_to_event_loop()
    counts.commits = commits.highest_first()
    counts.rebalances = rebalances.highest_first()
    return counts
