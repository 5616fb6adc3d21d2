# SPDX-License-Identifier: Apache-2.0
"""The settings of a topic, with the values that a Kafka 4.4 broker took and refused when it was asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.catalogue.config_values import LIST_LENGTH_MAX
from coordinator.catalogue.topic_configs import TOPIC_CONFIGS, canonicalize_value, refusal_reason

TAKEN = [
    ("cleanup.policy", "compact,delete", "compact,delete"),
    ("cleanup.policy", "compact,compact", "compact,compact"),
    ("cleanup.policy", " compact , delete ", "compact,delete"),
    ("cleanup.policy", "", ""),
    ("compression.gzip.level", "-1", "-1"),
    ("compression.gzip.level", "9", "9"),
    ("compression.lz4.level", "17", "17"),
    ("compression.zstd.level", "-131072", "-131072"),
    ("compression.type", " gzip ", "gzip"),
    ("preallocate", " true ", "true"),
    ("unclean.leader.election.enable", "TRUE", "true"),
    ("min.cleanable.dirty.ratio", ".25", "0.25"),
    ("min.cleanable.dirty.ratio", "1e-1", "0.1"),
    ("min.cleanable.dirty.ratio", "1", "1.0"),
    ("retention.ms", " 5 ", "5"),
    ("retention.ms", "+5", "5"),
    ("retention.ms", "-1", "-1"),
    ("retention.ms", "9223372036854775807", "9223372036854775807"),
    ("retention.bytes", "-2", "-2"),
    ("flush.ms", "0", "0"),
    ("max.message.bytes", "0", "0"),
    ("segment.bytes", " 2097152", "2097152"),
    ("segment.index.bytes", "4", "4"),
    ("local.retention.ms", "99999999999999", "99999999999999"),
    ("leader.replication.throttled.replicas", "*", "*"),
    ("follower.replication.throttled.replicas", "0:1, 1:2", "0:1,1:2"),
    ("leader.replication.throttled.replicas", "", ""),
    ("remote.storage.enable", "false", "false"),
]
REFUSED = [
    ("cleanup.policy", "x", "one of: compact, delete"),
    ("cleanup.policy", "none", "one of: compact, delete"),
    ("cleanup.policy", "compact,,delete", "must not be empty"),
    ("cleanup.policy", ",", "must not be empty"),
    ("cleanup.policy", "compact," * LIST_LENGTH_MAX, "A list may have"),
    ("compression.gzip.level", "0", "between 1 and 9 or equal to -1"),
    ("compression.gzip.level", "10", "between 1 and 9 or equal to -1"),
    ("compression.lz4.level", "0", "at least 1"),
    ("compression.lz4.level", "18", "no more than 17"),
    ("compression.zstd.level", "-131073", "at least -131072"),
    ("compression.type", "GZIP", "one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ("preallocate", "yes", "either true or false"),
    ("preallocate", "", "either true or false"),
    ("min.cleanable.dirty.ratio", "2", "no more than 1"),
    ("min.cleanable.dirty.ratio", "-0.1", "at least 0"),
    ("min.cleanable.dirty.ratio", "x", "Not a number of type DOUBLE"),
    ("min.cleanable.dirty.ratio", "NaN", "Not a number of type DOUBLE"),
    ("retention.ms", "x", "Not a number of type LONG"),
    ("retention.ms", "", "Not a number of type LONG"),
    ("retention.ms", "1_000", "Not a number of type LONG"),
    ("retention.ms", "0x10", "Not a number of type LONG"),
    ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
    ("retention.ms", "1" * 100_000, "Not a number of type LONG"),
    ("retention.ms", "-2", "at least -1"),
    ("segment.bytes", "99999999999", "Not a number of type INT"),
    ("segment.bytes", "1.5", "Not a number of type INT"),
    ("segment.bytes", "1", "at least 1048576"),
    ("segment.ms", "0", "at least 1"),
    ("min.insync.replicas", "0", "at least 1"),
    ("max.compaction.lag.ms", "0", "at least 1"),
    ("flush.messages", "0", "at least 1"),
    ("local.retention.bytes", "-3", "at least -2"),
    ("message.timestamp.type", "createtime", "one of: CreateTime, LogAppendTime"),
    ("leader.replication.throttled.replicas", "0:1,x", "[partitionId]:[brokerId]"),
    ("leader.replication.throttled.replicas", "*,0:1", "[partitionId]:[brokerId]"),
    ("remote.storage.enable", "true", "not available"),
]


@pytest.mark.parametrize(("name", "text", "shown"), TAKEN)
def test_values_that_kafka_takes_are_taken_and_tidied(name: str, text: str, shown: str) -> None:
    assert refusal_reason({name: text}) is None
    assert canonicalize_value(name, text) == shown


@pytest.mark.parametrize(("name", "text", "reason"), REFUSED)
def test_values_that_kafka_refuses_are_refused_with_the_reason(name: str, text: str, reason: str) -> None:
    assert reason in (refusal_reason({name: text}) or "")


def test_unknown_names_are_refused() -> None:
    assert refusal_reason({"retention.ms": "1", "retention": "1"}) == "Unknown topic config name: retention"


def test_settings_must_agree_with_each_other() -> None:
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    assert "is larger than" in (refusal_reason(lags) or "")
    assert refusal_reason({**lags, "max.compaction.lag.ms": "10"}) is None


def test_every_default_is_a_value_of_its_own_kind() -> None:
    assert refusal_reason({key.name: key.default for key in TOPIC_CONFIGS.values()}) is None
    for key in TOPIC_CONFIGS.values():
        assert canonicalize_value(key.name, key.default) == key.default


def test_the_settings_are_in_name_order_and_those_of_kafka_43() -> None:
    assert list(TOPIC_CONFIGS) == sorted(TOPIC_CONFIGS)
    assert len([key for key in TOPIC_CONFIGS.values() if not key.ours]) == 37


@given(st.sampled_from(sorted(TOPIC_CONFIGS)), st.text(max_size=30))
def test_no_text_gets_past_unread(name: str, text: str) -> None:
    reason = refusal_reason({name: text})
    if reason is None:
        shown = canonicalize_value(name, text)
        assert refusal_reason({name: shown}) is None
        assert canonicalize_value(name, shown) == shown
