# SPDX-License-Identifier: Apache-2.0
"""The ends that groups of other nodes declare."""

import asyncio
from itertools import count

from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topic_configs import END_GROUP
from coordinator.config import Settings
from coordinator.node import CommittedEndOffset, EndsByTopic, Partitions
from coordinator.workers.questions.cluster_end_requests import PARTITIONS_PER_QUESTION
from coordinator.workers.questions.ends_of_other_nodes import fetch_ends_of_other_nodes
from protocol.newtypes import GroupId, Offset

OURS = GroupId("ours")


def topic(name: str, partitions: int, group: str = "") -> Topic:
    configs = {END_GROUP: group} if group else {}
    return Topic(name=name, id=bytes(16), partitions=partitions, configs=configs)


class Others:
    """Other nodes, whose groups have committed 7 in the first partition; some of them do not answer."""

    def __init__(self, silent: str = "", refusing: str = "") -> None:
        self.asked: list[tuple[str, dict[str, list[int]]]] = []
        self._silent = silent
        self._refusing = refusing

    async def fetch(self, group_id: GroupId, partitions: Partitions) -> EndsByTopic | None:
        self.asked.append((group_id, {name: list(each) for name, each in partitions.items()}))
        found = {
            name: {0: CommittedEndOffset(Offset(7), 0)} for name, each in partitions.items() if 0 in each
        }
        if group_id == self._silent:
            await asyncio.get_running_loop().create_future()
        return None if group_id == self._refusing else found


async def ends(others: Others, *topics: Topic) -> dict[str, dict[int, int]]:
    clock = count()
    found = await fetch_ends_of_other_nodes(
        others.fetch, Settings(), lambda group: group == OURS, lambda: next(clock), topics
    )
    return {name: {partition: end.offset for partition, end in each.items()} for name, each in found.items()}


async def test_only_the_ends_of_other_nodes_are_asked_for() -> None:
    others = Others()
    found = await ends(
        others, topic("a", 2, "made"), topic("b", 1, OURS), topic("c", 1), topic("d", 1, "made")
    )
    assert found == {"a": {0: 7}, "d": {0: 7}}
    assert others.asked == [("made", {"a": [0, 1], "d": [0]})]


async def test_many_partitions_are_asked_for_in_pieces() -> None:
    others = Others()
    assert await ends(others, topic("a", 2 * PARTITIONS_PER_QUESTION + 1, "made")) == {"a": {0: 7}}
    assert [len(asked["a"]) for _, asked in others.asked] == [PARTITIONS_PER_QUESTION] * 2 + [1]


async def test_a_node_that_cannot_answer_leaves_its_ends_unknown() -> None:
    found = await ends(Others(refusing="gone"), topic("a", 1, "gone"), topic("b", 1, "made"))
    assert found == {"b": {0: 7}}


async def test_a_node_that_does_not_answer_is_not_waited_for() -> None:
    found = await ends(Others(silent="stuck"), topic("b", 1, "made"), topic("a", 1, "stuck"))
    assert found == {"b": {0: 7}}
