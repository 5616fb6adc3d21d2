# SPDX-License-Identifier: Apache-2.0
"""The `groups` commands against a scripted node: what they ask, what they print, how they fail."""

import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from coordinator.cli.cluster import group_offset_requests as committing
from coordinator.cli.cluster import groups as asking
from coordinator.cli.cluster import partition_offsets as ending
from coordinator.cli.cluster.connection import PERHAPS_A_GATEWAY
from coordinator.cli.cluster.error_texts import WAYS_OUT, describe_refused_offsets
from coordinator.cli.cluster.model import CommittedOffset, GroupDetails
from coordinator.cli.errors import CommandError
from coordinator.cluster_requests.model import TopicPartition
from coordinator.cluster_requests.topics import END
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    ListGroupsResponse,
)
from protocol.placement import partition_for
from tests.cli.answers import Patience, committed, coordinator, described, ends, listed, member, metadata
from tests.cli.conftest import Command
from tests.cli.fake import FakeNode


def test_list_prints_a_table_in_the_order_of_ids(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("payments", "Stable"), ("audit", "Empty"))
    assert groupkeeper("groups", "list", "--bootstrap", node.bootstrap).rows == [
        ["GROUP", "STATE", "TYPE", "PROTOCOL TYPE"],
        ["audit", "Empty", "classic", "consumer"],
        ["payments", "Stable", "classic", "consumer"],
    ]


def test_list_prints_json(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("payments", "Stable"))
    assert groupkeeper("groups", "list", "--json", "--bootstrap", node.bootstrap).json == [
        {"group": "payments", "state": "Stable", "type": "classic", "protocol_type": "consumer"}
    ]


def test_list_of_no_groups_is_no_error(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed()
    assert groupkeeper("groups", "list", "--bootstrap", node.bootstrap) == (0, "", "no groups\n")
    assert groupkeeper("groups", "list", "--json", "--bootstrap", node.bootstrap).json == []


def test_list_says_which_partitions_it_could_not_ask(node: FakeNode, groupkeeper: Command) -> None:
    """A partition has failed, another one loads, and a third has no coordinator."""
    errors = {1: ErrorCode.NOT_COORDINATOR, 2: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}

    def find(request: Any, _version: int) -> Any:
        found = []
        for key in request.coordinator_keys:
            lost = partition_for(key, 5) == 4
            (one,) = coordinator(
                None if lost else node, ErrorCode.COORDINATOR_NOT_AVAILABLE if lost else ErrorCode.NONE
            ).coordinators
            one.key = key
            found.append(one)
        return FindCoordinatorResponse(throttle_time_ms=0, coordinators=found)

    def describe(request: Any, _version: int) -> Any:
        groups = []
        for group in request.groups:
            code = errors.get(partition_for(group, 5), ErrorCode.GROUP_ID_NOT_FOUND)
            groups += described(group, state="Dead", code=code).groups
        return DescribeGroupsResponse(throttle_time_ms=0, groups=groups)

    node.answers[ApiKey.METADATA] = lambda *_: metadata(node, topics={"__consumer_offsets": 5})
    node.answers[ApiKey.FIND_COORDINATOR] = find
    node.answers[ApiKey.DESCRIBE_GROUPS] = describe
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed()
    outcome = groupkeeper("groups", "list", "--bootstrap", node.bootstrap)
    assert outcome == (
        1,
        "",
        "groupkeeper: the groups of 3 partitions are missing, because they are not served now: 1 (NOT_COORDINATOR),"
        " 2 (COORDINATOR_LOAD_IN_PROGRESS), 4 (COORDINATOR_NOT_AVAILABLE)\n",
    )
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("a", "Empty"))
    outcome = groupkeeper("groups", "list", "--json", "--bootstrap", node.bootstrap)
    found = json.loads(outcome.stdout)
    assert (outcome.exit_code, [group["group"] for group in found]) == (1, ["a"])


def test_list_asks_every_node(node: FakeNode, groupkeeper: Command) -> None:
    with FakeNode() as other:
        topics = {"__consumer_offsets": 0}
        node.answers[ApiKey.METADATA] = lambda *_: metadata(node, other, topics=topics)
        node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("b", "Stable"))
        other.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("a", "Empty"))
        found = groupkeeper("groups", "list", "--json", "--bootstrap", node.bootstrap).json
    assert [group["group"] for group in found] == ["a", "b"]


def test_list_hands_the_filters_to_the_server(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed()
    filters = ["--state", "stable,EMPTY", "--state", "Dead", "--type", "Classic"]
    assert groupkeeper("groups", "list", *filters, "--bootstrap", node.bootstrap).exit_code == 0
    request = node.last(ApiKey.LIST_GROUPS)
    assert request.states_filter == ["Stable", "Empty", "Dead"]
    assert request.types_filter == ["classic"]


@pytest.mark.parametrize(("flag", "value"), [("--state", "Happy"), ("--type", "new")])
def test_list_refuses_a_filter_that_nothing_can_match(groupkeeper: Command, flag: str, value: str) -> None:
    outcome = groupkeeper("groups", "list", flag, value)
    assert outcome.exit_code == 2
    assert outcome.stderr.startswith(f"groupkeeper: {flag} {value}: expected ")


def test_describe_shows_state_members_and_offsets(node: FakeNode, groupkeeper: Command) -> None:
    members = [member("m-1", {"orders": [0, 1, 2, 5], "audit": [1]}), member("m-2", {}, instance="two")]
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(members=members)
    node.answers[ApiKey.OFFSET_FETCH] = lambda *_: committed(orders={5: 50, 9: 90})
    node.answers[ApiKey.METADATA] = lambda *_: metadata(node, topics={"orders": 10, "audit": 1})
    node.answers[ApiKey.LIST_OFFSETS] = lambda request, _: ends(
        request, {("orders", 5): 57, ("orders", 0): 3}
    )
    assert groupkeeper("groups", "describe", "g", "--bootstrap", node.bootstrap).rows == [
        ["GROUP", "STATE", "MEMBERS", "TYPE", "PROTOCOL TYPE", "PROTOCOL", "LAG", "COORDINATOR"],
        ["g", "Stable", "2", "classic", "consumer", "range", "7", f"127.0.0.1:{node.port} (node 7)"],
        [],
        ["MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS", "ASSIGNMENT"],
        ["m-1", "-", "app", "/10.0.0.1", "5", "audit 1; orders 0-2,5"],
        ["m-2", "two", "app", "/10.0.0.1", "0", "-"],
        [],
        ["TOPIC", "PARTITION", "OFFSET", "END", "LAG", "MEMBER", "CLIENT", "HOST", "METADATA"],
        ["audit", "1", "-", "-", "-", "m-1", "app", "/10.0.0.1", "-"],
        ["orders", "0", "-", "3", "-", "m-1", "app", "/10.0.0.1", "-"],
        ["orders", "1", "-", "-", "-", "m-1", "app", "/10.0.0.1", "-"],
        ["orders", "2", "-", "-", "-", "m-1", "app", "/10.0.0.1", "-"],
        ["orders", "5", "50", "57", "7", "m-1", "app", "/10.0.0.1", "m"],
        ["orders", "9", "90", "-", "-", "-", "-", "-", "m"],
    ]


def test_describe_as_json_holds_what_was_asked_for(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(members=[member("m-1", {"orders": [0]})])
    node.answers[ApiKey.OFFSET_FETCH] = lambda *_: committed(orders={0: 50})
    state = {
        "state": "Stable",
        "members": 1,
        "type": "classic",
        "protocol_type": "consumer",
        "protocol": "range",
        "coordinator_id": 7,
        "coordinator": node.bootstrap,
    }
    members = [
        {
            "member_id": "m-1",
            "group_instance_id": None,
            "client_id": "app",
            "client_host": "/10.0.0.1",
            "assignment": [{"topic": "orders", "partitions": [0]}],
        }
    ]
    offsets = [
        {
            "topic": "orders",
            "partition": 0,
            "offset": 50,
            "end": None,
            "lag": None,
            "leader_epoch": 2,
            "metadata": "m",
            "member_id": "m-1",
            "client_id": "app",
            "client_host": "/10.0.0.1",
        }
    ]

    def describe(*flags: str) -> Any:
        asked = ("groups", "describe", "g", *flags, "--json", "--bootstrap", node.bootstrap)
        (found,) = groupkeeper(*asked).json
        return found

    assert describe() == {"group": "g", "state": state, "members": members, "offsets": offsets}
    assert describe("--state") == {"group": "g", "state": state}
    assert describe("--members") == {"group": "g", "members": members}
    assert describe("--offsets") == {"group": "g", "offsets": offsets}


def test_describe_asks_for_offsets_only_when_they_are_shown(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described()
    groupkeeper("groups", "describe", "g", "--state", "--bootstrap", node.bootstrap)
    assert node.count(ApiKey.OFFSET_FETCH) == 0


def test_describe_says_so_where_a_group_has_nothing(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(state="Empty")
    node.answers[ApiKey.OFFSET_FETCH] = lambda *_: committed()
    outcome = groupkeeper("groups", "describe", "g", "--members", "--offsets", "--bootstrap", node.bootstrap)
    assert outcome == (0, "no members\n\nno offsets\n", "")


@pytest.mark.parametrize(
    "answer",
    [lambda *_: described(state="Dead"), lambda *_: described(state="", code=ErrorCode.GROUP_ID_NOT_FOUND)],
    ids=["before v6", "since v6"],
)
def test_describe_of_no_group_is_an_error(
    node: FakeNode, groupkeeper: Command, answer: Callable[..., Any]
) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = answer
    outcome = groupkeeper("groups", "describe", "g", "--bootstrap", node.bootstrap)
    assert outcome == (1, "", "groupkeeper: group g not found\n")


def test_an_assignment_that_cannot_be_read_is_left_out(node: FakeNode, groupkeeper: Command) -> None:
    odd = member("m-1", {})
    odd.member_assignment = b"\0\0\xff"
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(members=[odd])
    outcome = groupkeeper("groups", "describe", "g", "--members", "--json", "--bootstrap", node.bootstrap)
    assert outcome.json[0]["members"][0]["assignment"] == []


def test_what_clients_choose_cannot_steer_the_terminal(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("[red]a[/red]\x1b[2J\n", "Stable"))
    assert groupkeeper("groups", "list", "--bootstrap", node.bootstrap).rows[1][0] == r"[red]a[/red]\x1b[2J\n"
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(state="Dead")
    outcome = groupkeeper("groups", "describe", "a\nb", "--bootstrap", node.bootstrap)
    assert outcome.stderr == "groupkeeper: group a\\nb not found\n"
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(state="Empty")
    outcome = groupkeeper("groups", "delete", "a\x1b]2;b", "--bootstrap", node.bootstrap)
    assert outcome.stdout == "would be deleted: a\\x1b]2;b\n"


def test_json_shows_no_text_that_steers_a_terminal(node: FakeNode, groupkeeper: Command) -> None:
    hostile = "a\x9b2J\u202eb"
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed((hostile, "Stable"))
    outcome = groupkeeper("groups", "list", "--json", "--bootstrap", node.bootstrap)
    assert outcome.json[0]["group"] == hostile
    assert all(c.isprintable() or c == "\n" for c in outcome.stdout)


# --- patience ---


RETRIABLE = [
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
]


@pytest.mark.parametrize("code", RETRIABLE)
def test_a_coordinator_that_is_not_ready_is_asked_again(node: FakeNode, code: ErrorCode) -> None:
    answers = iter([described(code=code), described(code=code), described()])
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: next(answers)
    patience = Patience()
    with patience.client(node) as client:
        answer = asking.describe(client, ["g"])["g"]
    assert isinstance(answer, GroupDetails)
    assert answer.state == "Stable"
    assert patience.pauses == 2
    assert node.count(ApiKey.FIND_COORDINATOR) == 3, "the group may have moved, so it is looked for each time"


def test_a_coordinator_that_is_not_known_yet_is_looked_for_again(node: FakeNode) -> None:
    answers = iter([coordinator(None, ErrorCode.COORDINATOR_NOT_AVAILABLE), coordinator(node)])
    node.answers[ApiKey.FIND_COORDINATOR] = lambda *_: next(answers)
    node.answers[ApiKey.OFFSET_FETCH] = lambda *_: committed(t={0: 1})
    with Patience().client(node) as client:
        assert committing.fetch_committed_offsets(client, ["g"]) == {
            "g": [CommittedOffset("t", 0, 1, 2, "m")]
        }


@pytest.mark.parametrize("code", RETRIABLE)
def test_patience_ends_when_the_time_is_up(node: FakeNode, code: ErrorCode) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(code=code)
    patience = Patience()
    with patience.client(node, 5.0) as client, pytest.raises(CommandError) as caught:
        asking.describe(client, ["g"])
    said = str(caught.value)
    assert said == f"describing group g: still {code.name} after 5 s ({WAYS_OUT[code]})"
    assert 3.0 < patience.now < 5.0


def test_each_coordinator_is_asked_for_its_own_groups_and_only_again_for_what_was_not_ready(
    node: FakeNode,
) -> None:
    with FakeNode() as other:
        by_group = {"a": node, "b": other, "c": node}
        loading = iter([True, False])

        def find(request: Any, _version: int) -> Any:
            rows = [coordinator(by_group[key]).coordinators[0] for key in request.coordinator_keys]
            return FindCoordinatorResponse(throttle_time_ms=0, coordinators=rows)

        def describe(request: Any, _version: int) -> Any:
            groups = []
            for group in request.groups:
                late = group == "c" and next(loading)
                groups += described(group, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if late else 0).groups
            return DescribeGroupsResponse(throttle_time_ms=0, groups=groups)

        node.answers[ApiKey.FIND_COORDINATOR] = find
        for each in (node, other):
            each.answers[ApiKey.DESCRIBE_GROUPS] = describe
        with Patience().client(node) as client:
            found = asking.describe(client, ["a", "b", "c"])
        asked = [r.groups for of in (node, other) for h, r in of.asked if h.api_key == ApiKey.DESCRIBE_GROUPS]
    assert {group: isinstance(answer, GroupDetails) for group, answer in found.items()} == dict.fromkeys(
        "abc", True
    )
    assert asked == [["a", "c"], ["c"], ["b"]]
    assert list(found) == ["a", "b", "c"]  # as they were named


def test_leaders_are_asked_for_the_ends_of_their_own_partitions(node: FakeNode) -> None:
    with FakeNode() as other:
        answer = metadata(node, other, topics={"orders": 2})
        answer.topics[0].partitions[1].leader_id = 1
        node.answers[ApiKey.METADATA] = lambda *_: answer
        of_both = [("orders", 0), ("orders", 1)]
        node.answers[ApiKey.LIST_OFFSETS] = lambda request, _: ends(request, dict.fromkeys(of_both, 5))
        other.answers[ApiKey.LIST_OFFSETS] = lambda request, _: ends(request, dict.fromkeys(of_both, 6))
        with Patience().client(node) as client:
            places = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("orders", 9)]
            found = ending.fetch_offsets_at(client, places, END)
    assert found == {places[0]: 5, places[1]: 6, places[2]: "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_partition_without_a_leader_is_waited_for(node: FakeNode) -> None:
    gone, there = metadata(node, topics={"orders": 1}), metadata(node, topics={"orders": 1})
    gone.topics[0].partitions[0].leader_id = -1
    answers = iter([gone, gone, there])
    node.answers[ApiKey.METADATA] = lambda *_: next(answers)
    node.answers[ApiKey.LIST_OFFSETS] = lambda request, _: ends(request, {("orders", 0): 5})
    patience = Patience()
    with patience.client(node) as client:
        assert ending.fetch_offsets_at(client, [TopicPartition("orders", 0)], END) == {
            TopicPartition("orders", 0): 5
        }
    assert patience.pauses == 2


def test_loading_is_waited_for_by_list_too(node: FakeNode) -> None:
    loading = ListGroupsResponse(
        throttle_time_ms=0, error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, groups=[]
    )
    answers = iter([loading, listed(("g", "Stable"))])
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: next(answers)
    with Patience().client(node) as client:
        assert len(asking.list_groups(client)) == 1


def test_another_error_ends_at_once_with_its_name(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    outcome = groupkeeper("groups", "describe", "g", "--bootstrap", node.bootstrap)
    way_out = "the cluster's ACLs do not allow it to the user of --command-config"
    error = f"groupkeeper: describing group g: GROUP_AUTHORIZATION_FAILED ({way_out})\n"
    assert outcome == (1, "", error)


def test_each_way_out_of_refused_offsets_is_named_once() -> None:
    unknown, member = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name, ErrorCode.UNKNOWN_MEMBER_ID.name
    refused = {"t-0": unknown, "t-1": unknown, "u-0": member, "u-1": ErrorCode.INVALID_REQUEST.name}
    assert describe_refused_offsets("g", refused) == (
        f"not set in group g: t-0 ({unknown}), t-1 ({unknown}), u-0 ({member}), u-1 (INVALID_REQUEST); "
        "`groupkeeper topics list` shows the topics and their partitions; "
        "it has members; stop them first, or remove them with --force"
    )


def test_an_error_that_has_no_name_shows_its_number(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: described(code=9_999)
    outcome = groupkeeper("groups", "describe", "g", "--bootstrap", node.bootstrap)
    assert outcome.stderr == "groupkeeper: describing group g: error 9999\n"


# --- what is no Kafka, or none that will do ---


def test_nobody_listens(groupkeeper: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    outcome = groupkeeper("groups", "list", "--bootstrap", address)
    assert outcome == (1, "", f"groupkeeper: cannot connect to {address}: Connection refused\n")


def test_an_unknown_host(groupkeeper: Command) -> None:
    outcome = groupkeeper("groups", "list", "--bootstrap", "nowhere.invalid:9092")
    assert outcome.exit_code == 1
    assert outcome.stderr.startswith("groupkeeper: cannot connect to nowhere.invalid:9092: ")
    assert outcome.stderr.count("\n") == 1


@pytest.mark.parametrize("address", ["localhost", "a:b", "", "::1:9092"])
def test_an_address_that_is_none(groupkeeper: Command, address: str) -> None:
    outcome = groupkeeper("groups", "list", "--bootstrap", address)
    assert outcome == (
        2,
        "",
        f"groupkeeper: --bootstrap {address}: expected HOST:PORT, or several separated by commas\n",
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "{} does not speak Kafka's protocol"),
        (b"\0\0\0\x06\0\0\0\x01\0\0", "{} sent an invalid API_VERSIONS response"),
        (b"\0\0\0\x0a\0\0\0\x05\0\0\0\0\0\0", "{} answered request 5 instead of 1"),
        (b"\0\0\0\x0a\0\0\0\x01\0\x23\0\0\0\0", "{} refused ApiVersions: UNSUPPORTED_VERSION"),
        (b"\0\0", f"lost the connection to {{}}: the server closed it{PERHAPS_A_GATEWAY}"),
        (b"", f"lost the connection to {{}}: the server closed it{PERHAPS_A_GATEWAY}"),
    ],
)
def test_somebody_else_answers(groupkeeper: Command, said: bytes, reason: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        outcome = groupkeeper("groups", "list", "--bootstrap", address)
        thread.join()
    assert outcome == (1, "", f"groupkeeper: {reason.format(address)}\n")


def test_nobody_answers_in_time(groupkeeper: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:  # the system accepts, and nobody reads
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        outcome = groupkeeper("groups", "list", "--timeout", "0.1", "--bootstrap", address)
    assert outcome == (1, "", f"groupkeeper: lost the connection to {address}: it took too long\n")


def test_a_server_that_is_too_old(groupkeeper: Command) -> None:
    with FakeNode({ApiKey.API_VERSIONS: (0, 0), ApiKey.FIND_COORDINATOR: (0, 2)}) as old:
        listing = groupkeeper("groups", "list", "--bootstrap", old.bootstrap)
        describing = groupkeeper("groups", "describe", "g", "--bootstrap", old.bootstrap)
    needs = f"groupkeeper: 127.0.0.1:{old.port} offers"
    assert listing == (1, "", f"{needs} no version of METADATA; this command needs 10 to 12\n")
    assert describing == (1, "", f"{needs} versions 0 to 2 of FIND_COORDINATOR; this command needs 4 to 4\n")


def test_a_server_that_leaves_in_the_middle(node: FakeNode, groupkeeper: Command) -> None:
    node.answers[ApiKey.DESCRIBE_GROUPS] = lambda *_: None
    outcome = groupkeeper("groups", "describe", "g", "--bootstrap", node.bootstrap)
    assert outcome.exit_code == 1
    assert outcome.stderr == f"groupkeeper: lost the connection to {node.bootstrap}: the server closed it\n"


def test_a_character_that_does_not_print_leaves_the_others_as_they_are(
    node: FakeNode, groupkeeper: Command
) -> None:
    node.answers[ApiKey.LIST_GROUPS] = lambda *_: listed(("größe\t日本\x1b[2J", "Empty"))
    assert "größe\\t日本\\x1b[2J" in groupkeeper("groups", "list", "--bootstrap", node.bootstrap).stdout
