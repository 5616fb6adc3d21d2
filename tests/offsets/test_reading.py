# SPDX-License-Identifier: Apache-2.0
"""Clients that are not ours consume `__consumer_offsets` of a running node, which compacts it meanwhile."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest

from protocol.newtypes import GroupId, Offset
from protocol.placement import partition_for
from storage.disk.filesystem import RealFileSystem
from storage.format.records import OffsetCommitRecord, decode_key_and_value
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.offsets.test_compaction import GROUPS, SETTINGS, TOPIC, commit_until, metric
from tests.storage import foreign
from tests.storage.test_transactions import offset as offset_record
from tests.support import raw
from tests.support.raw import RawConnection
from tests.support.reading import OFFSETS_TOPIC, Follower, fetch, fetch_request, read_all
from tests.support.service import Service, serving
from tests.support.waiting import wait_until

Take = Callable[[int, bytes, bytes | None], None]
"""Takes a record: its partition, key and value."""
Client = Callable[[str, list[int], bool, Take, threading.Event], None]
"""(bootstrap, partitions, committed data only, take, until)"""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with serving(tmp_path, SETTINGS) as service:
        yield service


def with_kafka_python(
    bootstrap: str, partitions: list[int], committed: bool, take: Take, until: threading.Event
) -> None:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        auto_offset_reset="earliest",
        check_crcs=True,
        isolation_level="read_committed" if committed else "read_uncommitted",
    )
    consumer.assign([kafka.TopicPartition(OFFSETS_TOPIC, partition) for partition in partitions])
    while not until.is_set():
        for records in consumer.poll(timeout_ms=100).values():
            for record in records:
                take(record.partition, record.key, record.value)
    consumer.close()


def with_aiokafka(
    bootstrap: str, partitions: list[int], committed: bool, take: Take, until: threading.Event
) -> None:
    async def consume() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            auto_offset_reset="earliest",
            check_crcs=True,
            isolation_level="read_committed" if committed else "read_uncommitted",
        )
        await consumer.start()
        try:
            consumer.assign([aiokafka.TopicPartition(OFFSETS_TOPIC, partition) for partition in partitions])
            while not until.is_set():
                for records in (await consumer.getmany(timeout_ms=100)).values():
                    for record in records:
                        take(record.partition, record.key, record.value)
        finally:
            await consumer.stop()

    asyncio.run(consume())


def with_confluent(
    bootstrap: str, partitions: list[int], committed: bool, take: Take, until: threading.Event
) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "check.crcs": True,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    consumer.assign(
        [
            confluent_kafka.TopicPartition(OFFSETS_TOPIC, partition, confluent_kafka.OFFSET_BEGINNING)
            for partition in partitions
        ]
    )
    while not until.is_set():
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None, message.error()
            partition, key = message.partition(), message.key()
            assert partition is not None
            assert key is not None
            take(partition, key, message.value())
    consumer.close()


CLIENTS: list[Client] = [with_kafka_python, with_aiokafka, with_confluent]


class Consumer:
    """A client in a thread of its own, and what the records that it was given say of committed offsets."""

    def __init__(
        self, client: Client, bootstrap: str, partitions: list[int], *, committed: bool = False
    ) -> None:
        self.offsets: dict[str, dict[tuple[str, int], int]] = {}
        self.records = 0
        self._failure: BaseException | None = None
        self._until = threading.Event()
        arguments = (client, bootstrap, partitions, committed)
        self._thread = threading.Thread(target=self._run, args=arguments, name=client.__name__)
        self._thread.start()

    def _run(self, client: Client, bootstrap: str, partitions: list[int], committed: bool) -> None:
        try:
            client(bootstrap, partitions, committed, self._take, self._until)
        except BaseException as error:  # noqa: BLE001 - raised where the test waits
            self._failure = error

    def _take(self, partition: int, key: bytes, value: bytes | None) -> None:
        self.records += 1
        record = decode_key_and_value(key, value)
        if isinstance(record, OffsetCommitRecord):
            group = self.offsets.setdefault(record.group, {})
            if record.value is None:
                group.pop((record.topic, record.partition), None)
            else:
                group[record.topic, record.partition] = record.value.offset

    def has(self, offsets: dict[str, dict[tuple[str, int], int]]) -> bool:
        """Whether it has come to know these, and no others of these groups."""
        if self._failure is not None:
            raise self._failure
        return all(self.offsets.get(group, {}) == found for group, found in offsets.items())

    def close(self) -> None:
        self._until.set()
        self._thread.join(120)
        assert not self._thread.is_alive(), f"{self._thread.name} does not end"


@pytest.mark.slow
def test_clients_read_all_while_it_is_compacted(service: Service) -> None:
    raw.create_topic(service.bootstrap, TOPIC)
    newest = commit_until(service, 0, 1)
    consumers = [Consumer(client, service.bootstrap, [0]) for client in CLIENTS]
    follower = Follower()
    try:
        with RawConnection(service.bootstrap) as connection:
            position = 0
            for cleanings in (3, 5):
                newest = commit_until(service, newest, cleanings)
                for batch in read_all(connection, 0, position):
                    follower.take(iter([batch]))
                    position = batch.next_offset
            connection.call(raw.offset_delete(GROUPS[0], TOPIC, [3]), 0)
            follower.take(read_all(connection, 0, position))
        expected = {group: raw.fetch_offsets(service.bootstrap, group) for group in GROUPS}
        assert expected[GROUPS[1]] == {(TOPIC, p): newest + p for p in range(8)}
        assert {group: follower.offsets[group] for group in GROUPS} == expected
        for consumer in consumers:
            wait_until(
                lambda consumer=consumer: consumer.has(expected),  # type: ignore[misc]
                30,
                what=lambda consumer=consumer: f"all commits: {consumer.offsets}",  # type: ignore[misc]
            )
        # Compacted while they read, for sure: not every record was there any more for who came later.
        assert metric(service, "log_cleaning_failures_total") == 0
        with RawConnection(service.bootstrap) as connection:
            left = sum(batch.count for batch in read_all(connection, 0))
        assert left < newest * len(GROUPS) * 8
    finally:
        for consumer in consumers:
            consumer.close()


def test_a_second_reader_that_starts_from_what_is_left_has_the_same_state(service: Service) -> None:
    """What compaction has left says the same as all that was ever written."""
    raw.create_topic(service.bootstrap, TOPIC)
    commit_until(service, 0, 3)
    follower = Follower()
    with RawConnection(service.bootstrap) as connection:
        follower.take(read_all(connection, 0))
    assert follower.offsets == {group: raw.fetch_offsets(service.bootstrap, group) for group in GROUPS}


def test_a_long_poll_is_answered_on_the_next_commit(service: Service) -> None:
    raw.create_topic(service.bootstrap, TOPIC)
    with RawConnection(service.bootstrap) as connection:
        connection.send(fetch_request({0: 0}, wait_ms=600_000), 12)
        # When this has been answered, the node has read the Fetch before.
        assert raw.fetch_offsets(service.bootstrap, GROUPS[0]) == {}
        raw.commit_offsets(service.bootstrap, GROUPS[0], TOPIC, {0: 1})
        (topic,) = connection.receive().responses
        assert topic.partitions[0].records


# --- a log that a broker wrote


@pytest.fixture
def taken_over(tmp_path: Path) -> Iterator[Service]:
    """A node on a log with transactions: one that was aborted, one that was committed, and one that is open."""
    service = Service(tmp_path)
    log = LogManager.open(service.data_dir, LogSettings(), RealFileSystem())
    batches = [
        foreign.plain([offset_record(1)], 0),
        foreign.transactional([offset_record(100)], 1, 9),
        foreign.plain([offset_record(2, 1)], 2),
        foreign.marker(3, 9, commit=False),
        foreign.transactional([offset_record(3, 2)], 4, 9),
        foreign.marker(5, 9, commit=True),
        foreign.transactional([offset_record(200, 3)], 6, 10),
        foreign.plain([offset_record(300, 4)], 7),
    ]
    for number, batch in enumerate(batches):
        log.append([Entry(partition_for(GroupId("g"), 50), Offset(number), batch)], sync=True)
    log.close()
    try:
        service.start()
        yield service
    finally:
        service.close()


@pytest.mark.parametrize("client", CLIENTS)
def test_who_reads_committed_data_gets_what_was_committed_before_an_open_transaction(
    taken_over: Service, client: Client
) -> None:
    partition = partition_for(GroupId("g"), 50)
    consumer = Consumer(client, taken_over.bootstrap, [partition], committed=True)
    every = Consumer(client, taken_over.bootstrap, [partition])
    try:
        committed = {("t", 0): 1, ("t", 1): 2, ("t", 2): 3}
        wait_until(lambda: consumer.has({"g": committed}), what="what was committed")
        wait_until(
            lambda: every.has({"g": {("t", 0): 100, ("t", 1): 2, ("t", 2): 3, ("t", 3): 200, ("t", 4): 300}}),
            30,
            what="all there is",
        )
        assert consumer.has({"g": committed})
        assert consumer.records == 3
    finally:
        consumer.close()
        every.close()
    with RawConnection(taken_over.bootstrap) as connection:
        (answer,) = fetch(connection, {partition: 0}, isolation_level=1).responses[0].partitions
    assert [(each.producer_id, each.first_offset) for each in answer.aborted_transactions] == [(9, 1)]
    assert (answer.high_watermark, answer.last_stable_offset) == (8, 6)
