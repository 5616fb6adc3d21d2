# SPDX-License-Identifier: Apache-2.0
"""A node dies when the deletion of a topic is on disk, and before the offsets in it have gone."""

from pathlib import Path

from coordinator.catalogue.changes import Changes
from coordinator.catalogue.deletions import Deletions
from coordinator.catalogue.file import CatalogueFile
from protocol.errors import ErrorCode
from protocol.names import Partition
from storage.disk.filesystem import FileSystem, RealFileSystem
from tests.net import requests
from tests.partitions.running import PARTITIONS, Running, node


def keep_deletion(fs: FileSystem, data_dir: Path) -> None:
    """Leave what a crash leaves right after the deletion of the topic was kept; of the other topic nothing is known."""
    file = CatalogueFile(fs, data_dir)
    found = file.read()
    topic = found.get(requests.TOPIC)
    assert topic is not None
    file.make(found.offsets_topic, [topic])
    file.append(Changes(deleted=[topic.id]))


def deletions_in(fs: FileSystem, data_dir: Path) -> Deletions:
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
        assert deletions_in(RealFileSystem(), tmp_path).left(Partition(0)) == []
    async with node(tmp_path) as running:
        assert await found_everywhere(running) == [{0: 8, 1: 9}] * PARTITIONS
