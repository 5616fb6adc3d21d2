# SPDX-License-Identifier: Apache-2.0
"""A flush that fails: those who wait hear so, memory goes back to what the log holds, and service goes on.

DESIGN.md's third rule: a failed append never rolls memory back; after a failed fsync nothing is retried and
acknowledged.
"""

import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from coordinator.groups.classic.state import GroupState
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, LeaderEpoch
from tests.net import requests
from tests.partitions.disk import SEGMENTS, SYNCS, WRITES
from tests.partitions.running import (
    PARTITIONS,
    Client,
    Refused,
    Running,
    commit_error,
    eventually,
    fetched,
    group_in,
    node,
)
from tests.support.file_logs import get_files
from tests.support.groups import classic

NONE = ErrorCode.NONE
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
COMING_BACK = {NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
"""What a client may hear until the log can be written again."""

FAULTS = {
    "no space": {"code": errno.ENOSPC},
    "i/o error": {"code": errno.EIO},
    "i/o error after the write": {"code": errno.EIO, "after": True},
    "quota": {"code": errno.EDQUOT},
}
every_fault = pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", log_flush="always") as running:
        yield running


async def commit_until_taken(client: Client, group: str, partition: int, offset: int) -> None:
    """Commit as clients do: again, as long as the coordinator is coming back."""
    for _ in range(10_000):
        error = await client.commit(group, partition, offset)
        if error is NONE:
            return
        assert error in COMING_BACK, error
    raise AssertionError("the node did not come back")


async def fetch_until_told(client: Client, group: str) -> dict[int, int]:
    for _ in range(10_000):
        try:
            return await client.fetch(group)
        except Refused as refused:
            if refused.error not in COMING_BACK:
                raise
    raise AssertionError("the node did not come back")


@every_fault
async def test_a_commit_that_cannot_be_written_is_refused_and_never_seen(
    running: Running, fault: dict[str, object]
) -> None:
    client = await running.client()
    assert await client.commit("g", 0, 1) is NONE
    running.disk.fail(SYNCS, times=1, **fault)  # type: ignore[arg-type]

    assert await client.commit("g", 0, 2) is NOT_COORDINATOR

    assert running.disk.failures == 1
    assert await fetch_until_told(client, "g") == {0: 1}
    await commit_until_taken(client, "g", 0, 3)
    assert await client.fetch("g") == {0: 3}


@every_fault
async def test_what_was_refused_is_not_there_after_a_restart_either(
    tmp_path: Path, fault: dict[str, object]
) -> None:
    async with node(tmp_path / "data") as running:
        client = await running.client()
        await client.commit("g", 0, 1)
        await client.commit("g", 1, 1)
        running.disk.fail(SYNCS, times=1, **fault)  # type: ignore[arg-type]
        assert await client.commit("g", 0, 2) is NOT_COORDINATOR
        await commit_until_taken(client, "g", 1, 5)
    async with node(tmp_path / "data") as running:
        client = await running.client()
        assert await client.fetch("g") == {0: 1, 1: 5}


async def test_everybody_who_waits_for_the_flush_hears_that_it_failed(running: Running) -> None:
    writer, reader, later = await running.client(), await running.client(), await running.client()
    await writer.commit("g", 0, 1)
    other = running.group_in((running.app.manager.partition_for(GroupId("g")) + 1) % PARTITIONS)
    await later.commit(other, 0, 1)
    handled = running.app.stats.apis[ApiKey.OFFSET_COMMIT].handled
    fetches = running.app.stats.apis[ApiKey.OFFSET_FETCH].handled
    with running.disk.hold():
        writer.send(
            requests.commit("g", {0: 2}, 1), requests.api_versions(2), requests.commit("g", {1: 2}, 3)
        )
        await eventually(lambda: running.disk.waiting, "the flush to reach the disk")
        reader.send(requests.fetch_offsets("g"))
        later.send(requests.commit(other, {0: 2}))  # gathers for the next flush, in another partition
        await eventually(
            lambda: (
                running.app.stats.apis[ApiKey.OFFSET_COMMIT].handled == handled + 3
                and running.app.stats.apis[ApiKey.OFFSET_FETCH].handled == fetches + 1
            ),
            "all requests to be handled",
        )
        running.disk.fail(SYNCS, times=1)

    assert commit_error(await writer.receive()) is NOT_COORDINATOR
    versions = requests.answer(ApiKey.API_VERSIONS, 0, await writer.receive())
    assert versions.error_code == NONE  # it only stood behind one that waited
    assert commit_error(await writer.receive()) is NOT_COORDINATOR
    with pytest.raises(Refused, match="NOT_COORDINATOR"):
        fetched(await reader.receive())
    assert commit_error(await later.receive()) is NOT_COORDINATOR
    assert await fetch_until_told(reader, "g") == {0: 1}
    assert await fetch_until_told(reader, other) == {0: 1}


async def test_the_groups_of_a_failed_partition_leave_memory_and_come_back_from_the_log(
    running: Running,
) -> None:
    member, writer = await running.client(), await running.client()
    member_id, generation = await member.join_alone("g")
    before = classic(running.app.manager, "g")
    assert before is not None
    manager = running.app.manager
    same_partition = group_in(manager, manager.partition_for(GroupId("g")))
    with running.disk.hold():
        writer.send(requests.commit(same_partition, {0: 1}))
        await eventually(lambda: running.disk.waiting, "the flush to reach the disk")
        running.disk.fail(SYNCS)
    assert commit_error(await writer.receive()) is NOT_COORDINATOR

    assert before.state is GroupState.DEAD
    assert classic(running.app.manager, "g") is None
    assert not running.app.leadership.has_loaded_all_partitions
    assert await writer.commit("g", 0, 1) is NOT_COORDINATOR

    running.disk.heal()
    await running.loaded()
    after = classic(running.app.manager, "g")
    assert after is not None
    assert after is not before
    assert await member.heartbeat("g", member_id, generation) is NONE
    assert classic(running.app.manager, same_partition) is None


async def test_other_partitions_serve_on(running: Running) -> None:
    writer, reader = await running.client(), await running.client()
    failing, healthy = running.group_in(0), running.group_in(1)
    await reader.commit(healthy, 0, 1)
    running.disk.fail(SYNCS)
    assert await writer.commit(failing, 0, 1) is NOT_COORDINATOR
    assert await reader.fetch(healthy) == {0: 1}
    running.disk.heal()
    await running.loaded()


async def test_waiting_joins_and_syncs_are_sent_on(tmp_path: Path) -> None:
    async with node(
        tmp_path / "data",
        group_initial_rebalance_delay_ms=60_000,
        offsets_topic_num_partitions=1,
    ) as running:
        joining, writer = await running.client(), await running.client()
        joining.send(requests.join("g", version=3))
        await eventually(lambda: classic(running.app.manager, "g"), "the join to be handled")
        running.disk.fail(SYNCS, times=1)
        assert await writer.commit("other", 0, 1) is NOT_COORDINATOR
        joined = requests.answer(ApiKey.JOIN_GROUP, 3, await joining.receive())
        assert joined.error_code == NOT_COORDINATOR
        await running.loaded()


async def test_an_assignment_that_cannot_be_written_is_told_to_nobody(running: Running) -> None:
    leader, follower = await running.client(), await running.client()
    first = requests.answer(ApiKey.JOIN_GROUP, 3, await leader.ask(requests.join("g", version=3)))
    follower.send(requests.join("g", version=3))
    await eventually(
        lambda: len(getattr(classic(running.app.manager, "g"), "members", ())) == 2, "the second member"
    )
    leader.send(requests.join("g", first.member_id, version=3))
    second = requests.answer(ApiKey.JOIN_GROUP, 3, await follower.receive())
    led = requests.answer(ApiKey.JOIN_GROUP, 3, await leader.receive())
    assert led.generation_id == second.generation_id == 2
    follower.send(requests.sync("g", second.member_id, 2))
    await eventually(
        lambda: (
            second.member_id
            not in getattr(classic(running.app.manager, "g"), "pending_sync_members", (second.member_id,))
        ),
        "the follower's sync",
    )
    running.disk.fail(SYNCS, times=1)
    parts = {first.member_id: b"a", second.member_id: b"b"}
    leader.send(requests.sync("g", first.member_id, 2, assignments=parts))
    for client in (leader, follower):
        answer = requests.answer(ApiKey.SYNC_GROUP, 4, await client.receive())
        assert (answer.error_code, answer.assignment) == (NOT_COORDINATOR, b"")
    await running.loaded()
    group = classic(running.app.manager, "g")
    assert group is None or group.generation_id < 2


async def test_the_node_serves_again_however_long_the_disk_is_away(running: Running) -> None:
    client = await running.client()
    await client.commit("g", 0, 1)
    running.disk.fail(WRITES | SYNCS)  # the journal cannot be repaired either
    assert await client.commit("g", 0, 2) is NOT_COORDINATOR
    failures = running.disk.failures
    await eventually(lambda: running.disk.failures > failures + 3, "some tries to repair the journal")
    with pytest.raises(Refused, match="NOT_COORDINATOR"):
        await client.fetch("g")
    running.disk.heal()
    await running.loaded()
    assert await client.fetch("g") == {0: 1}
    assert await client.commit("g", 0, 3) is NONE


async def test_topics_deleted_while_the_disk_is_away_take_their_offsets_with_them(running: Running) -> None:
    client = await running.client()
    await client.commit("g", 0, 1)
    running.disk.fail(WRITES | SYNCS)
    assert await client.commit("g", 0, 2) is NOT_COORDINATOR
    list(running.app.manager.delete_offsets_of_topics(frozenset({requests.TOPIC})))
    running.disk.heal()
    await running.loaded()
    assert await client.fetch("g") == {}


async def test_deletions_of_topics_that_a_failed_flush_has_lost_are_made_up_for(running: Running) -> None:
    """The answer to DeleteTopics does not wait for them: the offsets must not come back for a new topic."""
    client = await running.client()
    await client.commit("g", 0, 1)
    await client.commit("g", 1, 1)
    running.disk.fail(SYNCS, times=1)
    steps = running.app.manager.delete_offsets_of_topics(frozenset({requests.TOPIC}))
    list(steps)
    assert await client.commit("g", 1, 2) is NOT_COORDINATOR
    await running.loaded()
    assert await client.fetch("g") == {}


async def test_partitions_that_are_lost_while_offsets_are_dropped_drop_the_rest_once_they_are_loaded(
    running: Running,
) -> None:
    client = await running.client()
    for partition in range(60):
        assert await client.commit("g", partition, 1) is NONE
    steps = running.app.manager.delete_offsets_of_topics(frozenset({requests.TOPIC}))
    next(steps)
    running.disk.fail(SYNCS, times=1)
    assert await client.commit("g", 1, 2) is NOT_COORDINATOR
    list(steps)
    await running.loaded()
    assert await client.fetch("g") == {}


async def test_a_failed_flush_does_not_take_what_was_committed_to_a_new_topic_of_a_deleted_one_s_name(
    running: Running,
) -> None:
    client = await running.client()
    await client.commit("g", 0, 1)
    list(running.app.manager.delete_offsets_of_topics(frozenset({requests.TOPIC})))
    assert await client.commit("g", 0, 7) is NONE
    running.disk.fail(SYNCS, times=1)
    assert await client.commit("g", 0, 8) is NOT_COORDINATOR
    await running.loaded()
    assert await client.fetch("g") == {0: 7}


async def test_a_deletion_of_topics_waits_until_the_offsets_in_them_are_gone_for_good(
    running: Running,
) -> None:
    client = await running.client()
    await client.commit("g", 0, 1)
    assert running.app.server is not None
    store = running.app.server.node.catalogue_store
    told: list[object] = []
    with running.disk.hold():
        store.submit_edit_with_callback(lambda draft: draft.remove_topic(requests.TOPIC), told.append)
        await eventually(lambda: requests.TOPIC not in store.catalogue, "the topic to go")
        await eventually(lambda: running.disk.waiting, "the tombstones to be written")
        assert told == []
        assert not store.is_idle
        assert (
            running.app.manager.partition_for(GroupId("g"))
            not in running.app.manager.list_partitions_free_of_deleted_topics()
        )
    await eventually(lambda: told, "the answer")
    assert len(running.app.manager.list_partitions_free_of_deleted_topics()) == PARTITIONS


async def test_a_partition_is_served_once_what_it_held_in_deleted_topics_is_gone_for_good(
    running: Running,
) -> None:
    client = await running.client()
    await client.commit("g", 0, 1)
    app = running.app
    partition = app.manager.partition_for(GroupId("g"))
    with running.disk.hold():
        app.leadership.become_leader(
            partition, LeaderEpoch(app.leadership.epochs[partition] + 1), frozenset({requests.TOPIC})
        )
        await eventually(lambda: running.disk.waiting, "the tombstones to be written")
        assert await client.commit("g", 0, 2) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        app.manager.deleted.note(partition, frozenset({requests.OTHER_TOPIC}))  # goes meanwhile
    await running.loaded()
    assert await client.fetch("g") == {}
    assert not app.manager.deleted.has_undropped_offsets(partition)


async def test_tombstones_that_fail_before_a_partition_is_served_are_written_again(running: Running) -> None:
    client = await running.client()
    await client.commit("g", 0, 1)
    app = running.app
    partition = app.manager.partition_for(GroupId("g"))
    running.disk.fail(SYNCS, times=1)
    epoch = LeaderEpoch(app.leadership.epochs[partition] + 1)
    app.leadership.become_leader(partition, epoch, frozenset({requests.TOPIC}))
    await running.loaded()
    assert running.disk.failures == 1
    assert await client.fetch("g") == {}
    app.leadership.become_leader(partition, LeaderEpoch(epoch + 1))
    await running.loaded()
    assert await client.fetch("g") == {}, "and it is in the log"


async def test_failures_in_a_row_lose_nothing_that_was_acknowledged(running: Running) -> None:
    client = await running.client()
    acknowledged = {}
    for offset in range(1, 30):
        if offset % 3 == 0:
            running.disk.fail(SYNCS, times=1, after=offset % 2 == 0)
        group = f"group-{offset % 7}"
        error = await client.commit(group, 0, offset)
        if error is NONE:
            acknowledged[group] = offset
        else:
            assert error in COMING_BACK
    running.disk.heal()
    for group, offset in acknowledged.items():
        assert await fetch_until_told(client, group) == {0: offset}


@pytest.mark.parametrize("mode", ["os", "interval"])
async def test_modes_that_do_not_sync_come_back_as_well(tmp_path: Path, mode: str) -> None:
    async with node(tmp_path / "data", log_flush=mode) as running:
        client = await running.client()
        await client.commit("g", 0, 1)
        running.disk.fail(WRITES, times=1, code=errno.ENOSPC)
        assert await client.commit("g", 0, 2) is NOT_COORDINATOR
        assert await fetch_until_told(client, "g") == {0: 1}
        await commit_until_taken(client, "g", 0, 3)


async def test_a_sync_by_the_clock_that_fails_ends_in_a_node_that_serves(tmp_path: Path) -> None:
    async with node(tmp_path / "data", log_flush="interval", log_flush_interval_ms=20) as running:
        client = await running.client()
        running.disk.fail(SYNCS, times=1)
        await client.commit("g", 0, 1)
        await eventually(lambda: running.disk.failures, "a sync to fail")
        await commit_until_taken(client, "g", 1, 5)
        assert (await client.fetch("g"))[1] == 5


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
async def test_segments_that_cannot_be_written_lose_nothing(tmp_path: Path, code: int) -> None:
    """Commits are safe in the journal; the segments follow when they can."""
    async with node(
        tmp_path / "data", journal_checkpoint_interval_ms=100, offsets_topic_num_partitions=1
    ) as running:
        client = await running.client()
        await client.commit("g", 0, 1)
        running.disk.fail(WRITES | SYNCS, where=SEGMENTS, code=code, times=2)
        await eventually(lambda: running.disk.failures >= 1, "the segments to fail")
        await commit_until_taken(client, "g", 0, 2)
        await eventually(lambda: running.disk.failures >= 2, "the segments to fail again")
        await commit_until_taken(client, "g", 0, 3)
        await eventually(lambda: not get_files(running.app).journal_bytes, "a checkpoint")
        assert await fetch_until_told(client, "g") == {0: 3}
    async with node(tmp_path / "data", offsets_topic_num_partitions=1) as running:
        assert await (await running.client()).fetch("g") == {0: 3}
