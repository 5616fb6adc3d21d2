# SPDX-License-Identifier: Apache-2.0
"""A node dies when the deletion of a topic is on disk, and before the offsets in it have gone."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from coordinator.catalogue.changes import Changes
from coordinator.catalogue.deletions import DeletedTopicsWithOffsets
from coordinator.catalogue.file import FILE_NAME, CatalogueFile
from coordinator.catalogue.topic import Topic
from coordinator.groups.outcome import Instant
from coordinator.runtime.clock import SystemClock
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, LeaderEpoch, Partition
from storage.disk.filesystem import FileSystem, RealFileSystem
from tests.net import requests
from tests.partitions.disk import WRITES
from tests.partitions.running import PARTITIONS, Running, eventually, node


def keep_deletion(fs: FileSystem, data_dir: Path) -> None:
    """Leave what a crash leaves right after the deletion of the topic was kept; of the other topic nothing is known."""
    file = CatalogueFile(fs, data_dir)
    found = file.read()
    topic = found.get(requests.TOPIC)
    assert topic is not None
    file.make(found.offsets_topic, [topic])
    file.append(Changes(deleted=[topic.id]))


def deletions_in(fs: FileSystem, data_dir: Path) -> DeletedTopicsWithOffsets:
    """What the file says of deletions."""
    file = CatalogueFile(fs, data_dir)
    file.read()
    assert file.deletions is not None
    return file.deletions


async def commit_everywhere(running: Running, offset: int) -> None:
    client = await running.client()
    for partition in range(PARTITIONS):
        group = running.group_in(partition)
        assert await client.commit(group, 0, offset) is ErrorCode.NONE


async def found_everywhere(running: Running) -> list[dict[int, int]]:
    client = await running.client()
    return [await client.fetch(running.group_in(partition)) for partition in range(PARTITIONS)]


class ClockAhead:
    """The machine's clocks, of which the monotonic one can be set forward."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self.ahead_ms = 0

    def mono_ms(self) -> int:
        return self._real.mono_ms() + self.ahead_ms

    def wall_ms(self) -> int:
        return self._real.wall_ms()

    def now(self) -> Instant:
        return Instant(self.mono_ms(), self.wall_ms())

    def nanos(self) -> int:
        return self._real.nanos()


@pytest.mark.parametrize("waits_for", ["note_dropped", "topics_gone"])
async def test_a_load_that_waits_ends_with_full_sessions(tmp_path: Path, waits_for: str) -> None:
    clock = ClockAhead()
    async with node(tmp_path, clock=clock) as running:
        client = await running.client()
        await client.join_alone("g")
        leadership, manager = running.app.leadership, running.app.manager
        waited: list[Partition] = []

        async def wait(partition: Partition) -> None:
            waited.append(partition)
            if len(waited) == 1:  # for longer than a session
                clock.ahead_ms += 60_000

        setattr(leadership, waits_for, wait)
        partition = manager.partition_for(GroupId("g"))
        leadership.become_leader(partition, LeaderEpoch(leadership.epochs[partition] + 1))
        await running.loaded()
        assert waited == [partition] * 2
        kept = manager.find(GroupId("g"))
        assert kept is not None
        (member,) = kept.classic_group.members.values()
        assert member.session_deadline_ms > clock.mono_ms()


async def test_the_next_start_drops_the_offsets_and_no_others(tmp_path: Path) -> None:
    async with node(tmp_path) as running:
        await commit_everywhere(running, 7)
        client = await running.client()
        for partition in range(PARTITIONS):
            group = running.group_in(partition)
            assert await client.commit(group, 1, 9, topic=requests.OTHER_TOPIC) is ErrorCode.NONE
    keep_deletion(RealFileSystem(), tmp_path)
    async with node(tmp_path) as running:  # which makes both topics anew
        assert await found_everywhere(running) == [{1: 9}] * PARTITIONS
        await commit_everywhere(running, 8)
        assert deletions_in(RealFileSystem(), tmp_path).undropped_topics(Partition(0)) == []
    async with node(tmp_path) as running:
        assert await found_everywhere(running) == [{0: 8, 1: 9}] * PARTITIONS


async def make_anew_in_one_go(running: Running) -> None:
    """Delete the topic and create it again, asked for together; what is noted of its offsets meets a bad disk."""
    assert running.app.server is not None
    store = running.app.server.node.catalogue_store
    told: list[Any] = []

    def fail_next(changes: Changes) -> None:
        if changes.deleted:
            running.disk.fail(WRITES, where=FILE_NAME, times=1)

    store.on_changed = fail_next
    store.submit_edit_with_callback(
        lambda draft: draft.add_topic("keeps-the-disk-busy", 1, topic_id=store.new_topic_id()), told.append
    )
    store.submit_edit_with_callback(lambda draft: draft.remove_topic(requests.TOPIC), told.append)
    store.submit_edit_with_callback(
        lambda draft: draft.add_topic(requests.TOPIC, 100, topic_id=store.new_topic_id()), told.append
    )
    await eventually(lambda: len(told) == 3, "all three to be answered")
    assert [type(each) for each in told] == [Topic] * 3


async def test_a_drop_that_could_not_be_noted_takes_no_offsets_of_the_topic_made_anew(tmp_path: Path) -> None:
    data_dir, after_crash = tmp_path / "data", tmp_path / "after-crash"
    async with node(data_dir) as running:
        await commit_everywhere(running, 7)
        await make_anew_in_one_go(running)
        assert running.disk.failures == 1
        assert await found_everywhere(running) == [{}] * PARTITIONS
        await commit_everywhere(running, 8)
        shutil.copytree(data_dir, after_crash)
    async with node(after_crash) as running:
        assert await found_everywhere(running) == [{0: 8}] * PARTITIONS
