# SPDX-License-Identifier: Apache-2.0
"""The view of one node: its groups and its status."""

from collections.abc import Callable

from coordinator.overview.group_details import GroupAnswer, GroupQuery
from coordinator.overview.group_list import GroupListPage, GroupListQuery
from coordinator.overview.local_group_details import LocalGroupDetails
from coordinator.overview.local_groups import LocalGroups
from coordinator.overview.local_partitions import LocalPartitions
from coordinator.overview.partition_list import PartitionListPage, PartitionListQuery
from coordinator.overview.status import NodeStatus, ServiceStatus, merge_statuses


class LocalOverview:
    """Finds what this node knows."""

    def __init__(
        self,
        groups: LocalGroups,
        details: LocalGroupDetails,
        partitions: LocalPartitions,
        status: Callable[[], NodeStatus],
    ) -> None:
        """`status` returns the current status of the node."""
        self._groups = groups
        self._details = details
        self._partitions = partitions
        self.get_node_status = status

    async def list_groups(self, query: GroupListQuery) -> GroupListPage:
        """Return a page of the list of groups."""
        return await self._groups.list_groups(query)

    async def ask_about_group(self, query: GroupQuery) -> GroupAnswer:
        """Return the answer to a question about one group."""
        return await self._details.ask(query)

    async def list_partitions(self, query: PartitionListQuery) -> PartitionListPage:
        """Return a page of the list of partitions."""
        return self._partitions.list_partitions(query)

    async def get_status(self) -> ServiceStatus:
        """Return the status of this node as that of all nodes."""
        return merge_statuses([self.get_node_status()], ())
