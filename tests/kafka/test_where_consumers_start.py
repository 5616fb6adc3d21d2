# SPDX-License-Identifier: Apache-2.0
"""Unmodified consumers without a committed offset: at the end where it is known, else at the start."""

import asyncio
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest

from tests.kafka.declared import declared_topic
from tests.kafka.java_shell import JavaShell
from tests.support import raw
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kafka

ENDS = {0: 50, 1: 0, 2: 7}
START = dict.fromkeys(ENDS, 0)
Starts = Callable[[str, str, str], Mapping[int, int]]
"""(bootstrap, topic, auto.offset.reset) -> where it starts, by partition."""


def topic_without(ours: Service) -> str:
    topic = f"undeclared-{uuid.uuid4().hex[:8]}"
    raw.create_topic(ours.bootstrap, topic, len(ENDS))
    raw.commit_offsets(ours.bootstrap, "somebody", topic, {0: 1_200_345})
    return topic


def librdkafka(bootstrap: str, topic: str, reset: str) -> Mapping[int, int]:
    """It says that it has come to the end of a partition, and at which offset, with its first fetch."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"rd-{uuid.uuid4().hex}",
            "auto.offset.reset": reset,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, index) for index in ENDS])
    told: dict[int, int] = {}

    def fetches() -> bool:
        message = consumer.poll(0.05)
        if message is not None:
            error = message.error()
            assert error is not None
            assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
            told[int(message.partition() or 0)] = int(message.offset() or 0)
        return told.keys() == ENDS.keys()

    wait_until(fetches, what=lambda: f"librdkafka to fetch: {told}")
    consumer.close()
    return told


def kafka_python(bootstrap: str, topic: str, reset: str) -> Mapping[int, int | None]:
    """Where it has no position, it waits for one without an end: that is None once the question was answered."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=f"kp-{uuid.uuid4().hex}", auto_offset_reset=reset
    )
    partitions = [kafka.TopicPartition(topic, index) for index in ENDS]
    consumer.assign(partitions)
    starts = {each.partition: consumer.position(each) for each in partitions}
    assert set(consumer.offsets_for_times(dict.fromkeys(partitions, 1_000)).values()) == {None}
    consumer.close()
    return starts


def aio(bootstrap: str, topic: str, reset: str) -> Mapping[int, int]:
    async def start() -> dict[int, int]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=f"aio-{uuid.uuid4().hex}", auto_offset_reset=reset
        )
        await consumer.start()
        try:
            partitions = [aiokafka.TopicPartition(topic, index) for index in ENDS]
            consumer.assign(partitions)
            return {each.partition: await consumer.position(each) for each in partitions}
        finally:
            await consumer.stop()

    return asyncio.run(start())


CLIENTS: list[Starts] = [librdkafka, aio]


@pytest.mark.parametrize("start", CLIENTS, ids=lambda start: str(start.__name__))
def test_a_consumer_without_a_committed_offset_starts(ours: Service, start: Starts) -> None:
    known, unknown = declared_topic(ours.bootstrap, ENDS), topic_without(ours)
    assert start(ours.bootstrap, known, "latest") == ENDS
    assert start(ours.bootstrap, known, "earliest") == START
    assert start(ours.bootstrap, unknown, "latest") == START
    assert start(ours.bootstrap, unknown, "earliest") == START


@pytest.mark.parametrize(("end_unknown", "at_latest"), [("-1", dict.fromkeys(ENDS, None)), ("0", START)])
def test_a_consumer_of_kafka_python_starts_where_the_setting_says(
    tmp_path: Path, end_unknown: str, at_latest: Mapping[int, int | None]
) -> None:
    with serving(tmp_path, {"end.unknown": end_unknown}) as ours:
        known, unknown = declared_topic(ours.bootstrap, ENDS), topic_without(ours)
        assert kafka_python(ours.bootstrap, known, "latest") == ENDS
        assert kafka_python(ours.bootstrap, known, "earliest") == START
        assert kafka_python(ours.bootstrap, unknown, "latest") == at_latest
        assert kafka_python(ours.bootstrap, unknown, "earliest") == START


def test_a_java_consumer_without_a_committed_offset_starts(ours: Service, java_shell: JavaShell) -> None:
    def start(topic: str, reset: str) -> Mapping[int, int]:
        ran = java_shell.run("start", ours.bootstrap, topic, reset)
        assert ran.status == 0, ran.errors
        return {int(line.split()[0]): int(line.split()[1]) for line in ran.output.splitlines()}

    known, unknown = declared_topic(ours.bootstrap, ENDS), topic_without(ours)
    assert start(known, "latest") == ENDS
    assert start(known, "earliest") == START
    assert start(unknown, "latest") == START
    assert start(unknown, "earliest") == START
