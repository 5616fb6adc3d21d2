# SPDX-License-Identifier: Apache-2.0
"""A gateway's requests go on once all workers have the topics that the cluster has."""

import asyncio
from collections.abc import Callable

import pytest

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes, Grown
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.workers.messages import TopicsSeen
from coordinator.workers.topic_looks import LOOKS, RECENT_MAX, TopicLooks
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
        self.change(Changes(created=[NEW]))

    def change(self, changes: Changes) -> None:
        self.catalogue.apply(changes)
        self.version += 1
        self.topics.changed(changes)


@pytest.fixture
async def played() -> Played:
    return Played()


@pytest.mark.parametrize("seen", [TopicsSeen({"new": 0}, {}), TopicsSeen({}, {NEW.id: 0})])
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
    await played.topics.find(TopicsSeen({"new": 0}, {NEW.id: 0}))
    assert played.looks == 0


async def test_what_is_not_found_is_looked_for_a_few_times(played: Played) -> None:
    await played.topics.find(TopicsSeen({"nowhere": 0}, {}))
    assert played.looks == LOOKS


@pytest.mark.parametrize("seen", [TopicsSeen({"new": 0}, {}), TopicsSeen({}, {NEW.id: 0})])
async def test_a_topic_that_every_worker_has_waits_for_none_that_is_busy_with_later_changes(
    played: Played, seen: TopicsSeen
) -> None:
    other = Topic(name="other", id=b"t" * 16, partitions=1)
    played.change(Changes(created=[other]))
    played.create()
    played.topics.has(1, 2)
    played.topics.has(2, 2)
    played.change(Changes(deleted=[other.id]))
    played.topics.has(2, 3)
    finding = asyncio.ensure_future(played.topics.find(seen))
    await idle()
    assert finding.done()
    assert played.looks == 0


async def test_a_topic_made_anew_is_waited_for(played: Played) -> None:
    played.create()
    played.topics.has(1, 1)
    played.change(Changes(deleted=[NEW.id]))
    anew = Topic(name="new", id=b"a" * 16, partitions=1)
    played.change(Changes(created=[anew]))
    played.topics.has(1, 2)
    finding = asyncio.ensure_future(played.topics.find(TopicsSeen({"new": 0}, {})))
    await idle()
    assert not finding.done()
    played.topics.has(1, 3)
    await finding


async def test_only_what_was_made_recently_is_kept_in_mind(played: Played) -> None:
    played.topics.has(1, 0)
    played.create()
    made = [
        Topic(name=f"t{number}", id=number.to_bytes(16, "big"), partitions=1)
        for number in range(RECENT_MAX // 2)
    ]
    played.change(Changes(created=made))
    await played.topics.find(TopicsSeen({"new": 0}, {NEW.id: 0}))
    finding = asyncio.ensure_future(played.topics.find(TopicsSeen({"t0": 0}, {})))
    await idle()
    assert not finding.done()
    played.topics.has(1, 2)
    await finding


@pytest.mark.parametrize("seen", [TopicsSeen({"new": 6}, {}), TopicsSeen({}, {NEW.id: 6})])
async def test_a_partition_that_was_added_a_moment_ago_is_looked_for(
    played: Played, seen: TopicsSeen
) -> None:
    played.create()
    played.topics.has(1, 1)
    played.topics.has(2, 1)
    played.finds = lambda: played.change(Changes(grown=[Grown(NEW.id, 1, 6)]))
    finding = asyncio.ensure_future(played.topics.find(seen))
    await idle()
    assert played.looks == 1
    played.topics.has(1, 2)
    await idle()
    assert not finding.done()
    played.topics.has(2, 2)
    found = await finding
    assert [*found.names.values(), *found.ids.values()] == [(6, 6)]


async def test_of_partitions_that_are_nowhere_it_is_said_how_many_there_are(played: Played) -> None:
    played.create()
    played.topics.has(1, 1)
    found = await played.topics.find(TopicsSeen({"new": 2, "nowhere": 1}, {NEW.id: 1}))
    assert played.looks == LOOKS
    assert (found.names, found.ids) == ({"new": (2, 1), "nowhere": (1, 0)}, {NEW.id: (1, 1)})
