# SPDX-License-Identifier: Apache-2.0
"""The list of partitions: those of a node in each state, and pages of several nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.logs.node_log import PartitionLogSize
from coordinator.overview.group_list import UnservedPart
from coordinator.overview.local_partitions import LocalPartitions
from coordinator.overview.paging import LIMIT_MAX
from coordinator.overview.partition_list import (
    FIRST,
    PartitionListPage,
    PartitionListQuery,
    PartitionRow,
    make_partition_page,
    merge_partition_pages,
    parse_partition_position,
)
from protocol.newtypes import LeaderEpoch, Partition
from tests.groups.harness import Cluster


def row(partition: int, node: int = 1) -> PartitionRow:
    return PartitionRow(partition, node, 0, "served", "", 0, 0, 0)


def test_a_node_lists_its_partitions_in_every_state() -> None:
    cluster = Cluster()
    cluster.commit(5)
    (served,) = cluster.manager.owned_partitions
    cluster.manager.num_partitions = 4
    loading, waiting, failed = (Partition(served + number) for number in (1, 2, 3))
    for partition in (loading, waiting):
        cluster.manager.begin_load(partition)
    cluster.manager.waiting_partitions.add(waiting)
    partitions = LocalPartitions(
        7,
        cluster.manager,
        {failed: "damaged"},
        dict.fromkeys((served, loading, waiting, failed), LeaderEpoch(4)),
        lambda partition: None if partition == failed else PartitionLogSize(100, 9),
    )
    page = partitions.list_partitions(PartitionListQuery())
    assert page == PartitionListPage(
        [
            PartitionRow(served, 7, 4, "served", "", 1, 100, 9),
            PartitionRow(loading, 7, 4, "loading", "", 0, 100, 9),
            PartitionRow(waiting, 7, 4, "waiting", "", 0, 100, 9),
            PartitionRow(failed, 7, 4, "failed", "damaged", 0, None, None),
        ],
        None,
        4,
        [],
    )


@given(st.dictionaries(st.integers(0, 60), st.integers(0, 2)), st.integers(1, 7))
def test_pages_of_several_nodes_have_every_partition_once_and_in_order(
    owners: dict[int, int], limit: int
) -> None:
    shown: list[PartitionRow] = []
    after: int | None = FIRST
    while after is not None:
        query = PartitionListQuery(limit, after)
        pages = []
        for node in range(3):
            own = [row(each, node) for each, owner in owners.items() if owner == node]
            later = [each for each in own if each.partition > after]
            pages.append(make_partition_page(later, query, total=len(own)))
        page = merge_partition_pages(pages, query, ())
        shown += page.partitions
        assert page.total == len(owners)
        assert len(page.partitions) == limit or page.next is None
        after = parse_partition_position(page.next) if page.next else None
    assert shown == [row(each, owners[each]) for each in sorted(owners)]


def test_what_could_not_be_asked_is_named() -> None:
    gone = UnservedPart(2, [], "the node has ended")
    assert merge_partition_pages([], PartitionListQuery(), [gone]).missing == [gone]


def test_a_question_has_bounds() -> None:
    for limit in (0, LIMIT_MAX + 1):
        with pytest.raises(ValueError, match="limit: expected"):
            PartitionListQuery(limit)
    for text in ("", "-1", "x", "1234567890"):
        with pytest.raises(ValueError, match="after: expected"):
            parse_partition_position(text)
