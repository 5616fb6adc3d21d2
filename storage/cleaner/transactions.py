# SPDX-License-Identifier: Apache-2.0
"""The facts about a log's transactions that cleaning needs (Kafka's CleanedTransactionMetadata).

We keep no index of aborted transactions: one walk over the batches' headers finds them, the start of the first
transaction that is still open, and each producer's last batch.
"""

from bisect import bisect_right
from operator import itemgetter
from typing import Final

from protocol.newtypes import Offset
from storage.format.batch_format import Batch
from storage.format.markers import ABORT, ENDS, marker_type

PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""Kafka's `producer.id.expiration.ms`: the time for which a producer is known after its last batch."""


class _Producer:
    """The last batch of one producer."""

    __slots__ = ("epoch", "last_data_offset", "timestamp")

    def __init__(self) -> None:
        self.epoch = -1
        self.last_data_offset = Offset(-1)
        self.timestamp = -1


class CleanedTransactionMetadata:
    """The transactions of a range of batches, which are passed in order to `scan`, and then to the checks."""

    def __init__(self) -> None:
        self._open: dict[int, Offset] = {}
        # By producer: the first offset and the marker's offset of each aborted transaction, in order.
        self._aborted: dict[int, list[tuple[Offset, Offset]]] = {}
        self._producers: dict[int, _Producer] = {}
        self._seen: set[int] = set()

    # --- the first walk ---

    def scan(self, batch: Batch) -> None:
        """Note a batch of the first walk. Raises CorruptBatch for a marker that cannot be read."""
        if batch.producer_id < 0:
            return
        producer = self._producers.setdefault(batch.producer_id, _Producer())
        producer.epoch = batch.producer_epoch
        producer.timestamp = max(producer.timestamp, batch.max_timestamp)
        if not batch.is_control:
            producer.last_data_offset = batch.last_offset
            if batch.is_transactional:
                self._open.setdefault(batch.producer_id, batch.base_offset)
            return
        kind = marker_type(batch)
        if kind in ENDS:
            first = self._open.pop(batch.producer_id, None)
            if kind == ABORT and first is not None:
                self._aborted.setdefault(batch.producer_id, []).append((first, batch.last_offset))

    def last_stable_offset(self, end_offset: Offset) -> Offset:
        """Return the start of the first transaction without a marker; `end_offset` if there is none."""
        return min(self._open.values(), default=end_offset)

    # --- the second walk ---

    def begin_next_walk(self) -> None:
        """Begin another walk over the same batches."""
        self._seen.clear()

    def check_data_batch_aborted(self, batch: Batch) -> bool:
        """Return whether this batch belongs to an aborted transaction, and so can go."""
        if not batch.is_transactional:
            return False
        self._seen.add(batch.producer_id)
        aborted = self._aborted.get(batch.producer_id, ())
        index = bisect_right(aborted, batch.base_offset, key=itemgetter(0))
        return index > 0 and batch.base_offset <= aborted[index - 1][1]

    def check_marker_discardable(self, batch: Batch) -> bool:
        """Return whether the marker can go, because nothing is left of its transaction."""
        if not batch.count:
            return True
        if marker_type(batch) not in ENDS:
            return False
        seen = batch.producer_id in self._seen
        self._seen.discard(batch.producer_id)
        return not seen

    def is_last_of_producer(self, batch: Batch, now_ms: int) -> bool:
        """Return whether a broker restores the producer's state from this batch; if so it must stay, even empty."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or now_ms - producer.timestamp >= PRODUCER_EXPIRATION_MS:
            return False
        if producer.last_data_offset >= 0:
            return batch.last_offset == producer.last_data_offset
        return batch.is_control and batch.producer_epoch == producer.epoch
