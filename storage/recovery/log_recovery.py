# SPDX-License-Identifier: Apache-2.0
"""Recovers one partition's log after a stop or a crash: finds its good part, and adds the journals' batches.

Up to the recovery point everything is known to be on disk, and anything unreadable is damage. Behind it every
whole batch without a gap counts, the journals' batches are written once more, and a torn tail is cut.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import SegmentPosition
from storage.disk.filesystem import FileSystem, atomic_write
from storage.disk.layout import CUT_SUFFIX, LOG_START_FILE
from storage.errors import CorruptLog
from storage.format.batch import find_whole_batch_start
from storage.format.batch_format import EXTENT_BYTES, base_offset_of, batch_extent, next_offset_of
from storage.journal.journal import Entry
from storage.partition.log import PartitionLog
from storage.partition.segment import ScanResult, Segment


class DiscardedRange(msgspec.Struct, frozen=True):
    """A range of bytes that recovery left out, reported to the operator.

    `saved_as` is the file that keeps the bytes, if they may hold anything readable.
    """

    path: Path
    position: int
    size_bytes: int
    reason: str
    partition: Partition | None = None
    saved_as: Path | None = None


class JournalEntry(msgspec.Struct):
    """A journal's entry, and whether all earlier flushes were synced before it."""

    entry: Entry
    all_synced_before: bool


def recover_log(
    fs: FileSystem,
    log: PartitionLog,
    point: Offset | None,
    hint: SegmentPosition | None = None,
    entries: Sequence[JournalEntry] = (),
    *,
    clean: bool = False,
    as_left: bool = True,
) -> list[DiscardedRange]:
    """Recover one partition's log, which is on disk up to offset `point`, and append the journals' `entries`.

    With `as_left` no broker has written to the log since its list of segments was stored, so the list is true. A
    broker can leave gaps anywhere, because it copies batches from another replica, which may have compacted them.
    Returns the ranges that had to be left out. Does not sync. Raises CorruptLog and OSError, with the log closed.
    """
    cuts: list[DiscardedRange] = []
    try:
        log.load()
        if as_left:
            log.check_against_segment_list()
        else:
            log.remove_segment_list()
        if not clean:
            log.distrust_derived_files(point or Offset(0))
        index, scan = _scan(log, point, hint, gaps=point is None or not as_left)
        _recover_log(fs, log, index, scan, point, entries, cuts)
        if as_left and log.end_offset < log.noted_start:
            log.noted_start = Offset(0)  # these batches were written by us since, and count
        _set_aside_before_start(log, cuts)
    except BaseException:
        log.close_files()
        raise
    return cuts


def log_end_position(log: PartitionLog) -> SegmentPosition | None:
    """Return where a log ends; None if it has no segment."""
    if not log.segments:
        return None
    last = log.segments[-1]
    return SegmentPosition(log.end_offset, last.base_offset, last.size_bytes)


def _scan(
    log: PartitionLog, point: Offset | None, hint: SegmentPosition | None, *, gaps: bool
) -> tuple[int, ScanResult]:
    """Return the index of the segment up to which the log is good, and its scan; `gaps` may be everywhere."""
    segments = log.segments
    if not segments:
        return 0, ScanResult(0, log.noted_start, None)
    durable = point or Offset(0)
    index = 0
    # Segments wholly before the recovery point need no scan.
    while index + 1 < len(segments) and segments[index + 1].base_offset <= durable:
        index += 1
    start = _start(segments[index], durable, hint)
    if start is not None:
        log.set_search_bookmark(segments[index], durable, start.position)
    while True:
        scan = segments[index].verify_batches(verify_from=durable, gaps=gaps, start=start)
        if scan.damage is not None or index + 1 == len(segments):
            return index, scan
        following = segments[index + 1].base_offset
        if scan.next_offset > following or (following > scan.next_offset >= durable and not gaps):
            reason = f"the next segment starts at offset {following}, and not at {scan.next_offset}"
            return index, ScanResult(scan.position, scan.next_offset, reason)
        index += 1
        start = None


def _start(segment: Segment, durable: Offset, hint: SegmentPosition | None) -> ScanResult | None:
    """Return where the scan of a segment can start, if the hint is for this segment and its bytes agree."""
    if hint is None or hint.offset != durable or hint.base_offset != segment.base_offset:
        return None
    if not 0 <= hint.position <= segment.size_bytes:
        return None
    head = segment.read(hint.position, EXTENT_BYTES)
    if head:
        extent = batch_extent(head, 0) if len(head) == EXTENT_BYTES else None
        if extent is None or extent.base_offset != durable:
            return None
    return ScanResult(hint.position, durable, None)


def _recover_log(
    fs: FileSystem,
    log: PartitionLog,
    index: int,
    scan: ScanResult,
    point: Offset | None,
    entries: Sequence[JournalEntry],
    cuts: list[DiscardedRange],
) -> None:
    durable = point or Offset(0)
    log.end_offset = scan.next_offset
    # An offset before the recovery point was durable; one before the log's start no longer counts.
    if scan.next_offset < durable and durable > log.noted_start:
        where = log.segments[index].path if log.segments else log.directory
        reason = scan.damage or "the log ends here"
        raise CorruptLog(where, f"{reason}, and offsets up to {durable} were on disk", position=scan.position)
    log.mark_unsynced(durable)
    batches = _continuation(log, durable, entries, cuts)
    if batches and next_offset_of(batches[-1]) >= scan.next_offset:
        log.truncate_at_position(index, scan.position)
        log.truncate(base_offset_of(batches[0]))
        log.append_all(batches)
    elif scan.damage is not None:
        _cut_tail(fs, log, index, scan, point, cuts)


def _continuation(
    log: PartitionLog, durable: Offset, entries: Sequence[JournalEntry], cuts: list[DiscardedRange]
) -> list[bytes]:
    """Return the journals' batches behind the recovery point; they start within the log or at its end."""
    batches: list[bytes] = []
    end = log.end_offset
    for pending in entries:
        base_offset, batch = pending.entry.base_offset, pending.entry.batch
        if base_offset < durable:
            continue
        if base_offset > end:
            reason = f"the log ends at offset {end}, and its journal goes on at {base_offset}"
            if pending.all_synced_before:
                raise CorruptLog(log.directory, reason)
            # Between two syncs pages reach the disk in any order; these were not acknowledged.
            cuts.append(DiscardedRange(log.directory, 0, len(batch), reason, log.partition))
            break
        if batches and base_offset < end:
            raise CorruptLog(log.directory, f"its journal holds offset {base_offset} twice")
        batches.append(batch)
        end = next_offset_of(batch)
    return batches


def _cut_tail(
    fs: FileSystem,
    log: PartitionLog,
    index: int,
    scan: ScanResult,
    point: Offset | None,
    cuts: list[DiscardedRange],
) -> None:
    segment: Segment = log.segments[index]
    reason = scan.damage or ""
    tail = segment.read(scan.position, segment.size_bytes - scan.position)
    is_last = index + 1 == len(log.segments)
    saved_as = None
    if not is_last or find_whole_batch_start(tail, scan.next_offset) is not None:
        # With a recovery point we know that these bytes were never acknowledged: a power loss between two
        # syncs. Without one they may be anything.
        if point is None:
            raise CorruptLog(segment.path, f"{reason}, and more follows", position=scan.position)
        saved_as = segment.path.with_name(f"{segment.path.name}.{scan.position}{CUT_SUFFIX}")
        atomic_write(fs, saved_as, tail)
    cuts.append(DiscardedRange(segment.path, scan.position, len(tail), reason, log.partition, saved_as))
    cuts += _as_cuts(log, log.set_aside_segments_from(index + 1), reason)
    segment.cut(scan.position)


def _set_aside_before_start(log: PartitionLog, cuts: list[DiscardedRange]) -> None:
    """Leave out a log that ends before it starts (LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd)."""
    if log.end_offset < log.noted_start:
        where = f"and by {LOG_START_FILE} it starts at {log.noted_start}"
        reason = f"the log ends at offset {log.end_offset}, {where}"
        cuts += _as_cuts(log, log.set_aside_all_segments(), reason)


def _as_cuts(log: PartitionLog, segments: Iterable[Segment], reason: str) -> Iterator[DiscardedRange]:
    for segment in segments:
        saved_as = segment.path.with_name(segment.path.name + CUT_SUFFIX)
        yield DiscardedRange(segment.path, 0, segment.size_bytes, reason, log.partition, saved_as)
