# SPDX-License-Identifier: Apache-2.0
"""Subscriptions and assignments inside JoinGroup and SyncGroup."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from protocol.consumer_protocol import decode_assignment, subscribed_topics
from tests.support.consumer_protocol import encode_assignment, encode_subscription

topics = st.text(st.characters(codec="utf-8"), max_size=20)
user_data = st.none() | st.binary(max_size=20)
partitions = st.dictionaries(topics, st.lists(st.integers(0, (1 << 31) - 1), max_size=5), max_size=5)
versions = st.integers(0, 3)


@given(st.lists(topics, max_size=5), versions, user_data, partitions, st.integers(-1, 9), st.none() | topics)
def test_subscriptions_agree_with_kafka_python(
    names: list[str],
    version: int,
    data: bytes | None,
    owned: dict[str, list[int]],
    generation: int,
    rack: str | None,
) -> None:
    cls = ConsumerProtocolSubscription
    theirs = cls(
        version=version,
        topics=names,
        user_data=data,
        owned_partitions=[
            cls.TopicPartition(topic=topic, partitions=indexes) for topic, indexes in owned.items()
        ],
        generation_id=generation,
        rack_id=rack,
    )

    encoded = encode_subscription(
        names,
        version=version,
        user_data=data,
        owned_partitions=owned,
        generation_id=generation,
        rack_id=rack,
    )

    assert encoded == theirs.encode()
    assert subscribed_topics(encoded) == frozenset(names)


@given(partitions, versions, user_data)
def test_assignments_agree_with_kafka_python(
    assigned: dict[str, list[int]], version: int, data: bytes | None
) -> None:
    cls = ConsumerProtocolAssignment
    theirs = cls(
        version=version,
        assigned_partitions=[
            cls.TopicPartition(topic=topic, partitions=indexes) for topic, indexes in assigned.items()
        ],
        user_data=data,
    )

    encoded = encode_assignment(assigned, version=version, user_data=data)

    assert encoded == theirs.encode()
    assert decode_assignment(encoded) == assigned


@given(st.binary(max_size=60))
def test_garbage_is_none_or_topics(garbage: bytes) -> None:
    read = subscribed_topics(garbage)
    assert read is None or isinstance(read, frozenset)
    assigned = decode_assignment(garbage)
    assert assigned is None or isinstance(assigned, dict)


def test_every_truncation_of_the_part_that_all_versions_have_is_none() -> None:
    subscription = encode_subscription(["a", "b"], version=0, user_data=b"xy")
    assignment = encode_assignment({"a": [1, 2]}, version=0, user_data=b"xy")

    assert [subscribed_topics(subscription[:end]) for end in range(len(subscription))] == [None] * len(
        subscription
    )
    assert [decode_assignment(assignment[:end]) for end in range(1, len(assignment))] == [None] * (
        len(assignment) - 1
    )


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    later = b"\0\x63" + encode_subscription(["a"])[2:] + b"what version 99 adds"

    assert subscribed_topics(later) == frozenset({"a"})


def test_any_negative_length_of_the_user_data_is_null_as_for_kafka() -> None:
    assert subscribed_topics(encode_subscription(["a"], version=0)[:-4] + b"\xff\xff\xff\xf0") == frozenset(
        {"a"}
    )


@pytest.mark.parametrize("metadata", [b"", b"\0", b"range", b"hello, I am no consumer"])
def test_metadata_that_is_no_subscription_is_none(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None


def test_empty_bytes_assign_nothing() -> None:
    assert decode_assignment(b"") == {}


def test_a_topic_that_comes_twice_has_the_partitions_of_both() -> None:
    twice = b"\0\0" + b"\0\0\0\2" + b"\0\1a\0\0\0\1\0\0\0\1" * 2 + b"\xff\xff\xff\xff"

    assert decode_assignment(twice) == {"a": [1, 1]}
