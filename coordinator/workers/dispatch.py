# SPDX-License-Identifier: Apache-2.0
"""The commands of the assignment on their way to workers: in order, and to lead only once that is on disk."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from coordinator.catalogue.store import CatalogueStore
from coordinator.runtime.io_thread import Thread
from coordinator.telemetry.logs import get_logger
from coordinator.topology import leaders_file
from coordinator.workers import messages
from coordinator.workers.assignment import Assignment, Command, LeadOrder
from storage.disk.filesystem import FileSystem
from storage.recovery.shared import SharedDirectory

log = get_logger("supervisor")

RETRY_S: Final = 1.0
"""How long a disk that refused to note who leads what is left alone before the next try."""
NAMES_PER_MESSAGE: Final = 1_000


class Dispatch:
    """Sends commands; those of one moment are noted together."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        io: Thread,
        fs: FileSystem,
        data_dir: Path,
        assignment: Assignment,
        shared: SharedDirectory,
        store: CatalogueStore,
        tell: Callable[[int, Any], None],
    ) -> None:
        """`tell` gives a message to the worker of a node, if there is one."""
        self._loop = loop
        self._io = io
        self._fs = fs
        self._data_dir = data_dir
        self._assignment = assignment
        self._shared = shared
        self._store = store
        self._tell = tell
        self.handed = [0] * len(assignment.places)
        """Up to which deleted topic each partition's leader was told with its order what to drop."""
        self._outbox: list[Command] = []
        self._sending = False

    def send(self, commands: Iterable[Command]) -> None:
        """Send these after all that were to be sent before."""
        self._outbox += commands
        self._send_next()

    def _send_next(self) -> None:
        """Send the oldest commands, in order, and those to lead only once their epochs are on disk."""
        if self._sending or not self._outbox:
            return
        self._sending = True
        owners = self._assignment.owners()

        def write() -> None:
            leaders_file.write(self._fs, self._data_dir, owners)

        def written(result: BaseException | None) -> None:
            if isinstance(result, BaseException):
                log.error("cannot save which node leads which partition", reason=str(result))
                self._loop.call_later(RETRY_S, self._io.submit, write, written)
                return
            self._sending = False
            for command in batch:
                self._send(command)
            self._send_next()

        batch, self._outbox = self._outbox, []
        if any(isinstance(command, LeadOrder) for command in batch):
            self._io.submit(write, written)
        else:
            written(None)

    def _send(self, command: Command) -> None:
        partition = command.partition
        if isinstance(command, LeadOrder):
            deletions, version = self._store.deletions, self._store.topics_version()
            deleted = deletions.left(partition)
            self.handed[partition] = deletions.number
            for start in range(0, len(deleted), NAMES_PER_MESSAGE):
                names = deleted[start : start + NAMES_PER_MESSAGE]
                self._tell(command.node, messages.DeletedMeanwhile(partition, names))
            point, position = self._shared.known(partition)
            order: Any = messages.Lead(partition, command.epoch, point, position, version)
        else:
            order = messages.Resign(partition, command.epoch)
        log.debug(
            "ordered a worker",
            node=command.node,
            what=type(command).__name__,
            partition=partition,
            epoch=command.epoch,
        )
        self._tell(command.node, order)
