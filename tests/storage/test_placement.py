# SPDX-License-Identifier: Apache-2.0
"""Which partition a group is in: Java's String.hashCode, and Utils.abs of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.java import java_string_hash
from protocol.names import GroupId
from protocol.placement import partition_for

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
