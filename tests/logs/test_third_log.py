# SPDX-License-Identifier: Apache-2.0
"""A whole node on a log that is neither of the two in files: in memory, late and failing by partition."""

import asyncio
import json
import random
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.logs.group_log import LogError, LogTimedOut, LogUnavailable
from coordinator.logs.node_log import NodeLog
from coordinator.node_runtime import NodeRuntime
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import FetchRequest, ListOffsetsRequest, MetadataRequest
from protocol.newtypes import Partition
from tests.net import requests
from tests.partitions.running import PARTITIONS, Client, Running, eventually, node
from tests.support.memory_log import MemoryLog, MemoryTopic

LOST: Final[tuple[Callable[[], LogError], ...]] = (
    lambda: LogUnavailable("away"),
    lambda: LogTimedOut("late"),
    lambda: LogError("refused"),
)
COMMITS: Final = 300


def new_directory(parent: Path, name: str) -> Path:
    """A data directory, which a node without files needs for its topics."""
    directory = parent / name
    directory.mkdir()
    return directory


@asynccontextmanager
async def on_topic(data_dir: Path, topic: MemoryTopic) -> AsyncIterator[tuple[Running, MemoryLog]]:
    """A node that leads the partitions of this topic."""
    log = MemoryLog(topic)

    def open_log(_runtime: NodeRuntime) -> NodeLog:
        return NodeLog(log, upkeep=None, fetcher=None, cluster_id="in-memory")

    async with node(data_dir, open_log=open_log, metrics=True) as running:
        yield running, log


async def get(running: Running, path: str) -> bytes:
    def read() -> bytes:
        with urllib.request.urlopen(running.http(path)) as response:
            content: bytes = response.read()
            return content

    return await asyncio.to_thread(read)


async def ask(client: Client, api: ApiKey, version: int, message: Any) -> Any:
    return requests.answer(api, version, await client.ask(requests.request(api, version, message)))


@pytest.fixture
def topic() -> MemoryTopic:
    return MemoryTopic(assigns_epochs=True)


async def test_clients_get_what_a_log_in_files_would_give_them(tmp_path: Path, topic: MemoryTopic) -> None:
    async with on_topic(new_directory(tmp_path, "first"), topic) as (running, _):
        client = await running.client()
        member_id, generation = await client.join_alone("group")
        assert (
            await client.commit("group", 0, 7, member_id=member_id, generation=generation) is ErrorCode.NONE
        )
        assert await client.heartbeat("group", member_id, generation) is ErrorCode.NONE
        assert await client.fetch("group") == {0: 7}
    async with on_topic(new_directory(tmp_path, "second"), topic) as (running, _):
        client = await running.client()
        assert await client.fetch("group") == {0: 7}
        assert await client.heartbeat("group", member_id, generation) is ErrorCode.NONE


async def test_operators_see_a_node_without_files(tmp_path: Path, topic: MemoryTopic) -> None:
    async with on_topic(new_directory(tmp_path, "data"), topic) as (running, log):
        client = await running.client()
        await client.commit("group", 0, 7)
        ready = json.loads(await get(running, "/ready"))
        assert (ready["ready"], ready["complete"], ready["log_refusing_reason"]) == (True, True, None)
        metrics = (await get(running, "/metrics")).decode()
        assert f'groupkeeper_partitions{{state="owned"}} {PARTITIONS}.0' in metrics
        assert "groupkeeper_journal_bytes" not in metrics
        assert "groupkeeper_disk_free_bytes" not in metrics
        listed = json.loads(await get(running, "/api/v1/partitions"))
        assert [row["log_bytes"] for row in listed["partitions"]] == [None] * PARTITIONS
        (status,) = json.loads(await get(running, "/api/v1/status"))["nodes"]
        assert (status["disk_free"], status["journal_bytes"], status["cluster_id"]) == (None, 0, "in-memory")
        assert log.is_idle


async def test_clients_see_the_epochs_that_the_log_assigns(tmp_path: Path, topic: MemoryTopic) -> None:
    for name in ("first", "second"):
        async with on_topic(new_directory(tmp_path, name), topic) as (running, log):
            client = await running.client()
            for _ in range(2):  # claims of the first partition
                answer = await ask(client, ApiKey.METADATA, 9, metadata())
                (offsets_topic,) = answer.topics
                shown = {each.partition_index: each.leader_epoch for each in offsets_topic.partitions}
                assert shown == topic.epochs == running.app.leadership.epochs
                log.fail(Partition(0), LogUnavailable("away"))
                with pytest.raises(AssertionError):
                    assert await client.commit(running.group_in(0), 0, 1) is ErrorCode.NONE
                await running.loaded()


def metadata() -> MetadataRequest:
    topic = MetadataRequest.MetadataRequestTopic(name="__consumer_offsets")
    return MetadataRequest(topics=[topic], allow_auto_topic_creation=False)


async def test_a_log_that_is_no_topic_is_refused_to_its_readers(tmp_path: Path, topic: MemoryTopic) -> None:
    async with on_topic(new_directory(tmp_path, "data"), topic) as (running, _):
        client = await running.client()
        row = FetchRequest.FetchTopic.FetchPartition(
            partition=1, fetch_offset=0, partition_max_bytes=1 << 20, current_leader_epoch=-1
        )
        fetch = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchRequest.FetchTopic(topic="__consumer_offsets", partitions=[row])],
        )
        (fetched,) = (await ask(client, ApiKey.FETCH, 11, fetch)).responses
        assert [each.error_code for each in fetched.partitions] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
        sought = ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition(partition_index=1, timestamp=-1)
        find = ListOffsetsRequest(
            replica_id=-1,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name="__consumer_offsets", partitions=[sought])],
        )
        (found,) = (await ask(client, ApiKey.LIST_OFFSETS, 5, find)).topics
        assert [each.error_code for each in found.partitions] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def has_begun(log: MemoryLog, partition: Partition, commit: "asyncio.Future[ErrorCode]") -> bool:
    """Whether a commit waits for the log, or was answered without it."""
    return log.is_under_way(partition) or commit.done()


@pytest.mark.parametrize("seed", range(3))
async def test_no_acknowledged_offset_is_lost_or_moved_back(
    tmp_path: Path, topic: MemoryTopic, seed: int
) -> None:
    rng = random.Random(seed)
    acknowledged: dict[int, int] = {}
    tried: dict[int, set[int]] = defaultdict(set)
    for start in range(2):  # of a node
        async with on_topic(new_directory(tmp_path, f"{start}"), topic) as (running, log):
            client = await running.client()
            for number in range(COMMITS):
                partition = Partition(rng.randrange(PARTITIONS))
                is_late = rng.random() < 0.2
                if is_late:
                    log.hold(partition)
                if rng.random() < 0.1:
                    log.fail(partition, rng.choice(LOST)(), kept=rng.random() < 0.5)
                offset = start * COMMITS + number
                tried[partition].add(offset)
                commit = asyncio.ensure_future(client.commit(running.group_in(partition), 0, offset))
                if is_late:
                    await eventually(partial(has_begun, log, partition, commit), "the append")
                    log.let_go(partition)
                if await commit is ErrorCode.NONE:
                    acknowledged[partition] = offset
            await running.loaded()
            for number, offset in acknowledged.items():
                found = (await client.fetch(running.group_in(number)))[0]
                assert found >= offset
                assert found in tried[number]
    assert len(acknowledged) == PARTITIONS
