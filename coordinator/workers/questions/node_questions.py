# SPDX-License-Identifier: Apache-2.0
"""Questions of one process to all nodes, or to the one that leads a group, which the supervisor passes on."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from coordinator.overview.group_list import UnservedPart
from coordinator.workers.messages import AskNodes, NodeAnswerPassedOn, NodesHaveAnswered
from coordinator.workers.questions.question_relay import ANSWER_WITHIN_S
from protocol.newtypes import GroupId

NO_ANSWER_S: Final = ANSWER_WITHIN_S + 5.0
"""The seconds after which the supervisor itself counts as stuck."""

Done = Callable[[list[bytes], Sequence[UnservedPart]], None]
"""Takes the nodes' answers, and what is missing: nodes without an answer, and partitions that no node leads."""


class _AskedQuestion(NamedTuple):
    answers: list[bytes]
    done: Done


class NodeQuestions:
    """The questions that wait for answers."""

    def __init__(self, send: Callable[[AskNodes], None], answer_within_s: float = NO_ANSWER_S) -> None:
        """`send` sends a message to the supervisor, which `ask` waits for no longer than `answer_within_s`."""
        self._send = send
        self._answer_within_s = answer_within_s
        self._open: dict[int, _AskedQuestion] = {}
        self._next = 0

    def put(self, question: bytes, group_id: GroupId | None, done: Done) -> int:
        """Put a question to all nodes, or to the one that leads the group, and return its number."""
        self._next += 1
        self._open[self._next] = _AskedQuestion([], done)
        self._send(AskNodes(self._next, question, group_id))
        return self._next

    async def ask(
        self, question: bytes, group_id: GroupId | None = None
    ) -> tuple[list[bytes], list[UnservedPart]]:
        """As `put`; return what `done` takes. Raises TimeoutError if the supervisor does not answer."""
        answer: asyncio.Future[tuple[list[bytes], list[UnservedPart]]] = (
            asyncio.get_running_loop().create_future()
        )

        def done(answers: list[bytes], missing: Sequence[UnservedPart]) -> None:
            if not answer.done():  # once it is waited for no longer, it is cancelled
                answer.set_result((answers, list(missing)))

        number = self.put(question, group_id, done)
        try:
            async with asyncio.timeout(self._answer_within_s):
                return await answer
        finally:
            self._open.pop(number, None)

    def receive(self, message: NodeAnswerPassedOn | NodesHaveAnswered) -> None:
        """Take an answer, or the end of the answers, from the supervisor."""
        question = self._open.get(message.request)
        if question is None:
            return
        if isinstance(message, NodeAnswerPassedOn):
            question.answers.append(message.answer)
        else:
            del self._open[message.request]
            question.done(question.answers, message.missing)
