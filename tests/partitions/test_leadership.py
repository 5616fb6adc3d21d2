# SPDX-License-Identifier: Apache-2.0
"""Partitions are gained and lost: what clients hear meanwhile, and that nothing is lost or seen twice."""

import asyncio
import errno
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from coordinator.groups.classic.member import NEVER
from coordinator.groups.classic.state import GroupState
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.slices import SLICE_NS
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, LeaderEpoch, Partition
from tests.net import requests
from tests.partitions.disk import SYNCS, WRITES
from tests.partitions.running import PARTITIONS, Refused, Running, commit_error, eventually, node
from tests.support.clocks import SlowLook
from tests.support.groups import classic
from tests.support.idle import idle

NONE = ErrorCode.NONE
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
LAST = PARTITIONS - 1
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", group_initial_rebalance_delay_ms=60_000) as running:
        yield running


async def io_is_idle(running: Running) -> None:
    """Whatever could be read from the disk without waiting has been."""
    for _ in range(5):
        await idle()
        await running.app.io.run_blocking(lambda: None)


async def with_offsets(tmp_path: Path, *, counts: Sequence[int] = (1,) * PARTITIONS) -> list[str]:
    """Leave a data directory with a group in each partition, with so many offsets; returns the groups."""
    async with node(tmp_path / "data") as running:
        client = await running.client()
        groups = [running.group_in(partition) for partition in range(PARTITIONS)]
        for group, count in zip(groups, counts, strict=True):
            for index in range(count):
                assert await client.commit(group, index, 7) is NONE
    return groups


# --- gaining ---


async def test_a_partition_that_loads_says_so_and_the_others_serve(tmp_path: Path) -> None:
    groups = await with_offsets(tmp_path)
    # The partitions are read one after the other: when the last one is held the others have come.
    async with node(tmp_path / "data", held_partition=LAST) as running:
        client = await running.client()
        loading, loaded = groups[-1], groups[0]

        assert await client.commit(loading, 0, 1) is LOADING
        with pytest.raises(Refused, match="LOAD_IN_PROGRESS"):
            await client.fetch(loading)
        joined = await client.ask(requests.join(loading, version=3))
        assert requests.answer(ApiKey.JOIN_GROUP, 3, joined).error_code == LOADING
        # A heartbeat is the exception: the member is not to be disturbed (GroupCoordinatorService.heartbeat).
        assert await client.heartbeat(loading, "m", 1) is NONE
        assert await client.fetch(loaded) == {0: 7}
        assert await client.commit(loaded, 0, 8) is NONE
        readiness = running.app.parts.readiness()
        assert not readiness["ready"]
        assert readiness["partitions_loading"] == [LAST]
        assert readiness["partitions_owned"] == LAST

        running.disk.let_go()
        await running.loaded()
        assert await client.fetch(loading) == {0: 7}
        assert await client.commit(loading, 0, 9) is NONE
        assert running.app.parts.readiness()["ready"]


async def test_members_that_were_loaded_get_a_full_session(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        member_id, generation = await (await running.client()).join_alone("g")
    async with node(tmp_path / "data") as running:
        kept = running.app.manager.find(GroupId("g"))
        assert kept is not None
        group = kept.classic_group
        assert group.state is GroupState.STABLE
        (member,) = group.members.values()
        now_ms = running.app.clock.mono_ms()
        assert 0 < member.session_deadline_ms - now_ms <= member.session_timeout_ms
        assert kept.armed_ms <= member.session_deadline_ms
        assert await (await running.client()).heartbeat("g", member_id, generation) is NONE


async def test_the_groups_of_one_partition_are_made_ready_in_slices_and_only_then_served(
    tmp_path: Path,
) -> None:
    groups = [f"group-{number}" for number in range(20)]
    async with node(tmp_path / "data", offsets_topic_num_partitions=1) as running:
        client = await running.client()
        for group in groups:
            await client.join_alone(group)

    turn = 0
    loop = asyncio.get_running_loop()
    made_ready: dict[str, tuple[int, bool]] = {}

    def look(manager: GroupMetadataManager) -> None:
        """Note in which turn each group has been made ready: from then on a timer waits for its member."""
        nonlocal turn
        turn += 1
        for shard in (*manager.loading_partitions.values(), *manager.owned_partitions.values()):
            for group_id, group in shard.groups.items():
                if group.armed_ms != NEVER:
                    made_ready.setdefault(group_id, (turn, manager.find_shard_or_error(group_id) is LOADING))
        loop.call_soon(look, manager)

    slow = SlowLook(SLICE_NS + 1)  # every slice is one step long
    async with node(tmp_path / "data", loaded=False, clock=slow, offsets_topic_num_partitions=1) as running:
        look(running.app.manager)
        await running.loaded()
        assert made_ready.keys() == set(groups)
        turns_taken, loading = zip(*made_ready.values(), strict=True)
        assert len(set(turns_taken)) == len(groups)
        assert all(loading)


async def test_offsets_in_deleted_topics_go_in_slices_before_the_partition_is_served(tmp_path: Path) -> None:
    groups = [f"group-{number}" for number in range(20)]
    slow = SlowLook(SLICE_NS + 1)  # every slice is one step long
    async with node(tmp_path / "data", clock=slow, offsets_topic_num_partitions=1) as running:
        client = await running.client()
        for group in groups:
            for partition in range(5):
                assert await client.commit(group, partition, 1) is NONE
        manager, leadership = running.app.manager, running.app.leadership
        loop = asyncio.get_running_loop()
        deleted: dict[int, bool] = {}

        def look() -> None:
            """Note how many were deleted in each turn, and whether that was before anybody was served."""
            deleted.setdefault(
                running.app.stats.offset_deletions, manager.find_shard_or_error(GroupId("g")) is LOADING
            )
            loop.call_soon(look)

        epoch = LeaderEpoch(leadership.epochs[Partition(0)] + 1)
        leadership.become_leader(Partition(0), epoch, frozenset({requests.TOPIC}))
        look()
        await running.loaded()
        assert list(deleted) == list(range(0, 101, 5)), "those of one group in a turn"
        assert all(deleted.values())
        assert await client.fetch(groups[7]) == {}


async def test_a_bug_in_one_who_hears_of_a_load_does_not_keep_the_partition_from_serving(
    running: Running,
) -> None:
    app = running.app
    told: list[str | None] = []

    def broken(_partition: Partition, _epoch: int, failure: str | None) -> None:
        told.append(failure)
        if len(told) == 1:
            raise LookupError("a bug")

    app.leadership.on_loaded = broken
    app.leadership.become_leader(Partition(1), LeaderEpoch(app.leadership.epochs[Partition(1)] + 1))
    await running.loaded()
    assert await (await running.client()).commit(running.group_in(1), 0, 1) is NONE


async def test_a_damaged_partition_is_away_and_the_others_serve(tmp_path: Path) -> None:
    groups = await with_offsets(tmp_path, counts=(1, 3, 1, 1))
    segment = tmp_path / "data" / "__consumer_offsets-1" / f"{0:020}.log"
    data = bytearray(segment.read_bytes())
    data[80] ^= 0xFF  # in the first of three batches: no torn tail
    segment.write_bytes(data)
    async with node(tmp_path / "data", loaded=False) as running:
        await eventually(lambda: not running.app.manager.loading_partitions, "the loads to end")
        client = await running.client()
        assert await client.commit(groups[1], 0, 1) is NOT_COORDINATOR
        with pytest.raises(Refused, match="NOT_COORDINATOR"):
            await client.fetch(groups[1])
        for group in (groups[0], *groups[2:]):
            assert (await client.fetch(group))[0] == 7
        readiness = running.app.parts.readiness()
        assert readiness["ready"], "most of them are served"
        assert not readiness["complete"]
        assert list(readiness["partitions_failed"]) == ["1"]
        assert running.app.stats.partition_load_failures == 1
    assert segment.read_bytes() == bytes(data), "damage must stay as it is for somebody to look at"


# --- losing ---


async def test_a_lost_partition_sends_everybody_on(running: Running) -> None:
    group = running.group_in(2)
    client, joining = await running.client(), await running.client()
    assert await client.commit(group, 0, 1) is NONE
    joining.send(requests.join(group, version=3))
    manager = running.app.manager
    await eventually(
        lambda: len(getattr(classic(manager, group), "members", ())) == 1, "the join to be handled"
    )
    before = classic(manager, group)
    assert before is not None

    running.app.leadership.resign(Partition(2), LeaderEpoch(1))

    joined = requests.answer(ApiKey.JOIN_GROUP, 3, await joining.receive())
    assert joined.error_code == NOT_COORDINATOR
    assert before.state is GroupState.DEAD
    assert classic(manager, group) is None
    assert await client.commit(group, 0, 2) is NOT_COORDINATOR
    with pytest.raises(Refused, match="NOT_COORDINATOR"):
        await client.fetch(group)
    assert await client.heartbeat(group, "m", 1) is NOT_COORDINATOR
    assert await client.commit(running.group_in(0), 0, 1) is NONE
    assert running.app.leadership.has_loaded_all_partitions  # what it leads is loaded


async def test_waiting_syncs_of_a_lost_partition_are_sent_on(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        leader, follower = await running.client(), await running.client()
        first = requests.answer(ApiKey.JOIN_GROUP, 3, await leader.ask(requests.join("g", version=3)))
        follower.send(requests.join("g", version=3))
        manager = running.app.manager
        await eventually(lambda: len(getattr(classic(manager, "g"), "members", ())) == 2, "the second member")
        leader.send(requests.join("g", first.member_id, version=3))
        second = requests.answer(ApiKey.JOIN_GROUP, 3, await follower.receive())
        await leader.receive()
        follower.send(requests.sync("g", second.member_id, 2))
        group = classic(manager, "g")
        assert group is not None
        await eventually(lambda: group.members[second.member_id].awaiting_sync, "the sync to wait")

        running.app.leadership.resign(manager.partition_for(GroupId("g")), LeaderEpoch(1))

        synced = requests.answer(ApiKey.SYNC_GROUP, 4, await follower.receive())
        assert synced.error_code == NOT_COORDINATOR


async def test_a_commit_on_its_way_to_the_disk_when_the_partition_is_lost_is_still_answered(
    running: Running,
) -> None:
    client = await running.client()
    group = running.group_in(2)
    with running.disk.hold():
        client.send(requests.commit(group, {0: 1}))
        await eventually(lambda: running.disk.waiting, "the flush to reach the disk")
        running.app.leadership.resign(Partition(2), LeaderEpoch(1))
    assert commit_error(await client.receive()) is NONE


async def test_an_old_epoch_changes_nothing(running: Running) -> None:
    leadership = running.app.leadership
    client = await running.client()
    group = running.group_in(2)
    leadership.become_leader(Partition(2), LeaderEpoch(5))
    await running.loaded()
    await client.commit(group, 0, 1)
    leadership.become_leader(Partition(2), LeaderEpoch(5))
    leadership.become_leader(Partition(2), LeaderEpoch(4))
    leadership.resign(Partition(2), LeaderEpoch(4))
    assert await client.fetch(group) == {0: 1}
    leadership.resign(Partition(2), LeaderEpoch(6))
    leadership.become_leader(Partition(2), LeaderEpoch(5))
    await idle()
    with pytest.raises(Refused, match="NOT_COORDINATOR"):
        await client.fetch(group)


async def test_a_partition_that_is_lost_while_it_loads_is_not_served(tmp_path: Path) -> None:
    groups = await with_offsets(tmp_path)
    async with node(tmp_path / "data", held_partition=LAST) as running:
        running.app.leadership.resign(Partition(LAST), LeaderEpoch(1))
        running.disk.let_go()
        await io_is_idle(running)
        client = await running.client()
        assert await client.commit(groups[-1], 0, 1) is NOT_COORDINATOR
        assert LAST not in running.app.manager.owned_partitions
        # and it can be gained again
        running.app.leadership.become_leader(Partition(LAST), LeaderEpoch(2))
        await running.loaded()
        assert await client.fetch(groups[-1]) == {0: 7}


async def test_a_partition_that_comes_back_has_all_that_was_acknowledged(running: Running) -> None:
    client = await running.client()
    group = running.group_in(2)
    for epoch in range(1, 6):
        assert await client.commit(group, epoch, epoch) is NONE
        running.app.leadership.resign(Partition(2), LeaderEpoch(2 * epoch))
        running.app.leadership.become_leader(Partition(2), LeaderEpoch(2 * epoch + 1))
        await running.loaded()
        assert await client.fetch(group) == {number: number for number in range(1, epoch + 1)}


@pytest.mark.parametrize("mode", ["always", "os"])
async def test_a_new_epoch_loads_what_is_still_on_its_way_to_the_disk(tmp_path: Path, mode: str) -> None:
    async with node(tmp_path / "data", log_flush=mode) as running:
        client = await running.client()
        group = running.group_in(2)
        await client.commit(group, 0, 1)
        with running.disk.hold(SYNCS | WRITES if mode == "always" else frozenset()):
            handled = running.app.stats.offset_commits
            client.send(requests.commit(group, {0: 2, 1: 2}))
            await eventually(lambda: running.app.stats.offset_commits > handled, "the commit to be handled")
            running.app.leadership.become_leader(Partition(2), LeaderEpoch(1))
            await io_is_idle(running)
        assert commit_error(await client.receive()) is NONE
        await running.loaded()
        assert await client.fetch(group) == {0: 2, 1: 2}
        assert await client.commit(group, 2, 3) is NONE
        assert await client.fetch(group) == {0: 2, 1: 2, 2: 3}


# --- and the log fails ---


async def test_a_lost_partition_does_not_come_back_because_its_last_flush_failed(running: Running) -> None:
    client = await running.client()
    group = running.group_in(2)
    with running.disk.hold():
        client.send(requests.commit(group, {0: 1}))
        await eventually(lambda: running.disk.waiting, "the flush to reach the disk")
        running.app.leadership.resign(Partition(2), LeaderEpoch(1))
        running.disk.fail(SYNCS, times=1)
    assert commit_error(await client.receive()) is NOT_COORDINATOR
    assert await commit_when_possible(running, running.group_in(1)) is NONE
    assert 2 not in running.app.manager.owned_partitions
    assert 2 not in running.app.manager.loading_partitions


async def commit_when_possible(running: Running, group: str) -> ErrorCode:
    """Commit again and again until that works."""
    client = await running.client()
    for _ in range(10_000):
        error = await client.commit(group, 0, 1)
        if error is NONE:
            break
    return error


async def test_a_flush_that_fails_while_another_partition_loads_does_not_spoil_that_load(
    tmp_path: Path,
) -> None:
    groups = await with_offsets(tmp_path, counts=(1, 1, 1, 50))
    async with node(tmp_path / "data", held_partition=LAST, offsets_load_buffer_size=200) as running:
        disk, client = running.disk, await running.client()
        disk.fail(SYNCS | WRITES, code=errno.EIO)
        assert await client.commit(groups[0], 0, 8) is NOT_COORDINATOR
        disk.let_go()  # the load goes on while the journal cannot be written
        failures = disk.failures
        await eventually(lambda: disk.failures > failures + 2, "some tries to repair the journal")

        disk.heal()
        await running.loaded()

        assert await client.fetch(groups[0]) == {0: 7}
        assert await client.fetch(groups[-1]) == dict.fromkeys(range(50), 7)
