# SPDX-License-Identifier: Apache-2.0
"""Brokers that go, come back and are replaced, while clients go on through a gateway."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.gateway.reading import Reading
from tests.gateway.whole import Whole
from tests.kafka.cluster import KafkaCluster
from tests.support.raw import fetch_offsets
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

RECORDS = 150
PAUSE_MS = 100


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    """Three brokers behind a gateway."""
    work = tmp_path_factory.mktemp("three")
    cluster = KafkaCluster(work / "kafka", 3)
    running = Whole(work / "node", cluster)
    try:
        cluster.start()
        running.start()
        yield running
    finally:
        running.close()
        cluster.close()


def offsets(whole: Whole, group: str) -> int:
    """How far the group has come."""
    return sum(fetch_offsets(whole.bootstrap, group).values())


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("library", "node_id"), [("confluent", 1), ("java", 2)])
def test_clients_read_each_record_once_while_a_broker_is_killed_and_comes_back(
    three: Whole, tmp_path: Path, library: str, node_id: int
) -> None:
    topic = f"killed-{library}"
    three.create_topic(topic, 3)
    reading = Reading(three, tmp_path / "client.log", library, topic, RECORDS, PAUSE_MS)
    try:
        wait_until(
            lambda: reading.has_ended() or offsets(three, topic) > 10,
            60,
            what=lambda: f"some commits:\n{reading.said()}",
        )
        three.cluster.kill9(node_id)
        before = offsets(three, topic)
        wait_until(
            lambda: reading.has_ended() or offsets(three, topic) > before + 20,
            90,
            what=lambda: f"commits without broker {node_id}:\n{reading.said()}",
        )
        three.cluster.restart(node_id)
        wait_until(reading.has_ended, 90, what=lambda: f"the client to read all:\n{reading.said()}")
        assert sorted(reading.values()) == list(range(RECORDS))
    finally:
        reading.close()
        if not three.cluster.brokers[node_id].runs:
            three.cluster.restart(node_id)
    assert offsets(three, topic) == RECORDS


@pytest.mark.timeout(300)
def test_a_broker_that_replaces_another_is_found_through_its_own_port(three: Whole, tmp_path: Path) -> None:
    topic = "replaced"
    three.create_topic(topic, 3)
    three.cluster.replace(3, 4)
    reading = Reading(three, tmp_path / "client.log", "confluent", topic, 30, 50)
    try:
        wait_until(reading.has_ended, 90, what=lambda: f"the client to read all:\n{reading.said()}")
        assert sorted(reading.values()) == list(range(30))
    finally:
        reading.close()
    # A client need not have asked it, where others lead: so one asks it alone.
    port = three.broker_port(4)
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert admin.list_topics(timeout=30).brokers[4].port == port
