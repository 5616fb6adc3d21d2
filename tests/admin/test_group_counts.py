# SPDX-License-Identifier: Apache-2.0
"""Counting the groups of a node."""

import asyncio
from collections import Counter

from coordinator.jobs.group_counts import GroupCounts, count_groups
from coordinator.jobs.lag_from_declared_ends import OFFSETS_PER_STEP, sum_group_lag
from coordinator.runtime.slices import SLICE_NS, Slices
from protocol.newtypes import GroupId
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
    assert counting.result() == GroupCounts(Counter({"Stable": 1, "Empty": GROUPS - 1}))


async def test_the_lag_of_a_large_group_is_counted_in_slices() -> None:
    cluster = Cluster()
    cluster.clock.look_ns = SLICE_NS + 1
    for group, offset in (("reader", 1), ("made", 4)):
        cluster.commit_all({"t": dict.fromkeys(range(2 * OFFSETS_PER_STEP + 1), offset)}, group=group)
    made, reader = cluster.manager.find(GroupId("made")), cluster.manager.find(GroupId("reader"))
    assert made is not None
    assert reader is not None
    ends = made.offsets.by_topic
    counting = asyncio.ensure_future(sum_group_lag(reader, ends, Slices(cluster.clock.nanos)))
    turns = 0
    while not counting.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 3
    assert counting.result() == 3 * (2 * OFFSETS_PER_STEP + 1)
    assert await sum_group_lag(made, ends, Slices(cluster.clock.nanos)) == 0
