# SPDX-License-Identifier: Apache-2.0
"""kafka-consumer-groups.sh (the class that it runs) and the Java consumer, unmodified, against our service."""

import uuid
from collections.abc import Iterator

import confluent_kafka
import pytest

from coordinator.catalogue.topic_configs import END_GROUP
from tests.clients.group import ALL, Group
from tests.clients.member import CLIENTS, MemberOptions
from tests.kafka.java_shell import JavaShell
from tests.support import raw
from tests.support.target import Target

pytestmark = pytest.mark.kafka

RECORDS = 50


@pytest.fixture(scope="module")
def active(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """A group of two members, one of them static, that has committed 40 + the partition everywhere."""
    group = Group(CLIENTS[0], target.bootstrap, tmp_path_factory.mktemp("active"), create_topic=False)
    fill(target, group.topic)
    try:
        members = [group.member("alpha"), group.member("beta", MemberOptions(instance_id="static-beta"))]
        group.wait_shared(members)
        for member in members:
            member.commit({partition: 40 + partition for partition in member.assignment})
        yield group
    finally:
        group.close()


@pytest.fixture
def idle(active: Group) -> str:
    """A group without members that has committed 41, 42 and 43 in the first three partitions."""
    group = f"idle-{uuid.uuid4().hex[:12]}"
    raw.wait_for_coordinator(active.bootstrap, group)
    raw.commit_offsets(active.bootstrap, group, active.topic, {0: 41, 1: 42, 2: 43})
    return group


def fill(target: Target, topic: str) -> None:
    """Create the topic with partitions that end at RECORDS, as nobody can reset offsets past the end."""
    if target.kind != "kafka":
        raw.create_topic(target.bootstrap, topic, configs={END_GROUP: "makers"})
        raw.commit_offsets(target.bootstrap, "makers", topic, dict.fromkeys(ALL, RECORDS))
        return
    raw.create_topic(target.bootstrap, topic)
    producer = confluent_kafka.Producer({"bootstrap.servers": target.bootstrap})
    for partition in ALL:
        for number in range(RECORDS):
            producer.produce(topic, str(number).encode(), partition=partition)
    assert producer.flush(30) == 0


def stored(group: str, active: Group) -> dict[int, int]:
    """Return the offsets that the server has for a group on the topic."""
    return {
        partition: offset for (_, partition), offset in raw.fetch_offsets(active.bootstrap, group).items()
    }


def test_list_names_every_group_with_its_state(java_shell: JavaShell, active: Group, idle: str) -> None:
    """--list, alone and with states."""
    listed = java_shell.groups(active.bootstrap, "--list")
    assert {active.id, idle} <= set(listed.output.split()), listed.errors

    states = java_shell.groups(active.bootstrap, "--list", "--state").table()
    assert {"GROUP": active.id, "STATE": "Stable"} in states
    assert {"GROUP": idle, "STATE": "Empty"} in states

    chosen = java_shell.groups(active.bootstrap, "--list", "--type", "classic", "--state", "Empty").table()
    assert {"GROUP": idle, "TYPE": "Classic", "STATE": "Empty"} in chosen
    assert active.id not in {row["GROUP"] for row in chosen}


def test_describe_offsets_shows_what_is_committed_and_by_whom_it_is_held(
    java_shell: JavaShell, active: Group, idle: str
) -> None:
    """--describe --offsets, of a group with members and of one without."""
    rows = java_shell.groups(active.bootstrap, "--describe", "--group", active.id, "--offsets").table()
    ids = active.member_ids()
    assert {int(row["PARTITION"]): int(row["CURRENT-OFFSET"]) for row in rows} == {
        each: 40 + each for each in ALL
    }
    assert {row["LOG-END-OFFSET"] for row in rows} == {str(RECORDS)}
    assert {int(row["PARTITION"]): int(row["LAG"]) for row in rows} == {
        each: RECORDS - 40 - each for each in ALL
    }
    assert {row["TOPIC"] for row in rows} == {active.topic}
    assert {row["HOST"] for row in rows} == {"/127.0.0.1"}
    holders = {(row["CONSUMER-ID"], row["CLIENT-ID"]) for row in rows}
    assert holders == {(ids["alpha"], "alpha"), (ids["static-beta"], "beta")}

    rows = java_shell.groups(active.bootstrap, "--describe", "--group", idle, "--offsets").table()
    assert {int(row["PARTITION"]): int(row["CURRENT-OFFSET"]) for row in rows} == {0: 41, 1: 42, 2: 43}
    assert {row["CONSUMER-ID"] for row in rows} == {"-"}


def test_describe_members_shows_each_members_partitions(java_shell: JavaShell, active: Group) -> None:
    """--describe --members --verbose."""
    shown = java_shell.groups(active.bootstrap, "--describe", "--group", active.id, "--members", "--verbose")
    rows = {row["CLIENT-ID"]: row for row in shown.table()}
    ids = active.member_ids()
    assert set(rows) == {"alpha", "beta"}
    assert (rows["alpha"]["CONSUMER-ID"], rows["alpha"]["GROUP-INSTANCE-ID"]) == (ids["alpha"], "")
    assert (rows["beta"]["CONSUMER-ID"], rows["beta"]["GROUP-INSTANCE-ID"]) == (
        ids["static-beta"],
        "static-beta",
    )
    assert [row["#PARTITIONS"] for row in rows.values()] == ["6", "6"]
    held = [row["CURRENT-ASSIGNMENT"].removeprefix(f"{active.topic}:").split(",") for row in rows.values()]
    assert sorted(int(partition) for each in held for partition in each) == sorted(ALL)


def test_describe_state_shows_coordinator_strategy_and_size(java_shell: JavaShell, active: Group) -> None:
    """--describe --state."""
    (row,) = java_shell.groups(active.bootstrap, "--describe", "--group", active.id, "--state").table()
    coordinator = row.pop("COORDINATOR (ID)").split()
    assert coordinator[0] == active.bootstrap
    assert row == {"GROUP": active.id, "ASSIGNMENT-STRATEGY": "range", "STATE": "Stable", "#MEMBERS": "2"}


def test_a_group_that_does_not_exist_is_reported_so(java_shell: JavaShell, active: Group) -> None:
    """--describe and --delete of nothing."""
    described = java_shell.groups(active.bootstrap, "--describe", "--group", "nobody")
    assert "GroupIdNotFoundException: Group nobody not found." in described.output
    deleted = java_shell.groups(active.bootstrap, "--delete", "--group", "nobody")
    assert "GroupIdNotFoundException" in deleted.output


def test_offsets_are_reset_only_while_nobody_is_in_the_group(
    java_shell: JavaShell, active: Group, idle: str
) -> None:
    """--reset-offsets --to-offset --execute; without --execute nothing changes."""
    reset = ["--reset-offsets", "--topic", f"{active.topic}:0,1", "--to-offset", "7"]
    java_shell.groups(active.bootstrap, *reset, "--group", idle, "--dry-run")
    assert stored(idle, active) == {0: 41, 1: 42, 2: 43}

    done = java_shell.groups(active.bootstrap, *reset, "--group", idle, "--execute")
    assert {(row["PARTITION"], row["NEW-OFFSET"]) for row in done.table()} == {("0", "7"), ("1", "7")}
    assert stored(idle, active) == {0: 7, 1: 7, 2: 43}

    refused = java_shell.groups(active.bootstrap, *reset, "--group", active.id, "--execute")
    assert "is inactive, but the current state is Stable" in refused.output
    assert stored(active.id, active) == {each: 40 + each for each in ALL}


def test_offsets_are_deleted_only_of_topics_nobody_subscribes_to(
    java_shell: JavaShell, active: Group, idle: str
) -> None:
    """--delete-offsets."""
    done = java_shell.groups(
        active.bootstrap, "--delete-offsets", "--group", idle, "--topic", f"{active.topic}:0,2"
    )
    assert {(row["PARTITION"], row["STATUS"]) for row in done.table()} == {
        ("0", "Successful"),
        ("2", "Successful"),
    }
    assert stored(idle, active) == {1: 42}

    refused = java_shell.groups(
        active.bootstrap, "--delete-offsets", "--group", active.id, "--topic", active.topic
    )
    assert refused.output.count("GroupSubscribedToTopicException") == len(ALL)
    assert stored(active.id, active) == {each: 40 + each for each in ALL}


def test_groups_are_deleted_only_when_empty(java_shell: JavaShell, active: Group, idle: str) -> None:
    """--delete."""
    refused = java_shell.groups(active.bootstrap, "--delete", "--group", active.id)
    assert "GroupNotEmptyException" in refused.output

    done = java_shell.groups(active.bootstrap, "--delete", "--group", idle)
    assert f"Deletion of requested consumer groups ('{idle}') was successful." in done.output, done
    listed = raw.list_groups(active.bootstrap)
    assert idle not in listed
    assert listed[active.id] == "Stable"
    assert stored(idle, active) == {}


@pytest.mark.gate
def test_java_consumers_share_commit_leave_and_read_back(java_shell: JavaShell, active: Group) -> None:
    """KafkaConsumer with group.protocol=classic; java/Shell.java tells what it does."""
    group = f"java-{uuid.uuid4().hex[:12]}"
    raw.wait_for_coordinator(active.bootstrap, group)
    ran = java_shell.run("consume", active.bootstrap, group, active.topic)
    assert ran.status == 0, ran.errors
    lines = ran.output.splitlines()
    first, second, after = (
        {int(each) for each in line.removeprefix("assigned ").split(",")}
        for line in lines
        if line.startswith("assigned")
    )
    assert (first | second, first & second, len(first)) == (ALL, set(), 6)
    assert after == ALL
    assert lines[3:] == [f"committed {each} {500 + each} from java" for each in sorted(ALL)]
    assert stored(group, active) == {each: 500 + each for each in ALL}
    assert raw.list_groups(active.bootstrap)[group] == "Empty"
