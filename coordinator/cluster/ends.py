# SPDX-License-Identifier: Apache-2.0
"""How far the groups of all nodes have committed in a topic: asked by one worker, gathered from all of them."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from coordinator.cluster.messages import AskEnds, EndsAnswer, EndsWanted
from coordinator.cluster.messages import Ends as EndsOfOne


class _Question(msgspec.Struct):
    asker: int
    request: int
    waiting: set[int]
    ends: dict[int, int] | None


class Ends:
    """The questions that are under way. A node that ends has nothing to say: its groups are loading elsewhere."""

    def __init__(self, tell: Callable[[int, Any], None]) -> None:
        self._tell = tell
        self._questions: dict[int, _Question] = {}
        self._next = 0

    def ask(self, asker: int, question: AskEnds, nodes: Sequence[int] | None) -> None:
        """A worker wants to know; it counts its own groups itself. None: some partitions are led by nobody now."""
        if nodes is None:
            self._tell(asker, EndsAnswer(question.request, None))
            return
        self._next += 1
        others = {node for node in nodes if node != asker}
        self._questions[self._next] = _Question(asker, question.request, set(others), {})
        for node in others:
            self._tell(node, EndsWanted(self._next, question.topic, question.partitions))
        self._finish(self._next)

    def answered(self, node: int, answer: EndsOfOne) -> None:
        """One of the others has answered."""
        question = self._questions.get(answer.request)
        if question is None or node not in question.waiting:
            return
        question.waiting.discard(node)
        if answer.ends is None or question.ends is None:
            question.ends = None
        else:
            for partition, offset in answer.ends.items():
                question.ends[partition] = max(offset, question.ends.get(partition, 0))
        self._finish(answer.request)

    def forget(self, node: int) -> None:
        """A node is gone: what it was asked cannot be told now."""
        for number, question in list(self._questions.items()):
            if node in question.waiting:
                question.waiting.discard(node)
                question.ends = None
                self._finish(number)

    def _finish(self, number: int) -> None:
        question = self._questions[number]
        if not question.waiting:
            del self._questions[number]
            self._tell(question.asker, EndsAnswer(question.request, question.ends))
