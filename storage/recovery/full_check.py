# SPDX-License-Identifier: Apache-2.0
"""Checks every byte of a log, without changing any: finds the whole batches, and the damage.

A start reads only the part that may be torn, and a load stops at the first damage. A check continues behind it: the
log is whole again at the next batch with a right checksum, wherever that begins. (Messages from before
RecordBatch v2 are not found again in their segment: their checksum covers too little to search for them.)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import TopicPartition, read_offsets, read_partition_log_start
from storage.disk.filesystem import File, FileSystem
from storage.disk.layout import (
    CLEANER_OFFSET_FILE,
    OFFSETS_TOPIC,
    TAKEN_OVER_FILE,
    journal_dirs,
    partition_dir,
    segment_name,
)
from storage.disk.lock import find_lock_conflict
from storage.errors import CorruptBatch, CorruptLog, CorruptRecord, IncompleteBatch, storage_error
from storage.format.batch import Batch, find_whole_batch_start, iter_batches, read_checked_batch
from storage.format.record_decoder import RecordDecoder
from storage.journal.journal_registry import is_directory_unchanged
from storage.partition.rolled_segments_file import read_required_segment_sizes
from storage.partition.swap import current_segments
from storage.recovery.journal_loss import find_damage
from storage.recovery.recovery import UNKNOWN_END, partitions_on_disk, read_recovery_points, recovery_point

_CHUNK_BYTES: Final = 4 << 20
_TRIES: Final = 3


class Damage(msgspec.Struct, frozen=True):
    """A range of bytes that hold no usable batch.

    `offset` is expected at its start; the log is whole again at `next_offset`, or not in this segment (None).
    """

    path: Path
    position: int
    size_bytes: int
    offset: Offset
    next_offset: Offset | None
    reason: str


class ExpectedSegmentBounds(msgspec.Struct, frozen=True):
    """The bounds of a segment: its offsets are before `following`, and it has at least `least_bytes`.

    From `dirty_from` on no offset may be missing between the previous segment and this one.

    Within a segment gaps are no damage: a compaction may have been stopped before it was noted. But it keeps the last
    record, so that a gap between two segments means that a segment is missing.
    """

    following: Offset | None = None
    dirty_from: Offset | None = None
    least_bytes: int = 0

    def is_gap_forbidden(self, offset: Offset, next_offset: Offset) -> bool:
        """Return whether the offsets between the two must exist, because they were never compacted."""
        return self.dirty_from is not None and next_offset > offset >= self.dirty_from


class CheckedSegment(msgspec.Struct):
    """The result of a segment's check. `pieces` are its byte ranges of whole batches and its damage, in order."""

    path: Path
    base_offset: Offset
    size_bytes: int
    batches: int = 0
    records: int = 0
    first_offset: Offset | None = None
    next_offset: Offset = Offset(0)
    pieces: list[tuple[int, int] | Damage] = []


class CheckedPartition(msgspec.Struct):
    """The result of a check of a partition's log, which starts at `start_offset` if a broker noted that.

    `damages` need a repair; they exclude damage wholly before the start. `unsettled` lies behind the recovery
    point: the next start settles it from the journal, or cuts it as the torn end of a last write.
    """

    partition: Partition
    directory: Path
    start_offset: Offset
    recovery_point: Offset | None
    segments: list[CheckedSegment]
    damages: list[Damage] = []
    unsettled: list[Damage] = []

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def whole_batch_count(self) -> int:
        """The number of whole batches."""
        return sum(segment.batches for segment in self.segments)

    @property
    def whole_record_count(self) -> int:
        """The number of records in the whole batches."""
        return sum(segment.records for segment in self.segments)

    @property
    def first_offset(self) -> Offset | None:
        """The offset of the first whole batch."""
        return next((s.first_offset for s in self.segments if s.first_offset is not None), None)

    @property
    def next_offset(self) -> Offset:
        """The offset after the last whole batch."""
        return max((segment.next_offset for segment in self.segments), default=Offset(0))


class CheckedDirectory(msgspec.Struct):
    """The result of a data directory's check; `journals` are its journals' errors, `in_use` names its user."""

    partitions: list[CheckedPartition]
    journals: list[CorruptLog]
    in_use: str | None

    @property
    def is_undamaged(self) -> bool:
        """True if nothing needs a repair."""
        return not self.journals and not any(partition.damages for partition in self.partitions)


def check_directory(
    fs: FileSystem,
    data_dir: Path,
    only: int | None = None,
    topic: str = OFFSETS_TOPIC,
    *,
    track: Callable[[Sequence[Partition]], Iterable[Partition]] = iter,
) -> CheckedDirectory:
    """Check all partitions, or `only` one, even of a running node. Raises StorageError if it cannot read.

    `track` passes the partitions on, and may show the progress.
    """
    try:
        holder = find_lock_conflict(fs, data_dir)
        journals = [] if holder else find_damage(fs, data_dir, topic)
        found = [p for p in find_expected_partitions(fs, data_dir, topic) if only in (None, p)]
        checked = [check_partition(fs, data_dir, partition, topic) for partition in track(found)]
    except OSError as error:
        raise storage_error(data_dir, error, "checking") from error
    return CheckedDirectory(checked, journals, None if holder is None else holder.reason)


def find_expected_partitions(fs: FileSystem, data_dir: Path, topic: str) -> list[Partition]:
    """Return the partitions that have a directory, and those that must have had one, sorted. Raises OSError."""
    points = _points(fs, data_dir) or {}
    noted = {partition for (name, partition), point in points.items() if name == topic and point}
    return sorted({*partitions_on_disk(fs, data_dir, topic), *noted})


def _points(fs: FileSystem, data_dir: Path) -> dict[TopicPartition, Offset] | None:
    return read_recovery_points(fs, (data_dir, *journal_dirs(fs.listdir(data_dir), data_dir)))[0]


def check_partition(
    fs: FileSystem, data_dir: Path, partition: Partition, topic: str = OFFSETS_TOPIC
) -> CheckedPartition:
    """Check one partition. Raises OSError."""
    for _ in range(_TRIES - 1):
        try:
            return _check_partition(fs, data_dir, partition, topic)
        except FileNotFoundError:
            continue  # a running node has just replaced this segment by a compacted one
    return _check_partition(fs, data_dir, partition, topic)


def _check_partition(fs: FileSystem, data_dir: Path, partition: Partition, topic: str) -> CheckedPartition:
    directory = partition_dir(data_dir, topic, partition)
    key = (topic, partition)
    point = recovery_point(_points(fs, data_dir), key)
    dirty_from = _dirty_from(fs, data_dir, key)
    start_offset = read_partition_log_start(fs, data_dir, key)
    checked = CheckedPartition(partition, directory, start_offset, point, [])
    paths = current_segments(fs, directory)
    noted = _noted_sizes(fs, data_dir, directory)
    bases = sorted({*paths, *noted})
    loader = RecordDecoder()
    offset = bases[0] if bases else start_offset
    missing: list[Damage] = []
    for base_offset, following in zip(bases, [*bases[1:], None], strict=False):
        if base_offset not in paths:
            missing.append(
                _missing(fs, directory, base_offset, following or Offset(max(point or 0, base_offset + 1)))
            )
            offset = max(offset, missing[-1].next_offset or offset)
            continue
        bounds = ExpectedSegmentBounds(following, dirty_from, noted.get(base_offset, 0))
        segment = check_segment(fs, paths[base_offset], base_offset, offset, bounds, loader)
        offset = max(offset, segment.next_offset)
        checked.segments.append(segment)
    pieces = [piece for s in checked.segments for piece in s.pieces if isinstance(piece, Damage)]
    damages = sorted([*pieces, *missing], key=lambda damage: damage.offset)
    if point is not None and offset < point and (not damages or damages[-1].next_offset is not None):
        last = checked.segments[-1] if checked.segments else None
        where, position = (last.path, last.size_bytes) if last else (directory / segment_name(Offset(0)), 0)
        reason = f"the log ends at offset {offset}, and offsets up to {point} were on disk"
        damages.append(Damage(where, position, 0, offset, point, reason))
    for damage in damages:
        if damage.next_offset is not None and damage.next_offset <= start_offset:
            continue
        (checked.unsettled if _is_unsettled(damage, checked) else checked.damages).append(damage)
    return checked


def _dirty_from(fs: FileSystem, data_dir: Path, key: TopicPartition) -> Offset | None:
    """Return the offset from which on nothing was ever compacted, so that no offset may be missing; None if unknown.

    A broker's cleaner notes its progress, but batches copied from another replica may have been compacted by that.
    """
    cleaned = read_offsets(fs, data_dir / CLEANER_OFFSET_FILE)
    if cleaned is None or not _is_ours(fs, data_dir):
        return None
    taken_over = (read_offsets(fs, data_dir / TAKEN_OVER_FILE) or {}).get(key, Offset(0))
    return None if taken_over == UNKNOWN_END else max(cleaned.get(key, Offset(0)), taken_over)


def _is_ours(fs: FileSystem, data_dir: Path) -> bool:
    try:
        return is_directory_unchanged(fs, data_dir)
    except CorruptLog:
        return True  # a start reports the file


def iter_all_whole_batches(fs: FileSystem, checked: CheckedPartition) -> Iterator[Batch]:
    """Read the whole batches of a partition, also those behind damage, but none that ends before the log starts.

    Raises OSError.
    """
    for segment in checked.segments:
        file = fs.open_read(segment.path)
        try:
            for piece in segment.pieces:
                if isinstance(piece, tuple):
                    for batch in iter_batches(file.pread(piece[1] - piece[0], piece[0])):
                        if batch.next_offset > checked.start_offset:
                            yield batch
        finally:
            file.close()


def _noted_sizes(fs: FileSystem, data_dir: Path, directory: Path) -> dict[Offset, int]:
    """Return the least size of each segment that must exist, by base offset, as far as known."""
    try:
        return (read_required_segment_sizes(fs, directory) or {}) if _is_ours(fs, data_dir) else {}
    except CorruptLog:
        return {}  # the list is no part of the log; a start reports it


def _missing(fs: FileSystem, directory: Path, base_offset: Offset, next_offset: Offset) -> Damage:
    path = directory / segment_name(base_offset)
    if fs.exists(path):
        raise FileNotFoundError(path)  # made just now by a running node: check again
    reason = f"the segment is missing, with offsets {base_offset} to {next_offset - 1}"
    return Damage(path, 0, 0, base_offset, next_offset, reason)


def _is_unsettled(damage: Damage, checked: CheckedPartition) -> bool:
    if checked.recovery_point is not None:
        return damage.offset >= checked.recovery_point
    last = checked.segments[-1].path if checked.segments else None
    return damage.next_offset is None and damage.path == last


def check_segment(
    fs: FileSystem,
    path: Path,
    base_offset: Offset,
    offset: Offset,
    bounds: ExpectedSegmentBounds,
    loader: RecordDecoder,
) -> CheckedSegment:
    """Check a segment; offsets before `offset` were in earlier segments. Raises OSError."""
    file = fs.open_read(path)
    try:
        segment = CheckedSegment(path, base_offset, file.size(), pieces=[])
        segment.next_offset = max(offset, base_offset)
        if bounds.is_gap_forbidden(offset, base_offset):
            reason = f"offsets {offset} to {base_offset - 1} are missing, and were not compacted"
            _add(segment, Damage(path, 0, 0, offset, base_offset, reason))
        position = 0
        while position < segment.size_bytes:
            position = _check_on(file, segment, position, bounds, loader)
    finally:
        file.close()
    _check_size(segment, bounds)
    return segment


def _check_size(segment: CheckedSegment, bounds: ExpectedSegmentBounds) -> None:
    last = segment.pieces[-1] if segment.pieces else None
    if segment.size_bytes >= bounds.least_bytes or bounds.following is None:
        return
    if isinstance(last, Damage) and last.next_offset is None:
        return  # damage at the end is already noted
    reason = f"the segment was cut, it had {bounds.least_bytes} bytes"
    end = segment.size_bytes
    _add(segment, Damage(segment.path, end, 0, segment.next_offset, bounds.following, reason))
    segment.next_offset = bounds.following


def _check_on(
    file: File, segment: CheckedSegment, position: int, bounds: ExpectedSegmentBounds, loader: RecordDecoder
) -> int:
    """Walk over whole batches from `position`, and over the damage that follows them; return the damage's end."""
    before: tuple[Batch, Offset] | None = None
    """The previous batch, and the offset that was expected at its position."""
    for batch, at in _batches(file, segment, position):
        if isinstance(batch, CorruptBatch):
            return _skip_damage(file, segment, at, batch.reason)
        if before is not None and _says_wrong_offset(*before, batch):
            _take_back(segment, *before, at, batch)
        expected = segment.next_offset
        if batch.base_offset < expected:
            reason = f"a batch with base offset {batch.base_offset} where {expected} comes next"
            return _skip_damage(file, segment, at, reason)
        if bounds.following is not None and batch.last_offset >= bounds.following:
            reason = (
                f"a batch up to offset {batch.last_offset}, and the next segment starts at {bounds.following}"
            )
            return _skip_damage(file, segment, at, reason, batch.size_bytes)
        try:
            records = len(loader.decode_batch(batch))
        except (CorruptBatch, CorruptRecord) as error:
            _add(
                segment,
                Damage(segment.path, at, batch.size_bytes, expected, batch.next_offset, error.reason),
            )
        else:
            _count(segment, batch, at, records)
        before = batch, expected
        segment.next_offset = batch.next_offset
    return segment.size_bytes


def _count(segment: CheckedSegment, batch: Batch, at: int, records: int) -> None:
    _add(segment, (at, at + batch.size_bytes))
    segment.batches += 1
    segment.records += records
    if segment.first_offset is None:
        segment.first_offset = batch.base_offset


def _says_wrong_offset(before: Batch, expected: Offset, batch: Batch) -> bool:
    """Return whether `batch` shows that `before`, in front of it, has a wrong offset, which no checksum covers."""
    if before.base_offset == expected:
        return False
    would_end = expected + before.next_offset - before.base_offset
    return expected <= batch.base_offset < before.base_offset or batch.base_offset == would_end


def _take_back(segment: CheckedSegment, wrong: Batch, expected: Offset, at: int, batch: Batch) -> None:
    """Turn the batch that ends at `at`, in front of `batch`, into damage."""
    start = at - wrong.size_bytes
    pieces = segment.pieces
    while pieces and (pieces[-1][1] if isinstance(pieces[-1], tuple) else pieces[-1].position + 1) > start:
        piece = pieces.pop()
        if isinstance(piece, tuple) and piece[0] < start:
            pieces.append((piece[0], start))
            break
    segment.batches -= 1
    segment.records -= wrong.count
    if segment.first_offset == wrong.base_offset:
        segment.first_offset = None
    reason = f"a batch with base offset {wrong.base_offset} between {expected} and {batch.base_offset}"
    _add(segment, Damage(segment.path, start, wrong.size_bytes, expected, batch.base_offset, reason))
    segment.next_offset = batch.base_offset


def _batches(
    file: File, segment: CheckedSegment, position: int
) -> Iterator[tuple[Batch | CorruptBatch, int]]:
    """Yield each batch and its position, up to the first error, which is yielded last."""
    wanted = _CHUNK_BYTES
    while position < segment.size_bytes:
        data = file.pread(min(wanted, segment.size_bytes - position), position)
        wanted = _CHUNK_BYTES
        pos = 0
        while pos < len(data):
            try:
                batch = read_checked_batch(data, pos)
            except IncompleteBatch as error:
                if position + len(data) >= segment.size_bytes:
                    yield error, position + pos
                    return
                # A batch that is larger than one read is read again as a whole.
                wanted = _CHUNK_BYTES if pos else segment.size_bytes - position
                break
            except CorruptBatch as error:
                yield error, position + pos
                return
            yield batch, position + pos
            pos = batch.end
        position += pos


def _skip_damage(file: File, segment: CheckedSegment, position: int, reason: str, skip: int = 1) -> int:
    """Note the damage of at least `skip` bytes at `position`; return the position of the next batch or the end."""
    rest = file.pread(segment.size_bytes - position, position)
    found = find_whole_batch_start(rest[skip:], segment.next_offset)
    size = len(rest) if found is None else found + skip
    next_offset = None if found is None else read_checked_batch(rest, size).base_offset
    _add(segment, Damage(segment.path, position, size, segment.next_offset, next_offset, reason))
    if next_offset is not None:
        segment.next_offset = next_offset
    return position + size


def _add(segment: CheckedSegment, piece: tuple[int, int] | Damage) -> None:
    last = segment.pieces[-1] if segment.pieces else None
    if isinstance(piece, tuple) and isinstance(last, tuple):
        segment.pieces[-1] = (last[0], piece[1])
    else:
        segment.pieces.append(piece)
