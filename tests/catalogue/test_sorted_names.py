# SPDX-License-Identifier: Apache-2.0
"""Names in order against a sorted list, and what a look at them touches."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.sorted_names import OrderedNames
from coordinator.catalogue.topic import Topic
from tests.support.ids import new_topic_id

NAMES = st.text("ab.", max_size=4)
MANY = 20_000
A_LOOK = 1_500
"""A block of names and the search for it: no more comparisons and look-ups are made between two of a walk's topics."""


class OrderedMachine(RuleBasedStateMachine):
    """Whatever comes and goes, the names are in order, and a walk misses none that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.names = OrderedNames(block_names_max=3)
        self.model: set[str] = set()
        self.met: list[str] = []
        self.there_all_the_while: set[str] = set()
        self.last: str | None = None

    @rule(name=NAMES)
    def add(self, name: str) -> None:
        if name not in self.model:
            self.names.add(name)
            self.model.add(name)

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        if name in self.model:
            self.names.remove(name)
            self.model.remove(name)
            self.there_all_the_while.discard(name)

    @rule()
    def begin_a_walk(self) -> None:
        self.met, self.last = [], None
        self.there_all_the_while = set(self.model)

    @rule()
    def go_on(self) -> None:
        more = self.names.next_block_after(self.last)
        assert self.model.issuperset(more)
        self.met += more
        assert self.met == sorted(set(self.met)), "in order, each once"
        if more:
            self.last = more[-1]
        else:
            assert self.there_all_the_while <= set(self.met)

    @invariant()
    def all_of_them_are_there_in_order(self) -> None:
        found: list[str] = []
        while more := self.names.next_block_after(found[-1] if found else None):
            assert len(more) <= 3
            found += more
        assert found == sorted(self.model)


TestOrdered = OrderedMachine.TestCase


class Watched(str):
    """A name that counts how often it is compared or looked up."""

    __slots__ = ()
    touched = 0

    def __lt__(self, other: str) -> bool:
        Watched.touched += 1
        return str.__lt__(self, other)

    def __hash__(self) -> int:
        Watched.touched += 1
        return str.__hash__(self)


def full(count: int) -> Catalogue:
    """A catalogue with so many topics, whose names do not come in order."""
    topics = [Topic(name=Watched(f"t{number}"), id=new_topic_id(), partitions=1) for number in range(count)]
    return Catalogue(Topic(name=OFFSETS_TOPIC, id=new_topic_id(), partitions=50), topics)


def test_no_step_of_a_walk_over_all_topics_touches_all_of_them() -> None:
    catalogue = full(MANY)
    most, seen = 0, 0
    Watched.touched = 0
    for number, _ in enumerate(catalogue):
        most, seen = max(most, Watched.touched - seen), Watched.touched
        if number % 1_000 == 0:
            catalogue.add_topic(Watched(f"new{number}"), 1, topic_id=new_topic_id())
            catalogue.remove_topic(f"t{MANY - 1 - number // 2}")
    assert most <= A_LOOK
    assert Watched.touched <= 20 * MANY  # the walk as a whole costs no more than a sort


def test_topics_that_come_and_go_during_a_walk_spoil_it_for_no_other() -> None:
    catalogue = full(3_000)
    stays = {topic.name for topic in catalogue} - {"t2500", "t1"}
    walk = iter(catalogue)
    met = [next(walk).name for _ in range(1_500)]
    catalogue.remove_topic("t1")  # which was met
    catalogue.remove_topic("t2500")
    catalogue.add_topic("a", 1, topic_id=new_topic_id())  # too late for this walk
    catalogue.add_topic("zz", 1, topic_id=new_topic_id())
    catalogue.create_partitions("t999", 7)
    later = list(walk)
    names = [*met, *(topic.name for topic in later)]
    assert names == sorted(set(names))
    assert stays <= set(names)
    assert "t1" in met
    assert "a" not in names
    assert [topic.name for topic in later][-1] == "zz"
    assert {topic.name: topic.partitions for topic in later}["t999"] == 7
