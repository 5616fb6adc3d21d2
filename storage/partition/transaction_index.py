# SPDX-License-Identifier: Apache-2.0
"""An index of the aborted transactions of a log, and of the start of its first open one.

Kafka keeps these in `.txnindex` files and snapshots of its producers. We find them by a walk over the headers of the
batches, in slices, once for each log and then over the batches appended since. If compaction has changed a log with
transactions the walk starts again: a transaction whose marker is gone must not be reported any more.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from protocol.newtypes import Offset
from storage.errors import CorruptBatch, CorruptLog
from storage.format.batch import read_unchecked_batch
from storage.format.batch_format import (
    EXTENT_BYTES,
    Batch,
    batch_extent,
    is_transactional,
)
from storage.format.markers import ABORT, ENDS, marker_type
from storage.partition.log import PartitionLog
from storage.partition.segment import Segment

READ_BYTES: Final = 1 << 20


class AbortedTransaction(NamedTuple):
    """An aborted transaction: its first offset, and its marker's offset."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset


class InMemoryTransactionIndex:
    """The transactions of one log, as far as `index_more_of_log` has read it."""

    __slots__ = ("_aborted", "_open", "_position", "_seen")

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._aborted: list[AbortedTransaction] = []  # in the order of their markers
        self._open: dict[int, Offset] = {}  # first offset by producer id
        self._seen: list[Segment] = []  # the last one up to `_position`
        self._position = 0

    @property
    def first_unstable_offset(self) -> Offset | None:
        """The first offset of the oldest transaction that has not ended."""
        return min(self._open.values(), default=None)

    def find_aborted(self, start_offset: Offset, end_offset: Offset) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap `start_offset` to before `end_offset`, by marker offset."""
        return [
            each
            for each in self._aborted
            if each.last_offset >= start_offset and each.first_offset < end_offset
        ]

    def index_more_and_check_complete(self, log: PartitionLog, max_bytes: int) -> bool:
        """Read about `max_bytes` more of the log; return whether all of the log has been read.

        Raises CorruptLog and OSError.
        """
        segments = log.segments
        self._follow(segments)
        looked_at = 0
        while not self._is_at_end(segments):
            if looked_at >= max_bytes:
                return False
            if not self._seen or self._position >= self._seen[-1].size_bytes:
                self._begin(segments[len(self._seen)])
            else:
                taken = self._look_at(self._seen[-1])
                self._position += taken
                looked_at += taken
        return True

    def _is_at_end(self, segments: Sequence[Segment]) -> bool:
        if len(self._seen) < len(segments):
            return False
        return not segments or self._position >= segments[-1].size_bytes

    def _begin(self, segment: Segment) -> None:
        if self._seen:
            self._seen[-1].close()  # rolled segments are rarely read
        self._seen.append(segment)
        self._position = 0

    def _follow(self, segments: Sequence[Segment]) -> None:
        """Follow a compaction, which may have replaced segments that were already read."""
        count = len(self._seen)
        if list(segments[:count]) == self._seen:
            return
        if self._aborted or self._open or self._seen[-1] not in segments:
            self._forget()
        else:
            self._seen = list(segments[: segments.index(self._seen[-1]) + 1])

    def _look_at(self, segment: Segment) -> int:
        """Note the next batches; return their size in bytes, at least that of one."""
        data = segment.read(self._position, READ_BYTES)
        taken = self._take(segment, data)
        if not taken:
            extent = batch_extent(data, 0) if len(data) >= EXTENT_BYTES else None
            if extent is not None and self._position + extent.end <= segment.size_bytes:
                taken = self._take(segment, segment.read(self._position, extent.end))
        if not taken:
            raise CorruptLog(segment.path, "no whole record batch starts here", position=self._position)
        return taken

    def _take(self, segment: Segment, data: bytes) -> int:
        pos, size = 0, len(data)
        while pos + EXTENT_BYTES <= size:
            extent = batch_extent(data, pos)
            if extent is None or extent.end > size:
                break
            if is_transactional(data, pos):
                try:
                    self._note(read_unchecked_batch(data, pos))
                except CorruptBatch as error:
                    raise CorruptLog(segment.path, error.reason, position=self._position + pos) from error
            pos = extent.end
        return pos

    def _note(self, batch: Batch) -> None:
        if not batch.is_control:
            self._open.setdefault(batch.producer_id, batch.base_offset)
            return
        kind = marker_type(batch)
        if kind not in ENDS:
            return
        first_offset = self._open.pop(batch.producer_id, None)
        if kind == ABORT and first_offset is not None:
            self._aborted.append(AbortedTransaction(batch.producer_id, first_offset, batch.last_offset))
