# SPDX-License-Identifier: Apache-2.0
"""A supervisor and its workers, each in a process of its own on the simulated machine."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from coordinator.catalogue.catalogue import Catalogue
from coordinator.config import Settings
from coordinator.config.storage_settings import make_storage_settings
from coordinator.workers.assignment import OrderRefused
from coordinator.workers.gateway_process_pool import ClusterUnusable
from coordinator.workers.liveness import OsProcessSnapshot
from coordinator.workers.process_fleet import ProcessStartFailed
from coordinator.workers.process_launcher import ANSWER
from coordinator.workers.process_settings import worker_settings
from coordinator.workers.supervisor import Supervisor
from coordinator.workers.worker import Worker
from protocol.newtypes import Partition
from storage.disk.properties import load_or_create_meta
from storage.errors import StorageError
from storage.recovery.shared_directory import SharedDirectoryFiles
from tests.simulation.history import Broken
from tests.simulation.lines import Line, connect
from tests.simulation.node import RETRY_S, Body, SimulatedNode, create_topics, small, unwatched
from tests.simulation.settings import CLUSTER_ID, ROOT
from tests.support.file_logs import get_files

if TYPE_CHECKING:
    from coordinator.workers.gateway_process import GatewayProcess
    from tests.simulation.world import World

KILLED = -9
CANNOT_START = (StorageError, ProcessStartFailed, ClusterUnusable)


class Pulse(asyncio.Protocol):
    """Answers pings, whenever its process runs."""

    def __init__(self) -> None:
        self._turns = 0
        self._transport: asyncio.BaseTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self._transport, asyncio.Transport)
        self._turns += 1
        self._transport.write(ANSWER.pack(self._turns, 0))


class LaunchedBody(Body):
    """A process that a supervisor has started, as that sees it, and as what runs in it does."""

    def __init__(self, world: "World", name: str, pid: int) -> None:
        super().__init__(world, name)
        self.pid = pid
        self.pulse = Pulse()
        self.lines: list[Line] = []
        self._ended: asyncio.Future[int] = world.loop.create_future()

    def connect(
        self,
        launched: "Worker | GatewayProcess",
        channel: tuple[Body, asyncio.Protocol],
        pulse: tuple[Body, asyncio.Protocol],
    ) -> None:
        """Start, with a line to each of the supervisor's protocols."""
        loop = self.world.loop
        launched.ended.add_done_callback(self._ended_by_itself, context=self.process.context)
        for (body, protocol), ours in ((channel, launched.channel), (pulse, self.pulse)):
            _, end = connect(loop, (body.process, protocol), (self.process, ours))
            self.lines.append(end)

    # --- as the supervisor sees it ---

    def read_system_state(self) -> OsProcessSnapshot | None:
        return OsProcessSnapshot("S" if self.process.runs else "T", 0)

    def kill(self) -> None:
        if self.process.is_alive:
            self.world.note(f"{self.name} is killed by its supervisor")
            self.end()

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    def end(self, status: int = KILLED) -> None:
        if self._ended.done():
            return
        super().end()
        for line in self.lines:
            line.other.soon_lost()
        self._ended.set_result(status)

    def _ended_by_itself(self, ended: "asyncio.Future[int]") -> None:
        self.world.note(f"{self.name} ends with status {ended.result()}")
        self.end(ended.result())

    # --- as what runs in it sees it ---

    def configure(self, settings: Settings, name: int | str) -> None:
        """Logs are the simulation's."""

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """It was made, and has done nothing yet."""

    def end_orphaned_worker(self, reason: str) -> None:
        self.end()


class WorkerBody(LaunchedBody):
    """One worker's process."""

    def __init__(self, world: "World", node: SimulatedNode, pid: int) -> None:
        super().__init__(world, f"worker-{node.settings.node_id}", pid)
        self.node = node
        self.worker: Worker

    def begin(self, channel: tuple[Body, asyncio.Protocol], pulse: tuple[Body, asyncio.Protocol]) -> None:
        """Start, with a line to each of the supervisor's protocols."""
        self.worker = self.process.context.run(Worker, self.world.loop, self.machine, self)
        self.connect(self.worker, channel, pulse)

    def end(self, status: int = KILLED) -> None:
        if self.process.is_alive and self.node.body is self:
            self.node.app = None
        super().end(status)

    def set_stall_ended_callback(self, stall_ms: int, on_stall: Callable[[], None]) -> None:
        """The node was made, and has written nothing yet."""
        assert self.worker.node is not None
        app = self.worker.node.app
        self.world.ledger.watch(get_files(app))
        self.node.app = app
        self.node.began()
        self.start(unwatched(app))


class SupervisedHost:
    """What runs on the machine: a supervisor and several workers."""

    def __init__(self, world: "World") -> None:
        self.world = world
        settings = world.settings
        self.nodes = [
            SimulatedNode(world, worker_settings(settings, index)) for index in range(settings.workers)
        ]
        self.body: Body | None = None
        self._supervisor: Supervisor | None = None
        self._stopping = False
        self._launches = 0

    @property
    def catalogue(self) -> Catalogue | None:
        """All topics, by whoever writes them."""
        return None if self._supervisor is None else self._supervisor.store.catalogue

    def bodies(self) -> list[Body]:
        """All processes that are alive, the supervisor's first."""
        bodies = (self.body, *(node.body for node in self.nodes))
        return [body for body in bodies if body is not None and body.process.is_alive]

    def boot(self) -> None:
        """Start the supervisor, which starts the workers."""
        self._stopping = False
        body = self.body = Body(self.world, "supervisor")
        body.start(self._start(body))

    async def _start(self, body: Body) -> None:
        world, settings = self.world, self.world.settings
        try:
            shared, _ = SharedDirectoryFiles.open(ROOT, small(make_storage_settings(settings)), body.disk)
            meta = load_or_create_meta(body.disk, ROOT, node_id=settings.node_id, cluster_id=CLUSTER_ID)
            supervisor = self._supervisor = self._new_supervisor(body, shared, meta.cluster_id)
            await supervisor.start()
            await self._prepare(supervisor, body)
        except CANNOT_START as error:
            world.note(f"{body.name} cannot start: {error}")
            self.end_all()
            world.could_not_start(error)
            world.later(RETRY_S, self.boot)
        else:
            world.note(f"{body.name} serves")
            world.started()

    def _new_supervisor(self, body: Body, shared: SharedDirectoryFiles, cluster_id: str) -> Supervisor:
        launch = partial(self._launch, body)
        return Supervisor(self.world.settings, self.world.loop, body.machine, launch, shared, cluster_id)

    async def _prepare(self, supervisor: Supervisor, body: Body) -> None:
        """It serves."""
        await create_topics(supervisor.store, body.machine, wide=self.world.is_wide)

    async def _launch(
        self, body: Body, node_id: int, channel: asyncio.Protocol, pulse: asyncio.Protocol
    ) -> WorkerBody:
        node = next(each for each in self.nodes if each.settings.node_id == node_id)
        if node.body is not None and node.body.process.is_alive:
            raise Broken("a node has one process", f"{node.name} still runs")
        self._launches += 1
        worker = WorkerBody(self.world, node, self._launches)
        node.body, node.stopping = worker, False
        worker.begin((body, channel), (body, pulse))
        return worker

    def ended(self, body: Body) -> None:
        """A worker's end is its supervisor's business; without a supervisor the kernel ends the workers, too."""
        if body is self.body:
            self.end_all()
            self.world.later(self.world.rng.expovariate(1), self.world.boot)

    def end_all(self) -> None:
        """Everything ends at once."""
        self._supervisor = None
        for body in self.bodies():
            body.end()

    def stop(self, node: SimulatedNode) -> None:
        """SIGTERM for the supervisor: all ends in good order."""
        if self._supervisor is not None and self.body is not None and not self._stopping:
            self._stopping = True
            for each in self.nodes:
                each.stopping = True
            self.body.start(self._stop(self.body, self._supervisor))

    async def _stop(self, body: Body, supervisor: Supervisor) -> None:
        clean = await supervisor.stop()
        supervisor.shared.close(clean=clean)
        self.end_all()
        self.world.stopped(body)

    def move(self, partition: int) -> None:
        """Let another node lead a partition, if that can be."""
        supervisor = self._supervisor
        if supervisor is not None and self.body is not None and self.body.process.runs:
            to = self.world.rng.choice(self.nodes).settings.node_id
            self.world.note(f"partition {partition} is to move to {to}")
            self.body.start(_move(supervisor, partition, to))

    def drain(self, node: SimulatedNode) -> None:
        """Let a node give all away and end, if another one can take it."""
        supervisor = self._supervisor
        if supervisor is not None and self.body is not None and self.body.process.runs:
            self.world.note(f"{node.name} is to be drained")
            self.body.start(_drain(supervisor, node.settings.node_id))


async def _drain(supervisor: Supervisor, node: int) -> None:
    try:
        supervisor.assignment.drain(node)
    except OrderRefused:
        return
    supervisor.apply_assignment()


async def _move(supervisor: Supervisor, partition: int, to: int) -> None:
    try:
        supervisor.assignment.move(Partition(partition), to)
    except OrderRefused:
        return
    supervisor.apply_assignment()
