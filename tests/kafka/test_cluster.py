# SPDX-License-Identifier: Apache-2.0
"""The cluster that others test against does what they rely on."""

from collections.abc import Iterator
from typing import Final

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from tests.kafka.cluster import MECHANISMS, PROTOCOLS, KafkaCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]

WAYS: Final = [
    ("PLAINTEXT", "PLAIN"),
    ("SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-512"),
    *(("SASL_PLAINTEXT", mechanism) for mechanism in MECHANISMS),
]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """One broker with all listeners, which asks for rights."""
    cluster = KafkaCluster(tmp_path_factory.mktemp("guarded"), protocols=PROTOCOLS, acls=True)
    try:
        cluster.start()
        cluster.create_topic("open", 2)
        cluster.produce("open", 10)
        cluster.allow("alice", "READ", "TOPIC", "open")
        cluster.allow("alice", "READ", "GROUP", "alices")
        yield cluster
    finally:
        cluster.close()


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_every_listener_takes_its_users(guarded: KafkaCluster, protocol: str, mechanism: str) -> None:
    settings = guarded.client_settings(protocol, mechanism, "alice")
    consumer = ck.Consumer({**settings, "group.id": "alices", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([ck.TopicPartition("open", index, ck.OFFSET_BEGINNING) for index in range(2)])
        read: list[bytes | None] = []

        def more() -> bool:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                read.append(message.value())
            return len(read) == 10

        wait_until(more, what=lambda: f"10 records, have {read}")
    finally:
        consumer.close()
    assert sorted(int(value or b"-1") for value in read) == list(range(10))


def test_who_has_no_right_gets_nothing(guarded: KafkaCluster) -> None:
    admin = AdminClient(guarded.client_settings("SASL_PLAINTEXT", "PLAIN", "bob"))
    with pytest.raises(ck.KafkaException) as refused:
        admin.describe_consumer_groups(["alices"])["alices"].result(120)
    assert refused.value.args[0].code() == ck.KafkaError.GROUP_AUTHORIZATION_FAILED, refused.value


def test_three_brokers_lose_one_and_have_one_replaced(tmp_path_factory: pytest.TempPathFactory) -> None:
    cluster = KafkaCluster(tmp_path_factory.mktemp("three"), brokers=3)
    try:
        cluster.start()
        cluster.create_topic("t", 3)
        cluster.produce("t", 30)
        cluster.kill9(2)
        cluster.wait_for_leaders("t", 3)
        cluster.produce("t", 30, first=30)
        cluster.replace(2, 7)
        assert set(cluster.metadata().brokers) == {1, 3, 7}
        replicas = {r for part in cluster.metadata().topics["t"].partitions.values() for r in part.replicas}
        assert replicas == {1, 3, 7}
        cluster.kill9(1)
        cluster.wait_for_leaders("t", 3)
        cluster.produce("t", 30, first=60)
        cluster.restart(1)
        assert set(cluster.metadata().brokers) == {1, 3, 7}
    finally:
        cluster.close()
