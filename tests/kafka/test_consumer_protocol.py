# SPDX-License-Identifier: Apache-2.0
"""Clients with `group.protocol=consumer` (KIP-848) get an error that they show, and do not wait for ever."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError

from tests.kafka.java_shell import JavaShell
from tests.support.raw import create_topic
from tests.support.service import Service
from tests.support.target import Gateway
from tests.support.waiting import wait_until

pytestmark = pytest.mark.process

TOPIC = "work"


@pytest.fixture(
    scope="module", params=[Service, pytest.param(Gateway, marks=pytest.mark.kafka)], ids=["node", "gateway"]
)
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node alone, and one in front of a Kafka that has groups of KIP-848."""
    server = request.param(tmp_path_factory.mktemp("server"), {})
    try:
        server.start()
        create_topic(server.bootstrap, TOPIC, 1)
        yield server.bootstrap
    finally:
        server.close()


def test_a_consumer_of_librdkafka_gets_a_fatal_error(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "new-librdkafka", "group.protocol": "consumer"}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([TOPIC])
        (message,) = wait_until(lambda: consumer.consume(1, 0.1), what="an error")
        error = message.error()
        assert error is not None
        assert error.code() == KafkaError._FATAL
        assert "ConsumerGroupHeartbeat fatal error: Broker: API version not supported" in error.str()


@pytest.mark.kafka
def test_a_java_consumer_is_told_to_use_the_classic_protocol(bootstrap: str, java_shell: JavaShell) -> None:
    ran = java_shell.run("join-new", bootstrap, TOPIC)
    assert ran.status == 0, ran.errors
    assert "UnsupportedVersionException: The cluster does not support the new CONSUMER group" in ran.output
    assert "Set group.protocol=classic" in ran.output
