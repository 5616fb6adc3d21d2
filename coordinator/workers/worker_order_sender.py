# SPDX-License-Identifier: Apache-2.0
"""Sends the assignment's commands to workers, in order, and a LeadOrder only once its epoch is on disk.

Before the order to lead a partition, the worker gets the deleted topics whose offsets the partition may still hold.
After a mass deletion these are many for each partition: so they are sent as fast as the worker reads, one message per
turn of the event loop, and later orders for the same worker wait behind them. Topics that are deleted meanwhile are
sent as well, before the worker has the partition.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from coordinator.catalogue.deletions import TopicDeletionBatch
from coordinator.catalogue.store import CatalogueStore
from coordinator.runtime.io_thread import BlockingCallThread
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from coordinator.topology.view import Leader
from coordinator.workers import messages
from coordinator.workers.assignment import Assignment, Command, LeadOrder
from protocol.newtypes import Partition
from storage.recovery.shared_directory import SharedDirectoryFiles

log = get_logger("supervisor")

RETRY_S: Final = 1.0
"""The seconds to the next try if the disk refused to store which node leads which partition."""
NAMES_PER_MESSAGE: Final = 1_000


class WorkerChannel(Protocol):
    """The channel to one process of a worker."""

    def send(self, message: msgspec.Struct) -> None:
        """Send one message; it is lost once the process is gone."""

    async def wait_until_writable(self) -> None:
        """Return once the channel has room for more, or the process is gone."""


class WorkerOrderSender:
    """Sends commands; those that come during a write to the disk share the next write."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        io: BlockingCallThread,
        assignment: Assignment,
        shared: SharedDirectoryFiles,
        store: CatalogueStore,
        write_leaders: Callable[[Sequence[Leader]], None],
        channel: Callable[[int], WorkerChannel | None],
        tasks: Tasks,
    ) -> None:
        """`write_leaders` stores, on the io thread, who leads each partition.

        `channel` returns the channel to a node's worker, None without a worker; `tasks` are the supervisor's.
        """
        self._loop = loop
        self._io = io
        self._write_leaders = write_leaders
        self._assignment = assignment
        self._shared = shared
        self._store = store
        self._channel = channel
        self._tasks = tasks
        self.handed = [0] * len(assignment.places)
        """By partition, the number of the newest topic deletion that its leader was sent with the order to lead."""
        self._outbox: list[Command] = []
        self._sending = False
        self._waiting: dict[int, deque[Command]] = {}
        """By node, the commands that wait until deleted topics have been sent."""

    def enqueue_orders(self, commands: Iterable[Command]) -> None:
        """Send these commands after all that were queued before."""
        self._outbox += commands
        self._send_next()

    def _send_next(self) -> None:
        """Send the queued commands in order, a LeadOrder only once its epoch is on disk."""
        if self._sending or not self._outbox:
            return
        self._sending = True
        owners = self._assignment.leaders_to_store()

        def write() -> None:
            self._write_leaders(owners)

        def written(result: BaseException | None) -> None:
            if isinstance(result, BaseException):
                log.error("cannot save which node leads which partition", reason=str(result))
                self._loop.call_later(RETRY_S, self._io.submit_with_callback, write, written)
                return
            self._sending = False
            for command in batch:
                self._send_in_turn(command)
            self._send_next()

        batch, self._outbox = self._outbox, []
        if any(isinstance(command, LeadOrder) for command in batch):
            self._io.submit_with_callback(write, written)
        else:
            written(None)

    def _send_in_turn(self, command: Command) -> None:
        """Send a command after all others for its node."""
        waiting = self._waiting.get(command.node)
        if waiting is not None:
            waiting.append(command)
        elif isinstance(command, LeadOrder) and self._gone(command.partition, 0):
            self._waiting[command.node] = deque([command])
            self._tasks.start(self._send_waiting(command.node), "send orders")
        else:
            self._send(command)

    async def _send_waiting(self, node: int) -> None:
        waiting = self._waiting[node]
        while waiting:
            command = waiting.popleft()
            if isinstance(command, LeadOrder):
                await self._send_deletions(command)
            if self._is_wanted(command):
                self._send(command)
        del self._waiting[node]

    async def _send_deletions(self, order: LeadOrder) -> None:
        """Send a worker the deleted topics whose offsets its partition may hold; return once all are sent."""
        sent = 0
        while self._is_wanted(order) and (left := self._gone(order.partition, sent)):
            sent = left[-1].number
            for names in _portions(left):
                channel = self._channel(order.node)
                if channel is None:
                    return
                channel.send(messages.PendingOffsetDrops(order.partition, names))
                await channel.wait_until_writable()
                await asyncio.sleep(0)

    def _gone(self, partition: Partition, sent: int) -> list[TopicDeletionBatch]:
        return self._store.deletions.undropped_deletions_after(partition, sent)

    def _is_wanted(self, command: Command) -> bool:
        """Return whether the process that a command is meant for still has the partition, and was not lost."""
        place = self._assignment.places[command.partition]
        return (place.owner, place.epoch) == (command.node, command.epoch)

    def _send(self, command: Command) -> None:
        partition = command.partition
        if isinstance(command, LeadOrder):
            self.handed[partition] = self._store.deletions.number
            point, position = self._shared.get_partition_recovery_point(partition)
            version = self._store.topics_version()
            order: Any = messages.LeadPartition(partition, command.epoch, point, position, version)
        else:
            order = messages.ResignPartition(partition, command.epoch)
        log.debug(
            "ordered a worker",
            node=command.node,
            what=type(command).__name__,
            partition=partition,
            epoch=command.epoch,
        )
        channel = self._channel(command.node)
        if channel is not None:
            channel.send(order)


def _portions(gone: Iterable[TopicDeletionBatch]) -> Iterator[Sequence[str]]:
    """Yield the names of deleted topics in portions of about NAMES_PER_MESSAGE."""
    names: list[str] = []
    for each in gone:
        names += each.names
        if len(names) >= NAMES_PER_MESSAGE:
            yield names
            names = []
    if names:
        yield names
