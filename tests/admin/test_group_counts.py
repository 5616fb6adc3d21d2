# SPDX-License-Identifier: Apache-2.0
"""Counting the groups of a node."""

import asyncio
from collections import Counter

from coordinator.groups.classic.state import GroupState
from coordinator.jobs.group_counts import GroupCounts, count_groups
from coordinator.runtime.slices import SLICE_NS
from tests.groups.harness import Cluster

GROUPS = 20


async def test_groups_are_counted_in_slices() -> None:
    cluster = Cluster()
    cluster.clock.look_ns = SLICE_NS + 1  # it gives way after every group
    cluster.stable_group(2)
    for number in range(GROUPS - 1):
        cluster.commit(number, group=f"simple-{number}")
    counting = asyncio.ensure_future(count_groups(cluster.manager))
    turns = 0
    while not counting.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= GROUPS
    assert counting.result() == GroupCounts(Counter({GroupState.STABLE: 1, GroupState.EMPTY: GROUPS - 1}))
