# SPDX-License-Identifier: Apache-2.0
"""What counts as a change of the cluster's topics, and what does not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from coordinator.upstream.topic_diff import (
    ABSENT,
    UNSURE,
    SeenTopic,
    TopicDiff,
    TopicSnapshot,
    UnconfirmedChanges,
    Verdict,
    compute_topics_after_diff,
    diff_topics,
    list_topics_to_confirm,
)

A = SeenTopic(b"a" * 16, 3)
A_GROWN = SeenTopic(b"a" * 16, 5)
A_ANEW = SeenTopic(b"b" * 16, 3)


@dataclass
class Follower:
    """What a monitor does, without I/O: it looks, asks, compares and applies."""

    known: Mapping[str, SeenTopic] = field(default_factory=dict)
    doubts: UnconfirmedChanges = field(default_factory=UnconfirmedChanges)
    brokers: int = 1

    def sees(
        self,
        topics: Mapping[str, SeenTopic],
        answers: Mapping[str, Verdict] | None = None,
        answered_by: int | None = 1,
    ) -> TopicDiff:
        look = TopicSnapshot(topics)
        asked = {name: (answers or {}).get(name, UNSURE) for name in list_topics_to_confirm(self.known, look)}
        change, self.doubts = diff_topics(
            self.known, look, asked, self.doubts, answered_by=answered_by, brokers=self.brokers
        )
        self.known = compute_topics_after_diff(self.known, change)
        return change


def test_topics_come_and_grow() -> None:
    follower = Follower()
    assert follower.sees({"t": A}) == TopicDiff(created={"t": A})
    assert not follower.sees({"t": A})
    assert follower.sees({"t": A_GROWN}) == TopicDiff(grown={"t": A_GROWN})
    assert not follower.sees({"t": A}), "a view with fewer partitions is an old one"
    assert follower.known == {"t": A_GROWN}


def test_a_topic_under_another_id_was_made_anew() -> None:
    follower = Follower({"t": A})
    assert not follower.sees({"t": A_ANEW}, {"t": A_ANEW})
    assert follower.sees({"t": A_ANEW}, {"t": A_ANEW}) == TopicDiff(created={"t": A_ANEW}, deleted=("t",))
    assert not follower.sees({"t": A}), "a broker that is cut off still has the old id"
    assert follower.known == {"t": A_ANEW}
    assert not follower.sees({}, {"t": A}), "and answers with it by name, too"


def test_a_topic_is_deleted_when_two_looks_deny_it() -> None:
    follower = Follower({"t": A})
    assert not follower.sees({}, {"t": ABSENT})
    assert follower.sees({}, {"t": ABSENT}) == TopicDiff(deleted=("t",))
    assert not follower.sees({"t": A}), "an old view does not bring it back"
    assert follower.sees({"t": A_ANEW}) == TopicDiff(created={"t": A_ANEW})


def test_absence_from_the_list_alone_deletes_nothing() -> None:
    follower = Follower({"t": A})
    for _ in range(10):
        assert not follower.sees({}, {"t": UNSURE})
        assert not follower.sees({}, {"t": A})
    assert follower.known == {"t": A}


def test_denials_count_only_one_after_the_other() -> None:
    follower = Follower({"t": A})
    for between in ({"t": UNSURE}, {"t": A}):
        assert not follower.sees({}, {"t": ABSENT})
        assert not follower.sees({}, between)
    assert not follower.sees({}, {"t": ABSENT})
    assert not follower.sees({"t": A})
    assert not follower.sees({}, {"t": ABSENT})


def test_one_broker_of_several_cannot_delete_a_topic() -> None:
    follower = Follower({"t": A}, brokers=3)
    for _ in range(20):
        assert not follower.sees({}, {"t": ABSENT}, answered_by=2)
    assert follower.sees({}, {"t": ABSENT}, answered_by=3) == TopicDiff(deleted=("t",))


def test_one_broker_of_several_cannot_replace_a_topic() -> None:
    follower = Follower({"t": A}, brokers=3)
    for _ in range(20):
        assert not follower.sees({"t": A_ANEW}, {"t": A_ANEW}, answered_by=2)
    assert not follower.sees({"t": A_ANEW}, {"t": A}, answered_by=3), "another one has it as it was"
    assert not follower.sees({"t": A_ANEW}, {"t": A_ANEW}, answered_by=2)
    change = follower.sees({"t": A_ANEW}, {"t": A_ANEW}, answered_by=3)
    assert change == TopicDiff(created={"t": A_ANEW}, deleted=("t",))


TOPICS = st.dictionaries(
    st.sampled_from("pqr"),
    st.builds(SeenTopic, st.binary(min_size=16, max_size=16), st.integers(1, 9)),
)
OTHER = SeenTopic(b"o" * 16, 1)
ANSWERS = st.dictionaries(st.sampled_from("pqr"), st.sampled_from([UNSURE, ABSENT, OTHER]))


@given(st.lists(st.tuples(TOPICS, ANSWERS, st.integers(1, 3)), max_size=12))
def test_offsets_are_never_dropped_on_doubt(
    looks: list[tuple[dict[str, SeenTopic], dict[str, Verdict], int]],
) -> None:
    follower = Follower(brokers=3)
    deniers: dict[str, set[int]] = {}
    for topics, answers, broker in looks:
        before = dict(follower.known)
        change = follower.sees(topics, answers, answered_by=broker)
        for name, topic in before.items():
            same = name in topics and topics[name].topic_id == topic.topic_id
            answer = answers.get(name)
            denied = answer is ABSENT or (answer is OTHER and topic.topic_id != OTHER.topic_id)
            deniers[name] = deniers.get(name, set()) | {broker} if denied and not same else set()
        for name in change.deleted:
            assert len(deniers[name]) >= 2, (name, deniers)
        assert {n: t.partitions for n, t in before.items() if n not in change.deleted}.items() <= {
            n: min(t.partitions, before[n].partitions) for n, t in follower.known.items() if n in before
        }.items(), "no topic loses partitions"
