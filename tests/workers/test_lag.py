# SPDX-License-Identifier: Apache-2.0
"""The lag of groups behind a gateway, as Prometheus sees it."""

import json
import subprocess
import urllib.request
from collections.abc import Iterator

import confluent_kafka as ck
import pytest

from bench.installed import groupkeeper
from tests.kafka.cluster import KafkaCluster
from tests.kafka.java_shell import JavaShell
from tests.support.overview import fetch_overview
from tests.support.waiting import wait_until
from tests.workers.fronting import Fronting

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

INTERVAL_MS = 1_000


@pytest.fixture(scope="module")
def front(cluster: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronting]:
    settings: dict[str, str | int] = {
        "workers": 2,
        "gateway.adopt": "off",
        "metrics.lag": "partition",
        "metrics.lag.interval.ms": INTERVAL_MS,
    }
    front = Fronting(tmp_path_factory.mktemp("front"), cluster.bootstrap(), settings)
    try:
        front.start()
        yield front
    finally:
        front.close()


def commit(front: Fronting, group: str, topic: str, offsets: dict[int, int]) -> None:
    """Commit at the group's coordinator, once the topic is known there."""
    consumer = ck.Consumer({"bootstrap.servers": front.bootstrap, "group.id": group})
    rows = [ck.TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]

    def taken() -> bool:
        try:
            found = consumer.commit(offsets=rows, asynchronous=False)
        except ck.KafkaException:
            return False
        return all(each.error is None for each in found or ())

    try:
        wait_until(taken, what=f"a commit of {group}")
    finally:
        consumer.close()


def lags(front: Fronting) -> dict[str, float]:
    """All series of lag of both workers, by their names with labels."""
    found: dict[str, float] = {}
    for port in (front.metrics_port, front.metrics_port + 1):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
            lines = answer.read().decode().splitlines()
        rows = (line.rpartition(" ") for line in lines if "consumergroup" in line and line[0] != "#")
        found |= {name: float(value) for name, _, value in rows}
    return found


def shows(front: Fronting, wanted: dict[str, float]) -> None:
    """Wait until all of these series have these values."""
    wait_until(
        lambda: wanted.items() <= lags(front).items(), what=lambda: f"{wanted}; there is {lags(front)}"
    )


def test_lag_follows_records_commits_and_topics(cluster: KafkaCluster, front: Fronting) -> None:
    cluster.create_topic("lagged", 2)
    cluster.produce("lagged", 10, partition=0)
    cluster.produce("lagged", 4, partition=1)
    groups = [f"g{number}" for number in range(6)]  # at both workers
    for group in groups:
        commit(front, group, "lagged", {0: 7, 1: 4})
    for group in groups:
        shows(
            front,
            {
                f'groupkeeper_group_lag{{consumergroup="{group}"}}': 3,
                f'kafka_consumergroup_lag_sum{{consumergroup="{group}",topic="lagged"}}': 3,
                f'kafka_consumergroup_current_offset_sum{{consumergroup="{group}",topic="lagged"}}': 11,
                f'kafka_consumergroup_lag{{consumergroup="{group}",partition="0",topic="lagged"}}': 3,
                f'kafka_consumergroup_lag{{consumergroup="{group}",partition="1",topic="lagged"}}': 0,
            },
        )
    page = fetch_overview(front.metrics_port, "groups", sort="lag", order="desc", search="g", limit="6")
    assert [(row["group"], row["lag"]) for row in page["groups"]] == [(group, 3) for group in groups[::-1]]
    behind = 'groupkeeper_group_lag_seconds{consumergroup="g0"}'
    wait_until(lambda: lags(front)[behind] > 2 * INTERVAL_MS / 1000, what="a lag that grows old")

    commit(front, "g0", "lagged", {0: 10})
    shows(front, {'groupkeeper_group_lag{consumergroup="g0"}': 0, behind: 0})
    cluster.produce("lagged", 5, partition=1)
    shows(
        front,
        {
            'groupkeeper_group_lag{consumergroup="g0"}': 5,
            'groupkeeper_group_lag{consumergroup="g1"}': 8,
        },
    )
    cluster.delete_topic("lagged")
    wait_until(
        lambda: not [name for name in lags(front) if 'topic="lagged"' in name or 'group="g1"' in name],
        what=lambda: f"no lag in a topic that is gone: {lags(front)}",
    )


def test_readers_of_what_is_committed_are_not_behind_an_open_transaction(
    cluster: KafkaCluster, front: Fronting
) -> None:
    cluster.create_topic("transacted", 1)
    cluster.produce("transacted", 2)
    producer = ck.Producer({**cluster.client_settings(), "transactional.id": "lagging"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce("transacted", b"open")
    assert producer.flush(30) == 0
    commit(front, "stable", "transacted", {0: 1})
    shows(
        front,
        {
            'groupkeeper_group_lag{consumergroup="stable"}': 4,
            'groupkeeper_group_stable_lag{consumergroup="stable"}': 1,
        },
    )
    producer.abort_transaction(30)


def test_the_command_and_kafkas_own_tool_show_the_lag(
    cluster: KafkaCluster, front: Fronting, java_shell: JavaShell
) -> None:
    """Of a partition in which the group is behind, and of one in which it is beyond the end."""
    cluster.create_topic("described", 2)
    cluster.produce("described", 9, partition=0)
    cluster.produce("described", 10, partition=1)
    commit(front, "described", "described", {0: 2, 1: 15})
    rows = java_shell.groups(front.bootstrap, "--describe", "--group", "described", "--offsets").table()
    assert sorted((row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in rows) == [
        ("15", "10", "-5"),
        ("2", "9", "7"),
    ]
    described = subprocess.run(
        [*groupkeeper(), "groups", "describe", "described", "--json", "--bootstrap", front.bootstrap],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    (said,) = json.loads(described.stdout)
    assert [(each["offset"], each["end"], each["lag"]) for each in said["offsets"]] == [
        (2, 9, 7),
        (15, 10, -5),
    ]
    assert said["state"]["lag"] == 7
    labels = 'consumergroup="described",partition="{}",topic="described"'
    shows(
        front,
        {
            'groupkeeper_group_lag{consumergroup="described"}': 7,
            f"kafka_consumergroup_lag{{{labels.format(0)}}}": 7,
            f"kafka_consumergroup_lag{{{labels.format(1)}}}": -5,
        },
    )


def test_what_was_known_stays_while_the_cluster_is_away(cluster: KafkaCluster, front: Fronting) -> None:
    cluster.create_topic("away", 1)
    cluster.produce("away", 5)
    commit(front, "away", "away", {0: 1})
    known = {'groupkeeper_group_lag{consumergroup="away"}': 4.0}
    shows(front, known)
    cluster.kill9(1)
    wait_until(lambda: front.ready()["upstream"]["error"], what="a cluster that is missed")
    assert known.items() <= lags(front).items()
    cluster.restart(1)
    cluster.produce("away", 1)
    shows(front, {'groupkeeper_group_lag{consumergroup="away"}': 5})
