# SPDX-License-Identifier: Apache-2.0
"""Which partition a group is in: Java's String.hashCode, and Utils.abs of it."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.java_hash import java_string_hash
from protocol.newtypes import GroupId, Partition
from protocol.placement import (
    GroupPlacementTally,
    find_swapped_directories,
    infer_earlier_partition_count,
    infer_later_partition_count,
    partition_for,
)

# From Java: "...".hashCode()
KNOWN = {
    "": 0,
    "a": 97,
    "ab": 3_105,
    "hello": 99_162_322,
    "group": 98_629_247,
    "my-group": -1_906_497_762,
    "console-consumer-1234": 836_395_459,
    "The quick brown fox jumps over the lazy dog": -609_428_141,
    "\u00e9": 233,
    "\u4e2d\u6587": 646_394,
    "\U0001f600": 1_772_899,  # two UTF-16 units, d83d de00
    "\ufffd": 65_533,
    "a\x00b": 93_315,
    "polygenelubricants": -(1 << 31),
}


@pytest.mark.parametrize(("text", "hashed"), KNOWN.items())
def test_hashes_are_those_of_java(text: str, hashed: int) -> None:
    assert java_string_hash(text) == hashed


def by_definition(text: str) -> int:
    """s[0]*31^(n-1) + ... + s[n-1] over UTF-16 units, in 32 bits with a sign."""
    raw = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(raw[place : place + 2], "big") for place in range(0, len(raw), 2)]
    total = sum(unit * 31 ** (len(units) - 1 - place) for place, unit in enumerate(units))
    signed: int = (total + (1 << 31)) % (1 << 32) - (1 << 31)
    return signed


@given(st.text())
def test_hashes_agree_with_the_definition(text: str) -> None:
    assert java_string_hash(text) == by_definition(text)


@given(st.text(), st.integers(1, 1_000))
def test_every_group_has_a_partition(text: str, num_partitions: int) -> None:
    partition = partition_for(GroupId(text), num_partitions)
    assert 0 <= partition < num_partitions
    hashed = java_string_hash(text)
    assert partition == (0 if hashed == -(1 << 31) else abs(hashed)) % num_partitions


def test_the_smallest_int_has_no_absolute_value_and_counts_as_zero() -> None:
    """Java's Math.abs(Integer.MIN_VALUE) is negative; Kafka's Utils.abs makes it 0."""
    assert partition_for(GroupId("polygenelubricants"), 50) == 0
    assert partition_for(GroupId("polygenelubricants"), 49) == 0  # abs(-2^31) % 49 would be another one


@pytest.mark.parametrize(
    ("group", "partition"),
    [("", 0), ("a", 47), ("group", 47), ("my-group", 12), ("hello", 22), ("\U0001f600", 49)],
)
def test_partitions_of_fifty(group: str, partition: int) -> None:
    assert partition_for(GroupId(group), 50) == partition


# --- groups that lie elsewhere


def names(count: int) -> list[GroupId]:
    return [GroupId(f"group-{number}") for number in range(count)]


def placed(
    groups: Iterable[GroupId], by: int, now: int, moved: Mapping[int, int] | None = None
) -> list[GroupPlacementTally]:
    """Groups that were placed by a number of partitions, seen with another; `moved` are directories."""
    found = [GroupPlacementTally(Partition(partition), now) for partition in range(now)]
    for group in groups:
        home = partition_for(group, by)
        found[(moved or {}).get(home, home)].add_group(group)
    return found


def test_groups_in_their_places() -> None:
    found = placed(names(500), 50, 50)
    assert sum(each.groups for each in found) == 500
    assert [
        each.partition for each in found if each.elsewhere or each.names or each.common_other_home_partition
    ] == []
    assert (
        find_swapped_directories(found),
        infer_earlier_partition_count(found),
        infer_later_partition_count(found),
    ) == ({}, None, None)


@pytest.mark.parametrize("groups", [20, 100, 1_000])
def test_two_directories_that_were_exchanged(groups: int) -> None:
    found = placed(names(groups), 8, 8, {1: 0, 0: 1})
    assert find_swapped_directories(found) == {0: 1, 1: 0}
    assert [each.common_other_home_partition for each in found[:3]] == [1, 0, None]
    first = found[0]
    assert first.misplaced_group_count == first.groups == first.elsewhere[Partition(1)] > 1
    assert first.names == [name for name in names(groups) if partition_for(name, 8) == 1][:20]


def test_one_group_alone_proves_nothing() -> None:
    home = partition_for(names(1)[0], 8)
    assert find_swapped_directories(placed(names(1), 8, 8, {home: 7 - home})) == {}
    two = [name for name in names(100) if partition_for(name, 8) == home][:2]
    assert find_swapped_directories(placed(two, 8, 8, {home: 7 - home})) == {7 - home: home}


@pytest.mark.parametrize(
    ("before", "after", "groups"), [(50, 100, 20), (25, 50, 12), (25, 50, 5), (25, 50, 3)]
)
def test_a_few_groups_of_a_topic_that_has_got_more_partitions(before: int, after: int, groups: int) -> None:
    for start in range(0, 400, 20):
        chosen = names(start + groups)[start:]
        assert find_swapped_directories(placed(chosen, before, after)) == {}


@pytest.mark.parametrize("seed", range(20))
def test_strays_among_many_are_not_taken_for_missing_partitions(seed: int) -> None:
    found = placed(names(200), 50, 50)
    for number in range(2):
        found[(seed * 7 + number) % 50].add_group(GroupId(f"stray-{seed}-{number}"))
    assert infer_later_partition_count(found) is None


@pytest.mark.parametrize(("before", "after"), [(1, 8), (4, 8), (10, 50), (25, 50), (49, 50)])
def test_a_topic_that_has_got_more_partitions_has_no_directory_in_the_wrong_place(
    before: int, after: int
) -> None:
    found = placed(names(200), before, after)
    assert find_swapped_directories(found) == {}
    assert (infer_earlier_partition_count(found), infer_later_partition_count(found)) == (before, None)


@pytest.mark.parametrize(("whole", "seen"), [(50, 49), (8, 6), (50, 30)])
def test_directories_that_are_missing_behind_those_that_are_there(whole: int, seen: int) -> None:
    found = placed([name for name in names(300) if partition_for(name, whole) < seen], whole, seen)
    assert (infer_earlier_partition_count(found), infer_later_partition_count(found)) == (None, whole)
