# SPDX-License-Identifier: Apache-2.0
"""Disks that fail where no client waits: checkpoints, syncs by the clock, rolls, notes, and the reads of a load."""

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest

from coordinator.groups.classic.state import GroupState
from protocol.errors import ErrorCode
from protocol.newtypes import LeaderEpoch, Partition
from storage.journal.journal import HEADER_BLOCK_BYTES
from tests.net import requests
from tests.partitions.disk import READS, SEGMENTS, SYNCS, WRITES
from tests.partitions.running import eventually, node
from tests.partitions.test_failed_flush import commit_until_taken, fetch_until_told
from tests.support.file_logs import get_file_log, get_files, get_upkeep
from tests.support.groups import classic

NONE = ErrorCode.NONE
CODES = pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])


async def test_a_failed_checkpoint_is_repaired_before_anybody_commits(tmp_path: Path) -> None:
    # Not even the cleaner, which would find it out, too.
    async with node(
        tmp_path / "data", journal_checkpoint_interval_ms=50, log_cleaner_enable=False
    ) as running:
        client = await running.client()
        member_id, generation = await client.join_alone("g")
        running.disk.fail(frozenset({"fsync"}), where=".log", times=1)
        await client.commit("g", 0, 1, member_id=member_id, generation=generation)
        await eventually(lambda: running.disk.failures, "the checkpoint to fail")
        await eventually(lambda: get_files(running.app).append_failure is None, "the repair")
        await eventually(lambda: not get_files(running.app).journal_bytes, "a checkpoint that succeeds")
        assert running.app.stats.flush_failures == 0, "nobody asked for anything"
        # All of it was on disk: the group did not even leave memory.
        assert classic(running.app.manager, "g").state is GroupState.STABLE  # type: ignore[union-attr]
        assert await client.heartbeat("g", member_id, generation) is NONE
        assert await client.commit("g", 0, 2, member_id=member_id, generation=generation) is NONE
        assert await client.fetch("g") == {0: 2}


async def test_a_failed_sync_by_the_clock_is_repaired_before_anybody_commits(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"log_flush": "interval", "log_flush_interval_ms": 20}
    async with node(tmp_path / "data", log_cleaner_enable=False, **settings) as running:
        client = await running.client()
        running.disk.fail(SYNCS, times=1)
        assert await client.commit("g", 0, 1) is NONE
        await eventually(lambda: running.disk.failures, "a sync to fail")
        await eventually(lambda: get_files(running.app).append_failure is None, "the repair")
        assert running.app.stats.flush_failures == 0
        assert await client.commit("g", 1, 5) is NONE
        assert await client.fetch("g") == {0: 1, 1: 5}


async def test_memory_follows_the_log_where_a_failed_sync_lost_pages(tmp_path: Path) -> None:
    """What was accepted without a sync may be gone: then it is not read from memory any more."""
    async with node(tmp_path / "data", log_flush="interval", log_flush_interval_ms=3_600_000) as running:
        client = await running.client()
        group, other = running.group_in(1), running.group_in(2)
        assert await client.commit(group, 0, 1) is NONE
        assert await client.commit(other, 0, 7) is NONE
        await running.app.io.run_blocking(get_files(running.app).sync)
        synced_bytes = get_files(running.app).journal_bytes
        assert await client.commit(group, 0, 2) is NONE
        (journal,) = (tmp_path / "data" / "journal").glob("*.journal")
        with journal.open("r+b") as file:  # pages that are lost read as what was on disk before: zeros
            file.seek(HEADER_BLOCK_BYTES + synced_bytes)
            file.write(bytes(get_files(running.app).journal_bytes - synced_bytes))
        running.disk.fail(SYNCS, times=1)
        get_upkeep(running.app).disk_jobs.sync(lambda _failed: None)
        await eventually(lambda: running.disk.failures, "the sync to fail")
        await eventually(
            lambda: (
                get_file_log(running.app).repairs == 1 and running.app.leadership.has_loaded_all_partitions
            ),
            "the repair",
        )
        assert await client.fetch(group) == {0: 1}
        assert await client.fetch(other) == {0: 7}
        assert await client.commit(group, 0, 3) is NONE
        assert await client.fetch(group) == {0: 3}
    async with node(tmp_path / "data") as running:
        assert await (await running.client()).fetch(group) == {0: 3}


@CODES
async def test_a_roll_that_fails_loses_nothing(tmp_path: Path, code: int) -> None:
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 1, "offsets_topic_segment_bytes": 200}
    async with node(tmp_path / "data", journal_checkpoint_interval_ms=50, **settings) as running:
        client = await running.client()
        running.disk.fail(frozenset({"truncate"}), where=SEGMENTS, code=code, times=2)
        for offset in range(1, 6):
            await commit_until_taken(client, "g", 0, offset)
        await eventually(lambda: running.disk.failures == 2, "two rolls to fail")
        await eventually(lambda: not get_files(running.app).journal_bytes, "a checkpoint")
        assert len(get_files(running.app).get_or_create_log(Partition(0)).segments) > 1
        assert await fetch_until_told(client, "g") == {0: 5}
    async with node(tmp_path / "data", **settings) as running:
        assert await (await running.client()).fetch("g") == {0: 5}


@CODES
async def test_a_new_journal_that_cannot_be_made_loses_nothing(tmp_path: Path, code: int) -> None:
    """A checkpoint begins with one; until there is room commits go into the old one."""
    async with node(tmp_path / "data", journal_checkpoint_interval_ms=50) as running:
        client = await running.client()
        running.disk.fail(frozenset({"allocate", "pwrite"}), where="/journal/", code=code, times=2)
        for offset in range(1, 200):
            await commit_until_taken(client, "g", 0, offset)
            if running.disk.failures == 2:
                break
        await eventually(lambda: running.disk.failures == 2, "two journals to fail")
        await commit_until_taken(client, "g", 0, 500)
        await eventually(lambda: not get_files(running.app).journal_bytes, "a checkpoint")
    async with node(tmp_path / "data") as running:
        assert await (await running.client()).fetch("g") == {0: 500}


@CODES
@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "recovery-point-positions"])
async def test_notes_that_cannot_be_written_lose_nothing(tmp_path: Path, code: int, name: str) -> None:
    async with node(tmp_path / "data", journal_checkpoint_interval_ms=50) as running:
        client = await running.client()
        running.disk.fail(WRITES, where=name, code=code, times=2)
        await commit_until_taken(client, "g", 0, 1)
        await eventually(lambda: running.disk.failures == 2, "two notes to fail")
        await commit_until_taken(client, "g", 0, 2)
        await eventually(lambda: not get_files(running.app).journal_bytes, "a checkpoint")
    async with node(tmp_path / "data") as running:
        assert await (await running.client()).fetch("g") == {0: 2}


async def test_a_load_that_cannot_read_is_tried_again(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        group = running.group_in(1)
        await commit_until_taken(await running.client(), group, 0, 7)
    async with node(tmp_path / "data", held_partition=1) as running:
        where = "__consumer_offsets-1/"
        running.disk.fail(READS, where=where, times=3)
        running.disk.let_go()
        await eventually(lambda: running.app.stats.partition_load_failures == 3, "three loads to fail")
        await running.loaded()
        assert running.app.leadership.failed_partitions == {}
        assert await (await running.client()).fetch(group) == {0: 7}


@pytest.mark.parametrize("killed", [False, True])
async def test_a_partition_that_a_start_cannot_read_is_tried_again(tmp_path: Path, killed: bool) -> None:
    async with node(tmp_path / "data") as running:
        group = running.group_in(1)
        for offset in range(1, 8):
            await commit_until_taken(await running.client(), group, 0, offset)
        if killed:
            shutil.copytree(tmp_path / "data", tmp_path / "image")
    data_dir = tmp_path / ("image" if killed else "data")
    async with node(data_dir, unreadable_partition=1) as running:
        stats = running.app.stats
        await eventually(lambda: stats.partition_load_failures >= 3, "loads to fail")
        assert running.app.leadership.failed_partitions.keys() <= {1}
        assert await (await running.client()).commit(running.group_in(2), 0, 1) is NONE
        running.disk.heal()
        await running.loaded()
        assert await (await running.client()).fetch(group) == {0: 7}
        assert await (await running.client()).commit(group, 0, 8) is NONE
    assert (data_dir / ".kafka_cleanshutdown").exists()
    async with node(data_dir) as running:
        assert await (await running.client()).fetch(group) == {0: 8}


async def test_topics_deleted_before_a_partition_can_be_read_take_their_offsets_with_them(
    tmp_path: Path,
) -> None:
    async with node(tmp_path / "data") as running:
        group = running.group_in(1)
        await commit_until_taken(await running.client(), group, 0, 7)
    async with node(tmp_path / "data", unreadable_partition=1) as running:
        await eventually(lambda: running.app.leadership.failed_partitions, "a load to fail")
        list(running.app.manager.delete_offsets_of_topics(frozenset({requests.TOPIC})))
        running.disk.heal()
        await running.loaded()
        assert await (await running.client()).fetch(group) == {}


async def test_a_partition_that_is_lost_is_not_tried_again(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        group = running.group_in(1)
        await commit_until_taken(await running.client(), group, 0, 7)
    async with node(tmp_path / "data", held_partition=1) as running:
        leadership = running.app.leadership
        running.disk.fail(READS, where="__consumer_offsets-1/")
        running.disk.let_go()
        await eventually(lambda: leadership.failed_partitions, "the load to fail")
        leadership.resign(Partition(1), LeaderEpoch(5))
        running.disk.heal()
        assert await (await running.client()).commit(group, 0, 8) is ErrorCode.NOT_COORDINATOR
        assert (leadership.failed_partitions, leadership._loads) == ({}, {})
        leadership.become_leader(Partition(1), LeaderEpoch(6))
        await running.loaded()
        assert await (await running.client()).fetch(group) == {0: 7}
