# SPDX-License-Identifier: Apache-2.0
"""A worker's node under a supervisor that is played by the test: partitions gained and lost in every order."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.topic import Topic
from coordinator.config import Address, Settings
from coordinator.config.storage_settings import make_storage_settings
from coordinator.host_resources import real_machine
from coordinator.runtime.sockets import private_socket_path
from coordinator.topology.view import Broker, Leader, View
from coordinator.workers import messages
from coordinator.workers.worker_node import WorkerNode
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, LeaderEpoch, Partition
from protocol.placement import partition_for
from storage.disk.filesystem import RealFileSystem
from storage.errors import NotOwned
from storage.recovery.shared_directory import SharedDirectoryFiles
from tests.net import requests
from tests.partitions.running import Client, Refused, eventually
from tests.support.file_logs import get_files
from tests.support.idle import idle

PARTITIONS = 4
AWAY = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


class Played:
    """A worker, what it has said, and the supervisor's side of it."""

    def __init__(self, node: WorkerNode, shared: SharedDirectoryFiles) -> None:
        self.node, self.app = node, node.app
        self.shared = shared
        self.said: list[Any] = []
        self.is_noting = True
        """Whether what the worker has dropped is noted at once."""
        self.epochs = [0] * PARTITIONS
        self.led: set[int] = set()
        self.clients: list[Client] = []

    def heard(self, message: Any) -> None:
        """The worker has said something."""
        self.said.append(message)
        if self.is_noting and isinstance(message, messages.OffsetsDropped):
            asyncio.get_running_loop().call_soon(self._note, message)

    def note_all(self) -> None:
        """What the worker has dropped last is on disk, and will be so at once from now on."""
        self.is_noting = True
        self._note(next(each for each in reversed(self.said) if isinstance(each, messages.OffsetsDropped)))

    def _note(self, message: messages.OffsetsDropped) -> None:
        self.node.topics.end_report_ticket(messages.OffsetDropReportStored(message.number))

    def lead(self, partition: int, *deleted_topics: str, topics_version: int = 0) -> None:
        """Give a partition that no node has; its supervisor has topics of that version."""
        assert partition not in self.led
        self.led.add(partition)
        self.epochs[partition] += 1
        if deleted_topics:
            self.node.share.note_deleted_topics(
                messages.PendingOffsetDrops(Partition(partition), deleted_topics)
            )
        known = self.shared.get_partition_recovery_point(Partition(partition))
        epoch = LeaderEpoch(self.epochs[partition])
        self.node.share.lead(messages.LeadPartition(Partition(partition), epoch, *known, topics_version))

    def resign(self, partition: int) -> None:
        """Take a partition; `released` says when no node has it."""
        self.node.share.resign(
            messages.ResignPartition(Partition(partition), LeaderEpoch(self.epochs[partition]))
        )

    async def released(self, partition: int) -> messages.PartitionReleased:
        """Wait until the worker has let the partition go."""
        epoch = self.epochs[partition]

        def found() -> list[messages.PartitionReleased]:
            return [
                each
                for each in self.said
                if isinstance(each, messages.PartitionReleased)
                and (each.partition, each.leader_epoch) == (partition, epoch)
            ]

        await eventually(lambda: bool(found()), f"the release of partition {partition}")
        (released,) = found()
        with pytest.raises(NotOwned):
            get_files(self.app).end_offset(Partition(partition))
        assert partition not in self.app.manager.owned_partitions
        assert partition not in self.app.manager.loading_partitions
        self.shared.save_release_position(Partition(partition), released.position)
        self.led.discard(partition)
        return released

    async def all_loaded(self) -> None:
        await eventually(
            lambda: (
                self.app.manager.owned_partitions.keys() >= self.led
                and self.app.leadership.has_loaded_all_partitions
            ),
            "all loads",
        )

    async def private_client(self, greeting: bytes) -> Client:
        """A connection to the private socket that begins with these bytes."""
        path = private_socket_path(self.app.settings.data_dir, self.app.settings.node_id)
        client = Client(*await asyncio.open_unix_connection(path))
        client.send(greeting)
        self.clients.append(client)
        return client

    async def client(self) -> Client:
        assert self.app.serving is not None
        client = Client(*await asyncio.open_connection(*self.app.serving.listen))
        self.clients.append(client)
        return client


def group_of(partition: int) -> str:
    return next(
        name
        for name in map("g{}".format, range(1000))
        if partition_for(GroupId(name), PARTITIONS) == partition
    )


@asynccontextmanager
async def played_worker(data_dir: Path, **chosen: Any) -> AsyncIterator[Played]:
    given: dict[str, Any] = {
        "data_dir": data_dir,
        "listen": Address("127.0.0.1", 0),
        "metrics_listen": None,
        "offsets_topic_num_partitions": PARTITIONS,
        "offsets_topic_segment_bytes": 4096,
        "log_level": "error",
        **chosen,
    }
    settings = Settings(**given)
    shared, _ = SharedDirectoryFiles.open(data_dir, make_storage_settings(settings), RealFileSystem())
    catalogue = Catalogue(Topic(name="__consumer_offsets", id=bytes(16), partitions=PARTITIONS))
    catalogue.add_topic(requests.TOPIC, 10, topic_id=bytes(15) + b"1")
    view = View((Broker(1, "127.0.0.1", 1),), (Leader(1, LeaderEpoch(1)),) * PARTITIONS)
    welcome = messages.WorkerStart(settings, "c", shared.topic_id, catalogue.offsets_topic, view, 0)
    heard: list[Callable[[Any], None]] = []

    def send(message: Any) -> None:
        heard[0](message)

    node = WorkerNode(welcome, asyncio.get_running_loop(), real_machine(), send)
    played = Played(node, shared)
    heard.append(played.heard)
    topics = list(catalogue.snapshot_topics())
    node.topics.replica.queue_message(messages.AllTopicsPiece(0, topics, is_first=True, is_last=True))
    try:
        await node.app.start()
        yield played
    finally:
        for client in played.clients:
            await client.close()
        node.share.close()
        await node.app.stop()
        shared.replay_and_remove_node_journal(settings.node_id, [*map(Partition, range(PARTITIONS))])
        shared.close(clean=True)


async def test_a_partition_that_is_lost_while_it_is_opened_or_loads_is_released(tmp_path: Path) -> None:
    async with played_worker(tmp_path) as played:
        client = await played.client()
        played.lead(0)
        await played.all_loaded()
        for offset in range(200):
            assert await client.commit(group_of(0), 0, offset) is ErrorCode.NONE
        for turns in range(30):  # so many turns of the loop the load has got before it is lost
            played.resign(0)
            await played.released(0)
            assert played.shared.get_partition_recovery_point(Partition(0))[0] == 200
            played.lead(0)
            for _ in range(turns):
                await asyncio.sleep(0)
        await played.all_loaded()
        assert await client.fetch(group_of(0)) == {0: 199}


async def test_a_partition_that_was_never_written_can_be_gained_and_lost(tmp_path: Path) -> None:
    async with played_worker(tmp_path) as played:
        played.lead(2)
        played.resign(2)
        assert (await played.released(2)).position is None
        played.lead(2)
        await played.all_loaded()
        client = await played.client()
        assert await client.commit(group_of(2), 0, 7) is ErrorCode.NONE


async def test_topics_that_went_while_nobody_led_it_take_their_offsets_when_it_is_loaded(
    tmp_path: Path,
) -> None:
    async with played_worker(tmp_path) as played:
        client = await played.client()
        played.lead(1)
        await played.all_loaded()
        assert await client.commit(group_of(1), 0, 7) is ErrorCode.NONE
        played.resign(1)
        await played.released(1)
        played.lead(1, requests.TOPIC)
        await played.all_loaded()
        assert await client.fetch(group_of(1)) == {}


async def test_what_was_dropped_is_told_once_it_is_durable_and_before_later_topics_are_there(
    tmp_path: Path,
) -> None:
    async with played_worker(tmp_path) as played:
        client = await played.client()
        store = played.node.topics.replica
        for partition in range(3):
            played.lead(partition)
        await played.all_loaded()
        loaded = [each for each in played.said if isinstance(each, messages.OffsetsDropped)]
        assert [(each.version, len(each.partitions)) for each in loaded] == [(0, 1)] * 3
        assert await client.commit(group_of(1), 0, 7) is ErrorCode.NONE
        played.resign(2)
        await played.released(2)
        topic = store.catalogue.get(requests.TOPIC)
        assert topic is not None
        anew = Topic(name=requests.TOPIC, id=b"n" * 16, partitions=3)
        seen: list[tuple[bool, bool]] = []
        store.on_changed = lambda changes: seen.append(
            (bool(changes.created), any(isinstance(each, messages.OffsetsDropped) for each in played.said))
        )
        played.said.clear()
        played.is_noting = False
        store.queue_message(messages.TopicsChanged(1, Changes(deleted=[topic.id])))
        store.queue_message(messages.TopicsChanged(2, Changes(created=[anew])))
        await eventually(lambda: bool(played.said), "what it has dropped")
        await idle()
        assert seen == [(False, False)], "a topic made anew is not there before its supervisor has noted it"
        played.note_all()
        await eventually(lambda: store.version == 2, "both changes")
        assert seen == [(False, False), (True, True)]
        dropped = [each for each in played.said if isinstance(each, messages.OffsetsDropped)]
        assert [(each.version, sorted(each.partitions)) for each in dropped] == [(1, [0, 1])]
        assert await client.fetch(group_of(1)) == {}
        played.said.clear()
        played.is_noting = False
        played.lead(2)
        await eventually(lambda: bool(played.said), "what it has dropped")
        assert (played.said[-1].partitions, played.said[-1].version) == ([2], 2)
        await idle()
        assert 2 not in played.app.manager.owned_partitions
        played.note_all()
        await played.all_loaded()


async def test_topics_that_came_and_went_unheard_are_known_to_be_dropped(tmp_path: Path) -> None:
    """Else the next leader would drop what was committed to a topic that was made anew under such a name."""
    async with played_worker(tmp_path) as played:
        store = played.node.topics.replica
        played.lead(1)
        await played.all_loaded()
        played.said.clear()
        store.queue_message(
            messages.AllTopicsPiece(6, list(store.catalogue.snapshot_topics()), is_first=True, is_last=True)
        )
        await eventually(lambda: store.version == 6, "all topics")
        assert [
            (each.version, each.partitions)
            for each in played.said
            if isinstance(each, messages.OffsetsDropped)
        ] == [(6, [1])]


async def test_a_partition_that_comes_before_the_news_of_a_deletion_takes_no_commits_until_that_is_here(
    tmp_path: Path,
) -> None:
    """Its supervisor believes that it holds no offsets in that topic, so one committed now would never be dropped."""
    async with played_worker(tmp_path) as played:
        client, store = await played.client(), played.node.topics.replica
        played.lead(0)
        played.lead(1)
        await played.all_loaded()
        assert await client.commit(group_of(0), 0, 7) is ErrorCode.NONE
        assert await client.commit(group_of(1), 0, 7) is ErrorCode.NONE
        played.resign(1)
        await played.released(1)
        played.lead(1, requests.TOPIC, topics_version=2)
        played.lead(2)
        await eventually(lambda: 2 in played.app.manager.owned_partitions, "the load of another one")
        assert await client.commit(group_of(1), 0, 8) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        # What comes before it is still busy with dropping.
        topic = store.catalogue.get(requests.TOPIC)
        assert topic is not None
        played.said.clear()
        played.is_noting = False
        store.queue_message(
            messages.TopicsChanged(1, Changes(created=[Topic(name="x", id=b"x" * 16, partitions=1)]))
        )
        store.queue_message(messages.TopicsChanged(2, Changes(deleted=[topic.id])))
        await eventually(lambda: bool(played.said), "what it has dropped")
        assert store.version == 1
        assert 1 in played.app.manager.loading_partitions
        played.note_all()
        await played.all_loaded()
        assert await client.commit(group_of(1), 0, 8) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await client.fetch(group_of(1)) == {}
        dropped = [each for each in played.said if isinstance(each, messages.OffsetsDropped)]
        assert [each.version for each in dropped if 1 in each.partitions] == [2]


async def test_a_partition_that_waits_for_topics_can_be_lost(tmp_path: Path) -> None:
    async with played_worker(tmp_path) as played:
        played.lead(1, topics_version=9)
        played.lead(2)
        await eventually(lambda: 2 in played.app.manager.owned_partitions, "the load of another one")
        assert 1 in played.app.manager.loading_partitions
        played.resign(1)
        await played.released(1)
        played.lead(3, topics_version=9)  # and a node that stops does not wait


async def test_commits_to_a_topic_that_was_made_anew_elsewhere_stay(tmp_path: Path) -> None:
    """What a node did not get round to dropping before it gave a partition away is its next leader's business."""
    async with played_worker(tmp_path) as played:
        client = await played.client()
        played.lead(1)
        await played.all_loaded()
        assert await client.commit(group_of(1), 0, 7) is ErrorCode.NONE
        manager = played.app.manager
        steps = manager.delete_offsets_of_topics(frozenset({requests.TOPIC}))
        played.resign(1)
        list(steps)
        await played.released(1)
        played.lead(1)
        await played.all_loaded()
        assert await client.fetch(group_of(1)) == {0: 7}


@pytest.mark.parametrize("seed", range(4))
async def test_partitions_come_and_go_in_any_order_and_keep_what_was_acknowledged(
    tmp_path: Path, seed: int
) -> None:
    sys.stderr.write(f"seed {seed}\n")
    rng = random.Random(seed)
    async with played_worker(tmp_path) as played:
        client = await played.client()
        acknowledged: dict[int, int] = {}
        leaving: dict[int, asyncio.Task[Any]] = {}
        commits: Counter[int] = Counter()
        step = 0
        while len(commits) < PARTITIONS or min(commits.values()) < 20:
            step += 1
            partition = rng.randrange(PARTITIONS)
            if partition in leaving:
                if leaving[partition].done():
                    await leaving.pop(partition)
                    played.lead(partition)
            elif partition not in played.led:
                played.lead(partition)
            elif rng.random() < 0.1:
                played.resign(partition)
                leaving[partition] = asyncio.create_task(played.released(partition))
            error = await client.commit(group_of(partition), 0, step)
            assert error in {ErrorCode.NONE, *AWAY}
            if error is ErrorCode.NONE:
                acknowledged[partition] = step
                commits[partition] += 1
        await asyncio.gather(*leaving.values())
        for partition in set(range(PARTITIONS)) - played.led:
            played.lead(partition)
        await played.all_loaded()
        for partition, offset in acknowledged.items():
            assert await client.fetch(group_of(partition)) == {0: offset}


async def test_a_node_refuses_what_it_does_not_lead(tmp_path: Path) -> None:
    async with played_worker(tmp_path) as played:
        client = await played.client()
        assert await client.commit(group_of(0), 0, 1) is ErrorCode.NOT_COORDINATOR
        with pytest.raises(Refused, match="NOT_COORDINATOR"):
            await client.fetch(group_of(0))
        played.lead(0)
        await played.all_loaded()
        assert await client.commit(group_of(0), 0, 1) is ErrorCode.NONE
        played.resign(0)
        assert await client.commit(group_of(0), 0, 2) is ErrorCode.NOT_COORDINATOR
        await played.released(0)
