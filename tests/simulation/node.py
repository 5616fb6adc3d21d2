# SPDX-License-Identifier: Apache-2.0
"""Processes with a node in them, and what the world does with them: one alone, which starts again by itself."""

import asyncio
import random
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator.app import App
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.catalogue_writer import CatalogueWriter
from coordinator.catalogue.topics import Draft
from coordinator.config import Settings
from coordinator.config.storage_settings import make_storage_settings
from coordinator.host_resources import HostResources
from coordinator.logs.files.opening import make_file_log, make_node_log
from coordinator.node_runtime import start_node_runtime
from coordinator.single_node import make_single_node
from coordinator.start_error import CannotStart
from protocol.newtypes import LeaderEpoch, Partition
from storage.cleaner.partition_cleaning import CleaningJob, CleaningResult, write_cleaned_segments
from storage.disk.filesystem import FileSystem
from storage.disk.properties import load_or_create_meta
from storage.errors import StorageError
from storage.log_manager import LogManager
from storage.settings import LogSettings
from tests.simulation.disk import ProcessDisk
from tests.simulation.loop import Process
from tests.simulation.machine import SimulatedThread
from tests.simulation.settings import (
    CLUSTER_ID,
    JOURNAL_STEP_BYTES,
    PARTITIONS,
    ROOT,
    TOPIC,
    WIDE_PARTITIONS,
    WIDE_TOPIC,
)

if TYPE_CHECKING:
    from tests.simulation.world import World

RETRY_S = 0.5


class Body:
    """A process and its disk."""

    def __init__(self, world: "World", name: str) -> None:
        world.lives += 1
        self.world = world
        self.name = f"{name}/{world.lives}"
        self.process = Process(world.loop, self.name)
        self.disk: ProcessDisk = world.disk.process(
            random.Random(f"{world.seed}/{self.name}/disk"), self.crashed
        )
        if world.tracing:
            self.disk.trace = lambda what: world.note(f"{self.name} disk: {what}")
        self.machine = HostResources(
            self.disk,
            world.clock,
            random.Random(f"{world.seed}/{self.name}/ids").randbytes,
            lambda _loop, _name: SimulatedThread(world.loop, world.slowness),
            world.network.bind,
            partial(self._compact, self.disk),
            world.network.bind_private,
            world.sockets.bind_shared,
            world.sockets.unconnected,
        )

    def _compact(self, fs: FileSystem, job: CleaningJob) -> CleaningResult:
        self.world.history.counts["compactions"] += 1
        return write_cleaned_segments(fs, job)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the process; what it raises is a bug."""
        self.process.start(self._run(coroutine))

    async def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except Exception as error:  # noqa: BLE001 - whatever it is
            self.world.fail(error)

    def crashed(self) -> None:
        """An operation on the disk was the last thing that the process did."""
        self.end()
        self.world.outside(self.world.crashed, self)

    def end(self) -> None:
        """The process has ended, in whatever way."""
        self.process.die()
        self.disk.end()
        self.world.network.cut(self.process)
        self.world.graves.append(self)


class SimulatedNode:
    """A node as the world and its clients see it, through all its lives."""

    def __init__(self, world: "World", settings: Settings) -> None:
        self.world = world
        self.settings = settings
        self.port = settings.listen.port
        self.body: Body | None = None
        self.app: App | None = None
        self.served_since = 0.0
        """From when on it has run, with all its partitions loaded, without standing still."""
        self.runs_since = 0.0
        """From when on it has run without standing still."""
        self.stopping = False

    @property
    def name(self) -> str:
        """That of its process."""
        return "nobody" if self.body is None else self.body.name

    @property
    def is_up(self) -> bool:
        """Whether it serves, and neither stops nor stands still."""
        return (
            self.app is not None
            and self.app.serving is not None
            and not self.stopping
            and self.body is not None
            and self.body.process.runs
        )

    def began(self) -> None:
        """It runs, or runs again."""
        self.served_since = self.runs_since = self.world.loop.time()

    def pause(self, seconds: float) -> None:
        """Stop the process as SIGSTOP does, and let it go on later."""
        if self.body is not None:
            self.body.process.pause()
            self.world.later(seconds, partial(self._go_on, self.body.process))

    def _go_on(self, process: Process) -> None:
        if process.is_alive:
            self.began()
            process.go_on()


class Host:
    """What runs on the machine: a node that is alone."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.node = SimulatedNode(world, world.settings)
        self.nodes = [self.node]
        self._failures = 0

    @property
    def catalogue(self) -> Catalogue | None:
        """All topics, by whoever writes them."""
        app = self.node.app
        return None if app is None or app.server is None else app.server.node.catalogue

    def bodies(self) -> list[Body]:
        """All processes that are alive."""
        return [self.node.body] if self.node.body is not None and self.node.body.process.is_alive else []

    def boot(self) -> None:
        """Start what there is to start."""
        body = self.node.body = Body(self.world, "node")
        self.node.stopping = False
        body.start(self._start(body))

    async def _start(self, body: Body) -> None:
        world = self.world
        try:
            app = self._new_app(body)
            await app.start()
            await unwatched(app)
            assert app.server is not None
            await create_topics(app.server.node.catalogue_store, body.machine, wide=world.is_wide)
        except (CannotStart, StorageError) as error:
            world.note(f"{body.name} cannot start: {error}")
            body.end()
            world.could_not_start(error)
            world.later(RETRY_S, self.boot)
        else:
            world.note(f"{body.name} serves")
            self.node.app = app
            self.node.began()
            world.started()

    def _new_app(self, body: Body) -> App:
        settings = self.world.settings
        log = LogManager.open(ROOT, small(make_storage_settings(settings)), body.disk)
        self.world.ledger.watch(log)
        runtime = start_node_runtime(settings, self.world.loop, body.machine)
        meta = load_or_create_meta(body.disk, ROOT, node_id=settings.node_id, cluster_id=CLUSTER_ID)
        return make_single_node(runtime, make_node_log(make_file_log(log, runtime), runtime, meta.cluster_id))

    def ended(self, body: Body) -> None:
        """A process has ended by itself or was killed, and something may have to start it again."""
        self.node.app = None
        self.world.later(self.world.rng.expovariate(1), self.world.boot)

    def end_all(self) -> None:
        """Everything ends at once."""
        if self.node.body is not None:
            self.node.body.end()
        self.node.app = None

    def stop(self, _: SimulatedNode) -> None:
        """SIGTERM; it ends in its own time, and starts again unless it crashes meanwhile."""
        if self.node.is_up and self.node.body is not None and self.node.app is not None:
            self.node.stopping = True
            self.node.body.start(self._stop(self.node.body, self.node.app))

    async def _stop(self, body: Body, app: App) -> None:
        await app.stop()
        body.end()
        self.world.stopped(body)

    def move(self, partition: int) -> None:
        """Lead a partition anew, if it is led."""
        node, app = self.node, self.node.app
        if app is not None and node.body is not None and partition in app.manager.owned_partitions:
            self.world.note(f"partition {partition} is led anew")
            node.served_since = self.world.loop.time()
            node.body.start(_lead_anew(app, partition))

    def drain(self, _: SimulatedNode) -> None:
        """Nothing: there is no other node to take its partitions."""


async def _lead_anew(app: App, partition: int) -> None:
    app.leadership.become_leader(
        Partition(partition), LeaderEpoch(app.leadership.epochs[Partition(partition)] + 1)
    )


async def unwatched(app: App) -> None:
    """Once it serves: stop measuring how late the loop is, which takes most of the turns and finds nothing here."""
    while app.serving is None:  # noqa: ASYNC110 - its time costs nothing
        await asyncio.sleep(0.01)
    app.loop_watch.close()


def small(settings: LogSettings) -> LogSettings:
    """Take less of the disk at once than real nodes do."""
    return msgspec.structs.replace(settings, journal_step_bytes=JOURNAL_STEP_BYTES)


async def create_topics(store: CatalogueWriter, machine: HostResources, *, wide: bool) -> None:
    """The topics that stay, where they are missing. Raises StorageError."""
    if TOPIC in store.catalogue:
        return
    loop_done = Waiter()

    def create(draft: Draft) -> None:
        if TOPIC not in draft:
            draft.add_topic(TOPIC, PARTITIONS, topic_id=machine.new_topic_id())
            if wide:
                draft.add_topic(WIDE_TOPIC, WIDE_PARTITIONS, topic_id=machine.new_topic_id())

    store.submit_edit_with_callback(create, loop_done.settle)
    await loop_done.wait()


class Waiter:
    """A callback that can be awaited."""

    def __init__(self) -> None:
        self._done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def settle(self, result: Any) -> None:
        """The callback."""
        if not self._done.done():
            self._done.set_result(result)

    async def wait(self) -> Any:
        """What came; raises it where it is an exception."""
        result = await self._done
        if isinstance(result, BaseException):
            raise result
        return result
