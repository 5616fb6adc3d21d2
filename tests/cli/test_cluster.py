# SPDX-License-Identifier: Apache-2.0
"""The `groups` commands on running clusters: a real Kafka, and Groupkeeper."""

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cli.conftest import Command
from tests.support.raw import create_topic, wait_for_coordinator
from tests.support.service import Service
from tests.support.waiting import wait_until

PARTITIONS = 4


@pytest.fixture(scope="module", params=["groupkeeper", pytest.param("kafka", marks=pytest.mark.kafka)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """HOST:PORT of a cluster that runs for this file's tests."""
    if request.param == "kafka":
        yield request.getfixturevalue("kafka_broker").bootstrap
        return
    service = Service(tmp_path_factory.mktemp("service"), {"group.initial.rebalance.delay.ms": 0})
    try:
        service.start()
        yield service.bootstrap
    finally:
        service.close()


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"topic-{uuid.uuid4().hex[:12]}"
    create_topic(bootstrap, name, PARTITIONS)
    return name


@pytest.fixture
def stable_group(bootstrap: str, topic: str) -> Iterator[str]:
    """A group with one member that has every partition and has committed two of them."""
    group = f"group-{uuid.uuid4().hex[:12]}"
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "reader",
            "group.instance.id": "instance-1",
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([topic])
    try:
        wait_until(
            lambda: (consumer.poll(0.05), len(consumer.assignment()) == PARTITIONS)[1],
            60.0,
            what=f"{group} to have its partitions",
        )
        offsets = [TopicPartition(topic, 0, 10), TopicPartition(topic, 3, 13)]
        consumer.commit(offsets=offsets, asynchronous=False)
        yield group
    finally:
        consumer.close()


def test_list_shows_a_group_with_its_state(bootstrap: str, stable_group: str, groupkeeper: Command) -> None:
    expected = {
        "group": stable_group,
        "state": "Stable",
        "type": "classic",
        "protocol_type": "consumer",
    }
    listed = groupkeeper("groups", "list", "--json", "--bootstrap", bootstrap).json
    assert [group for group in listed if group["group"] == stable_group] == [expected]
    assert [stable_group, "Stable", "classic", "consumer"] in groupkeeper(
        "groups", "list", "--bootstrap", bootstrap
    ).rows


def test_list_shows_only_what_the_filters_let_through(
    bootstrap: str, stable_group: str, groupkeeper: Command
) -> None:
    def found(*filters: str) -> bool:
        listed = groupkeeper("groups", "list", "--json", *filters, "--bootstrap", bootstrap).json
        return stable_group in {group["group"] for group in listed}

    assert found("--state", "stable")
    assert found("--state", "Empty,Stable", "--type", "classic")
    assert not found("--state", "Empty")
    assert not found("--type", "consumer")


def test_describe_shows_the_whole_group(
    bootstrap: str, topic: str, stable_group: str, groupkeeper: Command
) -> None:
    described = groupkeeper("groups", "describe", stable_group, "--json", "--bootstrap", bootstrap).json
    state = described["state"]
    assert (state["state"], state["members"], state["protocol_type"], state["protocol"]) == (
        "Stable",
        1,
        "consumer",
        "range",
    )
    assert state["coordinator"] == bootstrap
    (member,) = described["members"]
    assert member["member_id"].startswith("instance-1-")
    assert (member["group_instance_id"], member["client_id"]) == ("instance-1", "reader")
    assert member["client_host"] == "/127.0.0.1"
    assert member["assignment"] == [{"topic": topic, "partitions": list(range(PARTITIONS))}]
    offsets = [(o["topic"], o["partition"], o["offset"], o["metadata"]) for o in described["offsets"]]
    assert offsets == [
        (topic, 0, 10, ""),
        (topic, 1, None, None),
        (topic, 2, None, None),
        (topic, 3, 13, ""),
    ]
    assert {o["member_id"] for o in described["offsets"]} == {member["member_id"]}


def test_describe_as_tables_names_every_partition(
    bootstrap: str, topic: str, stable_group: str, groupkeeper: Command
) -> None:
    rows = groupkeeper("groups", "describe", stable_group, "--bootstrap", bootstrap).rows
    assert [row[:3] for row in rows if row and row[0] == topic] == [
        [topic, "0", "10"],
        [topic, "1", "-"],
        [topic, "2", "-"],
        [topic, "3", "13"],
    ]
    assert [row[0] for row in rows if row and row[0] in {"GROUP", "MEMBER", "TOPIC"}] == [
        "GROUP",
        "MEMBER",
        "TOPIC",
    ]


def test_describe_of_a_group_that_is_not_there(bootstrap: str, groupkeeper: Command) -> None:
    wait_for_coordinator(bootstrap, "nobody")
    for flags in ([], ["--json"], ["--offsets"], ["--members"], ["--state"]):
        outcome = groupkeeper("groups", "describe", "nobody", *flags, "--bootstrap", bootstrap)
        assert outcome == (1, "", "groupkeeper: group nobody not found\n")
