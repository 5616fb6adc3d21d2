# SPDX-License-Identifier: Apache-2.0
"""Reports to the supervisor that a worker has dropped offsets in deleted topics, and waits for its acks."""

from collections.abc import Callable, Sequence

from coordinator.tickets import NO_PARTITION, DurabilityTicket, end_tickets
from coordinator.workers.messages import FromWorker, OffsetDropReportStored, OffsetsDropped
from protocol.newtypes import Partition


class OffsetsDroppedReporter:
    """The reports that the supervisor has not stored yet."""

    def __init__(self, send: Callable[[FromWorker], None]) -> None:
        self._send = send
        self._number = 0
        self._waiting: dict[int, DurabilityTicket] = {}

    def report_dropped_offsets(self, version: int, partitions: Sequence[Partition]) -> DurabilityTicket:
        """Report that partitions hold no offsets in topics deleted up to a version; the ticket ends with the ack."""
        self._number += 1
        ticket = self._waiting[self._number] = DurabilityTicket(NO_PARTITION, self._number)
        self._send(OffsetsDropped(version, partitions, self._number))
        return ticket

    def end_report_ticket(self, message: OffsetDropReportStored) -> None:
        """End the ticket of a report that the supervisor has stored."""
        end_tickets([self._waiting.pop(message.number)])
