# SPDX-License-Identifier: Apache-2.0
"""A worker's process: a node like one that is alone, but for what its supervisor decides.

Started by `worker_process` as `python -m coordinator.workers.worker SOCKET PULSE PARENT NODE`. It ends when its
supervisor does: at once and without giving anything back, as in a crash, since whoever comes next settles its journal.
"""

import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

import uvloop

from coordinator.api.ends import ends_of
from coordinator.app import GC_THRESHOLDS, App, CannotStart
from coordinator.catalogue.file import FILE_NAME as CATALOGUE_FILE
from coordinator.catalogue.keeper import CatalogueKeeper
from coordinator.catalogue.limits import TopicLimits
from coordinator.config.log_settings import log_settings
from coordinator.node import EndsByTopic, Node, Partitions
from coordinator.partitions.waiting import Waiting
from coordinator.runtime.stop_signals import ignore_stop_signals
from coordinator.telemetry import logs
from coordinator.topology.view import Broker, Cluster
from coordinator.workers import messages
from coordinator.workers.pulse import Pulse
from coordinator.workers.remote_catalogue import RemoteCatalogueStore
from coordinator.workers.share import Share
from storage.errors import StorageError
from storage.log_manager import LogManager

log = logs.get_logger("worker")

EXIT_FAILED: Final = 1
EXIT_ORPHANED: Final = 3
LAST_LINES_S: Final = 0.1
_PR_SET_PDEATHSIG: Final = 1


class WorkerApp(App):
    """A node whose partitions, topics and neighbours are its supervisor's business."""

    def __init__(
        self, welcome: messages.Welcome, loop: asyncio.AbstractEventLoop, send: Callable[[Any], None]
    ) -> None:
        settings = welcome.settings
        try:
            log_manager = LogManager.open_share(
                settings.data_dir, log_settings(settings), welcome.topic_id, settings.node_id
            )
        except StorageError as error:
            raise CannotStart(str(error)) from error
        super().__init__(settings, loop, log_manager, welcome.cluster_id)
        self.stats.worker_restarts = welcome.restarts
        self.cluster = Cluster(welcome.view)
        self.catalogue_store = RemoteCatalogueStore(
            settings.data_dir / CATALOGUE_FILE, welcome.offsets_topic, send, TopicLimits.of(settings)
        )
        self.share = Share(self.leadership, self.committer, self.log, self.io, self.stats, send)
        self.ends = RemoteEnds(send)

    def loop_stalled(self) -> None:
        """The event loop was held for as long as the supervisor calls slow."""
        self.stats.loop_stalls += 1

    def lead_partitions(self) -> None:
        """Nothing: the supervisor says what."""

    def open_catalogue(self) -> CatalogueKeeper:
        """A copy of the supervisor's."""
        return self.catalogue_store

    def join_cluster(self, broker: Broker) -> Cluster:
        """All nodes, as the supervisor sees them."""
        return self.cluster

    def make_node(self, broker: Broker) -> Node:
        """A node that asks the others what their groups have committed."""
        node = super().make_node(broker)
        node.ends = self.ends
        return node


class RemoteEnds:
    """What groups of other nodes have committed, through the supervisor."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._waiting: dict[int, Callable[[EndsByTopic | None], None]] = {}
        self._next = 0

    def ask(self, group_id: str, partitions: Partitions, done: Callable[[EndsByTopic | None], None]) -> None:
        """Call `done` with what the group has committed in these partitions; None where that cannot be told now."""
        self._next += 1
        self._waiting[self._next] = done
        asked = {topic: tuple(indexes) for topic, indexes in partitions.items()}
        self._send(messages.AskEnds(self._next, group_id, asked))

    def answered(self, answer: messages.EndsAnswer) -> None:
        """The supervisor has heard it."""
        self._waiting.pop(answer.request)(answer.ends)


class Worker:
    """The socket to the supervisor, and the node that does what comes from it."""

    def __init__(self, node_id: int, loop: asyncio.AbstractEventLoop, pulse: Pulse) -> None:
        self._node_id = node_id
        self._loop = loop
        self._pulse = pulse
        self._channel = messages.Channel(messages.FromSupervisor, self._got, self._orphaned)
        self._app: WorkerApp | None = None
        self._starting: asyncio.Task[None] | None = None
        self.ended: asyncio.Future[int] = loop.create_future()

    async def connect(self, sock: socket.socket) -> None:
        """Listen to the supervisor."""
        await self._loop.create_connection(lambda: self._channel, sock=sock)

    def _got(self, message: Any) -> None:
        if isinstance(message, messages.Welcome):
            self._welcome(message)
        elif self._app is not None:
            self._do(self._app, message)

    def _do(self, app: WorkerApp, message: Any) -> None:
        match message:
            case messages.Lead():
                app.share.lead(message)
            case messages.Resign():
                app.share.resign(message)
            case messages.Viewed():
                app.cluster.update(message.view)
            case messages.DeletedMeanwhile():
                app.share.deleted_meanwhile(message)
            case messages.AllTopics() | messages.TopicsChanged() | messages.Changed():
                app.catalogue_store.got(message)
            case messages.EndsWanted():
                self._tell_ends(app, message)
            case messages.EndsAnswer():
                app.ends.answered(message)
            case messages.Stop():
                self._starting = self._loop.create_task(self._stop(app))

    def _welcome(self, welcome: messages.Welcome) -> None:
        settings = welcome.settings
        logs.configure(settings.log_format, settings.log_level, node=self._node_id, queued=True)
        try:
            app = self._app = WorkerApp(welcome, self._loop, self._channel.send)
        except CannotStart as error:
            self._cannot_serve(error)
            return
        self._pulse.watch(settings.worker_timeout_ms, app.loop_stalled)
        self._starting = self._loop.create_task(self._start(app))

    def _cannot_serve(self, error: CannotStart) -> None:
        self._channel.send(messages.CannotServe(str(error)))
        self.ended.set_result(EXIT_FAILED)

    async def _start(self, app: WorkerApp) -> None:
        await app.catalogue_store.arrived.wait()
        try:
            serving = await app.start()
        except CannotStart as error:
            self._cannot_serve(error)
            return
        self._channel.send(messages.Serves(serving.listen, serving.advertised, serving.metrics))

    async def _stop(self, app: WorkerApp) -> None:
        app.share.close()
        await app.stop()
        self.ended.set_result(0)

    def _tell_ends(self, app: WorkerApp, wanted: messages.EndsWanted) -> None:
        waiting = Waiting()
        ends = ends_of(app.door, waiting, wanted.group_id, wanted.partitions)
        told = messages.EndsTold(wanted.request, ends)
        if waiting.flush <= app.committer.durable:
            self._channel.send(told)
            return
        # Nobody may be told of an offset that a crash can take back.
        task = self._loop.create_task(app.committer.drained())
        task.add_done_callback(partial(self._send_ends, app, wanted, told))

    def _send_ends(
        self, app: WorkerApp, wanted: messages.EndsWanted, told: messages.EndsTold, _task: Any
    ) -> None:
        """The flush has come to its end; where it failed, the group is not served any more."""
        lost = not app.door.serves(wanted.group_id)
        self._channel.send(messages.EndsTold(wanted.request, None) if lost else told)

    def _orphaned(self, reason: str) -> None:
        if not self.ended.done():
            log.error("the supervisor is gone", reason=reason)
            exit_at_once(EXIT_ORPHANED)

    def close(self) -> None:
        """Say what is left to say."""
        self._channel.close()


def exit_at_once(status: int) -> NoReturn:
    """End without writing anything more to the data directory."""
    logs.drain(LAST_LINES_S)
    os._exit(status)


def die_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends; where it cannot, the closed socket tells."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was faster
        exit_at_once(EXIT_ORPHANED)


async def _run(sock: socket.socket, pulse_sock: socket.socket, node_id: int) -> int:
    loop = asyncio.get_running_loop()
    pulse = Pulse(loop, pulse_sock)
    pulse.start()
    worker = Worker(node_id, loop, pulse)
    await worker.connect(sock)
    status = await worker.ended
    worker.close()
    await asyncio.sleep(0)
    return status


def main(arguments: Sequence[str]) -> int:
    """Run the worker that these arguments describe; returns its exit status."""
    descriptor, pulse, parent, node_id = map(int, arguments)
    die_with(parent)
    # Whoever wants to stop a worker asks its supervisor; Ctrl-C and a service manager reach both.
    ignore_stop_signals()
    gc.set_threshold(*GC_THRESHOLDS)
    return uvloop.run(_run(socket.socket(fileno=descriptor), socket.socket(fileno=pulse), node_id))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
