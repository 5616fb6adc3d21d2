# SPDX-License-Identifier: Apache-2.0
"""What a real client makes of a node that is full: it waits, and goes on by itself once there is room."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from tests.support.raw import commit_offsets, create_topic
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

TOPIC = "orders"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A node that takes one group."""
    settings: dict[str, str | int] = {
        "group.initial.rebalance.delay.ms": 0,
        "max.groups": 1,
        "log.flush": "os",
    }
    with serving(tmp_path, settings) as service:
        create_topic(service.bootstrap, TOPIC, 2)
        yield service


def test_a_consumer_that_finds_no_room_joins_once_there_is_some(service: Service) -> None:
    commit_offsets(service.bootstrap, "first", TOPIC, {0: 1})
    consumer = Consumer({"bootstrap.servers": service.bootstrap, "group.id": "second"})
    with closing(consumer):
        consumer.subscribe([TOPIC])

        def poll() -> int:
            message = consumer.poll(0.1)
            assert message is None or not message.error(), message.error()
            return len(consumer.assignment())

        wait_until(
            lambda: poll() == 0 and "a limit is reached" in service.log_text(),
            what="the join to be refused, and that to be logged",
        )
        admin = AdminClient({"bootstrap.servers": service.bootstrap})
        admin.delete_consumer_groups(["first"])["first"].result(120)
        wait_until(lambda: poll() == 2, what="the consumer to get both partitions")
