# SPDX-License-Identifier: Apache-2.0
"""A gateway's requests go on once all workers have the topics that the cluster has."""

import asyncio
from collections.abc import Callable

import pytest

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.workers.messages import TopicsSeen
from coordinator.workers.topic_looks import LOOKS, TopicLooks
from tests.support.idle import idle

NEW = Topic(name="new", id=b"n" * 16, partitions=1)


class Played:
    """A catalogue with versions, and a cluster that is looked at when the test lets it."""

    def __init__(self) -> None:
        self.catalogue = Catalogue(Topic(name=OFFSETS_TOPIC, id=b"o" * 16, partitions=1))
        self.version = 0
        self.looks = 0
        self.finds: Callable[[], None] = lambda: None
        self.topics = TopicLooks(lambda: self.catalogue, lambda: self.version, self._look)

    async def _look(self) -> None:
        self.looks += 1
        await asyncio.sleep(0)
        self.finds()

    def create(self) -> None:
        self.catalogue.apply(Changes(created=[NEW]))
        self.version += 1


@pytest.fixture
async def played() -> Played:
    return Played()


@pytest.mark.parametrize("seen", [TopicsSeen(("new",), ()), TopicsSeen((), (NEW.id,))])
async def test_it_is_over_once_every_worker_has_the_topic(played: Played, seen: TopicsSeen) -> None:
    played.finds = played.create
    for node in (1, 2, 3):
        played.topics.has(node, 0)
    finding = asyncio.ensure_future(played.topics.find(seen))
    await idle()
    assert played.looks == 1
    played.topics.has(1, 1)
    await idle()
    assert not finding.done()
    played.topics.gone(2)
    played.topics.has(3, 1)
    await finding


async def test_what_is_known_everywhere_costs_no_look(played: Played) -> None:
    played.create()
    played.topics.has(1, 1)
    await played.topics.find(TopicsSeen(("new",), (NEW.id,)))
    assert played.looks == 0


async def test_what_is_not_found_is_looked_for_a_few_times(played: Played) -> None:
    await played.topics.find(TopicsSeen(("nowhere",), ()))
    assert played.looks == LOOKS
