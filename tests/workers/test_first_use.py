# SPDX-License-Identifier: Apache-2.0
"""A consumer moves from a real Kafka onto the gateway by its address alone: no record twice, none left out."""

from collections.abc import Iterator

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from tests.kafka.cluster import KafkaCluster
from tests.support.raw import fetch_offsets
from tests.support.waiting import wait_until
from tests.workers.fronting import Fronting

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PARTITIONS = 3


@pytest.fixture(scope="module")
def front(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronting]:
    front = Fronting(tmp_path_factory.mktemp("front"), cluster.bootstrap(), {"gateway.workers": 2})
    try:
        front.start()
        yield front
    finally:
        front.close()


class Reader:
    """A consumer that commits what it has read."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
        self._consumer = ck.Consumer({**settings, "enable.auto.commit": False})
        self._consumer.subscribe([topic])
        self.seen: list[int] = []

    def read_one(self) -> bool:
        message = self._consumer.poll(0.2)
        if message is None or message.error() is not None:
            return False
        self.seen.append(int(message.value() or b""))
        return True

    def read(self, count: int) -> None:
        wait_until(
            lambda: self.read_one() and len(self.seen) >= count,
            60,
            what=lambda: f"{count} records, beyond {len(self.seen)}",
        )
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


def produce(bootstrap: str, topic: str, numbers: range) -> None:
    producer = ck.Producer({"bootstrap.servers": bootstrap})
    for number in numbers:
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def test_a_consumer_goes_on_where_it_was_at_the_cluster(front: Fronting, cluster: KafkaCluster) -> None:
    cluster.create_topic("moves", PARTITIONS)
    produce(cluster.bootstrap(), "moves", range(30))
    before = Reader(cluster.bootstrap(), "moves")
    before.read(30)
    before.close()
    produce(front.bootstrap, "moves", range(30, 60))
    after = Reader(front.bootstrap, "moves")
    after.read(30)
    after.close()
    assert sorted(before.seen + after.seen) == list(range(60))
    assert sum(fetch_offsets(front.bootstrap, "moves").values()) == 60


def test_a_group_with_members_at_the_cluster_stays_there_until_they_leave(
    front: Fronting, cluster: KafkaCluster
) -> None:
    cluster.create_topic("lives", PARTITIONS)
    produce(cluster.bootstrap(), "lives", range(9))
    staying = Reader(cluster.bootstrap(), "lives")
    staying.read(9)
    coming = Reader(front.bootstrap, "lives")
    wait_until(
        lambda: coming.read_one() or "stays there until they are gone" in front.log_text(),
        30,
        what=lambda: f"the gateway to say that the group is elsewhere: {front.log_text()[-2000:]}",
    )
    assert not coming.seen
    staying.close()
    produce(front.bootstrap, "lives", range(9, 18))
    coming.read(9)
    coming.close()
    assert sorted(staying.seen + coming.seen) == list(range(18))


def test_a_group_that_was_deleted_here_does_not_get_its_old_offsets_back(
    front: Fronting, cluster: KafkaCluster
) -> None:
    cluster.create_topic("deleted", PARTITIONS)
    produce(cluster.bootstrap(), "deleted", range(30))
    before = Reader(cluster.bootstrap(), "deleted")
    before.read(30)
    before.close()
    assert sum(fetch_offsets(front.bootstrap, "deleted").values()) == 30
    admin = AdminClient({"bootstrap.servers": front.bootstrap})
    admin.delete_consumer_groups(["deleted"])["deleted"].result(120)
    front.restart()
    wait_until(lambda: front.ready().get("ready") is True, what="the gateway to serve again")
    assert not fetch_offsets(front.bootstrap, "deleted")
