# SPDX-License-Identifier: Apache-2.0
"""Asks all nodes, through the supervisor, for what /api/v1 shows at a worker or at a gateway's process."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from coordinator.overview.group_details import (
    GroupAnswer,
    GroupQuery,
    decode_group_answer,
    merge_group_answers,
)
from coordinator.overview.group_list import GroupListPage, GroupListQuery, UnservedPart, merge_pages
from coordinator.overview.partition_list import PartitionListPage, PartitionListQuery, merge_partition_pages
from coordinator.overview.status import NodeStatus, ServiceStatus, StatusQuery, merge_statuses
from coordinator.workers import messages
from coordinator.workers.question_relay import ANSWER_WITHIN_S
from protocol.newtypes import GroupId

NO_ANSWER_S: Final = ANSWER_WITHIN_S + 5.0
"""The seconds after which the supervisor itself counts as stuck."""


class AllNodesOverview:
    """Asks all nodes, and merges their answers."""

    def __init__(self, send: Callable[[messages.AskNodes], None]) -> None:
        """`send` sends a message to the supervisor."""
        self._send = send
        self._waiting: dict[int, asyncio.Future[list[UnservedPart]]] = {}
        self._answers: dict[int, list[bytes]] = {}
        self._next = 0

    async def list_groups(self, query: GroupListQuery) -> GroupListPage:
        """Return a page of the list of all groups. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._ask(msgspec.msgpack.encode(query))
        pages = [msgspec.msgpack.decode(answer, type=GroupListPage) for answer in answers]
        return merge_pages([*pages, GroupListPage([], None, 0, {}, missing)], query)

    async def ask_about_group(self, query: GroupQuery) -> GroupAnswer:
        """Return the answer to a question about one group. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._ask(msgspec.msgpack.encode(query), GroupId(query.group))
        return merge_group_answers((decode_group_answer(query, answer) for answer in answers), missing)

    async def list_partitions(self, query: PartitionListQuery) -> PartitionListPage:
        """Return a page of the list of all partitions. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._ask(msgspec.msgpack.encode(query))
        pages = [msgspec.msgpack.decode(answer, type=PartitionListPage) for answer in answers]
        return merge_partition_pages(pages, query, missing)

    async def get_status(self) -> ServiceStatus:
        """Return the status of all nodes. Raises TimeoutError if the supervisor does not answer."""
        answers, missing = await self._ask(msgspec.msgpack.encode(StatusQuery()))
        nodes = [msgspec.msgpack.decode(answer, type=NodeStatus) for answer in answers]
        return merge_statuses(nodes, missing)

    async def _ask(
        self, question: bytes, group_id: GroupId | None = None
    ) -> tuple[list[bytes], list[UnservedPart]]:
        self._next += 1
        request = self._next
        answers = self._answers[request] = []
        self._waiting[request] = asyncio.get_running_loop().create_future()
        self._send(messages.AskNodes(request, question, group_id))
        try:
            async with asyncio.timeout(NO_ANSWER_S):
                return answers, await self._waiting[request]
        finally:
            del self._waiting[request], self._answers[request]

    def receive(self, message: messages.NodeAnswerPassedOn | messages.NodesHaveAnswered) -> None:
        """Take an answer, or the end of the answers, from the supervisor."""
        if message.request not in self._answers:
            return
        if isinstance(message, messages.NodeAnswerPassedOn):
            self._answers[message.request].append(message.answer)
        elif not self._waiting[message.request].done():
            self._waiting[message.request].set_result(list(message.missing))
