# SPDX-License-Identifier: Apache-2.0
"""The view of one node: its groups and its status, for its own HTTP address and for questions of other processes."""

from collections.abc import Callable

import msgspec

from coordinator.overview.group_list import GroupListPage, GroupListQuery
from coordinator.overview.local_groups import LocalGroups
from coordinator.overview.status import NodeStatus, ServiceStatus, StatusQuery, merge_statuses


class LocalOverview:
    """Finds what this node knows."""

    def __init__(self, groups: LocalGroups, status: Callable[[], NodeStatus]) -> None:
        """`status` returns the current status of the node."""
        self._groups = groups
        self._status = status

    async def list_groups(self, query: GroupListQuery) -> GroupListPage:
        """Return a page of the list of groups."""
        return await self._groups.list_groups(query)

    async def get_status(self) -> ServiceStatus:
        """Return the status of this node as that of all nodes."""
        return merge_statuses([self._status()], ())

    async def answer_question(self, question: bytes) -> bytes:
        """Return the answer to a question of another process, which merges the answers of all nodes."""
        query = msgspec.msgpack.decode(question, type=GroupListQuery | StatusQuery)
        if isinstance(query, StatusQuery):
            return msgspec.msgpack.encode(self._status())
        return msgspec.msgpack.encode(await self._groups.list_groups(query))
