# SPDX-License-Identifier: Apache-2.0
"""Clients that live on while a gateway dies, while a broker hears nothing, and while all brokers are gone."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import confluent_kafka as ck
import pytest

from tests.kafka.cluster import KafkaCluster
from tests.support.raw import fetch_offsets
from tests.support.waiting import wait_until
from tests.workers.fronting import Fronting

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC, GROUP = "lived", "living"
RECORDS = 10


@pytest.fixture
def front(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronting]:
    settings: dict[str, str | int] = {"gateway.adopt": "off", "upstream.request.timeout.ms": 2_000}
    front = Fronting(tmp_path_factory.mktemp("front"), cluster.bootstrap(), settings)
    try:
        front.start()
        yield front
    finally:
        front.close()


class Living:
    """A consumer that reads and commits until it is closed, whatever befalls the others."""

    def __init__(self, bootstrap: str) -> None:
        self.seen: set[bytes] = set()
        self._consumer = ck.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "reconnect.backoff.max.ms": 500,
                "socket.timeout.ms": 10_000,
            }
        )
        self._consumer.subscribe([TOPIC])
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._ends.is_set():
            message = self._consumer.poll(0.2)
            if message is None or message.error() is not None:
                continue
            value = message.value()
            assert value is not None
            self.seen.add(value)
            with suppress(ck.KafkaException):  # the next record's commits it, too
                self._consumer.commit(message=message, asynchronous=False)

    def close(self) -> None:
        self._ends.set()
        self._thread.join()
        self._consumer.close()


def started(front: Fronting, event: str) -> list[dict[str, Any]]:
    """The lines of the log with this event."""
    return [json.loads(line) for line in front.log_text().splitlines() if f'"{event}"' in line]


def test_a_consumer_lives_through_gateways_and_brokers_that_do_not(
    cluster: KafkaCluster, front: Fronting
) -> None:
    cluster.create_topic(TOPIC, 1)
    living = Living(front.bootstrap)
    written = 0

    def more() -> None:
        """What is written now is read and committed by the same consumer, and nothing committed moves back."""
        nonlocal written
        cluster.produce(TOPIC, RECORDS, first=written)
        written += RECORDS
        wanted = {str(number).encode() for number in range(written)}
        wait_until(lambda: living.seen >= wanted, what=lambda: f"records: {front.log_text()[-3000:]}")
        # one more, as the last commit may have met what befell
        cluster.produce(TOPIC, 1, first=written)
        written += 1
        wait_until(lambda: committed() == written, what=lambda: f"{committed()} to be {written}")

    last = 0

    def committed() -> int:
        nonlocal last
        try:
            found = fetch_offsets(front.bootstrap, GROUP).get((TOPIC, 0), 0)
        except (OSError, AssertionError):
            return -1  # just not to be had
        assert found >= last, "a committed offset has moved back"
        last = found
        return found

    def brokers_error() -> str | None:
        broker = front.ready().get("upstream", {}).get("brokers", {}).get("1", {})
        error: str | None = broker.get("error")
        return error

    try:
        more()
        spare = wait_until(lambda: started(front, "started a spare gateway"), what="a spare")[-1]
        gateway = started(front, "started a gateway")[-1]
        os.kill(gateway["pid"], signal.SIGKILL)
        more()
        assert started(front, "started a gateway")[-1]["pid"] == spare["pid"]
        wait_until(lambda: len(started(front, "started a spare gateway")) == 2, what="the next spare")
        cluster.brokers[1].pause()
        wait_until(lambda: brokers_error() is not None, what="a broker that hears nothing to be missed")
        cluster.brokers[1].resume()
        more()
        cluster.kill9(1)
        wait_until(lambda: brokers_error() is not None, what="brokers that are gone to be missed")
        cluster.restart(1)
        more()
    finally:
        living.close()
