# SPDX-License-Identifier: Apache-2.0
"""Which offsets in deleted topics may still be where."""

from coordinator.catalogue.deletions import Deletions, Kept
from protocol.names import Partition

ONE, OTHER, DAMAGED = map(Partition, range(3))


def test_deletions_are_left_for_the_next_leader_until_one_has_confirmed_them() -> None:
    deletions = Deletions(3)
    deletions.went(["a", "b"])
    deletions.went(["c", "a"])
    assert deletions.left(ONE) == ["a", "b", "c"]
    assert deletions.dropped(ONE, 2, [DAMAGED])
    assert deletions.left(ONE) == ["c", "a"]
    assert deletions.left(OTHER) == ["a", "b", "c"]
    assert deletions.dropped(ONE, 4, [DAMAGED])
    assert not deletions.dropped(ONE, 3, [DAMAGED]), "it was known"
    assert deletions.left(ONE) == []
    assert len(deletions) == 2
    assert deletions.dropped(OTHER, 2, [DAMAGED])
    assert deletions.left(OTHER) == ["c", "a"]
    assert len(deletions) == 1, "what no partition can hold is forgotten"
    deletions.went(["d"])
    assert (deletions.left(ONE), deletions.left(OTHER)) == (["d"], ["c", "a", "d"])


def test_a_version_of_the_topics_stands_for_what_had_gone_then() -> None:
    deletions = Deletions(1, before=7)
    deletions.went(["from before the start"])
    deletions.went(["a", "b"], version=3)
    deletions.went(["c"], version=5)
    assert [deletions.number_at(version) for version in (-1, 0, 2, 3, 4, 5, 9)] == [7, 8, 8, 10, 10, 11, 11]
    deletions.dropped(ONE, 10)
    assert deletions.number_at(0) == 10, "of what is forgotten nothing is left anywhere"


def test_what_is_kept_of_deletions_is_what_is_left() -> None:
    deletions = Deletions(3, before=5)
    assert deletions.kept() == Kept(5, (), {})
    deletions.went(["a"])
    deletions.went(["b", "c"])
    deletions.dropped(OTHER, 6)
    deletions.dropped(ONE, 8)
    assert deletions.kept() == Kept(5, (["a"], ["b", "c"]), {8: [ONE], 6: [OTHER]})
    deletions.dropped(DAMAGED, 8)
    assert deletions.kept() == Kept(6, (["b", "c"],), {8: [ONE, DAMAGED]})
    deletions.dropped(OTHER, 8)
    assert deletions.kept() == Kept(8, (), {})
