# SPDX-License-Identifier: Apache-2.0
"""A node that stops: a deletion that it has taken is whole, and one that comes too late is not taken."""

import asyncio
from pathlib import Path
from typing import Final

from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from tests.net import requests
from tests.partitions.disk import SYNCS
from tests.partitions.running import eventually, node

CATALOGUE: Final = "catalogue"


def delete() -> bytes:
    return requests.build(ApiKey.DELETE_TOPICS, 4, {"topic_names": [requests.TOPIC], "timeout_ms": 30_000})


def error_of(frame: bytes) -> ErrorCode:
    (topic,) = requests.answer(ApiKey.DELETE_TOPICS, 4, frame).responses
    return ErrorCode(topic.error_code)


async def test_a_deletion_under_way_takes_its_offsets_along(tmp_path: Path) -> None:
    async with node(tmp_path) as running:
        client = await running.client()
        await client.commit("group", 0, 42)
        with running.disk.hold(SYNCS, CATALOGUE):
            client.send(delete())
            store = running.app.server.node.catalogue_store if running.app.server else None
            assert store is not None
            await eventually(lambda: not store.is_idle, "the deletion to be under way")
            stopping = asyncio.get_running_loop().create_task(running.stop())
            await eventually(lambda: store.is_closed, "the stop to have begun")
            assert running.app.manager.owned_partitions, "partitions wait for the deletion"
        assert error_of(await client.receive()) is ErrorCode.NONE
        await stopping
    async with node(tmp_path) as running:  # which makes the topic anew
        client = await running.client()
        assert await client.fetch("group") == {}


async def test_a_deletion_that_comes_too_late_is_refused(tmp_path: Path) -> None:
    async with node(tmp_path) as running:
        client = await running.client()
        await client.commit("group", 0, 42)
        assert running.app.server is not None
        running.app.server.node.catalogue_store.refuse_further_changes()
        assert error_of(await client.ask(delete())) is ErrorCode.NOT_CONTROLLER
        assert await client.fetch("group") == {0: 42}
