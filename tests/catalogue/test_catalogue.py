# SPDX-License-Identifier: Apache-2.0
"""The catalogue against a plain dictionary, and each of its refusals."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import (
    PIECE_BYTES_MAX,
    PIECE_TOPICS_MAX,
    Changes,
    ConfigsChanged,
    PartitionsAdded,
    StaleChange,
)
from coordinator.catalogue.limits import DEFAULT_LIMITS, TopicLimits
from coordinator.catalogue.names import OFFSETS_TOPIC, collision_key, invalid_reason
from coordinator.catalogue.steps import COUNTED_PER_STEP, run_all_steps
from coordinator.catalogue.topic import MESSAGE_LENGTH_MAX, Refusal, Topic
from coordinator.catalogue.topics import UNDONE_PER_STEP
from protocol.errors import ErrorCode
from tests.support.ids import new_topic_id

OFFSETS_ID = bytes(15) + b"\x99"


def new_catalogue(**partitions: int) -> Catalogue:
    """A catalogue with topics of these names; underscores stay what they are."""
    catalogue = Catalogue(Topic(name=OFFSETS_TOPIC, id=OFFSETS_ID, partitions=50))
    for number, (name, count) in enumerate(partitions.items(), 1):
        assert isinstance(catalogue.add_topic(name, count, topic_id=number.to_bytes(16, "big")), Topic)
    return catalogue


def error_of(result: object) -> ErrorCode:
    assert isinstance(result, Refusal), f"{result} is no refusal"
    return result.error


def test_a_new_topic_is_found_by_name_and_by_id() -> None:
    catalogue = new_catalogue()
    topic = catalogue.add_topic("orders", 3, topic_id=b"i" * 16, configs={"retention.ms": "5"})
    assert topic == Topic(name="orders", id=b"i" * 16, partitions=3, configs={"retention.ms": "5"})
    assert catalogue.get("orders") is topic
    assert catalogue.by_id(b"i" * 16) is topic
    assert "orders" in catalogue
    assert len(catalogue) == 2


def test_topics_come_in_name_order_with_the_offsets_topic_among_them() -> None:
    catalogue = new_catalogue(b=1, a=1, Z=1)
    assert [topic.name for topic in catalogue] == ["Z", OFFSETS_TOPIC, "a", "b"]
    catalogue.remove_topic("a")
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
        ("new", DEFAULT_LIMITS.partitions_per_request + 1, ErrorCode.POLICY_VIOLATION),
        ("new", 2**31 - 1, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_created_leaves_nothing_behind(name: str, partitions: int, error: ErrorCode) -> None:
    catalogue = new_catalogue(there=1, it_is=1)
    before = list(catalogue)
    assert error_of(catalogue.add_topic(name, partitions, topic_id=b"n" * 16)) is error
    assert list(catalogue) == before
    assert catalogue.by_id(b"n" * 16) is None


def test_a_name_is_free_again_after_its_topic_is_gone() -> None:
    catalogue = new_catalogue(a_b=1)
    assert isinstance(catalogue.remove_topic("a_b"), Topic)
    assert isinstance(catalogue.add_topic("a.b", 1, topic_id=b"n" * 16), Topic)


def test_partitions_only_grow() -> None:
    catalogue = new_catalogue(orders=3)
    topic = catalogue.get("orders")
    assert topic is not None
    for count, error in [
        (3, ErrorCode.INVALID_PARTITIONS),
        (2, ErrorCode.INVALID_PARTITIONS),
        (-1, ErrorCode.INVALID_PARTITIONS),
        (4 + DEFAULT_LIMITS.partitions_per_request, ErrorCode.POLICY_VIOLATION),
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
    assert error_of(catalogue.remove_topic("orders")) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_nobody_changes_the_offsets_topic() -> None:
    catalogue = new_catalogue()
    before = list(catalogue)
    assert error_of(catalogue.create_partitions(OFFSETS_TOPIC, 51)) is ErrorCode.INVALID_REQUEST
    assert error_of(catalogue.remove_topic(OFFSETS_TOPIC)) is ErrorCode.INVALID_REQUEST
    assert list(catalogue) == before
    offsets_topic = catalogue.get(OFFSETS_TOPIC)
    assert offsets_topic is catalogue.by_id(OFFSETS_ID) is catalogue.offsets_topic
    assert offsets_topic.is_internal


def test_a_topic_has_the_partitions_from_zero_on() -> None:
    topic = Topic(name="t", id=b"t" * 16, partitions=2)
    assert [topic.has_partition(index) for index in (-1, 0, 1, 2)] == [False, True, True, False]


def test_a_draft_changes_nothing_until_its_changes_are_made() -> None:
    catalogue = new_catalogue(a=1, b=1)
    list(catalogue)  # sorts, so that there is an order to be given up
    draft = catalogue.make_draft()
    draft.remove_topic("a")
    draft.add_topic("c", 1, topic_id=b"c" * 16)
    draft.create_partitions("b", 4)
    draft.add_topic("gone", 1, topic_id=b"g" * 16)
    draft.remove_topic("gone")
    assert catalogue == new_catalogue(a=1, b=1)
    assert [name for name in ("a", "b", "c", "gone") if name in draft] == ["b", "c"]
    assert (draft.totals.topics, draft.totals.partitions) == (2, 5)
    assert catalogue.apply_and_list_deleted(draft.changes()) == ["a"]
    assert [(topic.name, topic.partitions) for topic in catalogue] == [
        (OFFSETS_TOPIC, 50),
        ("b", 4),
        ("c", 1),
    ]
    assert catalogue.totals == draft.totals
    assert not catalogue.make_draft().changes()


def test_a_draft_of_many_topics_is_summed_up_and_undone_in_steps() -> None:
    draft = new_catalogue().make_draft()
    mark = draft.get_savepoint()
    for number in range(2_000):
        draft.add_topic(f"t{number}", 1, topic_id=new_topic_id())
    assert len(list(draft.collect_changes_in_steps())) == 2_000 // COUNTED_PER_STEP
    left = [len(draft.changes().created) for _ in draft.undo_in_steps(mark)]
    assert left == list(range(2_000 - UNDONE_PER_STEP, -1, -UNDONE_PER_STEP))
    assert not draft.changes()


def test_the_settings_of_a_topic_are_replaced() -> None:
    catalogue = new_catalogue(a=1, b=1)
    draft = catalogue.make_draft()
    mark = draft.get_savepoint()
    draft.replace_configs("a", {"flush.ms": "100"})
    run_all_steps(draft.undo_in_steps(mark))
    assert not draft.changes()
    draft.replace_configs("a", {"flush.ms": "1"})
    draft.replace_configs("a", {"retention.ms": "22"})
    draft.create_partitions("a", 2)
    draft.add_topic("c", 1, topic_id=b"c" * 16)
    draft.replace_configs("c", {"flush.ms": "3"})
    for piece in draft.changes().split_into_pieces():
        catalogue.apply_and_list_deleted(piece)
    found = {topic.name: (topic.partitions, dict(topic.configs)) for topic in catalogue.snapshot_topics()}
    assert found == {"a": (2, {"retention.ms": "22"}), "b": (1, {}), "c": (1, {"flush.ms": "3"})}
    assert catalogue.totals == draft.totals
    assert catalogue.totals.config_bytes == len("retention.ms" + "22" + "flush.ms" + "3")
    for name, error in (
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (OFFSETS_TOPIC, ErrorCode.INVALID_REQUEST),
    ):
        refused = catalogue.replace_configs(name, {})
        assert isinstance(refused, Refusal)
        assert refused.error is error


def test_a_new_topic_of_an_old_name_is_another_one() -> None:
    catalogue = new_catalogue(a=1, b=1)
    old = catalogue.get("a")
    assert old is not None
    draft = catalogue.make_draft()
    draft.remove_topic("a")
    draft.add_topic("a", 1, topic_id=b"n" * 16)
    changes = draft.changes()
    assert list(changes.deleted) == [old.id]
    assert catalogue.apply_and_list_deleted(changes) == ["a"]
    assert [topic.name for topic in catalogue] == [OFFSETS_TOPIC, "a", "b"]
    assert catalogue.by_id(old.id) is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (Changes(deleted=[b"x" * 16]), "there is no topic with the id 7878"),
        (Changes(deleted=[OFFSETS_ID]), "there is no topic with the id"),
        (
            Changes(grown=[PartitionsAdded((1).to_bytes(16, "big"), 2, 3)]),
            "topic 'a_b' has 1 partitions, and not 2",
        ),
        (
            Changes(configured=[ConfigsChanged((1).to_bytes(16, "big"), {"flush.ms": "1"}, {})]),
            "has other settings",
        ),
        (Changes(configured=[ConfigsChanged(OFFSETS_ID, {}, {})]), "there is no topic with the id"),
        (Changes(created=[Topic(name="a.b", id=b"n" * 16, partitions=1)]), "'a_b' and 'a.b' cannot exist"),
        (Changes(created=[Topic(name="c", id=OFFSETS_ID, partitions=1)]), "have the same id"),
    ],
)
def test_changes_that_were_made_for_other_topics_are_refused(changes: Changes, reason: str) -> None:
    with pytest.raises(StaleChange, match=reason):
        new_catalogue(a_b=1).make_draft().apply_and_list_deleted(changes)


def test_the_pieces_of_changes_are_small_and_come_to_the_same() -> None:
    catalogue = new_catalogue()
    for number in range(600):
        catalogue.add_topic(f"t{number}", 1, topic_id=new_topic_id())
    draft = catalogue.make_draft()
    for number in range(300):
        draft.remove_topic(f"t{number}")
        draft.create_partitions(f"t{300 + number}", 2)
    for number in range(900):
        long = {"cleanup.policy": "compact" + 900 * " "} if number % 3 == 0 else {}
        draft.add_topic(f"new{number}", 1, topic_id=new_topic_id(), configs=long)
    changes = draft.changes()
    pieces = list(changes.split_into_pieces())
    assert len(pieces) > 6
    for piece in pieces:
        assert len(msgspec.msgpack.encode(piece)) < 2 * PIECE_BYTES_MAX
        assert len(piece.deleted) + len(piece.grown) + len(piece.created) <= PIECE_TOPICS_MAX
    whole = Catalogue(catalogue.offsets_topic, catalogue.snapshot_topics())
    whole.apply_and_list_deleted(changes)
    for piece in pieces:
        catalogue.apply_and_list_deleted(piece)
    assert catalogue == whole
    assert catalogue.totals == whole.totals == draft.totals


LIMITS = TopicLimits(
    topics=3, partitions=10, partitions_per_request=6, config_value_bytes=12, config_bytes=40
)


def test_each_limit_is_refused_with_the_name_of_its_setting() -> None:
    catalogue = Catalogue(Topic(name=OFFSETS_TOPIC, id=OFFSETS_ID, partitions=50), limits=LIMITS)

    def create(name: str, partitions: int = 1, **configs: str) -> Topic | Refusal:
        settings = {key.replace("_", "."): value for key, value in configs.items()}
        return catalogue.add_topic(name, partitions, topic_id=new_topic_id(), configs=settings)

    def is_refused(result: Topic | Refusal, error: ErrorCode, setting: str) -> bool:
        return isinstance(result, Refusal) and result.error is error and f"({setting})" in str(result.message)

    policy = ErrorCode.POLICY_VIOLATION
    assert is_refused(create("a", 7), policy, "max.partitions.per.request")
    assert is_refused(
        create("a", retention_ms=13 * "1"), ErrorCode.INVALID_CONFIG, "topic.config.value.max.bytes"
    )
    assert isinstance(create("a", 4, retention_ms="1", segment_ms="1"), Topic)
    assert catalogue.totals.config_bytes == len("retention.ms" + "segment.ms" + "11")
    assert is_refused(create("b", flush_messages="1", flush_ms="1"), policy, "topic.config.total.max.bytes")
    more = {"retention.ms": "1", "segment.ms": "1", "flush.ms": "1", "flush.messages": "1"}
    assert is_refused(catalogue.replace_configs("a", more), policy, "topic.config.total.max.bytes")
    long = {"retention.ms": 13 * "1"}
    assert is_refused(
        catalogue.replace_configs("a", long), ErrorCode.INVALID_CONFIG, "topic.config.value.max.bytes"
    )
    assert isinstance(catalogue.replace_configs("a", {"retention.ms": "1"}), Topic)
    assert isinstance(create("b", 6), Topic)
    assert is_refused(create("c"), policy, "max.partitions")
    assert is_refused(catalogue.create_partitions("a", 5), policy, "max.partitions")
    catalogue.remove_topic("b")
    assert isinstance(create("b", 1), Topic)
    assert isinstance(create("c", 1), Topic)
    assert is_refused(create("d"), policy, "max.topics")
    assert is_refused(catalogue.create_partitions("a", 11), policy, "max.partitions.per.request")
    assert isinstance(catalogue.create_partitions("a", 8), Topic)
    assert catalogue.refusals == {
        "max.partitions.per.request": 2,
        "topic.config.value.max.bytes": 2,
        "topic.config.total.max.bytes": 2,
        "max.partitions": 2,
        "max.topics": 1,
    }


def test_ids_cannot_be_used_twice() -> None:
    catalogue = new_catalogue()
    with pytest.raises(AssertionError, match="is taken"):
        catalogue.add_topic("a", 1, topic_id=OFFSETS_ID)


def test_messages_that_quote_much_are_cut_before_they_leave() -> None:
    assert Refusal(ErrorCode.INVALID_REQUEST).truncated_message is None
    assert Refusal(ErrorCode.INVALID_REQUEST, "why").truncated_message == "why"
    shown = Refusal(ErrorCode.INVALID_REQUEST, "x" * 50_000).truncated_message
    assert shown == "x" * MESSAGE_LENGTH_MAX + "..."


# few names, and close to each other, so that they meet
NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "a-b", "", "..", "a b", OFFSETS_TOPIC, "__cluster_metadata"])
COUNTS = st.integers(-1, 4)


class CatalogueMachine(RuleBasedStateMachine):
    """Whatever is asked of a draft, it holds what a dictionary would hold; so does the catalogue that takes it over."""

    deleted_ids: Bundle[bytes] = Bundle("deleted_ids")

    @initialize()
    def start(self) -> None:
        self.catalogue = new_catalogue()
        self.draft = self.catalogue.make_draft()
        self.model: dict[str, int] = {}
        self.kept: dict[str, int] = {}
        self.marks: list[tuple[int, dict[str, int]]] = []

    @rule(name=NAMES, partitions=COUNTS)
    def create(self, name: str, partitions: int) -> None:
        taken = {collision_key(other) for other in (*self.model, OFFSETS_TOPIC)}
        possible = (
            invalid_reason(name) is None
            and collision_key(name) not in taken
            and name != "__cluster_metadata"
            and partitions > 0
        )
        result = self.draft.add_topic(name, partitions, topic_id=new_topic_id())
        assert isinstance(result, Topic) == possible
        if possible:
            self.model[name] = partitions

    @rule(name=NAMES, count=COUNTS)
    def create_partitions(self, name: str, count: int) -> None:
        possible = name in self.model and count > self.model[name]
        result = self.draft.create_partitions(name, count)
        assert isinstance(result, Topic) == possible
        if possible:
            self.model[name] = count

    @rule(target=deleted_ids, name=NAMES)
    def delete(self, name: str) -> bytes:
        result = self.draft.remove_topic(name)
        assert isinstance(result, Topic) == (name in self.model)
        self.model.pop(name, None)
        return result.id if isinstance(result, Topic) else b"none of them is this"

    @rule()
    def mark(self) -> None:
        self.marks.append((self.draft.get_savepoint(), dict(self.model)))

    @precondition(lambda self: self.marks)
    @rule()
    def undo(self) -> None:
        mark, self.model = self.marks.pop()
        run_all_steps(self.draft.undo_in_steps(mark))

    @rule(target=deleted_ids)
    def keep(self) -> bytes:
        changes = self.draft.changes()
        gone = [topic for topic in self.catalogue if topic.id in changes.deleted]
        assert self.catalogue.apply_and_list_deleted(changes) == [
            topic.name for topic_id in changes.deleted for topic in gone if topic.id == topic_id
        ]
        self.kept = dict(self.model)
        self.marks.clear()
        assert self.catalogue.totals == self.draft.totals
        self.draft = self.catalogue.make_draft()
        return gone[0].id if gone else b"none of them is this"

    @rule(topic_id=deleted_ids)
    def the_deleted_stay_gone(self, topic_id: bytes) -> None:
        there = self.draft.by_id(topic_id)
        assert there is None or self.draft.get(there.name) is there, "only an undone deletion brings it back"

    @invariant()
    def the_draft_holds_the_same(self) -> None:
        expected: Mapping[str, int] = {**self.model, OFFSETS_TOPIC: 50}
        for name in ("a", "b", "a.b", "a_b", "a-b", OFFSETS_TOPIC):
            topic = self.draft.get(name)
            assert (topic and topic.partitions) == expected.get(name)
            assert topic is None or self.draft.by_id(topic.id) is topic
        assert self.draft.totals.topics == len(self.model)
        assert self.draft.totals.partitions == sum(self.model.values())

    @invariant()
    def the_catalogue_holds_what_was_kept(self) -> None:
        expected: Mapping[str, int] = {**self.kept, OFFSETS_TOPIC: 50}
        topics = list(self.catalogue)
        assert {topic.name: topic.partitions for topic in topics} == expected
        assert [topic.name for topic in topics] == sorted(expected)
        assert len(self.catalogue) == len(expected)
        for topic in topics:
            assert self.catalogue.get(topic.name) is topic
            assert self.catalogue.by_id(topic.id) is topic


TestCatalogueMachine = CatalogueMachine.TestCase
