# SPDX-License-Identifier: Apache-2.0
"""What dead workers leave is brought to the disk, however often the disk refuses it."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from coordinator.runtime.io_thread import Thread
from coordinator.telemetry.logs import get_logger
from protocol.names import Partition
from storage.disk.checkpoint_file import Position
from storage.errors import CorruptLog, StorageError
from storage.recovery.shared import SharedDirectory, TakeoverResult

log = get_logger("supervisor")

RETRY_S: Final = 1.0
"""How long what the disk refused is left alone before the next try."""


class JournalTakeover:
    """Settles the journals of workers that have ended, and notes where partitions end that others gave back."""

    def __init__(self, io: Thread, shared: SharedDirectory, is_stopping: Callable[[], bool]) -> None:
        self._io = io
        self._shared = shared
        self._is_stopping = is_stopping
        self.all_settled = True
        """Whether there is no journal left that could not be settled."""

    async def note(self, partition: Partition, position: Position | None) -> None:
        """A worker has given a partition back that ends there."""
        while True:
            try:
                await self._io.run(partial(self._shared.note, partition, position))
                return
            except StorageError as error:
                log.error("cannot save where a partition's log ends", reason=str(error))
                await asyncio.sleep(RETRY_S)

    async def settle(self, node: int, had: list[Partition]) -> list[Partition]:
        """Save what the journal of a dead worker holds of its partitions; returns those that are damaged."""
        while True:
            try:
                settled = await self._io.run(partial(self._shared.settle, node, had))
            except CorruptLog as error:
                log.error("the journal of a dead worker is damaged", node=node, reason=str(error))
                self.all_settled = False
                return had
            except StorageError as error:
                log.error("cannot apply the journal of a dead worker", node=node, reason=str(error))
                if self._is_stopping():
                    self.all_settled = False
                    return had
                await asyncio.sleep(RETRY_S)
            else:
                tell_settled(settled)
                return list(settled.failed)

    async def reopen(self, partition: Partition) -> bool:
        """Read a partition that the disk could not read at the start, sooner or later; False where it is damaged."""
        while True:
            await asyncio.sleep(RETRY_S)
            try:
                settled = await self._io.run(partial(self._shared.reopen, partition))
            except CorruptLog as error:
                log.error("partition is damaged", partition=partition, reason=str(error))
                return False
            except StorageError as error:
                log.debug("partition still cannot be read", partition=partition, reason=str(error))
            else:
                tell_settled(settled)
                log.info("partition can be read again", partition=partition)
                return True


def tell_settled(settled: TakeoverResult) -> None:
    """Log what settling had to leave out, and which partitions are damaged."""
    for cut in settled.cuts:
        log.warning(
            "recovery cut an incomplete write", path=str(cut.path), position=cut.position, reason=cut.reason
        )
    for partition, damage in settled.failed.items():
        log.error("partition is damaged", partition=partition, reason=str(damage))
