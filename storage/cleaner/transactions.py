# SPDX-License-Identifier: Apache-2.0
"""What cleaning has to know about the transactions in a log (Kafka's CleanedTransactionMetadata).

We keep no index of aborted transactions: one walk over the batches' headers shows which ones were, where the
first one that is still open begins, and what each producer wrote last.
"""

from bisect import bisect_right
from operator import itemgetter
from typing import Final

from protocol.names import Offset
from storage.format.batch_format import Batch
from storage.format.markers import ABORT, ENDS, marker_type

PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""Kafka's `producer.id.expiration.ms`: for so long after its last batch a producer is known."""


class _Producer:
    """What one producer wrote last."""

    __slots__ = ("epoch", "last_data_offset", "timestamp")

    def __init__(self) -> None:
        self.epoch = -1
        self.last_data_offset = Offset(-1)
        self.timestamp = -1


class CleanedTransactions:
    """All batches of a range are shown to `scan`, in order; then all again to `on_data` and `on_marker`."""

    def __init__(self) -> None:
        self._open: dict[int, Offset] = {}
        # By producer: first offset and that of the marker of each aborted transaction, in order.
        self._aborted: dict[int, list[tuple[Offset, Offset]]] = {}
        self._producers: dict[int, _Producer] = {}
        self._seen: set[int] = set()

    # --- the first walk ---

    def scan(self, batch: Batch) -> None:
        """Take note of a batch. Raises CorruptBatch for a marker that cannot be read."""
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
        """Where the first transaction without a marker begins; `end_offset` when there is none."""
        return min(self._open.values(), default=end_offset)

    # --- the second walk ---

    def restart(self) -> None:
        """Begin another walk over the same batches."""
        self._seen.clear()

    def on_data(self, batch: Batch) -> bool:
        """Whether this batch belongs to an aborted transaction, and so can go."""
        if not batch.is_transactional:
            return False
        self._seen.add(batch.producer_id)
        aborted = self._aborted.get(batch.producer_id, ())
        index = bisect_right(aborted, batch.base_offset, key=itemgetter(0))
        return index > 0 and batch.base_offset <= aborted[index - 1][1]

    def on_marker(self, batch: Batch) -> bool:
        """Whether nothing is left of the transaction that this marker ends, so that it can go, too."""
        if not batch.count:
            return True
        if marker_type(batch) not in ENDS:
            return False
        seen = batch.producer_id in self._seen
        self._seen.discard(batch.producer_id)
        return not seen

    def is_last_of_producer(self, batch: Batch, now_ms: int) -> bool:
        """Whether a broker knows the state of the producer from this batch, so that it stays, if only empty."""
        producer = self._producers.get(batch.producer_id)
        if producer is None or now_ms - producer.timestamp >= PRODUCER_EXPIRATION_MS:
            return False
        if producer.last_data_offset >= 0:
            return batch.last_offset == producer.last_data_offset
        return batch.is_control and batch.producer_epoch == producer.epoch
