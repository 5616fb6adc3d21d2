# SPDX-License-Identifier: Apache-2.0
"""Logs that others are writing meanwhile: a node of our own, and a real broker."""

import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import confluent_kafka as ck
import pyarrow as pa
import pytest

from audit.source.plan import plan
from audit.source.read import read_part
from tests.kafka.broker import KafkaBroker
from tests.storage.test_kafka_directory import once_ready

COLUMNS = ("file", "partition", "base_offset", "offset", "key_type", "group", "topic", "topic_partition",
           "committed_offset", "metadata", "damage", "crc_ok", "problem")  # fmt: skip

WORK = """
import itertools, sys
from pathlib import Path
from storage.disk.filesystem import RealFileSystem
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.storage.strategies import batch

settings = LogSettings(segment_bytes=20_000, journal_step_bytes=65_536)
manager = LogManager.open(Path(sys.argv[1]), settings, RealFileSystem())
for label in itertools.count():
    ends = [(partition, manager.end_offset(partition)) for partition in range(3)]
    manager.append([Entry(p, end, batch(label, end, 2)) for p, end in ends], sync=True)
    print(label, flush=True)
    if label % 7 == 0:
        manager.write_behind(4_000)
    if label % 20 == 19:
        manager.checkpoint_journal()
    if label % 50 == 49:
        sys.stdin.readline()
"""


def read(log_dir: Path, range_bytes: int) -> list[dict[str, object]]:
    """The rows of a directory."""
    return [
        row
        for task in plan([str(log_dir)], range_bytes=range_bytes)
        for part in task
        for found in read_part(part, COLUMNS)
        for row in pa.Table.from_batches([found]).to_pylist()
    ]


def check(rows: list[dict[str, object]], acknowledged: int) -> None:
    """All offsets are there, once and in order, and nothing is damaged."""
    assert {row["damage"] for row in rows} == {None}
    # The last batch of a segment may be half written, and is then in the journal.
    rows = [row for row in rows if row["offset"] is not None]
    for partition in range(3):
        offsets = [row["offset"] for row in rows if row["partition"] == partition]
        assert offsets == list(range(len(offsets)))
        assert len(offsets) >= 2 * (acknowledged + 1)


@pytest.mark.process
def test_a_node_that_writes_and_one_that_was_killed(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WORK, str(tmp_path)]
    acknowledged = 0
    with subprocess.Popen(command, cwd=root, stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            for number in range(12):
                # It goes on for fifty batches while this is read.
                acknowledged = int(process.stdout.readline())
                process.stdin.write("\n")
                process.stdin.flush()
                check(read(tmp_path, 3_000 if number % 2 else 1 << 20), acknowledged)
                for _ in range(49):
                    acknowledged = int(process.stdout.readline())
        finally:
            process.kill()
    check(read(tmp_path, 1 << 20), acknowledged)


@pytest.mark.slow
@pytest.mark.kafka
def test_a_brokers_directory_while_it_runs(kafka_broker: KafkaBroker) -> None:
    consumer = ck.Consumer({"bootstrap.servers": kafka_broker.bootstrap, "group.id": "audited"})
    wanted = [ck.TopicPartition("audited-topic", partition, 40 + partition) for partition in range(3)]
    admin = ck.admin.AdminClient({"bootstrap.servers": kafka_broker.bootstrap})
    admin.create_topics([ck.admin.NewTopic("audited-topic", 3, 1)])["audited-topic"].result(120)
    once_ready(lambda: consumer.commit(offsets=wanted, asynchronous=False), "the commit")
    consumer.close()
    rows = read(kafka_broker.data_dir, 1 << 20)
    assert {row["damage"] for row in rows} == {None}
    assert {row["problem"] for row in rows} == {None}
    found = {
        (row["topic"], row["topic_partition"]): row["committed_offset"]
        for row in rows
        if row["group"] == "audited" and row["key_type"] == "offset_commit"
    }
    assert found == {("audited-topic", partition): 40 + partition for partition in range(3)}
