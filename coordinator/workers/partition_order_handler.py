# SPDX-License-Identifier: Apache-2.0
"""The partitions that a worker leads: opened before they are loaded, closed after the worker has resigned."""

import asyncio
from collections.abc import Callable
from functools import partial

from coordinator.partitions.file_log import FileLog
from coordinator.partitions.group_log import LogError
from coordinator.partitions.leadership import RETRY_S, Leadership
from coordinator.runtime.tasks import Tasks
from coordinator.telemetry.logs import get_logger
from coordinator.telemetry.stats import Stats
from coordinator.workers.messages import (
    FromWorker,
    LeadPartition,
    PartitionLoadResult,
    PartitionReleased,
    PendingOffsetDrops,
    ResignPartition,
)
from protocol.newtypes import LeaderEpoch, Partition

log = get_logger("leadership")


class PartitionOrderHandler:
    """Carries out LeadPartition and ResignPartition.

    A partition's next LeadPartition comes only after its PartitionReleased.

    A release waits in the io thread behind the work of a load that was just cancelled.
    """

    def __init__(
        self,
        leadership: Leadership,
        file_log: FileLog,
        stats: Stats,
        send: Callable[[FromWorker], None],
    ) -> None:
        self._leadership = leadership
        self._log = file_log
        self._stats = stats
        self._send = send
        self._leads: dict[Partition, LeadPartition] = {}
        self._deleted: dict[Partition, set[str]] = {}
        self._releases = Tasks()
        self._topics_version = -1
        self._has_more = asyncio.Event()
        file_log.prepare = self._open
        leadership.on_loaded = self._loaded
        leadership.topics_gone = self._topics_gone

    def note_deleted_topics(self, deleted: PendingOffsetDrops) -> None:
        """Store deleted topics whose offsets a partition must drop; called before the partition's LeadPartition."""
        self._deleted.setdefault(deleted.partition, set()).update(deleted.topics)

    def lead(self, lead: LeadPartition) -> None:
        """Open a partition, load it and serve it."""
        self._stats.partitions_gained += 1
        self._leads[lead.partition] = lead
        deleted = frozenset(self._deleted.pop(lead.partition, ()))
        self._leadership.become_leader(lead.partition, lead.leader_epoch, deleted)

    def note_topics_version(self, version: int) -> None:
        """Note that the worker has the topics of this version, so that deleted topics take no commits any more."""
        self._topics_version = version
        self._has_more.set()

    async def _topics_gone(self, partition: Partition) -> None:
        """Return once the worker has no topic that was deleted before the supervisor assigned the partition."""
        while self._topics_version < self._leads[partition].topics_version:
            self._has_more.clear()
            await self._has_more.wait()

    async def _open(self, partition: Partition) -> None:
        lead = self._leads[partition]
        await self._log.run_in_io_thread(
            partial(self._log.files.adopt, partition, lead.recovery_point, lead.position)
        )

    def _loaded(self, partition: Partition, leader_epoch: LeaderEpoch, failure: str | None) -> None:
        self._send(PartitionLoadResult(partition, leader_epoch, failure))

    def resign(self, resign: ResignPartition) -> None:
        """Stop serving a partition at once; close it when all accepted appends are on disk, and report that."""
        self._stats.partitions_lost += 1
        self._leadership.resign(resign.partition, resign.leader_epoch)
        self._releases.start(self._release(resign), f"release of partition {resign.partition}")

    async def _release(self, resign: ResignPartition) -> None:
        while True:
            try:
                position = await self._log.release(resign.partition)
                break
            except LogError as error:
                log.error("cannot release partition", partition=resign.partition, reason=str(error))
            except Exception:
                log.exception("cannot release partition", partition=resign.partition)
            if self._log.files.append_failure is not None:
                self._log.start_repair()
            await asyncio.sleep(RETRY_S)
        self._send(PartitionReleased(resign.partition, resign.leader_epoch, position))

    def close(self) -> None:
        """Cancel the releases that are under way."""
        self._releases.cancel()
