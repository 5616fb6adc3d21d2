# SPDX-License-Identifier: Apache-2.0
"""The `topics` commands on Groupkeeper and on a real Kafka."""

import uuid

import pytest

from tests.cli.conftest import Command
from tests.support import raw
from tests.support.waiting import wait_until

DRY = "dry run: nothing was changed; --execute makes the changes\n"


@pytest.fixture
def name() -> str:
    return f"made-{uuid.uuid4().hex[:12]}"


def test_a_topic_is_created_described_grown_and_deleted(
    groupkeeper: Command, bootstrap: str, name: str
) -> None:
    at = ("--bootstrap", bootstrap)
    made = groupkeeper("topics", "create", name, "--partitions", "3", "--config", "retention.ms=5000", *at)
    assert made == (0, f"created: {name}\n", "")
    raw.create_topic(bootstrap, name, 3)  # waits until it is led
    (found,) = groupkeeper("topics", "describe", name, "--json", *at).json
    assert (found["topic"], found["configs"]) == (name, {"retention.ms": "5000"})
    assert uuid.UUID(found["topic_id"]).int > 0
    assert [each["partition"] for each in found["partitions"]] == [0, 1, 2]
    assert {each["start"] for each in found["partitions"]} == {0}
    assert all(each["leader"] in each["replicas"] for each in found["partitions"])

    assert groupkeeper("topics", "add-partitions", name, "--partitions", "5", *at) == (
        0,
        f"has 5 partitions: {name}\n",
        "",
    )
    raw.create_topic(bootstrap, name, 5)
    assert groupkeeper("topics", "list", f"{name[:-1]}?", *at).rows == [["TOPIC", "PARTITIONS"], [name, "5"]]

    assert groupkeeper("topics", "delete", f"{name[:-1]}*", *at) == (0, f"would be deleted: {name}\n", DRY)
    assert raw.metadata(bootstrap, name).topics[0].error_code == raw.NONE
    assert groupkeeper("topics", "delete", name, "--execute", *at) == (0, f"deleted: {name}\n", "")
    assert groupkeeper("topics", "list", name, *at) == (0, "", "no topics\n")


def test_settings_are_shown_set_and_removed(
    groupkeeper: Command, bootstrap: str, topic: str, name: str
) -> None:
    at = ("--bootstrap", bootstrap)

    def configs() -> dict[str, str]:
        (found,) = groupkeeper("topics", "describe", name, "--json", *at).json
        return dict(found["configs"])

    assert groupkeeper("topics", "create", name, "--config", "retention.ms=5000", *at).exit_code == 0
    raw.create_topic(bootstrap, name, 1)
    change = ("--config", "retention.ms=6000", "--config", "cleanup.policy=compact")
    shown = [["TOPIC", "SETTING", "BEFORE", "VALUE"], [name, "retention.ms", "5000", "6000"]]
    dry = groupkeeper("topics", "alter", name, *change, *at)
    assert (dry.exit_code, dry.rows, dry.stderr) == (
        0,
        [*shown, [name, "cleanup.policy", "-", "compact"]],
        DRY,
    )
    assert configs() == {"retention.ms": "5000"}
    done = groupkeeper("topics", "alter", name, *change, "--execute", *at)
    assert (done.exit_code, done.rows, done.stderr) == (0, dry.rows, "")
    wait_until(lambda: configs() == {"retention.ms": "6000", "cleanup.policy": "compact"})

    both = groupkeeper(
        "topics", "alter", name, topic, "--delete-config", "cleanup.policy", "--execute", "--json", *at
    )
    assert [(each["topic"], each["before"], each["value"]) for each in both.json] == [
        (name, "compact", None),
        (topic, None, None),
    ]
    wait_until(lambda: configs() == {"retention.ms": "6000"})


def test_settings_that_the_cluster_refuses_are_refused_in_the_dry_run(
    groupkeeper: Command, bootstrap: str, topic: str, name: str
) -> None:
    at = ("--bootstrap", bootstrap)
    for execute in ((), ("--execute",)):
        bad = groupkeeper("topics", "alter", topic, "--config", "retention.ms=x", *execute, *at)
        assert (bad.exit_code, bad.stdout) == (1, "")
        assert f"changing settings of topic {topic}: INVALID_CONFIG" in bad.stderr
        partly = groupkeeper("topics", "alter", topic, name, "--config", "retention.ms=7", *execute, *at)
        assert partly.exit_code == 1
        assert partly.stdout.splitlines()[1].split() == [topic, "retention.ms", "-", "7"]
        assert f"changing settings of topic {name}: UNKNOWN_TOPIC_OR_PARTITION" in partly.stderr


def test_describe_is_a_table_of_topics_and_one_of_partitions(
    groupkeeper: Command, bootstrap: str, topic: str
) -> None:
    rows = groupkeeper("topics", "describe", topic, "--bootstrap", bootstrap).rows
    assert rows[0] == ["TOPIC", "PARTITIONS", "REPLICAS", "ID", "SETTINGS"]
    assert rows[1][:3] == [topic, "4", "1"]
    assert rows[3] == ["TOPIC", "PARTITION", "LEADER", "REPLICAS", "IN SYNC", "START", "END"]
    assert [row[:2] for row in rows[4:]] == [[topic, str(number)] for number in range(4)]


def test_what_is_refused_says_why(groupkeeper: Command, bootstrap: str, topic: str, name: str) -> None:
    at = ("--bootstrap", bootstrap)
    twice = groupkeeper("topics", "create", topic, name, "--partitions", "2", *at)
    assert (twice.exit_code, twice.stdout) == (1, f"created: {name}\n")
    assert f"creating topic {topic}: TOPIC_ALREADY_EXISTS" in twice.stderr
    assert groupkeeper("topics", "create", topic, "--if-not-exists", *at) == (0, "", "")
    assert (
        "INVALID_CONFIG"
        in groupkeeper("topics", "create", f"{name}-b", "--config", "retention.ms=x", *at).stderr
    )
    fewer = groupkeeper("topics", "add-partitions", topic, "--partitions", "2", *at)
    assert (fewer.exit_code, fewer.stdout) == (1, "")
    assert f"adding partitions to topic {topic}: INVALID_PARTITIONS" in fewer.stderr
    for command in (("delete", "nope", "--execute"), ("describe", "nope")):
        gone = groupkeeper("topics", *command, *at)
        assert (gone.exit_code, gone.stdout) == (1, "")
        assert "nope" in gone.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("create",),
        ("create", "t", "--config", "x"),
        ("create", "t", "--partitions", "0"),
        ("describe",),
        ("alter", "t"),
        ("alter", "t", "--config", "retention.ms"),
        ("alter", "t", "--config", "retention.ms=1", "--delete-config", "retention.ms"),
        ("alter", "t", "--config", "retention.ms=1", "--config", "retention.ms=2"),
    ],
)
def test_what_makes_no_sense_is_a_mistake(groupkeeper: Command, words: tuple[str, ...]) -> None:
    assert groupkeeper("topics", *words).exit_code == 2


def test_internal_topics_are_listed_where_they_are_wanted(
    groupkeeper: Command, bootstrap: str, stable_group: str
) -> None:
    at = ("--json", "--bootstrap", bootstrap)
    everything = {each["topic"]: each for each in groupkeeper("topics", "list", "--internal", *at).json}
    assert everything["__consumer_offsets"]["is_internal"] is True
    assert "__consumer_offsets" not in {each["topic"] for each in groupkeeper("topics", "list", *at).json}
