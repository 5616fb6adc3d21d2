# SPDX-License-Identifier: Apache-2.0
"""Reads a log for clients, as a broker does for consumers: Fetch and ListOffsets of one partition.

The caller ensures that the log does not change during a call, but may change it between two: a segment that was
compacted meanwhile is found again by its offsets. A client may read up to the end of the segments; a client that reads
committed data only up to the first open transaction (the last stable offset).
"""

import enum
from bisect import bisect_right
from collections import OrderedDict
from operator import itemgetter
from typing import Final, NamedTuple

from protocol.frozen_struct import FrozenStruct
from protocol.newtypes import LeaderEpoch, Offset, Partition
from storage.errors import CorruptBatch, CorruptLog
from storage.format.batch import iter_records, read_unchecked_batch
from storage.format.batch_format import EXTENT_BYTES, batch_extent
from storage.partition.log import PartitionLog
from storage.partition.segment import Segment
from storage.partition.transaction_index import AbortedTransaction, InMemoryTransactionIndex

READ_BYTES_MAX: Final = 1 << 20
"""The most bytes that are read at once, except for a larger batch."""
PLACES_MAX: Final = 1_000
"""The number of readers that continue at a remembered position, without a search in an index."""

NO_TIMESTAMP: Final = -1
NO_OFFSET: Final = Offset(-1)
NO_EPOCH: Final = LeaderEpoch(-1)


class EmptyReadReason(enum.Enum):
    """The reason why a read found nothing."""

    OUT_OF_RANGE = "out of range"
    """The log does not hold this offset, or not any more."""
    NEGATIVE_SIZE = "negative size"
    """A negative number of bytes was requested of a log that has some."""
    NOT_YET = "not yet"
    """Only a part of the log was searched for transactions; the caller must try again."""


class FetchQuery(FrozenStruct, frozen=True):
    """The request of a fetch for one partition."""

    partition: Partition
    offset: Offset
    max_bytes: int
    committed: bool = False
    """True if the read ends before the first open transaction, and reports aborted ones."""
    last_epoch: LeaderEpoch = NO_EPOCH
    """The leader epoch of the last batch that the client has read (KIP-595)."""
    leader_epoch: LeaderEpoch = LeaderEpoch(0)
    """The epoch of the current leader, which may have written nothing yet."""


class ReadResult(FrozenStruct, frozen=True):
    """The whole batches of a read, unchanged from disk, and the partition's state for the client."""

    records: bytes
    start_offset: Offset
    end_offset: Offset
    """The high watermark."""
    stable_offset: Offset
    aborted: tuple[AbortedTransaction, ...] = ()
    diverging: tuple[LeaderEpoch, Offset] | None = None
    """The epoch up to which log and client agree, and its end offset; None if they agree entirely."""
    is_cut: bool = False
    """True if our own bounds kept the read from returning more."""


class OffsetSpec(enum.Enum):
    """The kinds of offset that ListOffsets can request."""

    START = "start"
    END = "end"
    NEWEST = "newest"
    """The record with the largest timestamp."""
    TIME = "time"


class OffsetQuery(FrozenStruct, frozen=True):
    """The request of ListOffsets for one partition."""

    partition: Partition
    spec: OffsetSpec
    timestamp: int
    """The time in milliseconds; used for OffsetSpec.TIME only."""
    committed: bool
    leader_epoch: LeaderEpoch


class TimestampAndOffset(NamedTuple):
    """A place in a partition, in the form of ListOffsets; all fields are -1 if there is none."""

    timestamp: int
    offset: Offset
    leader_epoch: LeaderEpoch


NOWHERE: Final = TimestampAndOffset(NO_TIMESTAMP, NO_OFFSET, NO_EPOCH)


class LogReader:
    """Reads logs; remembers where the reads of each ended, and its transactions. For one thread at a time."""

    def __init__(self, read_bytes_max: int = READ_BYTES_MAX) -> None:
        self._read_bytes_max = read_bytes_max
        self._places: OrderedDict[tuple[Partition, Offset], tuple[Segment, int]] = OrderedDict()
        self._transactions: dict[Partition, tuple[PartitionLog, InMemoryTransactionIndex]] = {}

    # --- Fetch ---

    def fetch(
        self, log: PartitionLog, wanted: FetchQuery, left_bytes: int, *, at_least_one: bool
    ) -> ReadResult | EmptyReadReason:
        """Read batches from the one that holds the wanted offset on, at most `left_bytes` and 1 MiB.

        With `at_least_one` the first batch is returned however long it is. Raises CorruptLog and OSError.
        """
        transactions = self._transactions_of(log)
        if transactions is None:
            return EmptyReadReason.NOT_YET
        start_offset, end_offset = log.start_offset, log.end_offset
        first_open = transactions.first_unstable_offset
        stable_offset = end_offset if first_open is None else first_open
        if wanted.last_epoch != NO_EPOCH:
            agreed = log.leader_epochs().find_epoch_end(wanted.last_epoch, wanted.leader_epoch, end_offset)
            if agreed is None or wanted.offset < start_offset:
                return EmptyReadReason.OUT_OF_RANGE
            if agreed[0] < wanted.last_epoch or agreed[1] < wanted.offset:
                return ReadResult(b"", start_offset, end_offset, stable_offset, diverging=agreed)
        if not start_offset <= wanted.offset <= end_offset:
            return EmptyReadReason.OUT_OF_RANGE
        bound = stable_offset if wanted.committed else end_offset
        max_bytes = min(wanted.max_bytes, left_bytes)
        if max_bytes < 0 and wanted.offset < bound:
            return EmptyReadReason.NEGATIVE_SIZE
        records, next_offset, is_cut = self._read(
            log, wanted.offset, bound, max_bytes, at_least_one=at_least_one
        )
        aborted = tuple(transactions.find_aborted(wanted.offset, next_offset)) if wanted.committed else ()
        return ReadResult(records, start_offset, end_offset, stable_offset, aborted, is_cut=is_cut)

    def _transactions_of(self, log: PartitionLog) -> InMemoryTransactionIndex | None:
        """Return a log's transactions; search a part of the log, and return None if that is not yet all of it."""
        known = self._transactions.get(log.partition)
        if known is None or known[0] is not log:
            known = self._transactions[log.partition] = log, InMemoryTransactionIndex()
        return known[1] if known[1].index_more_and_check_complete(log, self._read_bytes_max) else None

    def _read(
        self, log: PartitionLog, offset: Offset, bound: Offset, max_bytes: int, *, at_least_one: bool
    ) -> tuple[bytes, Offset, bool]:
        """Return whole batches that end before `bound`, the offset behind them, and whether our bounds cut them."""
        if offset >= bound:
            return b"", offset, False
        segment, position = self._find(log, offset)
        if position >= segment.size_bytes:
            return b"", offset, False
        at_once = min(max_bytes, self._read_bytes_max)
        data = segment.read(position, max(at_once, EXTENT_BYTES))
        extent = batch_extent(data, 0) if len(data) >= EXTENT_BYTES else None
        if extent is None:
            raise CorruptLog(segment.path, "no whole record batch starts here", position=position)
        if extent.base_offset >= bound:
            return b"", offset, False  # compaction has left a gap up to the bound
        if extent.end > at_once:
            if extent.end > max_bytes and not at_least_one:
                return b"", offset, False
            data = segment.read(position, extent.end)
        end, next_offset = _whole_batches(data, bound)
        if not end:
            raise CorruptLog(segment.path, "a batch ends behind the log's end", position=position)
        is_rolled = segment is not log.segments[-1]
        if is_rolled:
            segment.close()
        self._remember(log.partition, next_offset, segment, position + end)
        is_cut = next_offset < bound and (
            at_once < max_bytes or (is_rolled and position + end >= segment.size_bytes)
        )
        return data[:end], next_offset, is_cut

    def _find(self, log: PartitionLog, offset: Offset) -> tuple[Segment, int]:
        """Return the segment and position of the batch that holds an offset, or of the next existing batch."""
        segments = log.segments
        index = max(bisect_right(segments, offset, key=lambda s: s.base_offset) - 1, 0)
        segment = segments[index]
        place = self._places.pop((log.partition, offset), None)
        near = place[1] if place is not None and place[0] is segment else 0
        position = segment.find(offset, near)
        # Compaction leaves gaps, at the end of a segment as well.
        while position >= segment.size_bytes and index + 1 < len(segments):
            index += 1
            segment, position = segments[index], 0
        return segment, position

    def _remember(self, partition: Partition, offset: Offset, segment: Segment, position: int) -> None:
        self._places[partition, offset] = segment, position
        if len(self._places) > PLACES_MAX:
            self._places.popitem(last=False)

    # --- ListOffsets ---

    def resolve_list_offsets_query(
        self, log: PartitionLog, sought: OffsetQuery
    ) -> TimestampAndOffset | EmptyReadReason:
        """Return the place that a ListOffsets query seeks; all -1 if there is none, or it may not be seen yet.

        Raises CorruptLog and OSError.
        """
        bound = log.end_offset
        if sought.committed:
            transactions = self._transactions_of(log)
            if transactions is None:
                return EmptyReadReason.NOT_YET
            first_open = transactions.first_unstable_offset
            bound = bound if first_open is None else first_open
        if sought.spec is OffsetSpec.END:
            return TimestampAndOffset(NO_TIMESTAMP, bound, sought.leader_epoch)
        if sought.spec is OffsetSpec.START:
            return _start(log, sought.leader_epoch)
        found = _newest(log) if sought.spec is OffsetSpec.NEWEST else _at_time(log, sought.timestamp)
        return found if found.offset < bound else NOWHERE


def _start(log: PartitionLog, leader_epoch: LeaderEpoch) -> TimestampAndOffset:
    """Return the start of the log, and the leader epoch of its batch."""
    epochs = log.leader_epochs()
    epoch = epochs.epoch_at(log.start_offset) if epochs.entries else leader_epoch
    return TimestampAndOffset(NO_TIMESTAMP, log.start_offset, epoch)


def _newest(log: PartitionLog) -> TimestampAndOffset:
    """Return the first record with the largest timestamp of the log (KIP-734)."""
    latest = [(*segment.index.find_max_timestamp_batch(segment), segment) for segment in log.segments]
    timestamp, offset, segment = max(latest, key=itemgetter(0), default=(NO_TIMESTAMP, NO_OFFSET, None))
    if segment is None or timestamp == NO_TIMESTAMP:
        return NOWHERE
    return _first_at(segment, segment.find(offset), timestamp, log.start_offset)


def _at_time(log: PartitionLog, timestamp: int) -> TimestampAndOffset:
    """Return the first record that is not older than a time."""
    for segment in log.segments:
        if segment.index.find_max_timestamp_batch(segment)[0] >= timestamp:
            position = segment.position_before(segment.index.offset_before_timestamp(timestamp))
            found = _first_at(segment, position, timestamp, log.start_offset)
            if found is not NOWHERE:
                return found
    return NOWHERE


def _whole_batches(data: bytes, bound: Offset) -> tuple[int, Offset]:
    """Return the end of the last whole batch in `data` with only offsets before `bound`, and the offset after it."""
    pos, next_offset = 0, Offset(0)
    while pos + EXTENT_BYTES <= len(data):
        extent = batch_extent(data, pos)
        if extent is None or extent.end > len(data) or extent.next_offset > bound:
            break
        next_offset, pos = extent.next_offset, extent.end
    return pos, next_offset


def _first_at(segment: Segment, position: int, timestamp: int, start_offset: Offset) -> TimestampAndOffset:
    """Return the first record from `position` on that is not older than `timestamp`, nor before the log's start."""
    for batch in segment.summaries(position):
        if batch.max_timestamp < timestamp or batch.next_offset <= start_offset:
            continue
        try:
            for offset, time, _, _ in iter_records(
                read_unchecked_batch(segment.read(batch.position, batch.size_bytes))
            ):
                if time >= timestamp and offset >= start_offset:
                    return TimestampAndOffset(time, offset, batch.leader_epoch)
        except CorruptBatch as error:
            raise CorruptLog(segment.path, error.reason, position=batch.position) from error
    return NOWHERE
