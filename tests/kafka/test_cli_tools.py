# SPDX-License-Identifier: Apache-2.0
"""What Kafka's tools show of groups and topics, our command shows, on a real broker and on a node of ours."""

import base64
import re
import uuid

import pytest

from coordinator.catalogue.topic_configs import END_GROUP
from tests.cli.conftest import consuming, runner
from tests.documented import ADDRESS
from tests.kafka.broker import KafkaBroker
from tests.kafka.jars import tool
from tests.kafka.java_shell import JavaShell
from tests.support import raw
from tests.support.documented import Documented
from tests.support.service import Service

pytestmark = pytest.mark.kafka

PARTITIONS = 4


@pytest.fixture(scope="module", params=["real", "ours"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def server(kind: str, request: pytest.FixtureRequest) -> str:
    """HOST:PORT of a cluster."""
    running: KafkaBroker | Service = request.getfixturevalue("kafka_broker" if kind == "real" else "ours")
    return running.bootstrap


@pytest.fixture
def topic(server: str) -> str:
    """A topic whose partitions end at 0, on a node of ours as well."""
    name = f"shown-{uuid.uuid4().hex[:8]}"
    raw.create_topic(server, name, PARTITIONS)
    return name


def test_groups_are_shown_as_kafkas_tools_show_them(java_shell: JavaShell, server: str, topic: str) -> None:
    groupkeeper, group, idle = runner(), f"shown-{uuid.uuid4().hex[:8]}", f"shown-idle-{uuid.uuid4().hex[:8]}"
    for each in (group, idle):
        raw.wait_for_coordinator(server, each)
        raw.commit_offsets(server, each, topic, {0: 4, 2: 6})
    with consuming(server, group, topic):
        listed = java_shell.run("all-groups", "--bootstrap-server", server, "--list").table()
        theirs = {(row["GROUP"], row["TYPE"].lower(), row["PROTOCOL"]) for row in listed}
        ours = {
            (each["group"], each["type"], each["protocol_type"])
            for each in groupkeeper("groups", "list", "--json", "--bootstrap", server).json
        }
        # Of others, who share the broker, some have names that a table of columns cannot hold.
        made_here = {(group, "classic", "consumer"), (idle, "classic", "")}
        assert made_here <= theirs
        assert {each for each in ours if each[0].startswith("shown-")} == {
            each for each in theirs if each[0].startswith("shown-")
        }

        about = ["--describe", "--group", group]
        rows = java_shell.groups(server, *about).table()
        (described,) = groupkeeper("groups", "describe", group, "--json", "--bootstrap", server).json
        assert {
            (o["topic"], o["partition"], o["offset"], o["member_id"], o["client_host"], o["client_id"])
            for o in described["offsets"]
        } == {
            (
                row["TOPIC"],
                int(row["PARTITION"]),
                None if row["CURRENT-OFFSET"] == "-" else int(row["CURRENT-OFFSET"]),
                row["CONSUMER-ID"],
                row["HOST"],
                row["CLIENT-ID"],
            )
            for row in rows
        }
        (member,) = java_shell.groups(server, *about, "--members", "--verbose").table()
        (ours_of_it,) = described["members"]
        assert (ours_of_it["member_id"], ours_of_it["client_id"]) == (
            member["CONSUMER-ID"],
            member["CLIENT-ID"],
        )
        numbers = [int(n) for n in re.findall(r"\d+", member["CURRENT-ASSIGNMENT"].rpartition(":")[2])]
        assert ours_of_it["assignment"] == [{"topic": topic, "partitions": sorted(numbers)}]
        (state,) = java_shell.groups(server, *about, "--state").table()
        assert state["STATE"] == described["state"]["state"] == "Stable"
        assert int(state["#MEMBERS"]) == described["state"]["members"] == 1


def test_lag_is_what_kafkas_tool_shows(java_shell: JavaShell, kind: str, server: str) -> None:
    groupkeeper, group, topic = runner(), f"behind-{uuid.uuid4().hex[:8]}", f"ending-{uuid.uuid4().hex[:8]}"
    raw.create_topic(server, topic, 1, configs={END_GROUP: "makers"} if kind == "ours" else {})
    raw.wait_for_coordinator(server, group)
    if kind == "ours":
        raw.commit_offsets(server, "makers", topic, {0: 7})
    raw.commit_offsets(server, group, topic, {0: 3})
    (row,) = java_shell.groups(server, "--describe", "--group", group).table()
    (ours,) = groupkeeper("groups", "describe", group, "--json", "--bootstrap", server).json[0]["offsets"]
    assert (ours["end"], ours["lag"]) == (int(row["LOG-END-OFFSET"]), int(row["LAG"]))
    assert ours["lag"] == {"ours": 4, "real": -3}[kind]


def test_the_documented_commands_of_kafkas_tool_show_lag_and_members(
    documented: Documented, server: str, topic: str
) -> None:
    lag, members = documented.commands
    documented.add_program(
        "kafka-consumer-groups.sh", *tool("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand")
    )
    group = f"documented-{uuid.uuid4().hex[:8]}"
    raw.wait_for_coordinator(server, group)
    raw.commit_offsets(server, group, topic, {0: 4})
    shown = documented.run(lag, {ADDRESS: server, "--group orders": f"--group {group}"}).stdout
    assert [group, topic, "0", "4"] in [line.split()[:4] for line in shown.splitlines()]
    with consuming(server, group, topic):
        shown = documented.run(members, {"BROKER": server, "GROUP": group}).stdout
        assert [group, "/127.0.0.1", "reader", str(PARTITIONS)] in [
            [cells[0], *cells[2:5]] for cells in map(str.split, shown.splitlines()) if len(cells) >= 5
        ]


def test_topics_are_shown_as_kafkas_tool_shows_them(java_shell: JavaShell, server: str, topic: str) -> None:
    groupkeeper = runner()
    listed = java_shell.run("topics", "--bootstrap-server", server, "--list")
    ours = groupkeeper("topics", "list", "--internal", "--json", "--bootstrap", server).json
    assert sorted(each["topic"] for each in ours) == sorted(listed.output.split())
    ran = java_shell.run("topics", "--bootstrap-server", server, "--describe", "--topic", topic)
    (described,) = groupkeeper("topics", "describe", topic, "--json", "--bootstrap", server).json
    assert f"TopicId: {base64_id(described['topic_id'])}" in ran.output
    parts = re.findall(r"Partition: (\d+)\s+Leader: (\d+)\s+Replicas: ([\d,]+)\s+Isr: ([\d,]+)", ran.output)
    assert [(p["partition"], p["leader"], p["replicas"], p["in_sync"]) for p in described["partitions"]] == [
        (int(n), int(leader), numbers(replicas), numbers(isr)) for n, leader, replicas, isr in parts
    ]
    assert len(parts) == PARTITIONS


def base64_id(text: str) -> str:
    """A topic's id as Kafka writes it."""
    return base64.urlsafe_b64encode(uuid.UUID(text).bytes).decode().rstrip("=")


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def test_what_is_changed_here_is_seen_by_kafkas_tools(java_shell: JavaShell, server: str) -> None:
    groupkeeper, name, at = runner(), f"seen-{uuid.uuid4().hex[:8]}", ("--bootstrap", server)
    assert groupkeeper("topics", "create", name, "--partitions", "2", *at).exit_code == 0
    raw.create_topic(server, name, 2)
    assert groupkeeper("topics", "add-partitions", name, "--partitions", "3", *at).exit_code == 0
    raw.create_topic(server, name, 3)
    described = java_shell.run("topics", "--bootstrap-server", server, "--describe", "--topic", name)
    assert "PartitionCount: 3" in described.output
    raw.wait_for_coordinator(server, name)
    raw.commit_offsets(server, name, name, {0: 1})
    assert groupkeeper("groups", "delete", name, "--execute", *at).exit_code == 0
    assert name not in java_shell.groups(server, "--list").output.split()
    assert groupkeeper("topics", "delete", name, "--execute", *at).exit_code == 0
    assert name not in java_shell.run("topics", "--bootstrap-server", server, "--list").output.split()
