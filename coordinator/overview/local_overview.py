# SPDX-License-Identifier: Apache-2.0
"""The view of one node: its groups and its status, for its own HTTP address and for questions of other processes."""

from collections.abc import Callable

import msgspec

from coordinator.overview.group_details import (
    DetailsQuery,
    GroupAnswer,
    GroupQuery,
    MembersQuery,
    OffsetsQuery,
    encode_group_answer,
)
from coordinator.overview.group_list import GroupListPage, GroupListQuery
from coordinator.overview.local_group_details import LocalGroupDetails
from coordinator.overview.local_groups import LocalGroups
from coordinator.overview.local_partitions import LocalPartitions
from coordinator.overview.partition_list import PartitionListPage, PartitionListQuery
from coordinator.overview.status import NodeStatus, ServiceStatus, StatusQuery, merge_statuses

_QUESTIONS = msgspec.msgpack.Decoder(
    GroupListQuery | StatusQuery | PartitionListQuery | DetailsQuery | MembersQuery | OffsetsQuery
)


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
        self._status = status

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
        return merge_statuses([self._status()], ())

    async def answer_question(self, question: bytes) -> bytes:
        """Return the answer to a question of another process, which merges the answers of all nodes."""
        query = _QUESTIONS.decode(question)
        match query:
            case StatusQuery():
                return msgspec.msgpack.encode(self._status())
            case PartitionListQuery():
                return msgspec.msgpack.encode(self._partitions.list_partitions(query))
            case GroupListQuery():
                return msgspec.msgpack.encode(await self._groups.list_groups(query))
            case _:
                return encode_group_answer(await self._details.ask(query))
