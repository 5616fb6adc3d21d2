# SPDX-License-Identifier: Apache-2.0
"""The queues of batches that are safe in the journal and wait for their segments."""

from collections.abc import Sequence

from protocol.newtypes import Partition
from storage.journal.journal import Entry


class PendingBatches:
    """The queues of all partitions. Every method is one short step, which the caller's lock makes atomic."""

    __slots__ = ("_queues", "size_bytes")

    def __init__(self) -> None:
        self._queues: dict[Partition, list[bytes]] = {}
        self.size_bytes = 0
        """The bytes of all waiting batches; those taken count until `finish_segment_write`."""

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._queues

    def add(self, entries: Sequence[Entry]) -> None:
        """Queue the batches of a frame."""
        queues = self._queues
        size = 0
        for entry in entries:
            size += len(entry.batch)
            queue = queues.get(entry.partition)
            if queue is None:
                queues[entry.partition] = [entry.batch]
            else:
                queue.append(entry.batch)
        self.size_bytes += size

    def longest_waiting_partition(self) -> Partition | None:
        """Return the partition that has waited longest, or None."""
        return next(iter(self._queues), None)

    def take_all_batches(self, partition: Partition) -> list[bytes]:
        """Return and remove a partition's queue; call `finish_segment_write` once its batches are in the segment."""
        return self._queues.pop(partition, [])

    def finish_segment_write(self, partition: Partition, batches: Sequence[bytes], count: int) -> int:
        """Note that the first `count` batches taken are in their segment; queue the others again, in front.

        Returns the bytes of those written.
        """
        size = sum(map(len, batches[:count]))
        self.size_bytes -= size
        if count < len(batches):
            self._queues[partition] = [*batches[count:], *self._queues.get(partition, ())]
        return size
