# SPDX-License-Identifier: Apache-2.0
"""The catalogue against a plain dictionary, and each of its refusals."""

from collections.abc import Mapping

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from coordinator.catalogue.catalogue import PARTITIONS_PER_CHANGE_MAX, Catalogue
from coordinator.catalogue.ids import random_topic_id
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key, why_invalid
from coordinator.catalogue.topic import MESSAGE_LENGTH_MAX, Refusal, Topic
from protocol.errors import ErrorCode

OFFSETS_ID = bytes(15) + b"\x99"


def new_catalogue(**partitions: int) -> Catalogue:
    """A catalogue with topics of these names; underscores stay what they are."""
    catalogue = Catalogue(Topic(name=OFFSETS_TOPIC, id=OFFSETS_ID, partitions=50))
    for number, (name, count) in enumerate(partitions.items(), 1):
        assert isinstance(catalogue.create(name, count, topic_id=number.to_bytes(16, "big")), Topic)
    return catalogue


def error_of(result: object) -> ErrorCode:
    assert isinstance(result, Refusal), f"{result} is no refusal"
    return result.error


def test_a_new_topic_is_found_by_name_and_by_id() -> None:
    catalogue = new_catalogue()
    topic = catalogue.create("orders", 3, topic_id=b"i" * 16, configs={"retention.ms": "5"})
    assert topic == Topic(name="orders", id=b"i" * 16, partitions=3, configs={"retention.ms": "5"})
    assert catalogue.get("orders") is topic
    assert catalogue.by_id(b"i" * 16) is topic
    assert "orders" in catalogue
    assert len(catalogue) == 2


def test_topics_come_in_name_order_with_the_offsets_topic_among_them() -> None:
    catalogue = new_catalogue(b=1, a=1, Z=1)
    assert [topic.name for topic in catalogue] == ["Z", OFFSETS_TOPIC, "a", "b"]
    catalogue.delete("a")
    assert [topic.name for topic in catalogue] == ["Z", OFFSETS_TOPIC, "b"]


@pytest.mark.parametrize(
    ("name", "partitions", "error"),
    [
        ("", 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("a b", 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("there", 1, ErrorCode.TOPIC_ALREADY_EXISTS),
        ("it.is", 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__consumer.offsets", 1, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (OFFSETS_TOPIC, 1, ErrorCode.TOPIC_ALREADY_EXISTS),
        ("__cluster_metadata", 1, ErrorCode.INVALID_REQUEST),
        ("new", 0, ErrorCode.INVALID_PARTITIONS),
        ("new", -1, ErrorCode.INVALID_PARTITIONS),
        ("new", PARTITIONS_PER_CHANGE_MAX + 1, ErrorCode.POLICY_VIOLATION),
        ("new", 2**31 - 1, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_created_leaves_nothing_behind(name: str, partitions: int, error: ErrorCode) -> None:
    catalogue = new_catalogue(there=1, it_is=1)
    before = catalogue.copy()
    assert error_of(catalogue.create(name, partitions, topic_id=b"n" * 16)) is error
    assert catalogue == before
    assert catalogue.by_id(b"n" * 16) is None


def test_a_name_is_free_again_after_its_topic_is_gone() -> None:
    catalogue = new_catalogue(a_b=1)
    assert isinstance(catalogue.delete("a_b"), Topic)
    assert isinstance(catalogue.create("a.b", 1, topic_id=b"n" * 16), Topic)


def test_partitions_only_grow() -> None:
    catalogue = new_catalogue(orders=3)
    topic = catalogue.get("orders")
    assert topic is not None
    for count, error in [
        (3, ErrorCode.INVALID_PARTITIONS),
        (2, ErrorCode.INVALID_PARTITIONS),
        (-1, ErrorCode.INVALID_PARTITIONS),
        (4 + PARTITIONS_PER_CHANGE_MAX, ErrorCode.POLICY_VIOLATION),
    ]:
        assert error_of(catalogue.create_partitions("orders", count)) is error
        assert catalogue.get("orders") is topic
    grown = catalogue.create_partitions("orders", 5)
    assert grown == Topic(name="orders", id=topic.id, partitions=5)
    assert catalogue.get("orders") is catalogue.by_id(topic.id) is grown
    assert [each.partitions for each in catalogue] == [50, 5]


def test_a_topic_that_is_not_there_cannot_be_changed() -> None:
    catalogue = new_catalogue()
    assert error_of(catalogue.create_partitions("orders", 5)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert error_of(catalogue.delete("orders")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_nobody_changes_the_offsets_topic() -> None:
    catalogue = new_catalogue()
    before = catalogue.copy()
    assert error_of(catalogue.create_partitions(OFFSETS_TOPIC, 51)) is ErrorCode.INVALID_REQUEST
    assert error_of(catalogue.delete(OFFSETS_TOPIC)) is ErrorCode.INVALID_REQUEST
    assert catalogue == before
    offsets_topic = catalogue.get(OFFSETS_TOPIC)
    assert offsets_topic is catalogue.by_id(OFFSETS_ID) is catalogue.offsets_topic
    assert offsets_topic.is_internal


def test_a_topic_has_the_partitions_from_zero_on() -> None:
    topic = Topic(name="t", id=b"t" * 16, partitions=2)
    assert [topic.has_partition(index) for index in (-1, 0, 1, 2)] == [False, True, True, False]


def test_a_copy_goes_its_own_way_until_it_is_adopted() -> None:
    catalogue = new_catalogue(a=1, b=1)
    list(catalogue)  # sorts, so that the copy starts with an order that it must give up
    draft = catalogue.copy()
    draft.delete("a")
    draft.create("c", 1, topic_id=b"c" * 16)
    assert catalogue == new_catalogue(a=1, b=1)
    assert [topic.name for topic in draft] == [OFFSETS_TOPIC, "b", "c"]
    catalogue.adopt(draft)
    assert catalogue == draft
    draft.delete("c")
    assert [topic.name for topic in catalogue] == [OFFSETS_TOPIC, "b", "c"]


def test_a_new_topic_of_an_old_name_is_another_one() -> None:
    before = new_catalogue(a=1, b=1)
    after = before.copy()
    after.delete("a")
    after.create("a", 1, topic_id=b"n" * 16)
    assert [topic.name for topic in before.missing_from(after)] == ["a"]
    assert after.missing_from(after) == []


def test_ids_cannot_be_used_twice() -> None:
    catalogue = new_catalogue()
    with pytest.raises(AssertionError, match="is taken"):
        catalogue.create("a", 1, topic_id=OFFSETS_ID)


def test_messages_that_quote_much_are_cut_before_they_leave() -> None:
    assert Refusal(ErrorCode.INVALID_REQUEST).told is None
    assert Refusal(ErrorCode.INVALID_REQUEST, "why").told == "why"
    told = Refusal(ErrorCode.INVALID_REQUEST, "x" * 50_000).told
    assert told == "x" * MESSAGE_LENGTH_MAX + "..."


# few names, and close to each other, so that they meet
NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "a-b", "", "..", "a b", OFFSETS_TOPIC, "__cluster_metadata"])
COUNTS = st.integers(-1, 4)


class CatalogueMachine(RuleBasedStateMachine):
    """Whatever is asked of it, the catalogue holds what a dictionary would hold."""

    deleted_ids: Bundle[bytes] = Bundle("deleted_ids")

    @initialize()
    def start(self) -> None:
        self.catalogue = new_catalogue()
        self.model: dict[str, int] = {}

    @rule(name=NAMES, partitions=COUNTS)
    def create(self, name: str, partitions: int) -> None:
        taken = {collision_key(other) for other in (*self.model, OFFSETS_TOPIC)}
        possible = (
            why_invalid(name) is None
            and collision_key(name) not in taken
            and name != "__cluster_metadata"
            and partitions > 0
        )
        result = self.catalogue.create(name, partitions, topic_id=random_topic_id())
        assert isinstance(result, Topic) == possible
        if possible:
            self.model[name] = partitions

    @rule(name=NAMES, count=COUNTS)
    def create_partitions(self, name: str, count: int) -> None:
        possible = name in self.model and count > self.model[name]
        result = self.catalogue.create_partitions(name, count)
        assert isinstance(result, Topic) == possible
        if possible:
            self.model[name] = count

    @rule(target=deleted_ids, name=NAMES)
    def delete(self, name: str) -> bytes:
        result = self.catalogue.delete(name)
        assert isinstance(result, Topic) == (name in self.model)
        self.model.pop(name, None)
        return result.id if isinstance(result, Topic) else b"none of them is this"

    @rule(topic_id=deleted_ids)
    def the_deleted_stay_gone(self, topic_id: bytes) -> None:
        assert self.catalogue.by_id(topic_id) is None

    @rule()
    def take_a_copy(self) -> None:
        other = new_catalogue(z=1)
        other.adopt(self.catalogue.copy())
        assert other == self.catalogue
        self.catalogue = other

    @invariant()
    def holds_the_same(self) -> None:
        expected: Mapping[str, int] = {**self.model, OFFSETS_TOPIC: 50}
        topics = list(self.catalogue)
        assert {topic.name: topic.partitions for topic in topics} == expected
        assert [topic.name for topic in topics] == sorted(expected)
        assert len(self.catalogue) == len(expected)
        for topic in topics:
            assert self.catalogue.get(topic.name) is topic
            assert self.catalogue.by_id(topic.id) is topic


TestCatalogueMachine = CatalogueMachine.TestCase
