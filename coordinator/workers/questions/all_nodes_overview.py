# SPDX-License-Identifier: Apache-2.0
"""Asks all nodes, through the supervisor, for what /api/v1 shows at a worker or at a gateway's process."""

import msgspec

from coordinator.overview.group_details import (
    GroupAnswer,
    GroupQuery,
    decode_group_answer,
    merge_group_answers,
)
from coordinator.overview.group_list import GroupListPage, GroupListQuery, merge_pages
from coordinator.overview.partition_list import PartitionListPage, PartitionListQuery, merge_partition_pages
from coordinator.overview.status import NodeStatus, ServiceStatus, StatusQuery, merge_statuses
from coordinator.workers.questions.node_questions import NodeQuestions
from protocol.newtypes import GroupId


class AllNodesOverview:
    """Asks all nodes, and merges their answers."""

    def __init__(self, questions: NodeQuestions) -> None:
        """Ask other nodes through `questions`."""
        self._questions = questions

    async def list_groups(self, query: GroupListQuery) -> GroupListPage:
        """Return a page of the list of all groups. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._questions.ask(msgspec.msgpack.encode(query))
        pages = [msgspec.msgpack.decode(answer, type=GroupListPage) for answer in answers]
        return merge_pages([*pages, GroupListPage([], None, 0, {}, missing)], query)

    async def ask_about_group(self, query: GroupQuery) -> GroupAnswer:
        """Return the answer to a question about one group. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._questions.ask(msgspec.msgpack.encode(query), GroupId(query.group))
        return merge_group_answers((decode_group_answer(query, answer) for answer in answers), missing)

    async def list_partitions(self, query: PartitionListQuery) -> PartitionListPage:
        """Return a page of the list of all partitions. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._questions.ask(msgspec.msgpack.encode(query))
        pages = [msgspec.msgpack.decode(answer, type=PartitionListPage) for answer in answers]
        return merge_partition_pages(pages, query, missing)

    async def get_status(self) -> ServiceStatus:
        """Return the status of all nodes. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._questions.ask(msgspec.msgpack.encode(StatusQuery()))
        nodes = [msgspec.msgpack.decode(answer, type=NodeStatus) for answer in answers]
        return merge_statuses(nodes, missing)
