# SPDX-License-Identifier: Apache-2.0
"""The list of a node's groups."""

import asyncio
from typing import Any

import pytest

from coordinator.jobs.lag_from_declared_ends import sum_group_lag
from coordinator.node import Partitions
from coordinator.overview.group_list import GroupListPage, GroupListQuery, GroupRow, UnservedPart
from coordinator.overview.local_groups import LagOf, LocalGroups
from coordinator.runtime.slices import SLICE_NS
from protocol.newtypes import GroupId, Offset, Partition
from storage.format.records import OffsetAndMetadata
from tests.groups.harness import Cluster

GROUPS = 20


def listing(cluster: Cluster, ends: dict[str, dict[int, int]] | None = None) -> LocalGroups:
    known = {
        topic: {partition: OffsetAndMetadata(Offset(end), -1, "", 0) for partition, end in partitions.items()}
        for topic, partitions in (ends or {}).items()
    }

    async def found(_partitions: Partitions | None) -> LagOf:
        return lambda kept, slices: sum_group_lag(kept, known, slices)

    return LocalGroups(7, cluster.manager, {Partition(9): "damaged"}, found)


@pytest.fixture
def cluster() -> Cluster:
    """Groups with and without members, and with different lags."""
    cluster = Cluster()
    cluster.stable_group(2)
    cluster.commit(5, group="late")
    cluster.commit(90, group="Early", partition=1)
    return cluster


async def page(cluster: Cluster, **query: Any) -> GroupListPage:
    return await listing(cluster, {"t": {0: 100}}).list_groups(GroupListQuery(**query))


async def test_a_row_is_what_is_known_of_a_group(cluster: Cluster) -> None:
    found = await page(cluster)
    assert found.groups == [
        GroupRow("Early", "Empty", "classic", "", 0, 1, None, 0, 7),
        GroupRow("g", "Stable", "classic", "consumer", 2, 0, None, 2, 7),
        GroupRow("late", "Empty", "classic", "", 0, 1, 95, 0, 7),
    ]
    assert (found.total, found.states, found.next) == (3, {"Empty": 2, "Stable": 1}, None)
    assert found.missing == [UnservedPart(7, [9], "damaged")]


@pytest.mark.parametrize(
    ("query", "groups"),
    [
        ({"search": "LA"}, ["late"]),
        ({"search": "eaR"}, ["Early"]),
        ({"state": "Empty"}, ["Early", "late"]),
        ({"search": "late", "state": "Stable"}, []),
        ({"sort": "lag", "descending": True}, ["late", "g", "Early"]),
        ({"sort": "members", "descending": True}, ["g", "late", "Early"]),
        ({"sort": "state"}, ["Early", "late", "g"]),
        ({"sort": "offsets"}, ["g", "Early", "late"]),
        ({"sort": "rebalances"}, ["Early", "late", "g"]),
        ({"limit": 1, "after": ("", "Early")}, ["g"]),
    ],
)
async def test_groups_are_searched_sorted_and_paged(
    cluster: Cluster, query: dict[str, Any], groups: list[str]
) -> None:
    assert [row.group for row in (await page(cluster, **query)).groups] == groups


async def test_a_search_counts_the_states_of_what_it_finds(cluster: Cluster) -> None:
    found = await page(cluster, search="g", state="Empty")
    assert (found.groups, found.total, found.states) == ([], 3, {"Stable": 1})


async def test_groups_are_listed_in_slices() -> None:
    cluster = Cluster()
    cluster.clock.look_ns = SLICE_NS + 1  # it gives way before every group
    for number in range(GROUPS):
        cluster.commit(number, group=f"simple-{number:02}")
    found = asyncio.ensure_future(page(cluster, limit=3))
    turns = 0
    while not found.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= GROUPS
    assert [row.group for row in found.result().groups] == ["simple-00", "simple-01", "simple-02"]


async def test_a_deleted_group_is_not_listed(cluster: Cluster) -> None:
    cluster.manager.delete_group(GroupId("late"))
    assert [row.group for row in (await page(cluster)).groups] == ["Early", "g"]
