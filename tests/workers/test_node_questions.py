# SPDX-License-Identifier: Apache-2.0
"""Questions to other nodes, from the process that asks: each gets its own answers, and no more than it waits for."""

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from coordinator.node import CommittedEndOffset, EndsByTopic
from coordinator.overview.group_list import UnservedPart
from coordinator.workers.messages import AskNodes, NodeAnswerPassedOn, NodesHaveAnswered
from coordinator.workers.questions.answers import answer_question
from coordinator.workers.questions.committed_ends import CommittedEndsQuery, EndsOfOtherNodes
from coordinator.workers.questions.node_questions import NodeQuestions
from protocol.newtypes import GroupId, Offset, Partition
from tests.net import requests
from tests.net.edge import Edge, settle

G, H = GroupId("g"), GroupId("h")
ENDS: EndsByTopic = {"t": {0: CommittedEndOffset(Offset(5), 1_700)}, "u": {}}


class Asking:
    """A process that asks, and what it has sent to the supervisor."""

    def __init__(self, answer_within_s: float = 60) -> None:
        self.sent: list[AskNodes] = []
        self.questions = NodeQuestions(self.sent.append, answer_within_s)

    def end(self, request: int, *answers: bytes, missing: Sequence[UnservedPart] = ()) -> None:
        """The nodes have answered."""
        for answer in answers:
            self.questions.receive(NodeAnswerPassedOn(request, answer))
        self.questions.receive(NodesHaveAnswered(request, missing))


async def test_a_question_gets_the_answers_of_all_nodes_and_what_is_missing() -> None:
    asking, missing = Asking(), [UnservedPart(2, [], "the node is starting")]
    answer = asyncio.ensure_future(asking.questions.ask(b"q"))
    await asyncio.sleep(0)
    asking.end(7, b"of nothing that was asked")
    asking.end(asking.sent[0].request, b"one", b"three", missing=missing)
    assert await answer == ([b"one", b"three"], missing)
    asking.end(asking.sent[0].request, b"too late")


async def test_a_supervisor_that_is_stuck_is_not_waited_for() -> None:
    asking = Asking(answer_within_s=0)
    with pytest.raises(TimeoutError):
        await asking.questions.ask(b"q")
    asking.end(asking.sent[0].request, b"too late")


def test_the_ends_of_other_nodes_are_those_of_the_group_that_was_asked_about() -> None:
    asking = Asking()
    found: dict[str, Any] = {}
    ends = EndsOfOtherNodes(asking.questions)
    for group in (G, H):
        ends.request_committed_offsets(group, {"t": range(2)}, partial(found.__setitem__, group))
    assert [asked.group_id for asked in asking.sent] == [G, H]
    asking.end(asking.sent[1].request)
    asking.end(asking.sent[0].request, msgspec.msgpack.encode(ENDS))
    assert found == {G: ENDS, H: None}


def test_the_question_survives_the_way_between_processes() -> None:
    asking = Asking()
    EndsOfOtherNodes(asking.questions).request_committed_offsets(G, {"t": [0, 1]}, lambda _ends: None)
    assert msgspec.msgpack.decode(asking.sent[0].question, type=CommittedEndsQuery) == CommittedEndsQuery(
        G, {"t": (0, 1)}
    )


@pytest.mark.parametrize("is_lost", [False, True])
async def test_ends_leave_a_node_only_once_they_are_durable(tmp_path: Path, is_lost: bool) -> None:
    edge, asking = Edge(tmp_path, flush_by_itself=False), Asking()
    edge.connect().send(requests.commit(G, {0: 5}))
    EndsOfOtherNodes(asking.questions).request_committed_offsets(
        G, {requests.TOPIC: [0, 1]}, lambda _ends: None
    )
    node: Any = SimpleNamespace(group_access=edge.node.group_access)
    answer = asyncio.ensure_future(answer_question(node, asking.sent[0].question))
    await settle()
    assert not answer.done(), "a crash can take the commit back"
    if is_lost:
        edge.manager.remove_groups_for_partition(Partition(0))
    edge.flush()
    found = await answer
    if is_lost:
        assert found is None
        return
    assert found is not None
    ends = msgspec.msgpack.decode(found, type=EndsByTopic)
    assert {topic: {part: end.offset for part, end in each.items()} for topic, each in ends.items()} == {
        requests.TOPIC: {0: 5}
    }
