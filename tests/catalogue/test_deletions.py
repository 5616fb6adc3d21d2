# SPDX-License-Identifier: Apache-2.0
"""Which offsets in deleted topics may still be where."""

from coordinator.catalogue.deletions import DeletedTopicsWithOffsets, StoredDeletions
from protocol.newtypes import Partition

ONE, OTHER, DAMAGED = map(Partition, range(3))


def dropped(
    deletions: DeletedTopicsWithOffsets, partition: Partition, number: int, damaged: Partition | None = None
) -> bool:
    is_new = deletions.record_drops_through(partition, number)
    deletions.forget_dropped(lambda each: each == damaged)
    return is_new


def test_deletions_are_left_for_the_next_leader_until_one_has_confirmed_them() -> None:
    deletions = DeletedTopicsWithOffsets(3)
    deletions.note_deleted(["a", "b"])
    deletions.note_deleted(["c", "a"])
    assert deletions.undropped_topics(ONE) == ["a", "b", "c"]
    assert dropped(deletions, ONE, 2, DAMAGED)
    assert deletions.undropped_topics(ONE) == ["c", "a"]
    assert deletions.undropped_topics(OTHER) == ["a", "b", "c"]
    assert dropped(deletions, ONE, 4, DAMAGED)
    assert not dropped(deletions, ONE, 3, DAMAGED), "it was known"
    assert deletions.undropped_topics(ONE) == []
    assert len(deletions) == 2
    assert dropped(deletions, OTHER, 2, DAMAGED)
    assert deletions.undropped_topics(OTHER) == ["c", "a"]
    assert len(deletions) == 1, "what no partition can hold is forgotten"
    deletions.note_deleted(["d"])
    assert (deletions.undropped_topics(ONE), deletions.undropped_topics(OTHER)) == (["d"], ["c", "a", "d"])


def test_a_version_of_the_topics_stands_for_what_had_gone_then() -> None:
    deletions = DeletedTopicsWithOffsets(1, before=7)
    deletions.note_deleted(["from before the start"])
    deletions.note_deleted(["a", "b"], version=3)
    deletions.note_deleted(["c"], version=5)
    assert [deletions.number_at(version) for version in (-1, 0, 2, 3, 4, 5, 9)] == [7, 8, 8, 10, 10, 11, 11]
    dropped(deletions, ONE, 10)
    assert deletions.number_at(0) == 10, "of what is forgotten nothing is left anywhere"


def test_what_is_kept_of_deletions_is_what_is_left() -> None:
    deletions = DeletedTopicsWithOffsets(3, before=5)
    assert deletions.to_stored_deletions() == StoredDeletions(5, (), {})
    deletions.note_deleted(["a"])
    deletions.note_deleted(["b", "c"])
    dropped(deletions, OTHER, 6)
    dropped(deletions, ONE, 8)
    assert deletions.to_stored_deletions() == StoredDeletions(5, (["a"], ["b", "c"]), {8: [ONE], 6: [OTHER]})
    dropped(deletions, DAMAGED, 8)
    assert deletions.to_stored_deletions() == StoredDeletions(6, (["b", "c"],), {8: [ONE, DAMAGED]})
    dropped(deletions, OTHER, 8)
    assert deletions.to_stored_deletions() == StoredDeletions(8, (), {})


def test_many_partitions_that_confirm_a_deletion_are_not_walked_for_each_of_them() -> None:
    """10,000 partitions that confirmed one after the other took eleven seconds of one turn."""
    count = 5_000
    deletions = DeletedTopicsWithOffsets(count)
    deletions.note_deleted(["a"])
    asked = 0

    def is_damaged(_partition: Partition) -> bool:
        nonlocal asked
        asked += 1
        return False

    for partition in map(Partition, range(count)):
        deletions.record_drops_through(partition, 1)
        deletions.forget_dropped(is_damaged)
    assert len(deletions) == 0
    assert asked <= 3 * count
