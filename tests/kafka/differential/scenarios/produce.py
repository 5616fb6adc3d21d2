# SPDX-License-Identifier: Apache-2.0
"""Produce: what Kafka refuses we refuse in the same words; what it takes is a difference."""

from typing import Any
from uuid import UUID

from kafka.record.memory_records import MemoryRecordsBuilder

from protocol.apis import ApiKey
from tests.kafka.differential.catalogue import every, scenario
from tests.kafka.differential.scenarios.topics import STRANGER, have_topic
from tests.kafka.differential.script import Script

PRODUCE = ApiKey.PRODUCE
IDS_FROM = 13


def one_record() -> bytes:
    """A record batch that Kafka takes."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=0, batch_size=1_000)
    builder.append(timestamp=0, key=None, value=b"a")
    builder.close()
    return bytes(builder.buffer())


def batch_for(name: str, topic_id: UUID | None, *partitions: int) -> dict[str, Any]:
    """A topic of a Produce, by name and, where versions have it, by id."""
    records = one_record()
    return {
        "name": name,
        "topic_id": topic_id,
        "partition_data": [{"index": index, "records": records} for index in partitions],
    }


def request(acks: int, *topics: dict[str, Any]) -> dict[str, Any]:
    """The fields of a Produce."""
    return {"transactional_id": None, "acks": acks, "timeout_ms": 1_000, "topic_data": list(topics)}


@scenario(version=every(PRODUCE), acks=[-1, 1])
def to_what_is_not_there(s: Script, version: int, acks: int) -> None:
    a = s.connect()
    a.ask(PRODUCE, version, **request(acks, batch_for(s.id("lost"), STRANGER, 0)))
    a.ask(PRODUCE, version, **request(acks, batch_for("apples", s.topic_id("apples"), 3, -1)))
    a.ask(PRODUCE, version, **request(acks))


@scenario(version=every(PRODUCE), acks=[2, -2, 32_767])
def with_wrong_acks(s: Script, version: int, acks: int) -> None:
    a = s.connect()
    a.ask(PRODUCE, version, **request(acks, batch_for("apples", s.topic_id("apples"), 0)))
    a.ask(PRODUCE, version, **request(acks, batch_for(s.id("lost"), STRANGER, 0)))


@scenario(version=every(PRODUCE))
def to_what_is_not_there_and_nobody_waits(s: Script, version: int) -> None:
    a = s.connect()
    a.ask(PRODUCE, version, **request(0, batch_for(s.id("lost"), STRANGER, 0)))


@scenario(differs="no-records", version=every(PRODUCE))
def a_record(s: Script, version: int) -> None:
    a = s.connect()
    have_topic(s, a, "own", 2)
    with s.quietly():
        answer = a.ask(ApiKey.METADATA, 12, topics=[{"name": s.id("own"), "topic_id": None}])
    topic_id = answer.topics[0].topic_id
    s.names.know_topic(topic_id, "own")
    a.ask(PRODUCE, version, **request(1, batch_for(s.id("own"), topic_id, 0, 1, 2)))


@scenario(version=[0, 1, 2, 14])
def versions_that_are_not_served(s: Script, version: int) -> None:
    s.connect().send_body(PRODUCE, version, b"", {}, header_tags=b"\0" if version >= 9 else None).reply()
