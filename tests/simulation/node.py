# SPDX-License-Identifier: Apache-2.0
"""A node that is alone: one process that lives many lives on one disk."""

import random
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from coordinator.app import App, CannotStart
from coordinator.catalogue.catalogue import Catalogue
from coordinator.config.log_settings import log_settings
from coordinator.machine import Machine
from storage.cleaner.work import Job, Result, clean
from storage.disk.filesystem import FileSystem
from storage.disk.properties import load_or_create_meta
from storage.errors import StorageError
from storage.log_manager import LogManager
from tests.simulation.disk import ProcessDisk
from tests.simulation.loop import Process
from tests.simulation.machine import SimulatedThread
from tests.simulation.settings import CLUSTER_ID, JOURNAL_STEP_BYTES, PARTITIONS, PORT, ROOT, TOPIC

if TYPE_CHECKING:
    from tests.simulation.world import World

RETRY_S = 0.5


class SimulatedNode:
    """What the world sees of a node: `app` while it serves, and the process that it runs in."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.app: App | None = None
        self.process: Process
        self.disk: ProcessDisk
        self.served_since = 0.0
        """From when on it has run, with all its partitions loaded, without standing still."""
        self.runs_since = 0.0
        """From when on it has run without standing still."""
        self.port = PORT
        self._stopping = False

    # --- its life

    def boot(self) -> None:
        """Start a process."""
        world = self.world
        world.lives += 1
        name = f"node/{world.lives}"
        self.process = process = Process(world.loop, name)
        self.disk = world.disk.process(
            random.Random(f"{world.seed}/disk/{world.lives}"), partial(self._crashed, process)
        )
        if world.tracing:
            self.disk.trace = lambda what: world.note(f"{name} disk: {what}")
        self._stopping = False
        process.start(self._start(process))

    async def _start(self, process: Process) -> None:
        try:
            app = self._new_app(self.disk, process.name)
            await app.start()
            await self._create_topic(app)
        except (CannotStart, StorageError) as error:
            self.world.note(f"cannot start: {error}")
            self._end(process)
            self.world.later(RETRY_S, self.boot)
        else:
            self.world.note(f"{process.name} serves")
            self.app = app
            self.served_since = self.runs_since = self.world.loop.time()

    def _new_app(self, fs: FileSystem, name: str) -> App:
        settings = self.world.settings
        machine = self.machine(fs, name)
        small = msgspec.structs.replace(log_settings(settings), journal_step_bytes=JOURNAL_STEP_BYTES)
        log = LogManager.open(ROOT, small, fs)
        self.world.ledger.watch(log)
        meta = load_or_create_meta(fs, ROOT, node_id=settings.node_id, cluster_id=CLUSTER_ID)
        return App(settings, self.world.loop, machine, log, meta.cluster_id)

    def machine(self, fs: FileSystem, name: str) -> Machine:
        """What a process is given."""
        world = self.world
        return Machine(
            fs,
            world.clock,
            random.Random(f"{world.seed}/ids/{name}").randbytes,
            lambda _loop, _name: SimulatedThread(world.loop, world.slowness),
            world.network.bind,
            lambda job: self._compact(fs, job),
        )

    def _compact(self, fs: FileSystem, job: Job) -> Result:
        self.world.history.counts["compactions"] += 1
        return clean(fs, job)

    async def _create_topic(self, app: App) -> None:
        assert app.server is not None
        store = app.server.node.catalogue_store
        if TOPIC in store.catalogue:
            return
        done = self.world.loop.create_future()

        def create(draft: Catalogue) -> None:
            draft.create(TOPIC, PARTITIONS, topic_id=store.new_topic_id())

        def settle(result: Any) -> None:
            if not done.done():
                done.set_result(result)

        store.change(create, settle)
        result = await done
        if isinstance(result, BaseException):
            raise result

    def _crashed(self, process: Process) -> None:
        """An operation on the disk was the last thing that the process did."""
        self.world.outside(self.world.crashed, self, process)
        self._end(process)

    def _end(self, process: Process) -> None:
        process.die()
        self.disk.end()
        self.app = None
        self.world.network.cut(process)
        self.world.graves.append(process)

    # --- what the world does with it

    def kill(self) -> None:
        """SIGKILL, or the loss of power."""
        self._end(self.process)

    async def stop(self) -> None:
        """SIGTERM; it ends in its own time, and starts again unless it crashes meanwhile."""
        app, process = self.app, self.process
        if app is None or self._stopping or not process.runs:
            return
        self._stopping = True
        process.start(self._stop(app, process))

    async def _stop(self, app: App, process: Process) -> None:
        await app.stop()
        self._end(process)
        self.world.note(f"{process.name} has stopped")
        self.world.outside(self.world.stopped, self)

    @property
    def is_up(self) -> bool:
        """Whether it serves, and neither stops nor stands still."""
        return self.app is not None and self.process.runs and not self._stopping

    def pause(self, seconds: float) -> None:
        """Stop the process as SIGSTOP does, and let it go on later."""
        self.process.pause()
        self.world.later(seconds, partial(self._go_on, self.process))

    def _go_on(self, process: Process) -> None:
        self.served_since = self.runs_since = self.world.loop.time()
        process.go_on()

    def move(self, partition: int) -> None:
        """Lead a partition anew, if this node leads it."""
        app = self.app
        if app is not None and partition in app.manager.owned_partitions:
            self.world.note(f"partition {partition} is led anew")
            self.served_since = self.world.loop.time()
            self.process.start(self._lead_anew(app, partition))

    async def _lead_anew(self, app: App, partition: int) -> None:
        app.leadership.become_leader(partition, app.leadership.epochs[partition] + 1)
