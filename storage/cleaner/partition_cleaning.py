# SPDX-License-Identifier: Apache-2.0
"""Cleans the segments of one partition into new files in the same directory (Kafka's Cleaner.doClean).

Three walks over the segments: the headers show which transactions were aborted and where the first open one
begins; the dirty part fills the offset map, as far as it has room; and all segments before the end of the
map are written again without superseded records. No file that others read is changed here.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from protocol.compiled_struct import copy_with_fields
from protocol.newtypes import Offset
from storage.cleaner.filtering import encode_empty_batch, filter_batch, filter_old_message
from storage.cleaner.offset_map import OffsetMap
from storage.cleaner.transactions import CleanedTransactionMetadata
from storage.disk.filesystem import FileSystem
from storage.disk.layout import CLEANED_SUFFIX, segment_name
from storage.errors import CorruptBatch, CorruptLog
from storage.format.batch import iter_records, read_checked_batch
from storage.format.batch_format import (
    EXTENT_BYTES,
    MAGIC,
    MAGIC_AT,
    NONE,
    Batch,
    batch_extent,
    has_producer,
    record_count,
    summarize,
)
from storage.partition.index import summarize_batches
from storage.partition.segment import BatchesForOneWrite, Segment

_CHUNK_BYTES: Final = 1 << 20


class OldSegment(msgspec.Struct, frozen=True):
    """A segment to clean, with its size when the job was made; it is not written to any more."""

    base_offset: Offset
    size_bytes: int


class CleaningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job to clean all segments of a partition up to the offset `bound`. Sizes in bytes."""

    directory: str
    groups: list[list[OldSegment]]
    """The segments to merge: each group becomes one; in order, without a gap from the log's first on."""
    first_dirty_offset: Offset
    bound: Offset
    now_ms: int
    delete_retention_ms: int
    dedupe_buffer_bytes: int
    io_bytes_per_second: float | None
    index_interval_bytes: int


class ReplacementSegment(msgspec.Struct, frozen=True):
    """A new segment that replaces those at `base_offsets`, on disk as `.cleaned` under the first of them."""

    base_offsets: list[Offset]
    bytes_before: int
    bytes_after: int
    records_before: int
    records_after: int


class CleaningResult(msgspec.Struct, frozen=True):
    """The result of a job: the log is clean up to `end_offset`, once all segments are swapped in, in order."""

    end_offset: Offset
    segments: list[ReplacementSegment]


class CleaningAborted(Exception):
    """The job's result is not wanted any more."""


class OffsetMapTooSmall(ValueError):
    """Not even one batch fits in the offset map: `log.cleaner.dedupe.buffer.size` must be larger."""


class Throttle:
    """Keeps the sum of reads and writes within a rate by `sleep`; `now_s` is monotonic."""

    def __init__(
        self,
        bytes_per_second: float | None,
        still_wanted: Callable[[], bool],
        now_s: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._rate = bytes_per_second
        self._still_wanted = still_wanted
        self._now_s = now_s
        self._sleep = sleep
        self._began_s = now_s()
        self._bytes = 0

    def maybe_throttle(self, size: int) -> None:
        """Count bytes that are read or written, and sleep if they are too many. Raises CleaningAborted."""
        if not self._still_wanted():
            raise CleaningAborted
        self._bytes += size
        if self._rate is not None:
            early = self._bytes / self._rate - (self._now_s() - self._began_s)
            if early > 0:
                self._sleep(early)


def write_cleaned_segments(
    fs: FileSystem, job: CleaningJob, throttle: Throttle | None = None
) -> CleaningResult:
    """Run a job. Its `.cleaned` files are on disk on return, but the caller must sync the directory.

    Without a `throttle` it runs at full speed. Raises CleaningAborted if the throttle reports that the result is not
    wanted any more, CorruptLog for damage, OffsetMapTooSmall, and OSError.
    """
    return CleanedSegmentsWriter(fs, job, throttle).write_all()


class CleanedSegmentsWriter:
    """Runs one job. `map` and `transactions` hold its knowledge of the log."""

    def __init__(self, fs: FileSystem, job: CleaningJob, throttle: Throttle | None = None) -> None:
        self._fs = fs
        self._job = job
        self._throttle = throttle or Throttle(None, lambda: True, lambda: 0.0, lambda _s: None)
        self._directory = Path(job.directory)
        self._bound = job.bound
        self.map = OffsetMap(job.dedupe_buffer_bytes)
        self.transactions = CleanedTransactionMetadata()
        self._horizon: int | None = None

    def write_all(self) -> CleaningResult:
        """Run the job; see `write_cleaned_segments`."""
        groups = self._find_transactions()
        sources = [source for group in groups for source in group]
        if self._bound <= self._job.first_dirty_offset:
            return CleaningResult(self._job.first_dirty_offset, [])
        full = self._fill_map(sources)
        end_offset = Offset(self.map.latest_offset + 1) if full else self._bound
        if end_offset <= self._job.first_dirty_offset:
            raise OffsetMapTooSmall(
                f"{self._job.dedupe_buffer_bytes} bytes do not hold the keys of one batch"
            )
        self.map.latest_offset = Offset(end_offset - 1)
        self.transactions.begin_next_walk()
        cleaned = [self._clean_group(group) for group in groups if group[0].base_offset < end_offset]
        return CleaningResult(end_offset, cleaned)

    # --- the three walks ---

    def _find_transactions(self) -> list[list[OldSegment]]:
        """Scan the transactions; return the segments before the first that is still open."""
        groups = self._job.groups
        for group in groups:
            for source in group:
                for position, batch in self._batches(source, only_of_producers=True):
                    with self._damage_at(source, position):
                        self.transactions.scan(batch)
        stable = self.transactions.last_stable_offset(self._bound)
        if stable >= self._bound:
            return groups
        # As in Kafka, segments are cleaned whole or not at all.
        self._bound = max(
            (source.base_offset for group in groups for source in group if source.base_offset <= stable),
            default=stable,
        )
        kept = [[source for source in group if source.base_offset < self._bound] for group in groups]
        return [group for group in kept if group]

    def _fill_map(self, sources: list[OldSegment]) -> bool:
        """Note the keys of the dirty part; return True if there was no room for all."""
        start = self._job.first_dirty_offset
        self.transactions.begin_next_walk()
        self.map.latest_offset = Offset(start - 1)
        for index, source in enumerate(sources):
            if index + 1 < len(sources) and sources[index + 1].base_offset <= start:
                continue
            for position, batch in self._batches(source):
                if batch.last_offset < start:
                    continue
                if not batch.is_control and not self.transactions.check_data_batch_aborted(batch):
                    with self._damage_at(source, position):
                        if not self._note(batch, start):
                            return True
                self.map.latest_offset = batch.last_offset
        return False

    def _note(self, batch: Batch, start: Offset) -> bool:
        put = self.map.put
        for offset, _, key, _ in iter_records(batch):
            if key is not None and offset >= start and not put(key, offset):
                return False
        return True

    def _clean_group(self, group: list[OldSegment]) -> ReplacementSegment:
        base_offset = group[0].base_offset
        output = Segment(
            self._fs,
            self._directory,
            base_offset,
            create=True,
            index_interval_bytes=self._job.index_interval_bytes,
            suffix=CLEANED_SUFFIX,
        )
        output.cut(0)
        before = after = 0
        run = BatchesForOneWrite()
        for source in group:
            for position, batch in self._batches(source):
                with self._damage_at(source, position):
                    data = self._filtered(batch)
                before += batch.count
                after += _add(run, data)
                if run.size_bytes >= _CHUNK_BYTES:
                    self._write(output, run)
                    run = BatchesForOneWrite()
        self._write(output, run)
        output.index.write(output, seal=True, sync=True)
        output.fsync()
        output.close()
        sizes = sum(source.size_bytes for source in group)
        offsets = [source.base_offset for source in group]
        return ReplacementSegment(offsets, sizes, output.size_bytes, before, after)

    def _write(self, output: Segment, run: BatchesForOneWrite) -> None:
        if run.batches:
            self._throttle.maybe_throttle(run.size_bytes)
            output.write(run)

    # --- one batch ---

    def _filtered(self, batch: Batch) -> bytes | None:
        """Return the rest of a batch, or None if nothing is left (Cleaner.cleanInto)."""
        if batch.magic < MAGIC:
            return filter_old_message(batch, lambda *record: self._keeps_old(batch, *record))
        job, transactions = self._job, self.transactions
        self._horizon = batch.delete_horizon
        past_horizon = self._horizon is not None and self._horizon <= job.now_ms
        new_horizon = job.now_ms + job.delete_retention_ms
        data = None
        if batch.is_control:
            is_needless = transactions.check_marker_discardable(batch)
            if not (is_needless and past_horizon):
                data = filter_batch(
                    batch, _keep_all, new_horizon=new_horizon, is_marker_of_nothing=is_needless
                )
        elif not transactions.check_data_batch_aborted(batch):
            data = filter_batch(batch, self._keeps, new_horizon=new_horizon)
        if data is None and (
            # A reader of the cleaned part must see where it ends.
            batch.next_offset == self._bound
            or (batch.producer_id >= 0 and transactions.is_last_of_producer(batch, job.now_ms))
        ):
            return encode_empty_batch(batch)
        return data

    def _keeps(self, offset: Offset, key: bytes | None, is_tombstone: bool) -> bool:
        """Return whether a record stays (Cleaner.shouldRetainRecord)."""
        if offset > self.map.latest_offset:
            return True
        # As in Kafka a record without a key, which belongs to no group, goes.
        if key is None or not self.map.is_newest(key, offset):
            return False
        return not is_tombstone or self._horizon is None or self._job.now_ms < self._horizon

    def _keeps_old(self, message: Batch, offset: Offset, key: bytes | None, is_tombstone: bool) -> bool:
        """Return whether a record before v2 stays; a tombstone's own time stands for its missing horizon."""
        self._horizon = None
        if not self._keeps(offset, key, is_tombstone):
            return False
        is_young = message.base_timestamp > self._job.now_ms - self._job.delete_retention_ms
        return not is_tombstone or offset >= self._job.first_dirty_offset or is_young

    # --- reading ---

    def _batches(self, source: OldSegment, *, only_of_producers: bool = False) -> Iterator[tuple[int, Batch]]:
        """Yield the checked batches of a segment and their positions; perhaps only those with a producer id."""
        path = self._directory / segment_name(source.base_offset)
        file = self._fs.open_read(path)
        try:
            position, size = 0, _CHUNK_BYTES
            while position < source.size_bytes:
                data = file.pread(min(size, source.size_bytes - position), position)
                self._throttle.maybe_throttle(len(data))
                pos = 0
                while pos + EXTENT_BYTES <= len(data):
                    extent = batch_extent(data, pos)
                    if extent is None:
                        raise CorruptLog(path, "no record batch starts here", position=position + pos)
                    end = extent.end
                    if end > len(data):
                        size = max(_CHUNK_BYTES, end - pos)
                        break
                    if not only_of_producers or has_producer(data, pos):
                        try:
                            batch = read_checked_batch(data, pos)
                        except CorruptBatch as error:
                            raise CorruptLog(path, error.reason, position=position + pos) from error
                        yield position + pos, batch
                    pos = end
                if not pos and position + len(data) >= source.size_bytes:
                    raise CorruptLog(path, "it ends within a record batch", position=position)
                if not data:
                    raise CorruptLog(path, f"it ends before byte {source.size_bytes}", position=position)
                position += pos
        finally:
            file.close()

    @contextmanager
    def _damage_at(self, source: OldSegment, position: int) -> Iterator[None]:
        """Raise a CorruptBatch from the body as CorruptLog, at that position."""
        try:
            yield
        except CorruptBatch as error:
            path = self._directory / segment_name(source.base_offset)
            raise CorruptLog(path, error.reason, position=position) from error


def _keep_all(_offset: Offset, _key: bytes | None, _is_tombstone: bool) -> bool:
    return True


def _add(run: BatchesForOneWrite, data: bytes | None) -> int:
    """Add the rest of a batch to `run`; return the number of its records."""
    if data is None:
        return 0
    if data[MAGIC_AT] == MAGIC:
        count = record_count(data)
        summary = summarize(data)
        # An empty batch keeps its time, but no record has that time any more.
        run.add(data, summary if count else copy_with_fields(summary, max_timestamp=NONE))
        return count
    # A wrapper may have become several messages.
    messages = list(summarize_batches(data, 0))
    for message in messages:
        run.add(data[message.position : message.end_position], message)
    return len(messages)
