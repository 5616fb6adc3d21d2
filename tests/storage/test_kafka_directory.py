# SPDX-License-Identifier: Apache-2.0
"""A broker's directory is opened here, and then there again: what either wrote, both read."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.disk.filesystem import RealFileSystem
from storage.disk.properties import load_or_create_meta
from storage.format.batch import BatchBuilder, iter_batches
from storage.format.record_decoder import RecordDecoder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.kafka.broker import KafkaBroker
from tests.support.waiting import wait_until

T = TypeVar("T")

PARTITIONS = 5
GROUPS = [f"group-{n}" for n in range(30)]
TOPIC = "topic"


# A broker that has just started does not know yet what it leads, and then loads that.
NOT_YET = {
    ck.KafkaError.NOT_COORDINATOR,
    ck.KafkaError.COORDINATOR_NOT_AVAILABLE,
    ck.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    ck.KafkaError.UNKNOWN_TOPIC_OR_PART,
    ck.KafkaError._TIMED_OUT,
    ck.KafkaError._TRANSPORT,
    ck.KafkaError._WAIT_COORD,
}

OFFSETS_PARTITIONS = 50
"""Of Kafka's offsets topic, at most: its default."""


def once_ready(call: Callable[[], T], what: str) -> T:
    """What `call` returns, tried until the broker is ready for it."""

    def attempt() -> tuple[T] | None:
        try:
            return (call(),)
        except ck.KafkaException as error:
            if error.args[0].code() not in NOT_YET:
                raise
            return None

    return wait_until(attempt, 90, what=what)[0]


def commit(bootstrap: str) -> None:
    """Offset 100 + partition for every group, with metadata for the even partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    created = admin.create_topics([ck.admin.NewTopic(TOPIC, PARTITIONS, 1)])
    created[TOPIC].result(120)
    for group in GROUPS:
        consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
        wanted = [
            ck.TopicPartition(TOPIC, p, 100 + p, metadata="even" if p % 2 == 0 else "")
            for p in range(PARTITIONS)
        ]
        once_ready(partial(consumer.commit, offsets=wanted, asynchronous=False), f"{group}'s commit")
        consumer.close()


def committed(bootstrap: str, group: str) -> list[int]:
    """What the broker says a group has committed, once it has loaded it."""
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    asked = [ck.TopicPartition(TOPIC, p) for p in range(PARTITIONS)]
    found = once_ready(partial(consumer.committed, asked, timeout=120), f"{group}'s offsets")
    consumer.close()
    return [partition.offset for partition in found]


def load(manager: LogManager) -> tuple[dict[tuple[str, str, int], OffsetAndMetadata | None], dict[str, int]]:
    """All offsets, and in which partition of the log each group is."""
    offsets: dict[tuple[str, str, int], OffsetAndMetadata | None] = {}
    homes: dict[str, int] = {}
    loader = RecordDecoder()
    for partition in range(OFFSETS_PARTITIONS):
        offset = 0
        while offset < manager.end_offset(Partition(partition)):
            data, offset = manager.read(Partition(partition), Offset(offset), 1 << 20)
            for batch in iter_batches(data, check=True):
                for record in loader.decode_batch(batch):
                    if isinstance(record, OffsetCommitRecord):
                        offsets[record.group, record.topic, record.partition] = record.value
                        homes[record.group] = partition
    return offsets, homes


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("clean", [True, False])
def test_a_brokers_directory_goes_to_and_fro(tmp_path: Path, clean: bool) -> None:
    broker = KafkaBroker(tmp_path)
    try:
        broker.start()
        commit(broker.bootstrap)
        broker.terminate() if clean else broker.kill9()

        meta = load_or_create_meta(RealFileSystem(), broker.data_dir, node_id=1)
        assert meta.directory_id != ""
        manager = LogManager.open(broker.data_dir, LogSettings(), RealFileSystem())
        assert (manager.failed_partitions, manager.cuts) == ({}, ())
        offsets, homes = load(manager)
        assert {key: value.offset for key, value in offsets.items() if value is not None} == {
            (group, TOPIC, p): 100 + p for group in GROUPS for p in range(PARTITIONS)
        }
        # This client sends the zero byte that ends a string in C along with the metadata.
        texts = {value.metadata.rstrip("\0") for value in offsets.values() if value is not None}
        assert texts == {"", "even"}

        # Half of the groups go on here; the broker has to know it afterwards.
        for group in GROUPS[::2]:
            records: list[Record] = [
                OffsetCommitRecord(
                    GroupId(group), TOPIC, p, OffsetAndMetadata(Offset(7_000 + p), -1, "ours", 1 << 42)
                )
                for p in range(PARTITIONS)
            ]
            builder = BatchBuilder()
            builder.append_in_one_batch(records)
            home = homes[group]
            base_offset = manager.end_offset(Partition(home))
            manager.append(
                [Entry(Partition(home), base_offset, builder.build(base_offset, LeaderEpoch(0), 1 << 42)[0])],
                sync=True,
            )
        manager.close()

        broker.start()
        for number, group in enumerate(GROUPS):
            first = 100 if number % 2 else 7_000
            assert committed(broker.bootstrap, group) == [first + p for p in range(PARTITIONS)]
        broker.terminate()
        text = broker.log.read_text(errors="replace").lower()
        for complaint in ("corrupt", "could not find offset index", "rebuilding index", "orphaned index"):
            assert complaint not in text
    finally:
        broker.close()
