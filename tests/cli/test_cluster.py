# SPDX-License-Identifier: Apache-2.0
"""The `groups` commands on running clusters: a real Kafka, and Groupkeeper."""

import uuid
from pathlib import Path

from confluent_kafka import TopicPartition

from tests.cli.conftest import PARTITIONS, Command, consuming
from tests.support.documented import Documented
from tests.support.raw import commit_offsets, wait_for_coordinator


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
    (described,) = groupkeeper("groups", "describe", stable_group, "--json", "--bootstrap", bootstrap).json
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
        shown = "[]\n" if "--json" in flags else ""
        assert outcome == (1, shown, "groupkeeper: group nobody not found\n")


def offsets_of(groupkeeper: Command, bootstrap: str, group: str) -> dict[int, int]:
    (described,) = groupkeeper(
        "groups", "describe", group, "--bootstrap", bootstrap, "--offsets", "--json"
    ).json
    return {row["partition"]: row["offset"] for row in described["offsets"]}


def test_offsets_are_set_to_what_a_file_says_forward_and_backward(
    groupkeeper: Command, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    group = f"set-{uuid.uuid4().hex[:12]}"
    wait_for_coordinator(bootstrap, group)
    file = tmp_path / "offsets.csv"
    command = ("groups", "import", str(file), "--group", group, "--bootstrap", bootstrap)
    file.write_text(f'"{topic}",0,1200345\n{topic},3,7\n')
    ran = groupkeeper(*command)
    assert ran.rows == [
        ["GROUP", "TOPIC", "PARTITION", "BEFORE", "OFFSET"],
        [group, topic, "0", "-", "1200345"],
        [group, topic, "3", "-", "7"],
    ]
    assert ran.stderr == (
        f"group {group} does not exist yet\ndry run: nothing was changed; --execute makes the changes\n"
    )
    assert groupkeeper("groups", "describe", group, "--bootstrap", bootstrap).exit_code == 1
    assert groupkeeper(*command, "--execute").exit_code == 0
    assert offsets_of(groupkeeper, bootstrap, group) == {0: 1_200_345, 3: 7}
    file.write_text(f"{topic},0,5\n{topic},1,9223372036854775807\n")
    assert groupkeeper(*command, "--execute").rows[1:] == [
        [group, topic, "0", "1200345", "5"],
        [group, topic, "1", "-", "9223372036854775807"],
    ]
    assert offsets_of(groupkeeper, bootstrap, group) == {0: 5, 1: 2**63 - 1, 3: 7}


def test_the_documented_command_sets_offsets(
    documented: Documented, groupkeeper: Command, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    (command,) = documented.commands
    group = f"set-{uuid.uuid4().hex[:12]}"
    wait_for_coordinator(bootstrap, group)
    file = tmp_path / "better.csv"
    file.write_text(f"{topic},2,1200345\n")
    documented.run(command, {"GROUP": group, "FILE": file, "HOST:PORT": bootstrap})
    assert offsets_of(groupkeeper, bootstrap, group) == {2: 1_200_345}


def test_offsets_that_cannot_be_set_are_named(
    groupkeeper: Command, bootstrap: str, topic: str, stable_group: str, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,5\n")
    command = ("groups", "import", str(file), "--execute", "--bootstrap", bootstrap, "--group")
    ran = groupkeeper(*command, stable_group)
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert f"group {stable_group} has members: stop them first, or remove them with --force" in ran.stderr
    assert offsets_of(groupkeeper, bootstrap, stable_group)[0] == 10

    group = f"set-{uuid.uuid4().hex[:12]}"
    wait_for_coordinator(bootstrap, group)
    file.write_text(f"{topic},0,5\n{topic},99,5\n")
    ran = groupkeeper(*command, group)
    assert (ran.exit_code, [row.split()[3:] for row in ran.stdout.splitlines()]) == (
        1,
        [["BEFORE", "OFFSET"], ["-", "5"]],
    )
    assert f"not set in group {group}: {topic}-99 (UNKNOWN_TOPIC_OR_PARTITION)" in ran.stderr
    assert offsets_of(groupkeeper, bootstrap, group) == {0: 5}


def test_offsets_go_out_and_in_as_json_with_their_metadata(
    groupkeeper: Command, bootstrap: str, topic: str, tmp_path: Path
) -> None:
    old, new = (f"{name}-{uuid.uuid4().hex[:12]}" for name in ("old", "new"))
    with consuming(bootstrap, old, topic) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 1, 7, "so far")], asynchronous=False)
    exported = groupkeeper("groups", "export", old, "--json", "--bootstrap", bootstrap)
    (row,) = exported.json[0]["offsets"]
    assert (row["offset"], row["metadata"].rstrip("\0")) == (
        7,
        "so far",
    )  # confluent-kafka sends C's end of text
    file = tmp_path / "offsets.json"
    file.write_text(exported.stdout.replace(old, new))
    back = groupkeeper("groups", "import", str(file), "--execute", "--json", "--bootstrap", bootstrap)
    assert back.json == [{"group": new, "topic": topic, "partition": 1, "before": None, "offset": 7}]
    again = groupkeeper("groups", "export", new, "--json", "--bootstrap", bootstrap)
    assert again.json == [{"group": new, "offsets": [row]}]


def test_offsets_are_copied_to_another_group(groupkeeper: Command, bootstrap: str, topic: str) -> None:
    old, new = (f"{name}-{uuid.uuid4().hex[:12]}" for name in ("old", "new"))
    for group, offsets in ((old, {0: 4, 1: 5}), (new, {1: 9, 2: 6})):
        wait_for_coordinator(bootstrap, group)
        commit_offsets(bootstrap, group, topic, offsets)
    command = ("groups", "copy", old, new, "--bootstrap", bootstrap)
    shown = [[new, topic, "0", "-", "4"], [new, topic, "1", "9", "5"]]
    assert groupkeeper(*command).rows[1:] == shown
    assert offsets_of(groupkeeper, bootstrap, new) == {1: 9, 2: 6}
    assert groupkeeper(*command, "--execute", "--to-bootstrap", bootstrap).rows[1:] == shown
    assert offsets_of(groupkeeper, bootstrap, new) == {0: 4, 1: 5, 2: 6}
    assert (
        groupkeeper(*command, "--topic", "other").stderr == f"groupkeeper: group {old} has no such offsets\n"
    )
    assert groupkeeper(*command, "--execute", "--to-bootstrap", "x").exit_code == 2
