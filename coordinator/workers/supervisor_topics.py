# SPDX-License-Identifier: Apache-2.0
"""The topics of a worker: a copy of its supervisor's, which also stores which partitions have dropped offsets."""

from collections.abc import Callable, Sequence

from coordinator.catalogue.catalogue_writer import CatalogueWriter
from coordinator.logs.group_log import wait_for_ticket_end
from coordinator.tickets import NO_PARTITION, DurabilityTicket, end_tickets
from coordinator.workers.messages import FromWorker, OffsetDropReportStored, OffsetsDropped
from coordinator.workers.remote_catalogue import UNKNOWN, CatalogueReplica
from protocol.newtypes import Partition


class SupervisorTopics:
    """The copy of the topics, and the reports that the supervisor has not stored yet (`NodeTopics`)."""

    def __init__(
        self,
        replica: CatalogueReplica,
        has_undropped_offsets: Callable[[Partition], bool],
        send: Callable[[FromWorker], None],
    ) -> None:
        self.replica = replica
        self._has_undropped_offsets = has_undropped_offsets
        self._send = send
        self._number = 0
        self._reports: dict[int, DurabilityTicket] = {}
        self._dropped_version = UNKNOWN
        """The version of the topics up to which all partitions were ordered to drop offsets in deleted topics."""

    def open(self) -> CatalogueWriter:
        """Return the copy of the supervisor's catalogue."""
        return self.replica

    def begin_drops(self) -> None:
        """Note that from now on all partitions drop the offsets in the topics that are being deleted."""
        self._dropped_version = self.replica.coming_version

    def store_finished_drops(self, partitions: Sequence[Partition]) -> DurabilityTicket:
        """Have the supervisor store that these partitions hold no offsets in topics that are being deleted."""
        return self._report(self.replica.coming_version, partitions)

    async def confirm_drops(self, partition: Partition) -> None:
        """Report, before a partition is served, that it has dropped its offsets in deleted topics; wait for the ack."""
        reported = None
        # offsets in topics that are deleted meanwhile are dropped, and reported, after this
        while not self._has_undropped_offsets(partition):
            # it has dropped offsets in the topics that are being deleted, too
            version = max(self.replica.version, self._dropped_version)
            if version == reported:
                return
            reported = version
            await wait_for_ticket_end(self._report(version, [partition]))

    def _report(self, version: int, partitions: Sequence[Partition]) -> DurabilityTicket:
        """Report that partitions hold no offsets in topics deleted up to a version; the ticket ends with the ack."""
        self._number += 1
        ticket = self._reports[self._number] = DurabilityTicket(NO_PARTITION, self._number)
        self._send(OffsetsDropped(version, partitions, self._number))
        return ticket

    def end_report_ticket(self, message: OffsetDropReportStored) -> None:
        """End the ticket of a report that the supervisor has stored."""
        end_tickets([self._reports.pop(message.number)])
