# SPDX-License-Identifier: Apache-2.0
"""A question to all nodes: every node's answer, or that it has none, and one end."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.overview.group_list import UnservedPart
from coordinator.workers.messages import (
    AskNodes,
    NodeAnswer,
    NodeAnswerPassedOn,
    NodeQuestion,
    NodesHaveAnswered,
)
from coordinator.workers.questions.question_relay import QuestionRelay

UNLED = UnservedPart(-1, [4], "it has no leader")


class Relay:
    """A relay, what it has sent to nodes and to the process that asked, and its timers."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Any]] = []
        self.said: list[Any] = []
        self._timers: list[tuple[Callable[[int], None], int]] = []
        self.relay = QuestionRelay(
            lambda node, message: self.asked.append((node, message)),
            lambda _s, callback, number: self._timers.append((callback, number)),
        )

    def ask(self, request: int = 9, **nodes: bool) -> None:
        """Ask nodes, which serve or not: `n1=True`."""
        found = {int(name[1:]): serves for name, serves in nodes.items()}
        self.relay.ask(AskNodes(request, b"q"), self.said.append, found, [UNLED])

    def answer(self, node: int, answer: bytes | None, number: int = 1) -> None:
        """Have a node answer."""
        self.relay.receive_answer(node, NodeAnswer(number, answer))

    def time_is_up(self) -> None:
        """Run the timers."""
        for callback, number in self._timers:
            callback(number)


@pytest.fixture
def relay() -> Relay:
    return Relay()


def test_each_answer_is_passed_on_and_the_end_names_what_is_missing(relay: Relay) -> None:
    relay.ask(n1=True, n2=False, n3=True)
    assert relay.asked == [(1, NodeQuestion(1, b"q")), (3, NodeQuestion(1, b"q"))]
    relay.answer(3, b"three")
    relay.answer(1, None)
    assert relay.said == [
        NodeAnswerPassedOn(9, b"three"),
        NodesHaveAnswered(
            9,
            [
                UNLED,
                UnservedPart(2, [], "the node is starting"),
                UnservedPart(1, [], "the node could not answer; its log has the reason"),
            ],
        ),
    ]


def test_no_node_has_nothing_to_wait_for(relay: Relay) -> None:
    relay.ask(n1=False)
    assert relay.said == [NodesHaveAnswered(9, [UNLED, UnservedPart(1, [], "the node is starting")])]


def test_a_node_that_does_not_answer_in_time_is_named_and_its_late_answer_dropped(relay: Relay) -> None:
    relay.ask(n1=True, n2=True)
    relay.answer(1, b"one")
    relay.time_is_up()
    end = NodesHaveAnswered(9, [UNLED, UnservedPart(2, [], "the node has not answered within 2 s")])
    assert relay.said == [NodeAnswerPassedOn(9, b"one"), end]
    relay.answer(2, b"two")
    relay.time_is_up()
    relay.relay.fail_questions_to_node(2)
    assert len(relay.said) == 2


def test_a_node_that_ends_is_waited_for_in_no_question(relay: Relay) -> None:
    relay.ask(n1=True, n2=True)
    relay.ask(8, n2=True)
    relay.relay.fail_questions_to_node(2)
    relay.answer(2, b"of its next process")
    gone = UnservedPart(2, [], "the node has ended")
    assert relay.said == [NodesHaveAnswered(8, [UNLED, gone])]
    relay.answer(1, b"one")
    assert relay.said[1:] == [NodeAnswerPassedOn(9, b"one"), NodesHaveAnswered(9, [UNLED, gone])]


def test_a_node_answers_once(relay: Relay) -> None:
    relay.ask(n1=True, n2=True)
    relay.answer(1, b"one")
    relay.answer(1, b"again")
    relay.answer(3, b"was not asked")
    assert relay.said == [NodeAnswerPassedOn(9, b"one")]
