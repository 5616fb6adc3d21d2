# SPDX-License-Identifier: Apache-2.0
"""From a broker to us and back: real clients and Kafka's own tools see the same groups and offsets everywhere."""

import shutil
import subprocess
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import confluent_kafka as ck
import pytest

from bench.ports import free_ports
from protocol.newtypes import GroupId
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import require_kafka_classpath
from tests.kafka.java_shell import JavaShell
from tests.storage.test_kafka_directory import GROUPS, PARTITIONS, TOPIC, commit, once_ready
from tests.support import raw
from tests.support.command import groupkeeper
from tests.support.documented import Documented
from tests.support.service import Service
from tests.support.waiting import wait_until

MEMBERS_GROUP = "with members"
pytestmark = [pytest.mark.slow, pytest.mark.kafka]


def consume(bootstrap: str, group: str, commits: dict[int, int]) -> set[int]:
    """Join a group as its only member and commit; returns the partitions that the member was given."""
    consumer = ck.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.subscribe([TOPIC])

    def assigned() -> set[int]:
        consumer.poll(0.1)
        return {one.partition for one in consumer.assignment()}

    found = wait_until(assigned, what="an assignment")
    wanted = [ck.TopicPartition(TOPIC, index, offset) for index, offset in commits.items()]
    once_ready(partial(consumer.commit, offsets=wanted, asynchronous=False), "the member's commit")
    consumer.close()
    return found


def offsets(bootstrap: str, groups: Iterable[str]) -> dict[str, dict[tuple[str, int], int]]:
    """What a server has committed for each group."""
    found = {}
    for group in groups:
        raw.wait_for_coordinator(bootstrap, group)
        found[group] = raw.fetch_offsets(bootstrap, group)
    return found


def shown(shell: JavaShell, bootstrap: str, groups: Iterable[str]) -> list[tuple[str, ...]]:
    """The groups with their states, and their offsets, as kafka-consumer-groups.sh shows them."""
    listed = shell.groups(bootstrap, "--list", "--state").table()
    rows: list[tuple[str, ...]] = [(row["GROUP"], row["STATE"]) for row in listed]
    columns = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET")
    for group in groups:
        described = shell.groups(bootstrap, "--describe", "--group", group, "--offsets").table()
        rows += [tuple(row[column] for column in columns) for row in described]
    return sorted(rows)


def deep_dump(path: Path) -> str:
    """What DumpLogSegments prints when it looks into compressed batches, too, and checks the indexes."""
    tool = ["java", "-cp", require_kafka_classpath(), "org.apache.kafka.tools.DumpLogSegments"]
    files = ",".join(map(str, sorted([path, *path.parent.glob("*.index"), *path.parent.glob("*.timeindex")])))
    arguments = ["--files", files, "--deep-iteration", "--print-data-log", "--offsets-decoder"]
    done = subprocess.run([*tool, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_documented_steps_take_over_a_broker(documented: Documented, tmp_path: Path) -> None:
    """Of a broker with two directories; the steps are typed where the node's is to be."""
    say, take_over, serve = documented.commands
    directories = [tmp_path / "kafka" / name for name in ("a", "b")]
    places = {f"/var/lib/kafka/{directory.name}": directory for directory in directories}
    broker = KafkaBroker(tmp_path / "kafka", {"log.dirs": ",".join(map(str, directories))})
    try:
        broker.start()
        commit(broker.bootstrap)
        expected = offsets(broker.bootstrap, GROUPS)
        broker.terminate()
    finally:
        broker.close()
    assert "30 groups" in documented.run(say, places).stdout
    assert not (documented.work / "data").exists()
    documented.run(take_over, places)
    port, metrics = free_ports(2)
    here = {"GROUPKEEPER_LISTEN": f"127.0.0.1:{port}", "GROUPKEEPER_METRICS_LISTEN": f"127.0.0.1:{metrics}"}
    node = documented.start(serve, variables=here)
    try:
        wait_until(lambda: '"event":"serving"' in node.log_tail(), what=node.log_tail)
        assert offsets(f"127.0.0.1:{port}", GROUPS) == expected
    finally:
        assert node.terminate() == 0, node.log_tail()


@pytest.mark.parametrize(("count", "clean"), [(50, True), (3, False)])
def test_there_and_back(tmp_path: Path, java_shell: JavaShell, count: int, clean: bool) -> None:
    broker = KafkaBroker(tmp_path / "kafka", {"offsets.topic.num.partitions": count})
    service = Service(tmp_path / "ours")
    try:
        broker.start()
        there = broker.bootstrap
        commit(there)
        consume(there, MEMBERS_GROUP, {0: 7, 3: 9})
        groups = [*GROUPS, MEMBERS_GROUP]
        expected = offsets(there, groups)
        tables = shown(java_shell, there, groups[-3:])
        broker.terminate() if clean else broker.kill9()

        # (b) Its directory, taken over here.
        done = groupkeeper(
            "import", "--from-log-dirs", broker.data_dir, "--data-dir", service.data_dir, "--execute"
        )
        assert done.returncode == 0, done.stderr
        total = sum(map(len, expected.values()))
        assert f"imported 31 groups, {total} offsets, 1 topics, {count} partitions" in done.stdout
        service.start()
        here = service.bootstrap
        assert offsets(here, groups) == expected
        assert shown(java_shell, here, groups[-3:]) == tables

        # Clients go on where they were.
        assert consume(here, MEMBERS_GROUP, {0: 70, 1: 71}) == set(range(PARTITIONS))
        expected[MEMBERS_GROUP] |= {(TOPIC, 0): 70, (TOPIC, 1): 71}
        consume(here, "new here", {2: 5})
        expected["new here"] = {(TOPIC, 2): 5}
        assert offsets(here, expected) == expected
        tables = shown(java_shell, here, [*groups[-3:], "new here"])
        service.terminate()

        # (a) Kafka's tool reads what we wrote.
        for group in (MEMBERS_GROUP, "new here"):
            directory = service.data_dir / f"{OFFSETS_TOPIC}-{partition_for(GroupId(group), count)}"
            printed = deep_dump(max(directory.glob("*.log")))
            assert f'"group":"{group}"' in printed
            for complaint in ("isvalid: false", "Mismatches", "out of order", "Index timestamp", "not found"):
                assert complaint not in printed

        # (c) Ours in place of the broker's.
        for directory in broker.data_dir.glob(f"{OFFSETS_TOPIC}-*"):
            shutil.rmtree(directory)
        for directory in service.data_dir.glob(f"{OFFSETS_TOPIC}-*"):
            shutil.copytree(directory, broker.data_dir / directory.name)
        broker.start()
        assert offsets(there, expected) == expected
        assert shown(java_shell, there, [*groups[-3:], "new here"]) == tables
        broker.terminate()
    finally:
        broker.close()
        service.close()
