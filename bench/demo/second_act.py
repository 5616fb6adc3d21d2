# SPDX-License-Identifier: Apache-2.0
"""The second act: a consumer of a real Kafka moves onto the gateway while it works, and back, without missing a record.

Every record has a number; at the end each must have been handled once.
"""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.cluster import Address
from bench.demo.group import Broken
from bench.demo.screen import Screen
from bench.installed import groupkeeper
from bench.kafka import Kafka, KafkaUnavailable
from bench.ports import BROKERS, free_ports
from bench.servers import Groupkeeper, NotStarted

TOPIC: Final = "invoices"
GROUP: Final = "accounting"
PARTITIONS: Final = range(3)
RECORDS: Final = 90
STEP: Final = 30
BROKER_ID: Final = 1
WAIT_S: Final = 60.0


def play(work: Path, screen: Screen) -> int:
    """Tell it, where a Kafka can be had. Returns the exit status: 1 when something did not hold."""
    screen.title("Second act: in front of a real Kafka")
    try:
        broker = Kafka("kafka", work / "kafka")
    except KafkaUnavailable as missing:
        screen.say(f"Not played: {missing}")
        return 0
    gateway = _gateway(work, broker.address)
    with broker, gateway:
        try:
            Act(broker, gateway, screen).tell()
        except NotStarted as broken:
            screen.broken(str(broken))  # which quotes the process already
            return 1
        except (Broken, KafkaException, subprocess.SubprocessError) as broken:
            screen.broken(str(broken), {each.name: each.last_output() for each in (broker, gateway)})
            return 1
    return 0


def _gateway(work: Path, broker: Address) -> Groupkeeper:
    base = free_ports(1, BROKERS)[0] - BROKER_ID
    settings = {"upstream.bootstrap.servers": str(broker), "gateway.port.base": str(base)}
    return Groupkeeper("groupkeeper", work / "front", settings)


class Act:
    """Told once."""

    def __init__(self, broker: Kafka, gateway: Groupkeeper, screen: Screen) -> None:
        self._broker = broker
        self._gateway = gateway
        self._screen = screen
        self._handled: list[int] = []

    def tell(self) -> None:
        """Everything, in order. Raises Broken when something does not hold, NotStarted, KafkaException."""
        self.work_at_the_cluster()
        self.move_in()
        self.see_the_lag()
        self.move_out()

    def work_at_the_cluster(self) -> None:
        """A consumer group as there are many."""
        self._screen.heading("1. A group works at a Kafka cluster")
        with self._screen.waiting("Kafka starts."):
            self._broker.start()
        servers: dict[str, str | int | float | bool] = {"bootstrap.servers": str(self._broker.address)}
        admin = AdminClient(servers)
        admin.create_topics([NewTopic(TOPIC, len(PARTITIONS))])[TOPIC].result()
        producer = Producer(servers)
        for number in range(RECORDS):
            producer.produce(TOPIC, str(number).encode(), partition=number % len(PARTITIONS))
        if producer.flush(WAIT_S):
            raise Broken("Kafka has not taken all records")
        self._handle(self._broker.address)
        self._screen.say(
            f"Kafka has {RECORDS} records in topic {TOPIC}. Group {GROUP} has handled {STEP} of them and committed "
            f"that at the broker, {self._broker.address}."
        )

    def move_in(self) -> None:
        """The one change: another address."""
        self._screen.heading("2. It is given another address")
        with self._screen.waiting("Groupkeeper starts in front of Kafka."):
            self._gateway.start()
        self._handle(self._gateway.address)
        self._screen.say(
            f"Groupkeeper stands in front of it now, on {self._gateway.address}. The consumer connects there, goes on "
            f"where it was, and has handled {STEP} more: the records come from Kafka, the commits stay here."
        )

    def see_the_lag(self) -> None:
        """Whether the lag is what is left, and what is committed here is not at Kafka."""
        with _consumer(self._gateway.address) as consumer:
            places = consumer.committed([TopicPartition(TOPIC, each) for each in PARTITIONS], timeout=WAIT_S)
            ends = {p.partition: consumer.get_watermark_offsets(p, timeout=WAIT_S)[1] for p in places}
        lag = {p.partition: ends[p.partition] - max(p.offset, 0) for p in places}
        with _consumer(self._broker.address) as consumer:
            there = consumer.committed([TopicPartition(TOPIC, each) for each in PARTITIONS], timeout=WAIT_S)
        rows = {
            "committed here": _committed(places),
            "at Kafka": _committed(there),
            "lag": lag,
        }
        self._screen.table(PARTITIONS, rows)
        if sum(lag.values()) != RECORDS - 2 * STEP:
            raise Broken(f"the lag is {sum(lag.values())}, and {RECORDS - 2 * STEP} records are left")

    def move_out(self) -> None:
        """Leaving is as easy."""
        self._screen.heading("3. And back")
        command = [
            *groupkeeper(),
            "give-back",
            "--execute",
            "--group",
            GROUP,
            "--data-dir",
            str(self._gateway.data),
        ]
        command += ["--set", f"upstream.bootstrap.servers={self._broker.address}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
        if done.returncode:
            raise Broken(f"the group was not given back:\n{done.stdout}{done.stderr}")
        self._screen.say("`groupkeeper give-back` writes its offsets to Kafka, and Groupkeeper goes.")
        self._gateway.stop()
        self._handle(self._broker.address)
        if sorted(self._handled) != list(range(RECORDS)):
            raise Broken(f"of {RECORDS} records these were handled: {sorted(self._handled)}")
        self._screen.say(
            f"At the broker's own address it handles the last {STEP}. [good]All {RECORDS} records were handled once.[/]"
        )

    def _handle(self, bootstrap: Address) -> None:
        """Be a member there until so many more records are handled and committed."""
        handled = 0
        deadline = time.monotonic() + WAIT_S
        with self._screen.waiting("The consumer works."), _consumer(bootstrap) as consumer:
            consumer.subscribe([TOPIC])
            while handled < STEP:
                if time.monotonic() > deadline:
                    raise Broken(f"{handled} of {STEP} records came from {bootstrap} within {WAIT_S:g} s")
                record = consumer.poll(0.2)
                if record is not None and record.error() is None:
                    self._handled.append(int(record.value() or b""))
                    consumer.commit(message=record, asynchronous=False)
                    handled += 1


def _committed(places: list[TopicPartition]) -> dict[int, int]:
    """By partition, without those of which nothing was committed."""
    return {place.partition: place.offset for place in places if place.offset >= 0}


@contextmanager
def _consumer(bootstrap: Address) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": str(bootstrap),
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()
