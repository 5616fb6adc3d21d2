# SPDX-License-Identifier: Apache-2.0
"""A real broker and we compact the same log in turns, and both find the same offsets in it each time."""

import subprocess
from functools import partial
from pathlib import Path

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient

from protocol.newtypes import GroupId, LeaderEpoch, Offset, Partition
from storage.cleaner.log_cleaner import LogCleaner
from storage.cleaner.plan import CleanerSettings
from storage.disk.checkpoint_file import read_offsets
from storage.disk.filesystem import RealFileSystem
from storage.format.batch import BatchBuilder, iter_batches
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import require_kafka_classpath
from tests.storage.cleaning import content
from tests.storage.test_kafka_directory import load, once_ready
from tests.storage.test_kafka_reads import dump
from tests.support.waiting import wait_until

PARTITIONS = 100
TOPIC = "topic"
GROUPS = [f"group-{number}" for number in range(6)]
GONE = ["gone-0", "gone-1"]
KEY = ("__consumer_offsets", Partition(0))
SETTINGS = LogSettings(segment_bytes=1 << 20)
BROKER: dict[str, str | int] = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.segment.bytes": 1 << 20,
    "log.cleaner.backoff.ms": 200,
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.delete.retention.ms": 600_000,
    "log.initial.task.delay.ms": 500,
}


def commit(bootstrap: str, group: str, first: int, times: int) -> None:
    """Commit every partition so many times; the last ones are first + partition."""
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    for turn in range(times):
        wanted = [ck.TopicPartition(TOPIC, p, first + p + times - 1 - turn) for p in range(PARTITIONS)]
        once_ready(partial(consumer.commit, offsets=wanted, asynchronous=False), f"{group}'s commit")
    consumer.close()


def described(bootstrap: str) -> dict[str, list[str]]:
    """What kafka-consumer-groups.sh --describe says of each group: topic, partition and offset, sorted."""
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = ["java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"]
    command += [require_kafka_classpath(), tool, "--bootstrap-server", bootstrap]
    done = subprocess.run(
        [*command, "--describe", "--all-groups", "--offsets"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith(("group-", "gone-"))]
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row[0], []).append(" ".join(row[1:4]))
    return {group: sorted(lines) for group, lines in found.items()}


def expected(first: dict[str, int]) -> dict[str, list[str]]:
    return {
        group: sorted(f"{TOPIC} {p} {offset + p}" for p in range(PARTITIONS))
        for group, offset in first.items()
    }


def offsets_of(manager: LogManager) -> dict[str, list[int]]:
    """By group the offsets of all partitions, as loading finds them."""
    found: dict[str, list[int]] = {}
    for (group, _, p), value in sorted(load(manager)[0].items(), key=lambda item: item[0][2]):
        if value is not None:
            assert len(found.setdefault(group, [])) == p
            found[group].append(value.offset)
    return found


def append(manager: LogManager, group: str, first: int, times: int) -> None:
    for turn in range(times):
        records: list[Record] = [
            OffsetCommitRecord(
                GroupId(group),
                TOPIC,
                p,
                OffsetAndMetadata(Offset(first + p + times - 1 - turn), -1, "", 1 << 42),
            )
            for p in range(PARTITIONS)
        ]
        builder = BatchBuilder()
        builder.append_in_one_batch(records)
        base_offset = manager.end_offset(Partition(0))
        manager.append(
            [Entry(Partition(0), base_offset, builder.build(base_offset, LeaderEpoch(0), 1 << 42)[0])],
            sync=False,
        )


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_a_broker_and_we_compact_the_same_log_in_turns(tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path, BROKER)
    checkpoint = broker.data_dir / "cleaner-offset-checkpoint"
    fs = RealFileSystem()

    def cleaned_to() -> int:
        return (read_offsets(fs, checkpoint) or {}).get(KEY, 0)

    try:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([ck.admin.NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(120)
        for group in GONE:
            commit(broker.bootstrap, group, 5, 2)
        once_ready(
            lambda: [each.result(120) for each in admin.delete_consumer_groups(GONE).values()], "the deletion"
        )
        for group in GROUPS:
            commit(broker.bootstrap, group, 1_000, 60)
        wait_until(lambda: cleaned_to() > 20_000, what="the broker to compact its log")
        before = described(broker.bootstrap)
        assert before == expected(dict.fromkeys(GROUPS, 1_000))
        broker.terminate()
        by_broker = cleaned_to()

        # What the broker compacted is read here: gaps, and tombstones with a delete horizon.
        manager = LogManager.open(broker.data_dir, SETTINGS, RealFileSystem())
        assert (manager.failed_partitions, manager.cuts) == ({}, ())
        batches = content(manager, 0)
        assert any(batch.attributes & 0x40 for batch in batches)
        assert sum(batch.count for batch in batches) < manager.end_offset(Partition(0)) - 10_000
        first = dict.fromkeys(GROUPS, 1_000)
        assert offsets_of(manager) == {g: [first[g] + p for p in range(PARTITIONS)] for g in GROUPS}

        # We go on, compact from where the broker stopped, and past the horizon.
        for group in GROUPS[::2]:
            first[group] = 7_000
            append(manager, group, 7_000, 100)
        manager.checkpoint_journal()
        cleaner = LogCleaner(manager, CleanerSettings(min_cleanable_dirty_ratio=0.01), None, lambda: 1 << 42)
        cleaning = cleaner.clean_dirtiest()
        assert cleaning is not None
        assert cleaning.end_offset > by_broker
        assert cleaning.bytes_after < cleaning.bytes_before / 2
        assert offsets_of(manager) == {g: [first[g] + p for p in range(PARTITIONS)] for g in GROUPS}
        manager.close()
        assert cleaned_to() == cleaning.end_offset

        directory = broker.data_dir / "__consumer_offsets-0"
        logs = sorted(directory.glob("*.log"))
        printed = dump(*logs)
        assert printed.count("isvalid: true") == sum(len(list(iter_batches(p.read_bytes()))) for p in logs)
        assert "gone-" not in printed
        indexes = sorted([*directory.glob("*.index"), *directory.glob("*.timeindex")])
        for complaint in ("mismatch", "not found", "out of order"):
            assert complaint not in dump(*indexes, options=["--verify-index-only"]).lower()

        # The broker serves it, goes on from our checkpoint, and compacts once more.
        broker.start()
        wait_until(lambda: described(broker.bootstrap) == expected(first), what="the groups to load")
        for group in GROUPS:
            commit(broker.bootstrap, group, 9_000, 60)
        wait_until(lambda: cleaned_to() > cleaning.end_offset, what="the broker to compact once more")
        assert described(broker.bootstrap) == expected(dict.fromkeys(GROUPS, 9_000))
        broker.terminate()
        text = broker.log.read_text(errors="replace").lower()
        for complaint in (
            "corrupt",
            "could not find offset index",
            "rebuilding index",
            "resetting first dirty",
        ):
            assert complaint not in text
        manager = LogManager.open(broker.data_dir, SETTINGS, RealFileSystem())
        assert offsets_of(manager) == {g: [9_000 + p for p in range(PARTITIONS)] for g in GROUPS}
        manager.close()
    finally:
        broker.close()
