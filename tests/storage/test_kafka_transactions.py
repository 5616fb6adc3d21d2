# SPDX-License-Identifier: Apache-2.0
"""A real broker's log with transactions and a new consumer group in it, here and back there."""

import itertools
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from tests.kafka.broker import KafkaBroker
from tests.storage.test_kafka_directory import once_ready
from tests.support.service import Service
from tests.support.waiting import wait_until

TOPIC = "topic"
TRANSACTION_TIMEOUT_MS = 600_000
numbers = itertools.count()


def create_topic(bootstrap: str) -> None:
    """The one topic, of one partition."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([ck.admin.NewTopic(TOPIC, 1, 1)])[TOPIC].result(120)


def commit(bootstrap: str, group: str, offset: int) -> None:
    """An ordinary commit to partition 0."""
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    wanted = [ck.TopicPartition(TOPIC, 0, offset)]
    once_ready(partial(consumer.commit, offsets=wanted, asynchronous=False), f"{group}'s commit")
    consumer.close()


def committed(bootstrap: str, group: str) -> int:
    """The offset of partition 0 as a client sees it; -1001 for none."""
    # read_committed would wait for open transactions.
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_uncommitted"}
    consumer = ck.Consumer(settings)
    asked = [ck.TopicPartition(TOPIC, 0)]
    (found,) = once_ready(partial(consumer.committed, asked, timeout=120), f"{group}'s offset")
    consumer.close()
    offset: int = found.offset
    return offset


def transaction(bootstrap: str, offsets: dict[str, int]) -> ck.Producer:
    """A producer with a transaction under way that holds these groups' offsets."""
    producer = ck.Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"transaction-{next(numbers)}",
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        }
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    for group, offset in offsets.items():
        consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        wanted = [ck.TopicPartition(TOPIC, 0, offset)]
        producer.send_offsets_to_transaction(wanted, consumer.consumer_group_metadata(), 60)
        consumer.close()
    return producer


def join_new_consumer_group(bootstrap: str, group: str) -> None:
    """A member of a group of KIP-848 gets its assignment, and leaves."""
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": "consumer"})
    consumer.subscribe([TOPIC])

    def assigned() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    wait_until(assigned, what="an assignment")
    consumer.commit(offsets=[ck.TopicPartition(TOPIC, 0, 7)], asynchronous=False)
    consumer.close()


def metric(service: Service, name: str) -> float:
    """The value of a metric without labels."""
    with urlopen(f"http://127.0.0.1:{service.metrics_port}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"groupkeeper_{name} ")))


@pytest.mark.slow
@pytest.mark.kafka
def test_transactions_of_a_broker_show_only_what_was_committed(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "kafka", {"offsets.topic.num.partitions": 3})
    service = Service(tmp_path / "ours", {"node.id": 1, "offsets.topic.num.partitions": 3})
    service.data_dir = broker.data_dir
    try:
        broker.start()
        there = broker.bootstrap
        create_topic(there)
        for group in ("committed", "aborted", "open", "written here"):
            commit(there, group, 10)
        transaction(there, {"committed": 50, "only committed": 50}).commit_transaction(60)
        transaction(there, {"aborted": 50, "only aborted": 50}).abort_transaction(60)
        left_open = transaction(there, {"open": 50, "only open": 50, "overtaken": 50, "written here": 50})
        commit(there, "overtaken", 60)
        join_new_consumer_group(there, "new")
        expected = {
            "committed": 50,
            "only committed": 50,
            "aborted": 10,
            "only aborted": ck.OFFSET_INVALID,
            "open": 10,
            "only open": ck.OFFSET_INVALID,
            "overtaken": 60,
            "written here": 10,
            "new": 7,
        }
        assert {group: committed(there, group) for group in expected} == expected
        broker.terminate()

        service.start()
        here = service.bootstrap
        create_topic(here)
        assert {group: committed(here, group) for group in expected} == expected
        # The groups of the transaction lie in several partitions, and the transaction in each of them.
        assert metric(service, "open_transactions_total") in (1, 2, 3)
        assert "offsets of open transactions are not shown" in service.log_text()
        assert metric(service, "unknown_records_total") > 0
        commit(here, "written here", 70)
        service.terminate()
        # Again, so that what we wrote behind an open transaction is loaded.
        service.start()
        assert committed(here, "written here") == 70
        service.terminate()

        # Back at its coordinator the transaction ends, and does not undo what came later.
        broker.start()
        once_ready(partial(left_open.commit_transaction, 60), "the end of the transaction")
        expected |= {"open": 50, "only open": 50, "written here": 70}
        wait_until(lambda: committed(there, "only open") == 50, what="the transaction to end")
        assert {group: committed(there, group) for group in expected} == expected
        broker.terminate()
        service.start()
        assert {group: committed(here, group) for group in expected} == expected
        assert metric(service, "open_transactions_total") == 0
        service.terminate()
    finally:
        broker.close()
        service.close()
