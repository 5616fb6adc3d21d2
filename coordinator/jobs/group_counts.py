# SPDX-License-Identifier: Apache-2.0
"""Counting the groups of each state: there may be hundreds of thousands of them."""

import asyncio
from collections import Counter
from time import perf_counter_ns
from typing import Final

import msgspec

from coordinator.groups.state import GroupState
from coordinator.partitions.manager import GroupMetadataManager

SLICE_NS: Final = 5_000_000
"""For how long one slice of the counting may keep the event loop."""


class GroupCounts(msgspec.Struct):
    """All groups of a node, but for those that come and go while they are counted."""

    states: Counter[GroupState] = msgspec.field(default_factory=Counter)


async def count_groups(manager: GroupMetadataManager) -> GroupCounts:
    """Count them in slices that leave the event loop to others."""
    counts = GroupCounts()
    slice_ns = perf_counter_ns()
    for shard in list(manager.owned_partitions.values()):
        for group in list(shard.groups.values()):
            counts.states[group.state] += 1
            if perf_counter_ns() - slice_ns > SLICE_NS:
                await asyncio.sleep(0)
                slice_ns = perf_counter_ns()
    return counts
