# SPDX-License-Identifier: Apache-2.0
"""Reading the offsets topic of a whole node: nothing is read before it is durable, and reading holds nothing up."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.logs.node_log import FETCH_BYTES_MAX
from coordinator.net.long_requests import LONG_AT_ONCE
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from storage.format.batch import iter_batches
from tests.net import requests
from tests.partitions.disk import READS
from tests.partitions.running import GIVE_UP_S, Client, Running, commit_error, eventually, node
from tests.support import reading
from tests.support.idle import idle

NONE = ErrorCode.NONE
P = 1


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with node(tmp_path / "data", log_flush="always") as running:
        yield running


def fetch(*offsets: tuple[int, int], **fields: Any) -> bytes:
    """A Fetch of (partition, offset)."""
    return requests.request(ApiKey.FETCH, 11, reading.fetch_request(dict(offsets), **fields))


def list_offsets(timestamp: int) -> bytes:
    return requests.request(ApiKey.LIST_OFFSETS, 5, reading.list_request([P], timestamp))


def fetched(frame: bytes) -> Any:
    """The one partition of an answer."""
    (topic,) = requests.answer(ApiKey.FETCH, 11, frame).responses
    (answer,) = topic.partitions
    return answer


async def end_of(client: Client) -> int:
    frame = await client.ask(list_offsets(reading.LATEST))
    (answer,) = requests.answer(ApiKey.LIST_OFFSETS, 5, frame).topics[0].partitions
    assert answer.error_code == NONE
    return int(answer.offset)


async def test_a_commit_is_read_once_it_is_durable_and_not_before(running: Running) -> None:
    writer, reader = await running.client(), await running.client()
    group = running.group_in(P)
    with running.disk.hold():
        writer.send(requests.commit(group, {0: 1}))
        await eventually(lambda: running.disk.waiting, "the flush to reach the disk")
        assert await end_of(reader) == 0
        assert fetched(await reader.ask(fetch((P, 0)))).high_watermark == 0
    assert commit_error(await writer.receive()) is NONE
    assert await end_of(reader) == 1
    answer = fetched(await reader.ask(fetch((P, 0))))
    assert (answer.high_watermark, len(list(iter_batches(bytes(answer.records), check=True)))) == (1, 1)


async def test_who_waits_is_answered_once_somebody_commits(running: Running) -> None:
    writer, reader = await running.client(), await running.client()
    reader.send(fetch((P, 0), wait_ms=30_000))
    await eventually(lambda: running.app.reads.tail._waiting, "the fetch to wait")
    assert await writer.commit(running.group_in(P), 0, 7) is NONE
    answer = fetched(await reader.receive())
    assert (answer.high_watermark, bool(answer.records)) == (1, True)


async def test_while_a_read_waits_for_the_disk_others_are_served(running: Running) -> None:
    writer, reader = await running.client(), await running.client()
    group = running.group_in(P)
    assert await writer.commit(group, 0, 1) is NONE
    await end_of(reader)
    with running.disk.hold(READS, f"{reading.OFFSETS_TOPIC}-{P}/"):
        reader.send(fetch((P, 0)))
        await eventually(lambda: running.disk.waiting, "the read to reach the disk")
        for offset in range(2, 5):
            assert await writer.commit(group, 0, offset) is NONE
        await idle()
        assert running.disk.waiting == 1
    assert fetched(await reader.receive()).high_watermark >= 1


async def test_a_reader_that_takes_nothing_does_not_take_the_memory(running: Running) -> None:
    """Answers that are not taken are counted, and no more are made once they fill the budget."""
    budget = running.app.budget
    budget.bytes_max = 1 << 20
    writer, reader = await running.client(), await running.client()
    group = running.group_in(P)
    for offset in range(60):
        assert await writer.commit(group, 0, offset, metadata="m" * 4_000) is NONE
    size = len(await reader.ask(fetch((P, 0))))
    assert size > 200_000
    readers = [await running.client() for _ in range(40)]
    for each in readers:
        each.stop_reading()
        each.send(*[fetch((P, 0))] * 10)
    await eventually(lambda: budget.over, "the budget to be used up")
    assert await writer.commit(group, 0, 100) is NONE
    # What was owed when the budget was full, and one slice that was being read for each that had begun.
    assert budget.total_bytes < (1 << 20) + len(readers) * (1 << 20)
    for each in readers:
        each.read_on()
    for each in readers:
        for _ in range(10):
            assert fetched(await each.receive()).error_code == NONE
    await eventually(lambda: budget.total_bytes == 0, "all to be taken")


async def test_what_was_read_is_answered_though_it_uses_up_the_budget_itself(running: Running) -> None:
    """More readers than there are places for long answers, whose reads are all in the budget when it is used up."""
    budget = running.app.budget
    assert running.app.server is not None
    running.app.server.long_requests.short_shares = 0  # as if each answer were a long one
    writer = await running.client()
    group = running.group_in(P)
    for offset in range(60):
        assert await writer.commit(group, 0, offset, metadata="m" * 4_000) is NONE
    await end_of(writer)
    readers = [await running.client() for _ in range(LONG_AT_ONCE + 4)]
    with running.disk.hold(READS, f"{reading.OFFSETS_TOPIC}-{P}/"):
        for each in readers:
            each.send(fetch((P, 0)))
        await eventually(
            lambda: budget.total_bytes == len(readers) * FETCH_BYTES_MAX, "all of them to be reading"
        )
        budget.bytes_max = 100_000  # less than one answer
    async with asyncio.timeout(GIVE_UP_S):
        for each in readers:
            assert len(fetched(await each.receive()).records) > 200_000
    await eventually(lambda: budget.total_bytes == 0, "all to be taken")


async def test_a_node_that_stops_leaves_no_reader_behind(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        reader = await running.client()
        reader.send(fetch((P, 0), wait_ms=30_000))
        await eventually(lambda: running.app.reads.tail._waiting, "the fetch to wait")
    await reader.until_closed()
    assert running.app.budget.total_bytes == 0
    assert not running.app.reads.tail._waiting
