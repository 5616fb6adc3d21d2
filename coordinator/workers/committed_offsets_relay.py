# SPDX-License-Identifier: Apache-2.0
"""Forwards a worker's query for the ends of partitions to the node that serves the group which commits them."""

from collections.abc import Callable
from typing import NamedTuple

from coordinator.workers.messages import (
    CommittedOffsetsQuery,
    CommittedOffsetsReply,
    FromSupervisor,
    RelayCommittedOffsetsQuery,
    RelayedCommittedOffsetsReply,
)


class _Question(NamedTuple):
    asker: int
    request: int
    asked: int


class CommittedOffsetsRelay:
    """The queries that wait for a response of a node."""

    def __init__(self, report: Callable[[int, FromSupervisor], None]) -> None:
        self._send = report
        self._questions: dict[int, _Question] = {}
        self._next = 0

    def forward_query(self, asker: int, question: RelayCommittedOffsetsQuery, leader: int | None) -> None:
        """Ask node `leader` what a group has committed, for a worker; respond None if no node serves the group now."""
        if leader is None:
            self._send(asker, RelayedCommittedOffsetsReply(question.request, None))
            return
        self._next += 1
        self._questions[self._next] = _Question(asker, question.request, leader)
        self._send(leader, CommittedOffsetsQuery(self._next, question.group_id, question.partitions))

    def forward_reply(self, node: int, answer: CommittedOffsetsReply) -> None:
        """Pass a node's response to the worker that asked."""
        question = self._questions.get(answer.request)
        if question is not None and question.asked == node:
            del self._questions[answer.request]
            self._send(question.asker, RelayedCommittedOffsetsReply(question.request, answer.ends))

    def fail_queries_of_node(self, node: int) -> None:
        """Respond None to the queries sent to a node that is gone, and drop the queries that the node has sent.

        The next process of that node counts its queries from the beginning.
        """
        for number, question in list(self._questions.items()):
            if question.asker == node:
                del self._questions[number]
            elif question.asked == node:
                del self._questions[number]
                self._send(question.asker, RelayedCommittedOffsetsReply(question.request, None))
