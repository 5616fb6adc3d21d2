# SPDX-License-Identifier: Apache-2.0
"""Settles the journals of dead workers, however often the disk refuses."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from coordinator.runtime.io_thread import BlockingCallThread
from coordinator.telemetry.logs import get_logger
from protocol.newtypes import Partition
from storage.disk.checkpoint_file import SegmentPosition
from storage.errors import CorruptLog, StorageError
from storage.recovery.shared_directory import JournalReplayResult, SharedDirectoryFiles

log = get_logger("supervisor")

RETRY_S: Final = 1.0
"""The seconds to the next try after the disk has refused one."""


class JournalTakeover:
    """Settles the journals of ended workers, and stores where partitions end that live workers have released."""

    def __init__(
        self, io: BlockingCallThread, shared: SharedDirectoryFiles, is_stopping: Callable[[], bool]
    ) -> None:
        self._io = io
        self._shared = shared
        self._is_stopping = is_stopping
        self.all_settled = True
        """True if every journal so far could be settled."""

    async def save_released_partition_end(
        self, partition: Partition, position: SegmentPosition | None
    ) -> None:
        """Store where a partition ends that a worker has released."""
        while True:
            try:
                await self._io.run_blocking(partial(self._shared.save_release_position, partition, position))
                return
            except StorageError as error:
                log.error("cannot save where a partition's log ends", reason=str(error))
                await asyncio.sleep(RETRY_S)

    async def replay_journal_and_list_damaged(self, node: int, had: list[Partition]) -> list[Partition]:
        """Apply the journal of a dead worker to its partitions; return those that are damaged."""
        while True:
            try:
                settled = await self._io.run_blocking(
                    partial(self._shared.replay_and_remove_node_journal, node, had)
                )
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
                log_journal_replay_result(settled)
                return list(settled.failed)

    async def recover_unreadable_partition(self, partition: Partition) -> bool:
        """Recover a partition that the disk could not read at the start, once it can; return False if it is damaged."""
        while True:
            await asyncio.sleep(RETRY_S)
            try:
                settled = await self._io.run_blocking(
                    partial(self._shared.retry_partition_recovery, partition)
                )
            except CorruptLog as error:
                log.error("partition is damaged", partition=partition, reason=str(error))
                return False
            except StorageError as error:
                log.debug("partition still cannot be read", partition=partition, reason=str(error))
            else:
                log_journal_replay_result(settled)
                log.info("partition can be read again", partition=partition)
                return True


def log_journal_replay_result(settled: JournalReplayResult) -> None:
    """Log the incomplete writes that settling has cut, and the damaged partitions."""
    for cut in settled.cuts:
        log.warning(
            "recovery cut an incomplete write", path=str(cut.path), position=cut.position, reason=cut.reason
        )
    for partition, damage in settled.failed.items():
        log.error("partition is damaged", partition=partition, reason=str(damage))
