# SPDX-License-Identifier: Apache-2.0
"""What a node's log says about changes of a group by clients that are no members of it."""

import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.telemetry.log_limits import CHARACTERS_MAX, LINES_PER_PERIOD_MAX
from coordinator.telemetry.outside_changes import NAMED_MAX, WAITING_MAX, OutsideChange, OutsideChangeLog
from protocol.apis import ApiKey
from protocol.client_ids import CLI_CLIENT_ID
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DeleteGroupsRequest, OffsetDeleteRequest
from tests.net import requests
from tests.partitions.running import Client, Running, commit_error, eventually, node
from tests.support.log_lines import LogLines, captured

NONE = ErrorCode.NONE
GROUP = "readers"
TOPIC = "orders"


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path) as running:
        yield running


def lines_of(running: Running, log: LogLines) -> list[tuple[str, dict[str, Any]]]:
    """The event and the fields of each line about changes from outside, once they are due."""
    running.app.group_access.outside_changes.write_due_lines()
    events = {change.value for change in OutsideChange}
    return [(event, fields) for level, event, fields in log.lines if event in events and level == "info"]


def named_as(client_id: str, frame: bytes) -> bytes:
    """The same request of a client with another id; both ids are in the header."""
    at = 4 + 2 + 2 + 4
    length = int.from_bytes(frame[at : at + 2], "big")
    encoded = client_id.encode()
    body = frame[4:at] + len(encoded).to_bytes(2, "big") + encoded + frame[at + 2 + length :]
    return len(body).to_bytes(4, "big") + body


async def leave_offsets_behind(client: Client, offsets: dict[int, int]) -> None:
    """Let a member commit and leave."""
    member, generation = await client.join_alone(GROUP)
    commit = requests.commit(GROUP, offsets, member_id=member, generation=generation)
    assert commit_error(await client.ask(commit)) is NONE
    await client.ask(requests.leave(GROUP, member))


async def test_members_and_simple_consumers_have_no_line(running: Running) -> None:
    client = await running.client()
    with captured() as log:
        await leave_offsets_behind(client, {0: 5})
        assert await client.commit("simple", 0, 7) is NONE
        assert await client.commit("simple", 0, 8) is NONE
        assert lines_of(running, log) == []


async def test_a_reset_names_what_was_and_what_is(running: Running) -> None:
    client = await running.client()
    await leave_offsets_behind(client, {0: 5, 1: 6})
    with captured() as log:
        reset = requests.commit(GROUP, {0: 2, 3: 9})
        assert commit_error(await client.ask(named_as("kafka-admin", reset))) is NONE
        ((event, fields),) = lines_of(running, log)
    assert event == "offsets were committed from outside the group"
    assert fields == {
        "group": GROUP,
        "client_id": "kafka-admin",
        "address": "/127.0.0.1",
        "offsets": 2,
        "moved": {f"{TOPIC}-0": (5, 2), f"{TOPIC}-3": (None, 9)},
    }


async def test_what_is_refused_has_no_line(running: Running) -> None:
    client = await running.client()
    await client.join_alone(GROUP)
    with captured() as log:
        assert await client.commit(GROUP, 0, 1) is ErrorCode.UNKNOWN_MEMBER_ID
        delete = requests.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[GROUP, "none"]))
        await client.ask(delete)
        assert lines_of(running, log) == []


async def test_the_command_is_always_logged(running: Running) -> None:
    client = await running.client()
    with captured() as log:
        frame = named_as(CLI_CLIENT_ID, requests.commit("imported", {0: 4}))
        assert commit_error(await client.ask(frame)) is NONE
        ((_, fields),) = lines_of(running, log)
    assert (fields["client_id"], fields["moved"]) == (CLI_CLIENT_ID, {f"{TOPIC}-0": (None, 4)})


async def test_deleted_offsets_are_named(running: Running) -> None:
    client = await running.client()
    await leave_offsets_behind(client, {0: 5, 1: 6, 2: 7})
    topics = OffsetDeleteRequest.OffsetDeleteRequestTopic
    rows = [topics.OffsetDeleteRequestPartition(partition_index=index) for index in (2, 0, 4)]
    request = OffsetDeleteRequest(group_id=GROUP, topics=[topics(name=TOPIC, partitions=rows)])
    with captured() as log:
        await client.ask(requests.request(ApiKey.OFFSET_DELETE, 0, request))
        ((event, fields),) = lines_of(running, log)
    assert event == "offsets were deleted from outside the group"
    assert fields["moved"] == {f"{TOPIC}-2": (7, None), f"{TOPIC}-0": (5, None)}
    assert fields["offsets"] == 2


async def test_a_deleted_group_is_logged_with_its_offsets(running: Running) -> None:
    client = await running.client()
    await leave_offsets_behind(client, {0: 5, 1: 6})
    with captured() as log:
        await client.ask(requests.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[GROUP])))
        ((event, fields),) = lines_of(running, log)
    assert event == "group deleted"
    assert fields["moved"] == {f"{TOPIC}-0": (5, None), f"{TOPIC}-1": (6, None)}


async def test_a_member_that_another_client_removes_is_named(running: Running) -> None:
    member_client, other = await running.client(), await running.client()
    member, _generation = await member_client.join_alone(GROUP)
    members = [
        {"member_id": member, "group_instance_id": None, "reason": "it hangs"},
        {"member_id": "no", "group_instance_id": None, "reason": None},
    ]
    request = requests.build(ApiKey.LEAVE_GROUP, 5, {"group_id": GROUP, "members": members})
    with captured() as log:
        await other.ask(named_as("kafka-admin", request))
        ((event, fields),) = lines_of(running, log)
    assert event == "members were removed from outside the group"
    assert fields == {
        "group": GROUP,
        "client_id": "kafka-admin",
        "address": "/127.0.0.1",
        "members": 1,
        "removed": {member: "it hangs"},
    }


async def test_lines_are_written_by_themselves(running: Running) -> None:
    client = await running.client()
    with captured() as log:

        def groups() -> list[str]:
            return [fields["group"] for fields in log.fields(OutsideChange.OFFSETS_COMMITTED)]

        for count, group in enumerate(("a", "b"), 1):
            await client.ask(named_as(CLI_CLIENT_ID, requests.commit(group, {0: 4})))
            await eventually(lambda count=count: len(groups()) == count, "the line")  # type: ignore[misc]
        assert groups() == ["a", "b"]


async def test_lines_that_wait_are_written_at_a_stop(tmp_path: Path) -> None:
    with captured() as log:
        async with node(tmp_path) as running:
            client = await running.client()
            await client.ask(named_as(CLI_CLIENT_ID, requests.commit(GROUP, {0: 4})))
        assert OutsideChange.OFFSETS_COMMITTED in log.events


# --- many changes ---


class Admin:
    """A client that changes groups."""

    client_id = "admin"
    client_host = "/10.0.0.1"


def change(log: OutsideChangeLog, group: str, *moves: tuple[int, int | None, int | None]) -> None:
    """Add a commit of these partitions: number, offset before and offset after."""
    rows = [(TOPIC, partition, (before, after)) for partition, before, after in moves]
    log.add_offset_moves(OutsideChange.OFFSETS_COMMITTED, group, Admin(), len(rows), rows)


def test_changes_of_one_group_are_summed_up() -> None:
    changes = OutsideChangeLog()
    change(changes, "g", (0, 1, 2), (1, None, 5))
    change(changes, "g", (0, 2, 9))
    change(changes, "h", (0, 3, 1))
    with captured() as log:
        changes.write_due_lines()
        changes.write_due_lines()
    first, second = log.fields(OutsideChange.OFFSETS_COMMITTED)
    assert (first["requests"], first["offsets"]) == (2, 3)
    assert first["moved"] == {f"{TOPIC}-0": (1, 9), f"{TOPIC}-1": (None, 5)}
    assert "requests" not in second


def test_a_line_names_the_first_partitions_and_counts_all() -> None:
    changes = OutsideChangeLog()
    change(changes, "g", *((partition, 0, 1) for partition in range(50)))
    changes.add_removed_members("g", Admin(), [(f"m{number}", "") for number in range(50)])
    with captured() as log:
        changes.write_due_lines()
    (committed,) = log.fields(OutsideChange.OFFSETS_COMMITTED)
    (removed,) = log.fields(OutsideChange.MEMBERS_REMOVED)
    assert (committed["offsets"], len(committed["moved"])) == (50, NAMED_MAX)
    assert (removed["members"], len(removed["removed"])) == (50, NAMED_MAX)


def test_more_groups_than_a_second_has_lines_for_wait_their_turn() -> None:
    changes = OutsideChangeLog()
    count = LINES_PER_PERIOD_MAX + 5
    for number in range(count):
        change(changes, f"g{number}", (0, 0, 1))
    with captured() as log:
        changes.write_due_lines()
        assert len(log.lines) == LINES_PER_PERIOD_MAX
        changes.write_due_lines()
    groups = [fields["group"] for fields in log.fields(OutsideChange.OFFSETS_COMMITTED)]
    assert groups == [f"g{number}" for number in range(count)]


def test_what_there_is_no_room_for_is_counted() -> None:
    changes = OutsideChangeLog()
    for number in range(WAITING_MAX + 3):
        change(changes, f"g{number}", (0, 0, 1))
    with captured() as log:
        changes.write_all_lines()
    assert len(log.fields(OutsideChange.OFFSETS_COMMITTED)) == WAITING_MAX
    assert log.fields("more changes from outside than the log has room for") == [{"changes": 3}]


def test_names_that_clients_choose_are_kept_as_short_as_the_log_shows_them() -> None:
    changes = OutsideChangeLog()
    admin = Admin()
    admin.client_id = "c" * 32_000
    tracemalloc.start()
    try:
        for number in range(100):
            changes.add_removed_members(f"{number}" + "g" * 32_000, admin, [("m" * 32_000, "r" * 32_000)])
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 100 * 8_000
    with captured() as log:
        changes.write_due_lines()
    (first, *_) = log.fields(OutsideChange.MEMBERS_REMOVED)
    assert first["client_id"] == "c" * CHARACTERS_MAX + f"... ({32_000 - CHARACTERS_MAX} more)"
