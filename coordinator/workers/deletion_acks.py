# SPDX-License-Identifier: Apache-2.0
"""A worker has dropped offsets in deleted topics: its supervisor keeps that on disk, and says when."""

from collections.abc import Callable, Sequence

from coordinator.tickets import NO_PARTITION, DurabilityTicket, settle
from coordinator.workers.messages import FromWorker, OffsetsDropped, OffsetsDroppedAck
from protocol.names import Partition


class DeletionAcks:
    """What was said and is not kept yet."""

    def __init__(self, send: Callable[[FromWorker], None]) -> None:
        self._send = send
        self._number = 0
        self._waiting: dict[int, DurabilityTicket] = {}

    def tell(self, version: int, partitions: Sequence[Partition]) -> DurabilityTicket:
        """These partitions hold no offsets in topics that went up to a version; the ticket ends once that is kept."""
        self._number += 1
        ticket = self._waiting[self._number] = DurabilityTicket(NO_PARTITION, self._number)
        self._send(OffsetsDropped(version, partitions, self._number))
        return ticket

    def noted(self, message: OffsetsDroppedAck) -> None:
        """The supervisor has kept it."""
        settle([self._waiting.pop(message.number)])
