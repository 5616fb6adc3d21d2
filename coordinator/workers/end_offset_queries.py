# SPDX-License-Identifier: Apache-2.0
"""Where partitions end, for a worker that does not have the group that says it: asked of the node that has."""

from collections.abc import Callable
from typing import NamedTuple

from coordinator.workers.messages import (
    AskEndOffsets,
    EndOffsetsAnswer,
    EndOffsetsQuery,
    EndOffsetsReply,
    FromSupervisor,
)


class _Question(NamedTuple):
    asker: int
    request: int
    asked: int


class EndOffsetQueries:
    """The questions that are under way."""

    def __init__(self, tell: Callable[[int, FromSupervisor], None]) -> None:
        self._tell = tell
        self._questions: dict[int, _Question] = {}
        self._next = 0

    def ask(self, asker: int, question: AskEndOffsets, leader: int | None) -> None:
        """A worker wants to know what a group of `leader` has committed. None: no node serves the group now."""
        if leader is None:
            self._tell(asker, EndOffsetsAnswer(question.request, None))
            return
        self._next += 1
        self._questions[self._next] = _Question(asker, question.request, leader)
        self._tell(leader, EndOffsetsQuery(self._next, question.group_id, question.partitions))

    def answered(self, node: int, answer: EndOffsetsReply) -> None:
        """The node has answered."""
        question = self._questions.get(answer.request)
        if question is not None and question.asked == node:
            del self._questions[answer.request]
            self._tell(question.asker, EndOffsetsAnswer(question.request, answer.ends))

    def forget(self, node: int) -> None:
        """A node is gone: what it was asked stays unknown now, and what it has asked is not waited for.

        The next process of that node counts its questions from the beginning.
        """
        for number, question in list(self._questions.items()):
            if question.asker == node:
                del self._questions[number]
            elif question.asked == node:
                del self._questions[number]
                self._tell(question.asker, EndOffsetsAnswer(question.request, None))
