# SPDX-License-Identifier: Apache-2.0
"""The log beside the cluster that writes it: ours, and a real Kafka, while clients go on committing."""

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from audit.compared.cluster_comparison import LoggedGroup, LoggedOffset, LoggedState, compare_log_with_cluster
from audit.compared.live_state_reader import LiveGroup, LiveOffset, LiveState, read_live_state
from audit.options import AuditOptions
from audit.report.model import Report
from audit.run.audit import audit
from protocol.newtypes import GroupId
from protocol.placement import partition_for
from storage.disk.filesystem import RealFileSystem
from storage.disk.layout import OFFSETS_TOPIC
from storage.journal.journal import Entry
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.audit.logs import commit, make_batch
from tests.kafka.broker import KafkaBroker
from tests.support.service import serving
from tests.support.waiting import wait_until

PARTITIONS = 6


def consumer(bootstrap: str, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False})


def has_assignment(member: Consumer) -> bool:
    member.poll(0.1)
    return bool(member.assignment())


def groups_at_work(bootstrap: str) -> list[Consumer]:
    """A topic, a group with a member, one without, and one that only commits; returns whom to close."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("work", PARTITIONS)])["work"].result(120)
    busy, idle, simple = (consumer(bootstrap, name) for name in ("busy", "idle", "simple"))
    for member in (busy, idle):
        member.subscribe(["work"])
        wait_until(partial(has_assignment, member), what=lambda: "an assignment")
    for number, member in enumerate((busy, idle, simple)):
        places = [TopicPartition("work", part, 10 * number + part, f"é {part}") for part in range(PARTITIONS)]
        member.commit(offsets=places, asynchronous=False)
    idle.close()
    return [busy, simple]


@contextmanager
def commits_going_on(member: Consumer) -> Iterator[Callable[[], int]]:
    """Commits of one group, one after the other; gives how many there have been."""
    stop = threading.Event()
    count = 0

    def commit() -> None:
        nonlocal count
        while not stop.is_set():
            member.poll(0)
            places = [TopicPartition("work", part, 1_000 + count) for part in range(PARTITIONS)]
            member.commit(offsets=places, asynchronous=False)
            count += 1

    thread = threading.Thread(target=commit)
    thread.start()
    try:
        yield lambda: count
    finally:
        stop.set()
        thread.join()


def audited(spark: SparkSession, log_dir: Path, out: Path, against: str) -> Report:
    looked = read_live_state(against)
    options = AuditOptions(
        log_dirs=(str(log_dir),),
        out=str(out),
        as_of_ms=looked.ended_ms,
        against=against,
        compacted=str(out.parent),
        num_partitions=50,
    )
    return audit(spark, options)


def told(report: Report) -> dict[str, str]:
    """The findings that a sound log must not have, by check."""
    harmless = {"changed_meanwhile", "offsets_without_group", "hot_partition"}
    return {found.check: found.message for found in report.findings if found.check not in harmless}


def check_while_commits_go_on(spark: SparkSession, bootstrap: str, log_dir: Path, out: Path) -> None:
    busy, simple = groups_at_work(bootstrap)
    try:
        with commits_going_on(busy) as count:
            wait_until(lambda: count() > 10, what=lambda: "commits")
            # a node writes what it has acknowledged to its journal first, to the partition's directory soon after
            wait_until(
                lambda: any(log_dir.glob(f"{OFFSETS_TOPIC}-*")), what=lambda: "a partition's directory"
            )
            report = audited(spark, log_dir, out, bootstrap)
        assert told(report) == {}
        assert report.run.groups >= 3
        assert report.run.offsets >= 3 * PARTITIONS
        # the busy group's offsets have changed, and nothing else has
        meanwhile = [found for found in report.findings if found.check == "changed_meanwhile"]
        assert meanwhile
        assert all("'busy'" in found.message for found in meanwhile)
    finally:
        busy.close()
        simple.close()


def test_our_own_log_says_what_we_say_while_commits_go_on(spark: SparkSession, tmp_path: Path) -> None:
    with serving(tmp_path / "node", {"group.initial.rebalance.delay.ms": 0}) as service:
        check_while_commits_go_on(spark, service.bootstrap, service.data_dir, tmp_path / "out")


def test_a_commit_that_the_node_does_not_know_is_told(spark: SparkSession, tmp_path: Path) -> None:
    """Of two groups: one has a commit in the log that the node never had, the other one has not."""
    with serving(tmp_path / "node", {"group.initial.rebalance.delay.ms": 0}) as service:
        admin = AdminClient({"bootstrap.servers": service.bootstrap})
        admin.create_topics([NewTopic("work", 1)])["work"].result(120)
        for name in ("right", "wrong"):
            member = consumer(service.bootstrap, name)
            member.commit(offsets=[TopicPartition("work", 0, 7)], asynchronous=False)
            member.close()
        service.terminate()
        log_dir = tmp_path / "copy"
        shutil.copytree(service.data_dir, log_dir)
        service.start()
        manager = LogManager.open(log_dir, LogSettings(), RealFileSystem())
        partition = partition_for(GroupId("wrong"), 50)
        end, now_ms = manager.end_offset(partition), int(time.time() * 1000)
        batch = make_batch([commit("wrong", 4_242, topic="work", at=now_ms)], end, at=now_ms)
        manager.append([Entry(partition, end, batch)], sync=True)
        manager.close()
        report = audited(spark, log_dir, tmp_path / "out", service.bootstrap)
    (found,) = [one for one in report.findings if one.check == "state_differs"]
    assert (found.severity, found.partition, found.count) == ("error", partition, 1)
    assert found.message == "group 'wrong', work-0: the log has 4242 (epoch -1), the cluster 7 (epoch -1)"
    assert found.file is not None
    assert Path(found.file).parent == log_dir / f"__consumer_offsets-{partition}"


@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_a_real_brokers_log_says_what_the_broker_says(spark: SparkSession, tmp_path: Path) -> None:
    broker = KafkaBroker(tmp_path / "kafka")
    try:
        broker.start()
        check_while_commits_go_on(spark, broker.bootstrap, broker.data_dir, tmp_path / "out")
    finally:
        broker.close()


# --------------------------------------------------------- the comparison itself, without anything that runs

KEY = ("g", "t", 0)
FIVE, SIX, SEVEN = (LiveOffset(offset, -1, "") for offset in (5, 6, 7))
STABLE = LiveGroup("Stable", "consumer", classic=True, members=frozenset({"a"}))
STORED = LoggedGroup("Stable", "consumer", frozenset({"a"}), 3, "file", 0)


def live(offset: LiveOffset | None, group: LiveGroup | None = STABLE) -> LiveState:
    return LiveState({} if group is None else {"g": group}, {} if offset is None else {KEY: offset}, 0, 1_000)


def log(offset: LiveOffset | None, group: LoggedGroup | None = STORED) -> LoggedState:
    offsets = {} if offset is None else {KEY: LoggedOffset(offset, 3, "file", 100)}
    return LoggedState(offsets, {} if group is None else {"g": group}, frozenset())


def kinds(logged: LoggedState, before: LiveState, after: LiveState) -> list[str]:
    return [found.kind for found in compare_log_with_cluster(logged, before, after)]


@pytest.mark.parametrize(
    ("in_log", "before", "after", "kind"),
    [
        (FIVE, FIVE, FIVE, []),
        (FIVE, SIX, SIX, ["differs"]),
        (None, FIVE, FIVE, ["differs"]),
        (FIVE, None, None, ["differs"]),
        (FIVE, FIVE, SIX, ["meanwhile"]),
        (SIX, FIVE, SEVEN, ["meanwhile"]),
        (None, None, FIVE, ["meanwhile"]),
        (FIVE, LiveOffset(5, 1, ""), LiveOffset(5, 1, ""), ["differs"]),
        (FIVE, LiveOffset(5, -1, "other"), LiveOffset(5, -1, "other"), ["differs"]),
    ],
)
def test_an_offset_differs_where_it_did_not_change(
    in_log: LiveOffset | None, before: LiveOffset | None, after: LiveOffset | None, kind: list[str]
) -> None:
    assert kinds(log(in_log), live(before), live(after)) == kind


def test_long_metadata_is_quoted_in_part() -> None:
    short, long = LiveOffset(7, 1, "é" * 200), LiveOffset(7, 1, "é" * 4_096)
    (found,) = compare_log_with_cluster(log(short), live(long), live(long))
    assert found.message.endswith(
        f"the log has 7 (epoch 1, '{'é' * 200}'), the cluster 7 (epoch 1, '{'é' * 200}'... (4096 characters))"
    )


@pytest.mark.parametrize(
    ("stored", "found", "kind"),
    [
        (STORED, STABLE, []),
        (None, STABLE, ["differs"]),
        (STORED, None, ["differs"]),
        (STORED, LiveGroup("Empty", "consumer", classic=True, members=frozenset()), ["differs"]),
        (STORED, LiveGroup("Stable", "consumer", classic=True, members=frozenset({"b"})), ["differs"]),
        (STORED, LiveGroup("Stable", "connect", classic=True, members=frozenset({"a"})), ["differs"]),
        (
            STORED,
            LiveGroup("PreparingRebalance", "consumer", classic=True, members=frozenset({"b"})),
            ["stuck"],
        ),
        (None, LiveGroup("Empty", "", classic=True, members=frozenset()), []),
        (None, LiveGroup("Stable", "consumer", classic=False, members=None), []),
    ],
)
def test_a_group_differs_where_it_did_not_change(
    stored: LoggedGroup | None, found: LiveGroup | None, kind: list[str]
) -> None:
    assert kinds(log(None, stored), live(None, found), live(None, found)) == kind


def test_a_group_that_changed_is_told_apart() -> None:
    empty = msgspec.structs.replace(STABLE, state="Empty", members=frozenset())
    assert kinds(log(None), live(None), live(None, empty)) == ["meanwhile"]
