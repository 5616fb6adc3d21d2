# SPDX-License-Identifier: Apache-2.0
"""Clients of three libraries, with their defaults, that commit one offset after the other."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Final

import confluent_kafka
import kafka
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition
from aiokafka.errors import KafkaError as AiokafkaError
from kafka.errors import KafkaError

from bench.cluster import Address, Unprepared

BETWEEN_S: Final = 0.02
"""How long a client rests between two commits, and after one that has failed."""
WITHIN_S: Final = 60.0

Commit = Callable[[int], None]
"""Commits an offset. Raises one of FAILURES."""
FAILURES: Final = (KafkaError, AiokafkaError, confluent_kafka.KafkaException, OSError, TimeoutError)


class Committing:
    """Commits in a thread of its own, from its start until it is closed."""

    def __init__(self, name: str, commit: Commit) -> None:
        self.name = name
        self.acknowledged: list[tuple[float, float]] = []
        """When each commit that was acknowledged began and ended, by time.monotonic()."""
        self._commit = commit
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        offset = 0
        while not self._ends.wait(BETWEEN_S):
            offset += 1
            began = time.monotonic()
            with suppress(*FAILURES):
                self._commit(offset)
                self.acknowledged.append((began, time.monotonic()))

    def first_after(self, moment: float) -> float:
        """When the first commit was acknowledged that began after a moment. Raises Unprepared."""
        deadline = time.monotonic() + WITHIN_S
        while time.monotonic() < deadline:
            for began, ended in self.acknowledged:
                if began > moment:
                    return ended
            time.sleep(BETWEEN_S / 4)
        raise Unprepared(f"{self.name}: no commit was acknowledged within {WITHIN_S:g} s")

    def close(self) -> None:
        """Commit no more."""
        self._ends.set()
        self._thread.join()


@contextmanager
def _confluent(bootstrap: str, topic: str, group: str) -> Iterator[Commit]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False}
    )

    def commit(offset: int) -> None:
        partition = confluent_kafka.TopicPartition(topic, 0, offset)
        (done,) = consumer.commit(offsets=[partition], asynchronous=False) or []
        if done.error is not None:
            raise confluent_kafka.KafkaException(done.error)

    try:
        yield commit
    finally:
        consumer.close()


@contextmanager
def _kafka_python(bootstrap: str, topic: str, group: str) -> Iterator[Commit]:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    partition = kafka.TopicPartition(topic, 0)
    consumer.assign([partition])
    try:
        yield lambda offset: consumer.commit({partition: kafka.OffsetAndMetadata(offset, "", -1)})
    finally:
        consumer.close()


@contextmanager
def _aiokafka(bootstrap: str, topic: str, group: str) -> Iterator[Commit]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="aiokafka")
    thread.start()
    partition = AiokafkaPartition(topic, 0)

    async def started() -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
        await consumer.start()
        consumer.assign([partition])
        return consumer

    try:
        consumer = asyncio.run_coroutine_threadsafe(started(), loop).result(WITHIN_S)
        try:
            yield lambda offset: asyncio.run_coroutine_threadsafe(
                consumer.commit({partition: offset}), loop
            ).result(WITHIN_S)
        finally:
            asyncio.run_coroutine_threadsafe(consumer.stop(), loop).result(WITHIN_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


KINDS: Final = {"confluent-kafka": _confluent, "aiokafka": _aiokafka, "kafka-python": _kafka_python}


@contextmanager
def committing(bootstrap: Address, topic: str) -> Iterator[list[Committing]]:
    """One client of each library, once each of them has committed. Raises Unprepared."""
    for library in ("aiokafka", "kafka"):  # what they say of lost connections is what is measured
        logging.getLogger(library).addHandler(logging.NullHandler())
    began = time.monotonic()
    with ExitStack() as stack:
        clients = []
        for name, kind in KINDS.items():
            commit = stack.enter_context(kind(str(bootstrap), topic, f"failover-{name}"))
            clients.append(client := Committing(name, commit))
            stack.callback(client.close)
        for client in clients:
            client.first_after(began)
        yield clients
