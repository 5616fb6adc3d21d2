# SPDX-License-Identifier: Apache-2.0
"""No answer leaves before what it says is on disk: writes and reads alike, in the mode `always`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from protocol.newtypes import GroupId
from tests.net import requests
from tests.partitions.running import Client, Running, commit_error, eventually, fetched, node
from tests.support.groups import classic

NONE = ErrorCode.NONE


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", log_flush="always") as running:
        yield running


async def flush_waits(running: Running) -> None:
    await eventually(lambda: running.disk.waiting, "the flush to reach the disk")


async def is_not_answered(running: Running, client: Client, frame: bytes) -> bytes:
    """Ask while a flush is held; returns the answer that comes once it goes on."""
    answer = asyncio.create_task(client.ask(frame))
    await eventually(
        lambda: running.connection_of(client).has_unparked_work, "the reply to wait for the flush"
    )
    other = await running.client()
    await other.ask(requests.api_versions())  # what was written before would have arrived before this
    assert not answer.done(), "answered although the disk has not answered yet"
    running.disk.let_go()
    return await answer


async def test_a_commit_is_answered_after_its_flush(running: Running) -> None:
    client = await running.client()
    with running.disk.hold():
        answer = await is_not_answered(running, client, requests.commit("g", {0: 1}))
    assert commit_error(answer) is NONE


async def test_a_fetch_does_not_tell_what_is_not_on_disk(running: Running) -> None:
    writer, reader = await running.client(), await running.client()
    await writer.commit("g", 0, 1)
    with running.disk.hold():
        writer.send(requests.commit("g", {0: 2}))
        await flush_waits(running)
        answer = await is_not_answered(running, reader, requests.fetch_offsets("g"))
    assert fetched(answer) == {0: 2}


async def test_a_fetch_of_several_groups_waits_for_each_of_them(running: Running) -> None:
    writer, reader = await running.client(), await running.client()
    with running.disk.hold():
        writer.send(requests.commit("late", {0: 2}))
        await flush_waits(running)
        message = requests.fetch_groups("early", "late")
        answer = await is_not_answered(running, reader, message)
    groups = requests.answer(ApiKey.OFFSET_FETCH, 8, answer).groups
    assert [group.group_id for group in groups] == ["early", "late"]


async def test_a_sync_tells_no_assignment_that_is_not_on_disk(running: Running) -> None:
    client = await running.client()
    joined = requests.answer(ApiKey.JOIN_GROUP, 3, await client.ask(requests.join("g", version=3)))
    with running.disk.hold():
        sync = requests.sync("g", joined.member_id, 1, assignments={joined.member_id: b"all"})
        answer = await is_not_answered(running, client, sync)
    assert requests.answer(ApiKey.SYNC_GROUP, 4, answer).assignment == b"all"


async def test_other_views_of_a_group_wait_for_it_too(running: Running) -> None:
    member, reader = await running.client(), await running.client()
    member_id, generation = await member.join_alone("g")
    views = [
        requests.heartbeat("g", member_id, generation),
        requests.request(
            ApiKey.DESCRIBE_GROUPS,
            5,
            DescribeGroupsRequest(groups=["g"], include_authorized_operations=False),
        ),
        requests.request(ApiKey.LIST_GROUPS, 3, ListGroupsRequest()),
    ]
    for view in views:
        with running.disk.hold():
            commit = requests.commit("g", {0: 1}, member_id=member_id, generation=generation)
            member.send(commit)
            await flush_waits(running)
            await is_not_answered(running, reader, view)
        assert commit_error(await member.receive()) is NONE


async def test_deletions_are_answered_after_their_flush(running: Running) -> None:
    client = await running.client()
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    partition = topic.OffsetDeleteRequestPartition(partition_index=0)
    delete_offsets = OffsetDeleteRequest(
        group_id="g", topics=[topic(name=requests.TOPIC, partitions=[partition])]
    )
    await client.commit("g", 0, 1)
    await client.commit("g", 1, 1)
    with running.disk.hold():
        await is_not_answered(running, client, requests.request(ApiKey.OFFSET_DELETE, 0, delete_offsets))
    delete_group = requests.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["g"]))
    with running.disk.hold():
        await is_not_answered(running, client, delete_group)


async def test_what_does_not_depend_on_the_flush_does_not_wait(running: Running) -> None:
    writer, reader = await running.client(), await running.client()
    await reader.commit("other", 0, 7)
    with running.disk.hold():
        writer.send(requests.commit("g", {0: 1}))
        await flush_waits(running)
        assert await reader.fetch("other") == {0: 7}
        assert running.disk.waiting


async def test_pipelined_commits_are_answered_in_order_whatever_the_disk_does(running: Running) -> None:
    client = await running.client()
    with running.disk.hold():
        for number in range(1, 8):
            client.send(
                requests.commit("g", {0: number}, 2 * number), requests.fetch_offsets("g", 2 * number + 1)
            )
        await flush_waits(running)
    answers = [await client.receive() for _ in range(14)]
    assert [int.from_bytes(answer[:4], "big") for answer in answers] == list(range(2, 16))
    assert fetched(answers[-1]) == {0: 7}


async def test_commits_that_come_while_a_flush_is_under_way_share_the_next_one(running: Running) -> None:
    first, others = await running.client(), [await running.client() for _ in range(10)]
    before = running.disk.count("pwrite_durable")
    with running.disk.hold():
        first.send(requests.commit("g", {0: 1}))
        await flush_waits(running)
        for number, client in enumerate(others):
            client.send(requests.commit(f"group-{number}", {0: 1}))
        await eventually(
            lambda: running.app.stats.apis[ApiKey.OFFSET_COMMIT].handled == 11, "all commits to be handled"
        )
    for client in [first, *others]:
        assert commit_error(await client.receive()) is NONE
    assert running.disk.count("pwrite_durable") == before + 2


@pytest.mark.parametrize("mode", ["os", "interval"])
async def test_without_always_nobody_waits_for_a_sync(tmp_path: Path, mode: str) -> None:
    async with node(tmp_path / "data", log_flush=mode) as running:
        client = await running.client()
        with running.disk.hold():
            assert await client.commit("g", 0, 1) is NONE
            assert await client.fetch("g") == {0: 1}


async def test_interval_syncs_by_the_clock(tmp_path: Path) -> None:
    async with node(tmp_path / "data", log_flush="interval", log_flush_interval_ms=20) as running:
        client = await running.client()
        before = running.disk.count("fdatasync")
        await client.commit("g", 0, 1)
        await eventually(lambda: running.disk.count("fdatasync") > before, "the journal to be synced")


async def test_what_was_acknowledged_is_there_after_a_restart(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        client = await running.client()
        for number in range(20):
            await client.commit(f"group-{number}", number, number * 10)
        await client.join_alone("members")
    async with node(tmp_path / "data") as running:
        client = await running.client()
        for number in range(20):
            assert await client.fetch(f"group-{number}") == {number: number * 10}
        group = classic(running.app.manager, "members")
        assert group is not None
        assert [member.assignment for member in group.members.values()] == [b"all"]


# --- that there is nothing is answered as late as that there is something ---

GONE = {
    "fetch": requests.fetch_offsets("g"),
    "fetch of several": requests.fetch_groups("g"),
    "describe": requests.request(
        ApiKey.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=["g"], include_authorized_operations=False)
    ),
    "list": requests.request(ApiKey.LIST_GROUPS, 3, ListGroupsRequest()),
    "delete": requests.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["g"])),
    "delete offsets": requests.request(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="g", topics=[])),
    "join": requests.join("g", version=3),
    "join that is given an id": requests.join("g"),
    "rejoin": requests.join("g", "member"),
    "sync": requests.sync("g", "member", 1),
    "heartbeat": requests.heartbeat("g", "member", 1),
    "leave": requests.leave("g", "member"),
    "commit of a member": requests.commit("g", {0: 1}, member_id="member", generation=1),
}


@pytest.mark.parametrize("asked", GONE.values(), ids=GONE)
async def test_nobody_hears_that_a_group_is_gone_before_that_is_on_disk(
    running: Running, asked: bytes
) -> None:
    """A crash, or a flush that fails, brings it back."""
    client, reader = await running.client(), await running.client()
    await client.commit("g", 0, 1)
    with running.disk.hold():
        client.send(requests.request(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["g"])))
        await flush_waits(running)
        assert classic(running.app.manager, "g") is None
        await is_not_answered(running, reader, asked)


async def test_nor_of_one_that_expired(running: Running) -> None:
    client, reader = await running.client(), await running.client()
    await client.ask(requests.commit("g", {0: 1}, version=4, retention_ms=0))
    manager = running.app.manager
    with running.disk.hold():
        kept = manager.find(GroupId("g"))
        assert kept is not None
        assert sum(manager.expire_offsets_in_steps(kept, running.app.clock.wall_ms())) == 1
        await flush_waits(running)
        answer = await is_not_answered(running, reader, requests.fetch_offsets("g"))
    assert fetched(answer) == {}
