# SPDX-License-Identifier: Apache-2.0
"""Without Produce in ApiVersions librdkafka sent no Fetch: its consumers took a whole core to try again and again.

librdkafka's own 0067_empty_topic found it (tests/peers).
"""

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.apis import ApiKey
from protocol.kafka_python_messages import ProduceRequest
from tests.net import requests
from tests.net.edge import Edge, settle
from tests.support.service import Service, serving

TOPIC = "empty"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path, {"group.initial.rebalance.delay.ms": 0}) as running:
        yield running


def with_topic(service: Service) -> dict[str, str | int | float | bool]:
    """Create the topic; returns what clients need to know of the service."""
    bootstrap: dict[str, str | int | float | bool] = {"bootstrap.servers": service.bootstrap}
    admin = AdminClient(bootstrap)
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(120)
    return bootstrap


def test_a_consumer_of_librdkafka_reaches_the_end_of_an_empty_topic(service: Service) -> None:
    bootstrap = with_topic(service)
    consumer = confluent_kafka.Consumer({**bootstrap, "group.id": "g", "enable.partition.eof": True})
    try:
        consumer.subscribe([TOPIC])
        told = consumer.poll(30)
        assert told is not None, "no Fetch was answered"
        error = told.error()
        assert error is not None
        assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
    finally:
        consumer.close()


def test_a_producer_of_librdkafka_is_refused_at_once(service: Service) -> None:
    refusals: list[int | None] = []
    producer = confluent_kafka.Producer({**with_topic(service), "message.timeout.ms": 60_000})
    producer.produce(
        TOPIC, b"a", on_delivery=lambda error, _: refusals.append(error.code() if error else None)
    )
    assert producer.flush(30) == 0
    assert refusals == [confluent_kafka.KafkaError.POLICY_VIOLATION]


async def test_a_produce_that_expects_no_answer_ends_its_connection_after_the_answers_before(
    tmp_path: Path,
) -> None:
    edge = Edge(tmp_path)
    client = edge.connect()
    partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=None)
    topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[partition])
    silent = ProduceRequest(transactional_id=None, acks=0, timeout_ms=1, topic_data=[topic])
    client.send(
        requests.api_versions(1), requests.request(ApiKey.PRODUCE, 9, silent, 2), requests.api_versions(3)
    )
    assert client.correlation_ids() == [1]
    assert client.transport.closed
    await settle()
    assert not edge.server.connections
    another = edge.connect()
    another.send(requests.api_versions(4))
    assert another.correlation_ids() == [4]
