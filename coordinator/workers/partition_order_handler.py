# SPDX-License-Identifier: Apache-2.0
"""The partitions that a worker leads: opened before they are loaded, closed after the worker has resigned."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from coordinator.logs.group_log import LogError
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
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.disk.checkpoint_file import SegmentPosition

log = get_logger("leadership")


class PartitionHandover(Protocol):
    """A log whose partitions are handed over from node to node on disk."""

    def accept_partition(
        self, partition: Partition, recovery_point: Offset, position: SegmentPosition | None
    ) -> None:
        """Note up to where a partition that no other node works on is on disk; the next claim opens it."""

    async def release(self, partition: Partition) -> SegmentPosition | None:
        """Close a partition, and return where it ends on disk; None if it has no log or has failed.

        Raises LogError if it cannot be given away yet; `release` can then be called again.
        """


class PartitionOrderHandler:
    """Carries out LeadPartition and ResignPartition.

    A partition's next LeadPartition comes only after its PartitionReleased.

    A release waits in the io thread behind the work of a load that was just cancelled.
    """

    def __init__(
        self,
        leadership: Leadership,
        handover: PartitionHandover,
        stats: Stats,
        send: Callable[[FromWorker], None],
    ) -> None:
        self._leadership = leadership
        self._handover = handover
        self._stats = stats
        self._send = send
        self._leads: dict[Partition, LeadPartition] = {}
        self._deleted: dict[Partition, set[str]] = {}
        self._releases = Tasks()
        self._topics_version = -1
        self._has_more = asyncio.Event()
        leadership.on_loaded = self._loaded
        leadership.topics_gone = self._topics_gone

    def note_deleted_topics(self, deleted: PendingOffsetDrops) -> None:
        """Store deleted topics whose offsets a partition must drop; called before the partition's LeadPartition."""
        self._deleted.setdefault(deleted.partition, set()).update(deleted.topics)

    def lead(self, lead: LeadPartition) -> None:
        """Open a partition, load it and serve it."""
        self._stats.partitions_gained += 1
        self._leads[lead.partition] = lead
        self._handover.accept_partition(lead.partition, lead.recovery_point, lead.position)
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
                position = await self._handover.release(resign.partition)
                break
            except LogError as error:
                log.error("cannot release partition", partition=resign.partition, reason=str(error))
            except Exception:
                log.exception("cannot release partition", partition=resign.partition)
            await asyncio.sleep(RETRY_S)
        self._send(PartitionReleased(resign.partition, resign.leader_epoch, position))

    def close(self) -> None:
        """Cancel the releases that are under way."""
        self._releases.cancel()
