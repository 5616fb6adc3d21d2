# SPDX-License-Identifier: Apache-2.0
"""Directories that a real broker left, in every way that it leaves them: all of ours say of them what it says.

One broker makes them all, each in a partition of its own, so that a way costs no start of its own.
"""

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from pyspark.sql import SparkSession

from audit.options import AuditOptions
from audit.report.model import Report
from audit.run.audit import audit
from protocol.newtypes import GroupId, Offset, Partition
from protocol.placement import partition_for
from storage.disk.checkpoint_file import read_offsets, write_offsets
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import (
    CLEANER_OFFSET_FILE,
    LOG_START_FILE,
    META_FILE,
    OFFSETS_TOPIC,
    parse_segment,
    partition_dir,
    segment_name,
)
from storage.disk.properties import parse_properties
from storage.format.batch import Batch, iter_batches
from tests.kafka.broker import KafkaBroker, KafkaNode
from tests.kafka.cluster import KafkaCluster
from tests.storage.test_kafka_transactions import TOPIC, join_new_consumer_group, transaction
from tests.support import raw
from tests.support.command import groupkeeper
from tests.support.raw import RawConnection
from tests.support.service import Service
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.kafka]

TOPIC_PARTITIONS: Final = 8
COUNT: Final = 8
"""Partitions of the offsets topic, before it gets more."""
GROWN: Final = 11
EMPTIED, INSIDE, BEHIND, COMPRESSED, ENDED, OPEN, NEW_KIND, DELETED = range(COUNT)
"""What each partition is for: emptied in front, a log start inside a segment and one behind its end, each compression,
transactions that have ended and one that is open, a group of KIP-848, a deleted group."""
CODECS: Final = (1, 2, 3, 4)
FS: Final = RealFileSystem()
BROKER: Final[Mapping[str, str | int]] = {
    "offsets.topic.num.partitions": COUNT,
    "log.cleaner.backoff.ms": 100,
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.initial.task.delay.ms": 100,
}


def group_in(partition: int, number: int = 0) -> str:
    """The name of a group that belongs to this partition, before the topic gets more and after; another by number."""
    names = (f"p{partition}-{number}-{attempt}" for attempt in range(10_000))
    counts = (COUNT, GROWN) if partition < COUNT else (GROWN,)
    return next(
        name for name in names if all(partition_for(GroupId(name), count) == partition for count in counts)
    )


def moved_from(partition: int) -> str:
    """The name of a group that belongs to another partition once the topic has got more."""
    names = (f"moved-{partition}-{attempt}" for attempt in range(10_000))
    return next(
        name
        for name in names
        if partition_for(GroupId(name), COUNT) == partition != partition_for(GroupId(name), GROWN)
    )


def commit(bootstrap: str, group: str, *offsets: int, metadata: str = "") -> None:
    """Commit for every partition of the topic, once for each offset."""
    raw.wait_for_coordinator(bootstrap, group)
    with RawConnection(bootstrap) as connection:
        for offset in offsets:
            request = raw.standalone_commit(group, TOPIC, {p: offset + p for p in range(TOPIC_PARTITIONS)})
            for part in request.topics[0].partitions:
                part.committed_metadata = metadata
            (answer,) = connection.call(request, 8).topics
            assert {part.error_code for part in answer.partitions} == {raw.NONE}


def segments(log_dir: Path, partition: int) -> list[Path]:
    """The segments of a partition, oldest first."""
    return sorted(partition_dir(log_dir, OFFSETS_TOPIC, Partition(partition)).glob("*.log"))


def batches(log_dir: Path, partition: int) -> list[Batch]:
    """All whole batches of a partition."""
    return [one for path in segments(log_dir, partition) for one in iter_batches(path.read_bytes())]


def holes(log_dir: Path, partition: int) -> list[int]:
    """The offsets at which a log goes on after some that are missing."""
    with suppress(FileNotFoundError):  # compacted just now
        found = batches(log_dir, partition)
        return [
            after.base_offset for before, after in pairwise(found) if after.base_offset > before.next_offset
        ]
    return []


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, TOPIC_PARTITIONS, 1)])[TOPIC].result(120)


def empty_the_front(bootstrap: str, log_dir: Path) -> None:
    """Commit anew all that the first segment held, until compaction has left nothing of it."""
    first = partition_dir(log_dir, OFFSETS_TOPIC, Partition(EMPTIED)) / segment_name(Offset(0))
    raw.alter_configs(bootstrap, OFFSETS_TOPIC, {"segment.bytes": str(1 << 20)})

    def emptied() -> bool:
        for number in (0, 2):
            commit(bootstrap, group_in(EMPTIED, number), 1_000, metadata="m" * 2_000)
        with suppress(FileNotFoundError):  # its name is given to what it was compacted to
            return first.stat().st_size == 0
        return False

    wait_until(emptied, what="the first segment to be emptied")
    # Else the next compaction puts the empty segment and the one behind it together.
    raw.alter_configs(bootstrap, OFFSETS_TOPIC, {"min.cleanable.dirty.ratio": "1"})


def make(broker: KafkaBroker) -> None:
    """Make every partition what it is for; the broker stops, and starts again, some times."""
    bootstrap, log_dir = broker.bootstrap, broker.data_dir
    create_topic(bootstrap)
    commit(bootstrap, group_in(INSIDE, 3), 1)  # what lies before the start
    for partition in range(COUNT):
        commit(bootstrap, group_in(partition), 100, 200)
        commit(bootstrap, group_in(partition, 2), 100)
    for partition in (ENDED, OPEN):
        transaction(bootstrap, {group_in(partition): 111}).commit_transaction(60)
        transaction(bootstrap, {group_in(partition): 222}).abort_transaction(60)
    left_open = transaction(bootstrap, {group_in(OPEN): 333, group_in(OPEN, 1): 444})
    join_new_consumer_group(bootstrap, group_in(NEW_KIND, 1))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_consumer_groups([group_in(DELETED)])[group_in(DELETED)].result(120)
    empty_the_front(bootstrap, log_dir)
    del left_open
    for codec in CODECS:
        broker.terminate()
        broker.settings["offsets.topic.compression.codec"] = codec
        broker.start()
        commit(bootstrap, group_in(COMPRESSED, codec + 10), codec)
    assert {batch.compression for batch in batches(log_dir, COMPRESSED)} == {0, *CODECS}
    # The segments that begin from now on take their space at once.
    raw.alter_configs(bootstrap, OFFSETS_TOPIC, {"preallocate": "true", "segment.ms": "50"})
    for partition in range(COUNT):
        commit(bootstrap, group_in(partition, 6), 300, 400)
        commit(bootstrap, moved_from(partition), 900)
    admin.create_partitions([NewPartitions(OFFSETS_TOPIC, GROWN)])[OFFSETS_TOPIC].result(120)
    for partition in range(GROWN):
        commit(bootstrap, group_in(partition, 7), 500)
    broker.terminate()
    note_starts(log_dir)
    broker.start()
    for partition in range(GROWN):
        if partition != BEHIND:  # whose coordinator takes no commit before the broker's next start
            commit(bootstrap, group_in(partition, 8), 600)


def note_starts(log_dir: Path) -> None:
    """Note what a broker notes that has deleted records, while it is stopped; it goes by that when it starts."""
    starts = read_offsets(FS, log_dir / LOG_START_FILE) or {}
    first, _, *_ = iter_batches(segments(log_dir, INSIDE)[0].read_bytes())
    starts[OFFSETS_TOPIC, Partition(INSIDE)] = first.next_offset
    starts[OFFSETS_TOPIC, Partition(BEHIND)] = Offset(batches(log_dir, BEHIND)[-1].next_offset + 7)
    write_offsets(FS, log_dir / LOG_START_FILE, starts)


Committed = dict[str, dict[tuple[str, int], int]]


def committed(bootstrap: str, groups: Sequence[str]) -> Committed:
    """What a server says that groups have committed."""
    found = {}
    for group in groups:
        raw.wait_for_coordinator(bootstrap, group)
        with RawConnection(bootstrap) as connection:
            found[group] = raw.committed_offsets(connection, group, stable=False)
    return {
        group: {key: offset for key, offset in each.items() if offset >= 0} for group, each in found.items()
    }


class Left:
    """A directory as a broker left it, and what the broker says of it, which runs on one that is the same."""

    def __init__(self, directory: Path, bootstrap: str, count: int) -> None:
        properties = parse_properties((directory / META_FILE).read_text())
        self.node_id = int(properties["node.id"])
        self.directory = directory
        self.bootstrap = bootstrap
        self.count = count
        for partition in range(count):
            raw.wait_for_coordinator(bootstrap, group_in(partition))
        self.groups = sorted(raw.list_groups(bootstrap))
        self.offsets = committed(bootstrap, self.groups)


def left_by(node: KafkaNode, how: str, place: Path) -> Path:
    """End a broker, copy what it left, and start it again."""
    node.terminate() if how == "stopped" else node.kill9()
    shutil.copytree(node.data_dir, place)
    node.start()
    return place


@contextmanager
def many_ways(how: str, work: Path) -> Iterator[Left]:
    """The directory of a broker that was alone."""
    broker = KafkaBroker(work / "broker", BROKER)
    try:
        broker.start()
        make(broker)
        directory = left_by(broker, how, work / "left")
        yield Left(directory, broker.bootstrap, GROWN)
    finally:
        broker.close()


@contextmanager
def reassigned(how: str, work: Path) -> Iterator[Left]:
    """The directory of a broker whose replicas another one had compacted before they were copied."""
    from kafka import TopicPartition

    settings = {**BROKER, "offsets.topic.replication.factor": 1}
    cluster = KafkaCluster(work / "cluster", 2, settings=settings)
    try:
        cluster.start()
        bootstrap = cluster.address(1)
        create_topic(bootstrap)
        with cluster.admin_of_kafka_python() as admin:

            def move(broker: int) -> None:
                places = {TopicPartition(OFFSETS_TOPIC, partition): [broker] for partition in range(COUNT)}
                admin.alter_partition_reassignments(places)
                wait_until(lambda: not admin.list_partition_reassignments(), what=f"all on broker {broker}")
                cluster.wait_for_leaders(OFFSETS_TOPIC, COUNT)

            raw.find_coordinator(bootstrap, "any")  # with the first one Kafka makes the topic
            cluster.wait_for_leaders(OFFSETS_TOPIC, COUNT)
            move(1)
            raw.alter_configs(bootstrap, OFFSETS_TOPIC, {"segment.ms": "50"})
            for partition in range(COUNT):
                commit(bootstrap, group_in(partition, 2), 100)
                commit(bootstrap, group_in(partition), 100, 200)

            def has_holes() -> bool:
                commit(bootstrap, group_in(INSIDE, 3), 1)
                return len(holes(cluster.brokers[1].data_dir, INSIDE)) > 1

            wait_until(has_holes, what="holes in what is compacted")
            raw.alter_configs(bootstrap, OFFSETS_TOPIC, {"segment.ms": "600000"})
            empty_the_front(bootstrap, cluster.brokers[1].data_dir)
            move(2)
        for partition in range(COUNT):
            commit(cluster.address(2), group_in(partition, 1), 300)
        directory = left_by(cluster.brokers[2], how, work / "left")
        cluster.wait_until_up()
        yield Left(directory, cluster.address(2), COUNT)
    finally:
        cluster.close()


@pytest.fixture(
    scope="module",
    params=[(make, how) for make in (many_ways, reassigned) for how in ("stopped", "killed")],
    ids=lambda param: f"{param[0].__name__}, {param[1]}",
)
def left(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Left]:
    """Each directory, of a broker that was stopped and of one that was killed."""
    make_one, how = request.param
    with make_one(how, tmp_path_factory.mktemp("made")) as found:
        yield found


def audited(spark: SparkSession, log_dir: Path, out: Path, against: str | None = None) -> Report:
    """An audit of one directory, now."""
    now_ms = int(time.time() * 1000)
    return audit(
        spark, AuditOptions(log_dirs=(str(log_dir),), out=str(out), as_of_ms=now_ms, against=against)
    )


def checked(directory: Path) -> list[object]:
    """What `log check` finds wrong; it says so by its exit code, too."""
    done = groupkeeper("log", "check", "--data-dir", directory, "--json")
    wrong = [damage for each in json.loads(done.stdout)[0]["partitions"] for damage in each["damages"]]
    assert done.returncode == bool(wrong), done.stdout + done.stderr
    return wrong


def errors(report: Report) -> list[object]:
    return [finding for finding in report.findings if finding.severity == "error"]


def test_they_are_what_they_are_for(left: Left) -> None:
    if left.count == COUNT:
        check_holes(left)
    else:
        check_ways(left)


def check_ways(left: Left) -> None:
    log_dir, offsets, groups = left.directory, left.offsets, left.groups
    sizes = [path.stat().st_size for path in segments(log_dir, EMPTIED)]
    assert sizes[0] == 0 < sizes[1]
    starts = read_offsets(FS, log_dir / LOG_START_FILE) or {}
    assert segments(log_dir, INSIDE)[0].name == segment_name(Offset(0))
    assert starts[OFFSETS_TOPIC, Partition(INSIDE)] > 0
    assert (group_in(INSIDE, 3) in groups, group_in(INSIDE) in groups) == (False, True)
    (behind,) = segments(log_dir, BEHIND)
    assert (parse_segment(behind.name) or 0) > 0
    assert list(behind.parent.glob("*.log.deleted"))
    assert group_in(BEHIND) not in groups
    assert [offsets[group_in(each)][TOPIC, 0] for each in (ENDED, OPEN)] == [111, 111]
    assert offsets[group_in(OPEN, 1)] == {}
    assert offsets[group_in(NEW_KIND, 1)] == {(TOPIC, 0): 7}
    assert group_in(DELETED) not in groups
    assert [offsets[group_in(COMPRESSED, codec + 10)][TOPIC, 0] for codec in CODECS] == list(CODECS)
    moved = [moved_from(partition) for partition in range(COUNT) if partition != BEHIND]
    assert all(group in groups and offsets[group] == {} for group in moved)


def check_holes(left: Left) -> None:
    """There are some where the cleaner of this broker has never been: before what it has first, and within."""
    assert read_offsets(FS, left.directory / CLEANER_OFFSET_FILE) is not None
    assert batches(left.directory, EMPTIED)[0].base_offset > 0
    assert segments(left.directory, EMPTIED)[0].name == segment_name(Offset(0))
    assert holes(left.directory, INSIDE)


def test_check_and_audit_find_nothing_wrong(left: Left, spark: SparkSession, tmp_path: Path) -> None:
    assert checked(left.directory) == []
    report = audited(spark, left.directory, tmp_path / "out", left.bootstrap)
    assert errors(report) == []
    grown = {finding.partition for finding in report.findings if finding.check == "topic_has_grown"}
    assert grown == ({*range(COUNT)} - {BEHIND} if left.count == GROWN else set())


def test_what_is_served_is_what_the_broker_serves(left: Left, spark: SparkSession, tmp_path: Path) -> None:
    """Here in its place, and after an import; and what we leave is whole, too."""
    in_place = Service(
        tmp_path / "in place", {"node.id": left.node_id, "offsets.topic.num.partitions": left.count}
    )
    imported = Service(tmp_path / "imported")
    shutil.copytree(left.directory, in_place.data_dir)
    done = groupkeeper(
        "import", "--from-log-dirs", left.directory, "--data-dir", imported.data_dir, "--execute"
    )
    assert done.returncode == 0, done.stderr
    for service in (in_place, imported):
        try:
            service.start()
            assert committed(service.bootstrap, left.groups) == left.offsets
            if service is in_place:
                create_topic(service.bootstrap)  # a broker keeps its topics elsewhere
            commit(service.bootstrap, group_in(0, 9), 700)
            service.terminate()
        finally:
            service.close()
        assert checked(service.data_dir) == []
        assert errors(audited(spark, service.data_dir, tmp_path / "out")) == []
