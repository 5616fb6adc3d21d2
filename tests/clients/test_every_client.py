# SPDX-License-Identifier: Apache-2.0
"""Every client, and Kafka's tools: alone, and through a gateway before a Kafka 4.4 and before a 4.3."""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import confluent_kafka as ck
import pytest

from bench.kafka import KAFKA_VERSION
from tests.clients.group import ALL, Groups
from tests.clients.member import ALSO, CLIENTS, JAVA_DEBUG
from tests.kafka.java_shell import JavaShell
from tests.support import raw
from tests.support.forwarder import Forwarder
from tests.support.service import Service
from tests.support.target import Gateway
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(300)]

SETTINGS: Final[dict[str, str | int]] = {"group.initial.rebalance.delay.ms": 0}
BEFORE: Final = {"alone": None, "before 4.4": KAFKA_VERSION, "before 4.3": "4.3.0"}


@pytest.fixture(scope="module", params=BEFORE)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A node of ours, or a gateway."""
    work, version = tmp_path_factory.mktemp("place"), BEFORE[request.param]
    service = Service(work, SETTINGS) if version is None else Gateway(work, SETTINGS, version=version)
    try:
        service.start()
        yield service
    finally:
        service.close()


def produce(bootstrap: str, topic: str) -> None:
    """Produce two records to the first partition, and to each other one more than to the one before."""
    producer = ck.Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for partition in ALL:
        for _ in range(2 + partition):
            producer.produce(topic, b"a record", partition=partition)
    assert producer.flush(120) == 0


def takes_commits(bootstrap: str, topic: str) -> bool:
    """Whether the topic, which is new at the cluster, is known to our node; sarama does not repeat a commit."""
    with raw.RawConnection(bootstrap) as connection:
        answer = connection.call(raw.standalone_commit(f"{topic}-probe", topic, dict.fromkeys(ALL, 0)), 8)
    return {each.error_code for each in answer.topics[0].partitions} == {0}


@pytest.mark.parametrize("client", [*CLIENTS, *ALSO], ids=lambda client: client.name)
def test_members_share_commit_leave_and_come_back(place: Service, groups: Groups) -> None:
    group = groups.make(place.bootstrap)
    if isinstance(place, Gateway):  # an offset behind the last record would be out of range there
        produce(place.bootstrap, group.topic)
        wait_until(lambda: takes_commits(place.bootstrap, group.topic), what="the topic to be known")
    first, second = members = [group.member(name) for name in ("first", "second")]
    group.wait_shared(members)
    committed = {partition: 1 + partition for partition in ALL}
    for member in members:
        member.commit({partition: committed[partition] for partition in member.assignment})
    assert raw.fetch_offsets(place.bootstrap, group.id) == {
        (group.topic, partition): offset for partition, offset in committed.items()
    }

    second.leave()
    group.wait_shared([first])
    assert first.committed(ALL) == committed
    later = {partition: 2 + partition for partition in ALL}
    first.commit(later)
    first.leave()

    third = group.member("third")
    group.wait_shared([third])
    assert third.committed(ALL) == later


ASKED: Final = re.compile(r"Sending API_VERSIONS request .*?apiVersion=(\d+)")
CONNECTED: Final = "Completed connection to node"


@pytest.mark.parametrize("client", [JAVA_DEBUG], ids=lambda client: client.name)
def test_java_asks_once_on_each_connection_what_is_served(place: Service, groups: Groups) -> None:
    """In the version that it tries first: one that is not known would be a round trip more."""
    group = groups.make(place.bootstrap)
    member = group.member("member")
    group.wait_shared([member])
    printed = member.printed()
    assert printed.count(CONNECTED) >= 2
    assert ASKED.findall(printed) == ["5"] * printed.count(CONNECTED)


def test_kafkas_tools(place: Service, java_shell: JavaShell) -> None:
    at = ("--bootstrap-server", place.bootstrap)
    topic, group = f"tools-{uuid.uuid4().hex[:12]}", f"tools-{uuid.uuid4().hex[:12]}"
    created = java_shell.run("topics", *at, "--create", "--topic", topic, "--partitions", str(len(ALL)))
    assert f"Created topic {topic}." in created.output, created.output + created.errors
    wait_until(lambda: takes_commits(place.bootstrap, topic), what="the topic to be known")
    if isinstance(place, Gateway):
        produce(place.bootstrap, topic)
    described = java_shell.run("topics", *at, "--describe", "--topic", topic).output
    assert f"PartitionCount: {len(ALL)}" in described

    entity = ("--entity-type", "topics", "--entity-name", topic)
    altered = java_shell.run("configs", *at, "--alter", *entity, "--add-config", "remote.copy.lag.ms=5")
    assert altered.status == 0 or isinstance(place, Gateway), altered.output + altered.errors
    raw.commit_offsets(place.bootstrap, group, topic, dict.fromkeys(ALL, 1))
    assert group in java_shell.groups(place.bootstrap, "--list").output.split()
    assert group in java_shell.run("all-groups", *at, "--list").output
    of_group = ("--group", group)
    rows = java_shell.groups(place.bootstrap, "--describe", *of_group).table()
    assert {(row["TOPIC"], row["PARTITION"], row["CURRENT-OFFSET"]) for row in rows} == {
        (topic, str(partition), "1") for partition in ALL
    }
    (state,) = java_shell.groups(place.bootstrap, "--describe", "--state", *of_group).table()
    assert state["STATE"] == "Empty"

    to = ("--reset-offsets", "--topic", topic, "--to-earliest", "--execute")
    moved = java_shell.groups(place.bootstrap, *to, *of_group)
    assert moved.status == 0, moved.output + moved.errors
    assert set(raw.fetch_offsets(place.bootstrap, group).values()) == {0}
    removed = java_shell.groups(place.bootstrap, "--delete-offsets", "--topic", f"{topic}:0", *of_group)
    assert removed.status == 0, removed.output + removed.errors
    assert (topic, 0) not in raw.fetch_offsets(place.bootstrap, group)
    deleted = java_shell.groups(place.bootstrap, "--delete", *of_group)
    assert f"Deletion of requested consumer groups ('{group}') was successful." in deleted.output
    assert raw.fetch_offsets(place.bootstrap, group) == {}


@pytest.mark.parametrize("client", [JAVA_DEBUG], ids=lambda client: client.name)
def test_java_begins_again_where_another_cluster_has_its_node(groups: Groups, tmp_path: Path) -> None:
    """The address and the id of the node are the same, the cluster is not."""
    forwarder = Forwarder()
    settings = {**SETTINGS, "advertise": forwarder.address, "num.partitions": len(ALL)}
    one, other = (Service(tmp_path / name, settings) for name in ("one", "other"))
    try:
        one.start()
        other.start()
        forwarder.lead_to(one.port)
        group = groups.make(forwarder.address)
        member = group.member("member")
        group.wait_shared([member])
        raw.create_topic(other.bootstrap, group.topic, len(ALL))
        forwarder.lead_to(other.port)
        group.wait_shared([member])
        assert "Rebootstrap requested by server" in member.printed()
    finally:
        forwarder.close()
        one.close()
        other.close()
