# SPDX-License-Identifier: Apache-2.0
"""Puts a question of one process to all nodes, or to the one that leads a group, and passes their answers back.

The supervisor passes questions and answers on without decoding them.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from coordinator.overview.group_list import UnservedPart
from coordinator.workers.messages import (
    AskNodes,
    FromSupervisor,
    NodeAnswer,
    NodeAnswerPassedOn,
    NodeQuestion,
    NodesHaveAnswered,
)

ANSWER_WITHIN_S: Final = 2.0

Reply = Callable[[NodeAnswerPassedOn | NodesHaveAnswered], None]


class _OpenQuestion:
    def __init__(self, request: int, reply: Reply, missing: Iterable[UnservedPart]) -> None:
        self.request = request
        self.reply = reply
        self.waiting: set[int] = set()
        self.missing = list(missing)


class QuestionRelay:
    """The questions that wait for answers of nodes."""

    def __init__(
        self,
        send: Callable[[int, FromSupervisor], None],
        call_later: Callable[[float, Callable[[int], None], int], object],
    ) -> None:
        """`send` sends a message to a node; `call_later` is the event loop's."""
        self._send = send
        self._call_later = call_later
        self._questions: dict[int, _OpenQuestion] = {}
        self._next = 0

    def ask(
        self,
        asked: AskNodes,
        reply: Reply,
        nodes: Mapping[int, bool],
        missing: Iterable[UnservedPart],
    ) -> None:
        """Ask all nodes that serve, and reply to the process that asked.

        `nodes` has False for each node that does not serve now; `missing` are partitions that no node leads.
        """
        self._next += 1
        number = self._next
        question = self._questions[number] = _OpenQuestion(asked.request, reply, missing)
        for node, serves in nodes.items():
            if serves:
                question.waiting.add(node)
                self._send(node, NodeQuestion(number, asked.question))
            else:
                question.missing.append(UnservedPart(node, [], "the node is starting"))
        self._call_later(ANSWER_WITHIN_S, self._give_up, number)
        self._end_if_complete(number)

    def receive_answer(self, node: int, answer: NodeAnswer) -> None:
        """Pass a node's answer on; one that comes too late is dropped."""
        question = self._questions.get(answer.number)
        if question is None or node not in question.waiting:
            return
        question.waiting.discard(node)
        if answer.answer is None:
            question.missing.append(
                UnservedPart(node, [], "the node could not answer; its log has the reason")
            )
        else:
            question.reply(NodeAnswerPassedOn(question.request, answer.answer))
        self._end_if_complete(answer.number)

    def fail_questions_to_node(self, node: int) -> None:
        """Wait no longer for a node that is gone."""
        for number in list(self._questions):
            self._fail(number, node, "the node has ended")

    def _give_up(self, number: int) -> None:
        question = self._questions.get(number)
        for node in sorted(question.waiting) if question is not None else ():
            self._fail(number, node, f"the node has not answered within {ANSWER_WITHIN_S:g} s")

    def _fail(self, number: int, node: int, reason: str) -> None:
        question = self._questions[number]
        if node in question.waiting:
            question.waiting.discard(node)
            question.missing.append(UnservedPart(node, [], reason))
            self._end_if_complete(number)

    def _end_if_complete(self, number: int) -> None:
        question = self._questions[number]
        if not question.waiting:
            del self._questions[number]
            question.reply(NodesHaveAnswered(question.request, question.missing))
