# SPDX-License-Identifier: Apache-2.0
"""A whole node in this process, on a disk that the test controls, and clients that speak to it over sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from coordinator.app import App
from coordinator.catalogue.topics import Draft
from coordinator.config import Address, Settings
from coordinator.host_resources import HostResources
from coordinator.logs.files.file_log import FileLog
from coordinator.logs.files.opening import open_file_log
from coordinator.logs.node_log import NodeLog
from coordinator.net.server import OpenConnection
from coordinator.node_runtime import NodeRuntime, start_node_runtime
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.runtime.clock import Clock, SystemClock
from coordinator.single_node import make_single_node
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from storage.cleaner.log_cleaner import Runner
from tests.net import requests
from tests.partitions.disk import READS, Disk

GIVE_UP_S = 120.0
TICK_S = 0.002
PARTITIONS = 4


class Running:
    """A node, its disk and its clients."""

    def __init__(self, app: App, disk: Disk, port: int, stack: AsyncExitStack) -> None:
        self.app = app
        self.disk = disk
        self.port = port
        self._stack = stack

    async def client(self) -> "Client":
        """A new connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        client = Client(reader, writer)
        self._stack.push_async_callback(client.close)
        return client

    def connection_of(self, client: "Client") -> OpenConnection:
        """The node's end of a client's connection."""
        assert self.app.server is not None
        (found,) = [each for each in self.app.server.connections if each.peer == client.address]
        return found

    def http(self, path: str) -> str:
        """The URL of a path of the node's HTTP server."""
        assert self.app.serving is not None
        assert self.app.serving.metrics is not None
        return self.app.serving.metrics.replace("/metrics", path)

    async def stop(self) -> None:
        """Stop the node as SIGTERM does."""
        await self.app.stop()

    async def loaded(self) -> None:
        """Wait until every partition serves."""
        await eventually(lambda: self.app.leadership.has_loaded_all_partitions, "all partitions to be loaded")

    def group_in(self, partition: int) -> str:
        """A group id of this partition."""
        return group_in(self.app.manager, partition)


def group_in(manager: GroupMetadataManager, partition: int, prefix: str = "group") -> str:
    """A group id of this partition."""
    names = (f"{prefix}-{number}" for number in range(1_000))
    return next(name for name in names if manager.partition_for(GroupId(name)) == partition)


class Client:
    """A connection whose requests are asked one by one, or sent ahead."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def address(self) -> str:
        """Where it connects from."""
        host, port = self._writer.get_extra_info("sockname")
        return f"{host}:{port}"

    def send(self, *frames: bytes) -> None:
        """Send without waiting for anything."""
        self._writer.write(b"".join(frames))

    def stop_reading(self) -> None:
        """Take nothing from the socket from now on."""
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()

    def read_on(self) -> None:
        """Take what has come, and what comes."""
        transport = self._writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.resume_reading()

    async def receive(self) -> bytes:
        """The next answer. Raises IncompleteReadError when the server closes."""
        length = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(length)

    async def ask(self, frame: bytes) -> bytes:
        self.send(frame)
        return await self.receive()

    async def until_closed(self) -> None:
        """Wait until the server closes; whatever it says before is dropped."""
        try:
            while await self._reader.read(1 << 16):
                pass
        except ConnectionError:
            pass

    async def close(self) -> None:
        self._writer.close()

    # --- requests ---

    async def commit(self, group: str, partition: int, offset: int, **options: Any) -> ErrorCode:
        """Commit one offset; returns its error."""
        return commit_error(await self.ask(requests.commit(group, {partition: offset}, **options)))

    async def fetch(self, group: str) -> dict[int, int]:
        """The committed offsets of the one topic; raises Refused for an error."""
        return fetched(await self.ask(requests.fetch_offsets(group)))

    async def join_alone(self, group: str) -> tuple[str, int]:
        """Become the only member of a group, and stable; returns member id and generation."""
        joined = requests.answer(ApiKey.JOIN_GROUP, 3, await self.ask(requests.join(group, version=3)))
        assert joined.error_code == ErrorCode.NONE
        member_id: str = joined.member_id
        synced = await self.ask(
            requests.sync(group, member_id, joined.generation_id, assignments={member_id: b"all"})
        )
        assert requests.answer(ApiKey.SYNC_GROUP, 4, synced).error_code == ErrorCode.NONE
        return member_id, joined.generation_id

    async def heartbeat(self, group: str, member_id: str, generation: int) -> ErrorCode:
        frame = await self.ask(requests.heartbeat(group, member_id, generation))
        return ErrorCode(requests.answer(ApiKey.HEARTBEAT, 4, frame).error_code)


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


def commit_error(frame: bytes, version: int = 8) -> ErrorCode:
    (topic,) = requests.answer(ApiKey.OFFSET_COMMIT, version, frame).topics
    errors = {partition.error_code for partition in topic.partitions}
    assert len(errors) == 1, f"{topic}"
    return ErrorCode(errors.pop())


def fetched(frame: bytes) -> dict[int, int]:
    answer = requests.answer(ApiKey.OFFSET_FETCH, 7, frame)
    if answer.error_code:
        raise Refused(ErrorCode(answer.error_code))
    return {p.partition_index: p.committed_offset for topic in answer.topics for p in topic.partitions}


async def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition` is true."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + GIVE_UP_S
    while not condition():
        assert loop.time() < deadline, f"gave up waiting for {what}"
        await asyncio.sleep(TICK_S)


async def turns(count: int) -> None:
    """Let the event loop go round so often; `tests.support.idle` waits until it has nothing more to do."""
    for _ in range(count):
        await asyncio.sleep(0)


@asynccontextmanager
async def node(
    data_dir: Path,
    *,
    loaded: bool = True,
    metrics: bool = False,
    held_partition: int | None = None,
    unreadable_partition: int | None = None,
    clock: Clock | None = None,
    compact: Runner | None = None,
    open_log: Callable[[NodeRuntime], NodeLog] = open_file_log,
    **settings: Any,
) -> AsyncIterator[Running]:
    """Run a node on `data_dir`; it is stopped at the end, in good order as far as its disk allows.

    Once it runs all partitions are loaded, unless a test wants none of that (`loaded = False`). What loading reads
    of `held_partition` waits until the disk is told to let go, or to hold something else. Nothing of
    `unreadable_partition` can be read until the disk heals, from the start on.
    """
    disk = Disk()
    if unreadable_partition is not None:
        disk.fail(READS, where=f"__consumer_offsets-{unreadable_partition}/")
    chosen: dict[str, Any] = {
        "listen": Address("127.0.0.1", 0),
        "metrics_listen": Address("127.0.0.1", 0) if metrics else None,
        "offsets_topic_num_partitions": PARTITIONS,
        "group_initial_rebalance_delay_ms": 0,
        "auto_create_topics_enable": False,
        "shutdown_timeout_ms": 2_000,
        **settings,
    }
    machine = HostResources(disk, clock or SystemClock(), compact=compact)
    runtime = start_node_runtime(Settings(data_dir=data_dir, **chosen), asyncio.get_running_loop(), machine)
    app = make_single_node(runtime, open_log(runtime))
    app.leadership.retry_s = 0.01
    if isinstance(app.log.groups, FileLog):
        app.log.groups.retry_s = 0.01
    if held_partition is not None:
        disk.hold_back(READS, f"__consumer_offsets-{held_partition}/")
    async with AsyncExitStack() as stack:
        serving = await app.start()
        running = Running(app, disk, serving.listen.port, stack)
        stack.push_async_callback(running.stop)
        stack.callback(disk.heal)
        stack.callback(disk.let_go)
        await create_topics(app)
        if held_partition is not None or unreadable_partition is not None:
            owned = app.manager.owned_partitions
            await eventually(lambda: len(owned) == PARTITIONS - 1, "the other partitions to be loaded")
        elif loaded:
            await running.loaded()
        yield running


async def create_topics(app: App) -> None:
    assert app.server is not None
    store = app.server.node.catalogue_store
    done = asyncio.get_running_loop().create_future()

    def create(draft: Draft) -> None:
        for name in (requests.TOPIC, requests.OTHER_TOPIC):
            draft.add_topic(name, 100, topic_id=store.new_topic_id())

    store.submit_edit_with_callback(create, done.set_result)
    assert await done is None
