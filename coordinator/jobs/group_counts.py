# SPDX-License-Identifier: Apache-2.0
"""Counting the groups of each state: there may be hundreds of thousands of them."""

import enum
from collections import Counter

import msgspec

from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.slices import Slices


class GroupCounts(msgspec.Struct):
    """All groups of a node, but for those that come and go while they are counted."""

    states: Counter[enum.Enum] = msgspec.field(default_factory=Counter)


async def count_groups(manager: GroupMetadataManager) -> GroupCounts:
    """Count them in slices that leave the event loop to others."""
    counts = GroupCounts()
    slices = Slices(manager.clock.nanos)
    for shard in list(manager.owned_partitions.values()):
        for kept in list(shard.groups.values()):
            counts.states[kept.group.state] += 1
            if slices.over:
                await slices.give_way()
    return counts
