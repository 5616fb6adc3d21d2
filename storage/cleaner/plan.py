# SPDX-License-Identifier: Apache-2.0
"""Finds the part of a log that can be cleaned, and how urgent that is (Kafka's LogCleanerManager)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from protocol.newtypes import Offset
from storage.cleaner.partition_cleaning import CleaningJob, OldSegment
from storage.format.batch_format import OFFSET_DELTA_MAX
from storage.partition.rolled_segments import RolledSegments
from storage.partition.segment import Segment

LONG_MAX: Final = 2**63 - 1


class CleanerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the cleaner; sizes in bytes, times in milliseconds, names and defaults as in Kafka."""

    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = LONG_MAX
    dedupe_buffer_bytes: int = 128 << 20
    io_bytes_per_second: float | None = None


class Candidate(msgspec.Struct, frozen=True):
    """A log that could be cleaned."""

    rolled: RolledSegments
    segments: Sequence[Segment]
    """The segments that may be cleaned, from the log's first on."""
    first_dirty_offset: Offset
    bound: Offset
    clean_bytes: int
    dirty_bytes: int
    is_due: bool
    """True if a record has waited for longer than `max.compaction.lag.ms`."""

    @property
    def dirty_ratio(self) -> float:
        """The share of the cleanable bytes that were appended since the last cleaning, from 0 to 1."""
        return self.dirty_bytes / max(1, self.clean_bytes + self.dirty_bytes)


def first_dirty_offset(rolled: RolledSegments, noted: Offset | None) -> Offset:
    """Return the offset up to which a log was cleaned; its start if `noted` is not within it (cleanableOffsets)."""
    start = rolled.segments[0].base_offset
    if noted is None or not start <= noted <= rolled.end_offset:
        return start
    return noted


def find_cleanable_part(
    rolled: RolledSegments, noted: Offset | None, settings: CleanerSettings, now_ms: int
) -> Candidate:
    """Return the cleanable part of a log that was cleaned up to the offset `noted`. Raises OSError."""
    first_dirty = first_dirty_offset(rolled, noted)
    segments, bound = list(rolled.segments), rolled.bound
    if settings.min_compaction_lag_ms > 0:
        segments, bound = _old_enough(segments, bound, first_dirty, now_ms - settings.min_compaction_lag_ms)
    ends = [*(segment.base_offset for segment in segments[1:]), bound]
    dirty = [segment for segment, end in zip(segments, ends, strict=False) if end > first_dirty]
    dirty_bytes = sum(segment.size_bytes for segment in dirty)
    is_due = False
    if settings.max_compaction_lag_ms < LONG_MAX:
        is_due = _oldest(dirty) < now_ms - settings.max_compaction_lag_ms
    total = sum(segment.size_bytes for segment in segments)
    return Candidate(rolled, segments, first_dirty, bound, total - dirty_bytes, dirty_bytes, is_due)


def _old_enough(
    segments: list[Segment], bound: Offset, first_dirty: Offset, before_ms: int
) -> tuple[list[Segment], Offset]:
    """Return the segments before the first dirty one with a record younger than `min.compaction.lag.ms`."""
    for index, segment in enumerate(segments):
        end = segments[index + 1].base_offset if index + 1 < len(segments) else bound
        if end > first_dirty and segment.index.largest_timestamp() > before_ms:
            return segments[:index], segment.base_offset
    return segments, bound


def _oldest(segments: Sequence[Segment]) -> int:
    """Return the smallest of the segments' first timestamps."""
    oldest = LONG_MAX
    for segment in segments:
        if segment.size_bytes:
            timestamp = segment.read_first_batch_timestamp()
            segment.close()
            if timestamp > 0:
                oldest = min(oldest, timestamp)
    return oldest


def make_cleaning_job(
    found: Candidate, settings: CleanerSettings, now_ms: int, *, segment_bytes: int, index_interval_bytes: int
) -> CleaningJob:
    """Return the job that cleans a log and merges small segments up to `segment_bytes`."""
    return CleaningJob(
        directory=str(found.rolled.log.directory),
        groups=_groups(found, segment_bytes),
        first_dirty_offset=found.first_dirty_offset,
        bound=found.bound,
        now_ms=now_ms,
        delete_retention_ms=settings.delete_retention_ms,
        dedupe_buffer_bytes=settings.dedupe_buffer_bytes,
        io_bytes_per_second=settings.io_bytes_per_second,
        index_interval_bytes=index_interval_bytes,
    )


def _groups(found: Candidate, segment_bytes: int) -> list[list[OldSegment]]:
    """Group neighbours that fit in one segment by their sizes and offsets (Cleaner.groupSegmentsBySize)."""
    ends = [*(segment.base_offset for segment in found.segments[1:]), found.bound]
    groups: list[list[OldSegment]] = []
    size = 0
    for segment, end in zip(found.segments, ends, strict=True):
        source = OldSegment(segment.base_offset, segment.size_bytes)
        fits = (
            groups
            and size + source.size_bytes <= segment_bytes
            and end - 1 - groups[-1][0].base_offset <= OFFSET_DELTA_MAX
        )
        if fits:
            groups[-1].append(source)
            size += source.size_bytes
        else:
            groups.append([source])
            size = source.size_bytes
    return groups
