# SPDX-License-Identifier: Apache-2.0
"""Differences of a cluster's topics become changes of the catalogue, whatever names an old cluster has."""

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes, PartitionsAdded
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.upstream.topic_diff import SeenTopic, TopicDiff
from coordinator.workers.topic_diff_to_changes import compute_changes, with_left_out_topics


def topic(name: str, number: int, partitions: int = 1) -> Topic:
    return Topic(name=name, id=bytes([number]) * 16, partitions=partitions)


def seen(number: int, partitions: int = 1) -> SeenTopic:
    return SeenTopic(bytes([number]) * 16, partitions)


def catalogue(*topics: Topic) -> Catalogue:
    made = Catalogue(topic(OFFSETS_TOPIC, 200, 50))
    made.apply_and_list_deleted(Changes(created=topics))
    return made


def test_topics_come_grow_go_and_are_made_anew() -> None:
    known = catalogue(topic("grows", 1), topic("goes", 2), topic("anew", 3))
    change = TopicDiff(
        created={"comes": seen(4), "anew": seen(5)}, grown={"grows": seen(1, 6)}, deleted=("goes", "anew")
    )
    changes, left_out = compute_changes(known, change)
    known.apply_and_list_deleted(changes)
    assert {each.name: (each.id[0], each.partitions) for each in known.snapshot_topics()} == {
        "grows": (1, 6),
        "comes": (4, 1),
        "anew": (5, 1),
    }
    assert changes.grown == [PartitionsAdded(bytes([1]) * 16, 1, 6)]
    assert not left_out


def test_of_two_names_that_are_too_alike_one_is_left_out_and_the_others_come() -> None:
    known = catalogue(topic("a.b", 1))
    created = {"a_b": seen(2), "c.d": seen(3), "c_d": seen(4), "e": seen(5)}
    changes, left_out = compute_changes(known, TopicDiff(created=created))
    known.apply_and_list_deleted(changes)
    assert {each.name for each in known.snapshot_topics()} == {"a.b", "c.d", "e"}
    assert left_out == ["a_b", "c_d"]


def test_a_name_may_come_when_the_one_like_it_goes() -> None:
    known = catalogue(topic("a.b", 1))
    changes, left_out = compute_changes(known, TopicDiff(created={"a_b": seen(2)}, deleted=("a.b",)))
    known.apply_and_list_deleted(changes)
    assert [each.name for each in known.snapshot_topics()] == ["a_b"]
    assert not left_out


def test_a_topic_that_was_left_out_comes_once_the_one_like_it_is_gone() -> None:
    known = catalogue(topic("a.b", 1))
    left_out = {"a_b": seen(2), "a-b_c": seen(3)}
    for change, names, waiting in (
        (TopicDiff(grown={"a_b": seen(2, 5)}), {"a.b", "a-b_c"}, {"a_b": seen(2, 5)}),
        (TopicDiff(deleted=("a.b",)), {"a_b", "a-b_c"}, {}),
    ):
        wanted = with_left_out_topics(left_out, change)
        changes, still = compute_changes(known, wanted)
        known.apply_and_list_deleted(changes)
        left_out = {name: wanted.created[name] for name in still}
        assert {each.name for each in known.snapshot_topics()} == names
        assert left_out == waiting
    assert {each.name: each.partitions for each in known.snapshot_topics()} == {"a_b": 5, "a-b_c": 1}
    assert with_left_out_topics({"a_b": seen(2)}, TopicDiff(deleted=("a_b",))).created == {}


def test_the_clusters_own_offsets_topic_is_not_ours() -> None:
    known = catalogue()
    changes, left_out = compute_changes(known, TopicDiff(created={OFFSETS_TOPIC: seen(9, 50)}))
    assert not changes.created
    assert not left_out


def test_what_no_cluster_has_is_left_out_as_the_next_start_would_refuse_it() -> None:
    known = catalogue(topic("known", 1))
    names = ["", ".", "..", "../../etc/passwd", "a\nb", 'a"} 1', "x" * 250, "ümlaut"]
    odd = {name: seen(number) for number, name in enumerate(names, 10)}
    odd |= {"has-the-id-of-known": seen(1), "has-no-id": seen(0), "empty": seen(3, 0)}
    good = {"good-1": seen(4), "x" * 249: seen(5)}
    changes, left_out = compute_changes(known, TopicDiff(created={**odd, **good, "as-good-1": seen(4)}))
    known.apply_and_list_deleted(changes)
    assert {each.name for each in known.snapshot_topics()} == {"known", *good}
    assert left_out == [*odd, "as-good-1"]
