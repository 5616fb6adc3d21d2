# SPDX-License-Identifier: Apache-2.0
"""Deleting groups and offsets, removing members, and choosing groups by patterns, on Groupkeeper and a real Kafka."""

import uuid
from pathlib import Path

import pytest

from tests.cli.conftest import PARTITIONS, Command, consuming
from tests.kafka.broker import KafkaBroker
from tests.support import raw
from tests.support.waiting import wait_until

DRY = "dry run: nothing was changed; --execute makes the changes\n"


@pytest.fixture
def prefix(bootstrap: str, topic: str) -> str:
    """What the ids of two groups without members begin with: one is `.a`, the other `.b`."""
    prefix = f"pair-{uuid.uuid4().hex[:12]}"
    for name in ("a", "b"):
        raw.wait_for_coordinator(bootstrap, f"{prefix}.{name}")
        raw.commit_offsets(bootstrap, f"{prefix}.{name}", topic, {0: 1, 1: 2, 2: 3})
    return prefix


def test_groups_are_chosen_by_patterns(groupkeeper: Command, bootstrap: str, prefix: str) -> None:
    listed = groupkeeper("groups", "list", f"{prefix}*", "--json", "--bootstrap", bootstrap).json
    assert [each["group"] for each in listed] == [f"{prefix}.a", f"{prefix}.b"]
    asked = ("groups", "describe", "--offsets", "--bootstrap", bootstrap)
    assert [each["group"] for each in groupkeeper(*asked, f"{prefix}.?", "--json").json] == [
        f"{prefix}.a",
        f"{prefix}.b",
    ]
    rows = groupkeeper(*asked, f"{prefix}.[ab]").rows
    assert [row[:4] for row in rows[:3]] == [
        ["GROUP", "TOPIC", "PARTITION", "OFFSET"],
        [f"{prefix}.a", rows[1][1], "0", "1"],
        [f"{prefix}.a", rows[1][1], "1", "2"],
    ]
    everything = groupkeeper(*asked, "--all-groups", "--json").json
    assert {f"{prefix}.a", f"{prefix}.b"} <= {each["group"] for each in everything}


def test_groups_that_are_not_there_are_named(groupkeeper: Command, bootstrap: str, prefix: str) -> None:
    none = groupkeeper("groups", "describe", f"{prefix}-nothing*", "--bootstrap", bootstrap)
    assert none == (1, "", f"groupkeeper: no group matches {prefix}-nothing*\n")
    some = groupkeeper("groups", "describe", f"{prefix}.a", "gone", "--state", "--bootstrap", bootstrap)
    assert (some.exit_code, some.stderr) == (1, "groupkeeper: group gone not found\n")
    assert f"{prefix}.a" in some.stdout
    for both in ((), (f"{prefix}.a", "--all-groups")):
        assert groupkeeper("groups", "describe", *both, "--bootstrap", bootstrap).exit_code == 2


def test_groups_are_deleted_once_that_is_said(groupkeeper: Command, bootstrap: str, prefix: str) -> None:
    command = ("groups", "delete", f"{prefix}*", "--pattern", "--bootstrap", bootstrap)
    dry = groupkeeper(*command)
    assert dry == (0, f"would be deleted: {prefix}.a\nwould be deleted: {prefix}.b\n", DRY)
    assert {f"{prefix}.a", f"{prefix}.b"} <= raw.list_groups(bootstrap).keys()
    done = groupkeeper(*command, "--execute")
    assert done == (0, f"deleted: {prefix}.a\ndeleted: {prefix}.b\n", "")
    assert not {f"{prefix}.a", f"{prefix}.b"} & raw.list_groups(bootstrap).keys()
    again = groupkeeper("groups", "delete", f"{prefix}.a", "--execute", "--bootstrap", bootstrap)
    assert again == (1, "", f"groupkeeper: group {prefix}.a not found\n")


@pytest.mark.parametrize(
    "change", [("delete",), ("reset", "--all-topics", "--to-offset", "7", "--unchecked")]
)
def test_a_name_is_no_pattern_where_groups_are_changed(
    groupkeeper: Command, bootstrap: str, prefix: str, topic: str, change: tuple[str, ...]
) -> None:
    name = f"{prefix}.[ab]"
    command = ("groups", change[0], name, *change[1:], "--bootstrap", bootstrap)
    refused = (1, "", f"groupkeeper: group {name} not found (with --pattern, names are patterns)\n")
    assert groupkeeper(*command, "--execute") == refused
    raw.wait_for_coordinator(bootstrap, name)
    raw.commit_offsets(bootstrap, name, topic, {0: 1})
    assert groupkeeper(*command, "--execute").exit_code == 0
    both = [raw.fetch_offsets(bootstrap, f"{prefix}.{each}") for each in "ab"]
    assert both == [{(topic, 0): 1, (topic, 1): 2, (topic, 2): 3}] * 2
    groupkeeper("groups", "delete", name, "--execute", "--bootstrap", bootstrap)
    assert groupkeeper(*command, "--execute") == refused
    assert groupkeeper(*command, "--pattern", "--execute").exit_code == 0
    changed = [raw.fetch_offsets(bootstrap, f"{prefix}.{each}") for each in "ab"]
    assert changed == [{} if change[0] == "delete" else {(topic, index): 7 for index in range(3)}] * 2


def test_a_group_with_members_is_not_deleted(
    groupkeeper: Command, bootstrap: str, prefix: str, stable_group: str
) -> None:
    command = ("groups", "delete", stable_group, f"{prefix}.a", "--execute", "--bootstrap", bootstrap)
    refused = f"groupkeeper: group {stable_group} has members (stop them first)\n"
    assert groupkeeper(*command) == (1, f"deleted: {prefix}.a\n", refused)
    assert raw.list_groups(bootstrap)[stable_group] == "Stable"


def test_offsets_are_deleted_by_topic_and_partition(
    groupkeeper: Command, bootstrap: str, prefix: str, topic: str
) -> None:
    group = f"{prefix}.a"
    command = ("groups", "delete-offsets", group, "--bootstrap", bootstrap, "--topic")
    dry = groupkeeper(*command, f"{topic}:0,2-3")
    assert dry.rows == [
        ["TOPIC", "PARTITION", "OFFSET"],
        [topic, "0", "1"],
        [topic, "2", "3"],
    ]
    assert dry.stderr == f"would be deleted: 2 offsets\n{DRY}"
    assert len(raw.fetch_offsets(bootstrap, group)) == 3
    done = groupkeeper(*command, f"{topic}:0,2-3", "--execute")
    assert (done.rows, done.stderr) == (dry.rows, "deleted: 2 offsets\n")
    assert raw.fetch_offsets(bootstrap, group) == {(topic, 1): 2}
    assert groupkeeper(*command, f"{topic[:-1]}?", "--execute").exit_code == 0
    assert raw.fetch_offsets(bootstrap, group) == {}
    none = groupkeeper(*command, topic, "--execute")
    assert none == (1, "", f"groupkeeper: group {group} has no such offsets\n")


def test_offsets_in_a_file_are_deleted(
    groupkeeper: Command, bootstrap: str, prefix: str, topic: str, tmp_path: Path
) -> None:
    group, file = f"{prefix}.a", tmp_path / "offsets.csv"
    file.write_text(f'"{topic}",1,999\n"{topic}",3,0\n')
    command = ("groups", "delete-offsets", group, "--from-file", str(file), "--bootstrap", bootstrap)
    assert groupkeeper(*command).rows[1:] == [[topic, "1", "2"]]
    assert groupkeeper(*command, "--execute").exit_code == 0
    assert raw.fetch_offsets(bootstrap, group) == {(topic, 0): 1, (topic, 2): 3}


def test_lag_is_shown_by_topic(groupkeeper: Command, bootstrap: str, prefix: str, topic: str) -> None:
    command = ("groups", "describe", f"{prefix}.a", "--topics", "--bootstrap", bootstrap)
    (shown,) = groupkeeper(*command, "--json").json[0]["topics"]
    assert (shown["topic"], shown["committed"]) == (topic, 3)
    lag = "-" if shown["lag"] is None else str(shown["lag"])
    assert groupkeeper(*command).rows == [
        ["TOPIC", "COMMITTED PARTITIONS", "LAG"],
        [topic, "3", lag],
    ]


def test_offsets_that_are_consumed_are_not_deleted(
    groupkeeper: Command, bootstrap: str, stable_group: str, topic: str
) -> None:
    command = (
        "groups",
        "delete-offsets",
        stable_group,
        "--all-topics",
        "--execute",
        "--bootstrap",
        bootstrap,
    )
    ran = groupkeeper(*command)
    each = ", ".join(f"{topic}-{number} (GROUP_SUBSCRIBED_TO_TOPIC)" for number in (0, 3))
    said = f"groupkeeper: not deleted: {each}: members of the group consume the topic\n"
    assert ran == (1, "", said)
    assert raw.fetch_offsets(bootstrap, stable_group) == {(topic, 0): 10, (topic, 3): 13}


@pytest.mark.parametrize("topic_flag", ["", "a:", "a:x", "a:3-1", "a:0-99999999", ":0"])
def test_partitions_that_make_no_sense_are_a_mistake(groupkeeper: Command, topic_flag: str) -> None:
    ran = groupkeeper("groups", "delete-offsets", "g", "--topic", topic_flag)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert f"--topic {topic_flag}: expected TOPIC or TOPIC:PARTITIONS" in ran.stderr


@pytest.mark.parametrize("instance", ["", "instance-7"], ids=["dynamic", "static"])
@pytest.mark.parametrize("chosen", ["by name", "all"])
def test_a_member_is_removed_and_joins_again(
    groupkeeper: Command, bootstrap: str, topic: str, instance: str, chosen: str
) -> None:
    group = f"removed-{uuid.uuid4().hex[:12]}"
    settings = {"group.instance.id": instance} if instance else {}
    with consuming(bootstrap, group, topic, **settings) as consumer:
        (member,) = raw.describe_group(bootstrap, group).members
        by_name = ("--instance", instance) if instance else ("--member", member.member_id)
        which = by_name if chosen == "by name" else ("--all-members",)
        command = ("groups", "remove-members", group, *which, "--bootstrap", bootstrap)
        shown = f"{member.member_id} (reader)\n"
        assert groupkeeper(*command) == (0, f"would be removed: {shown}", DRY)
        assert raw.describe_group(bootstrap, group).group_state == "Stable"
        assert groupkeeper(*command, "--execute") == (0, f"removed: {shown}", "")
        assert raw.describe_group(bootstrap, group).group_state == "Empty"
        if not instance:  # a static member that is removed is fenced, and its client gives up

            def is_back() -> bool:
                consumer.poll(0.05)
                members = raw.describe_group(bootstrap, group).members
                return [each.member_id for each in members] not in ([], [member.member_id])

            wait_until(is_back, what=f"the member of {group} to join again")


def test_members_that_are_not_there_are_named(
    groupkeeper: Command, bootstrap: str, stable_group: str, prefix: str
) -> None:
    command = ("groups", "remove-members", stable_group, "--execute", "--bootstrap", bootstrap)
    ran = groupkeeper(*command, "--member", "m-1", "--instance", "i-1")
    assert ran == (1, "", "groupkeeper: not in the group: --member m-1, --instance i-1\n")
    assert groupkeeper(*command).exit_code == 2
    none = groupkeeper("groups", "remove-members", f"{prefix}.a", "--all-members", "--bootstrap", bootstrap)
    assert none == (0, "", "no members\n")
    gone = groupkeeper("groups", "remove-members", f"{prefix}.c", "--all-members", "--bootstrap", bootstrap)
    assert gone == (1, "", f"groupkeeper: group {prefix}.c not found\n")


@pytest.mark.kafka
def test_a_group_of_kip_848_is_described(groupkeeper: Command, kafka_broker: KafkaBroker) -> None:
    bootstrap = kafka_broker.bootstrap
    topic, group = f"next-{uuid.uuid4().hex[:8]}", f"next-{uuid.uuid4().hex[:8]}"
    raw.create_topic(bootstrap, topic, PARTITIONS)
    with consuming(bootstrap, group, topic, **{"group.protocol": "consumer", "group.instance.id": "i"}):
        (described,) = groupkeeper("groups", "describe", group, "--json", "--bootstrap", bootstrap).json
        state, (member,) = described["state"], described["members"]
        assert (state["state"], state["type"], state["protocol"]) == ("Stable", "consumer", "uniform")
        assert state["epoch"] == state["assignment_epoch"] == member["epoch"]
        all_of_it = [{"topic": topic, "partitions": list(range(PARTITIONS))}]
        assert member["assignment"] == member["target"] == all_of_it
        assert (member["client_id"], member["group_instance_id"]) == ("reader", "i")
        assert member["is_classic"] is False
        shown = groupkeeper("groups", "describe", group, "--members", "--bootstrap", bootstrap).rows
        assert shown[0][4:] == ["EPOCH", "TYPE", "PARTITIONS", "ASSIGNMENT", "TARGET"]
        assert shown[1][5:] == ["consumer", "4", f"{topic} 0-3", f"{topic} 0-3"]
        removed = groupkeeper(
            "groups", "remove-members", group, "--instance", "i", "--execute", "--bootstrap", bootstrap
        )
        assert removed.exit_code == 0, removed
    both = groupkeeper(
        "groups", "describe", "--all-groups", "--state", "--json", "--bootstrap", bootstrap
    ).json
    assert {each["group"]: each["state"]["type"] for each in both}[group] == "consumer"
