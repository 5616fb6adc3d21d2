# SPDX-License-Identifier: Apache-2.0
"""Opening a data directory: what the segments hold, and over it what the journals hold.

For each partition a recovery point says up to which offset everything is known to be on disk. Before it
anything unreadable is damage: the partition is reported as failed, and its bytes are left alone. Behind it
the journals are the truth. What the segments hold there is written once more from the journals, because
after a failed fsync a page can look fine and still never have reached the disk. Behind the journals every
whole batch is kept, and only a torn tail is cut.
"""

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from storage.batch_format import EXTENT_BYTES, batch_extent
from storage.checkpoint_file import (
    Position,
    TopicPartition,
    read_offsets,
    read_positions,
    write_offsets,
    write_positions,
)
from storage.errors import CorruptLog, storage_error
from storage.filesystem import FileSystem, atomic_write, read_file
from storage.journal import Entry
from storage.journal_reader import JournalContents, read_journals
from storage.layout import (
    CUT_SUFFIX,
    PARTITION_METADATA_FILE,
    POSITION_FILE,
    RECOVERY_POINT_FILE,
    parse_partition_dir,
    partition_dir,
)
from storage.log import PartitionLog, batch_offsets
from storage.properties import decode_uuid
from storage.segment import Scan, Segment, find_batch
from storage.settings import LogSettings

__all__ = ["Cut", "LogSettings", "Recovered", "note_recovery_points", "partitions_on_disk", "recover"]

NO_POINT: Final = -1
"""In the checkpoint: for a partition that is damaged, and was so when there was no checkpoint yet."""


class Cut(msgspec.Struct, frozen=True):
    """Something that recovery left out, to be told to the operator.

    `saved_as` is where the bytes went if there was anything readable in them.
    """

    path: Path
    position: int
    size_bytes: int
    reason: str
    partition: int | None = None
    saved_as: Path | None = None


class Recovered(msgspec.Struct):
    """A data directory as it was found. The logs may have been written to, and are not synced."""

    logs: dict[int, PartitionLog]
    failed: dict[int, CorruptLog]
    cuts: list[Cut]
    recovery_points: dict[TopicPartition, int]
    positions: dict[TopicPartition, Position]
    journals: list[JournalContents]
    """Of the first journal directory; `last_flush` belongs to them."""
    other_journals: list[JournalContents]
    last_flush: int

    def journals_of(self, partitions: Collection[int]) -> set[Path]:
        """The journals with entries of these partitions: those of failed ones are kept, for whoever mends them."""
        return {
            journal.path
            for journal in (*self.journals, *self.other_journals)
            if any(entry[0] in partitions for frame in journal.frames for entry in frame.entries)
        }


class JournalEntry(msgspec.Struct):
    """A journal's entry, with what is known about the time before it."""

    entry: Entry
    all_synced_before: bool


def recover(
    fs: FileSystem,
    data_dir: Path,
    settings: LogSettings,
    topic_id: bytes,
    *,
    journal_dirs: Sequence[Path],
    last_flush: int | None = None,
    partitions: Collection[int] | None = None,
    clean: bool = False,
) -> Recovered:
    """Read a data directory, and bring its segments to what was accepted, up to flush `last_flush` if given.

    `journal_dirs` are those of all nodes whose journals count, first that of the node whose `last_flush` it
    is; `partitions` those that may be touched, by default all. What is derived from the segments is believed
    if the directory was left `clean`. Can be done again after any failure. Raises CorruptLog for a damaged
    journal, and StorageError.
    """
    try:
        points, positions = read_known(fs, (data_dir, *journal_dirs))
        journals = read_journals(fs, journal_dirs[0], last_flush=last_flush) if journal_dirs else []
        others = [journal for each in journal_dirs[1:] for journal in read_journals(fs, each)]
        found = Recovered({}, {}, [], points or {}, positions, journals, others, last_flush or 0)
        for journal in journals:
            if journal.frames:
                found.last_flush = max(found.last_flush, journal.frames[-1].flush)
            elif journal.void_from and last_flush is None:
                found.last_flush = max(found.last_flush, journal.void_from - 1)
        for journal in (*journals, *others):
            if journal.lost_bytes:
                end = journal.frames[-1].end if journal.frames else 0
                found.cuts.append(Cut(journal.path, end, journal.lost_bytes, "a torn frame"))
        entries = _by_partition((*journals, *others))
        on_disk = partitions_on_disk(fs, data_dir, settings.topic)
        if partitions is not None:
            on_disk = [partition for partition in on_disk if partition in partitions]
            entries = {partition: each for partition, each in entries.items() if partition in partitions}
        else:
            _forget_missing(found, data_dir, settings.topic, on_disk)
        for partition in sorted({*on_disk, *entries}):
            directory = partition_dir(data_dir, settings.topic, partition)
            log = PartitionLog(fs, directory, partition, settings, topic_id)
            key = (settings.topic, partition)
            point = recovery_point(points, key)
            try:
                hint = positions.get(key)
                found.cuts += recover_log(fs, log, point, hint, entries.get(partition, ()), clean=clean)
                found.logs[partition] = log
            except CorruptLog as error:
                found.failed[partition] = error
                # Not 0 for None: the next start would take what is damaged for the torn end of a last write.
                found.recovery_points[key] = NO_POINT if point is None else point
    except OSError as error:
        raise storage_error(data_dir, error, "recovery") from error
    return found


def recover_log(
    fs: FileSystem,
    log: PartitionLog,
    point: int | None,
    hint: Position | None = None,
    entries: Sequence[JournalEntry] = (),
    *,
    clean: bool = False,
) -> list[Cut]:
    """Read one partition, on disk up to offset `point`, and bring it to what `entries` of journals hold.

    Returns what had to be left out. Not synced. Raises CorruptLog, with the log closed, and OSError.
    """
    cuts: list[Cut] = []
    try:
        log.load()
        if not clean:
            log.distrust(point or 0)
        index, scan = _scan(log, point, hint)
        _recover_log(fs, log, index, scan, point, entries, cuts)
    except CorruptLog:
        log.close()
        raise
    return cuts


def read_known(
    fs: FileSystem, directories: Iterable[Path]
) -> tuple[dict[TopicPartition, int] | None, dict[TopicPartition, Position]]:
    """Up to where each partition is on disk, and where that is, by all that was noted in `directories`.

    Each note was true when it was made, and stays true: the highest counts. None: nothing was noted. Raises
    OSError.
    """
    points: dict[TopicPartition, int] | None = None
    positions: dict[TopicPartition, Position] = {}
    for directory in directories:
        noted = read_offsets(fs, directory / RECOVERY_POINT_FILE)
        if noted is not None:
            points = points or {}
            for key, offset in noted.items():
                points[key] = max(offset, points.get(key, offset))
        for key, position in read_positions(fs, directory / POSITION_FILE).items():
            if key not in positions or positions[key].offset < position.offset:
                positions[key] = position
    return points, positions


def recovery_point(points: Mapping[TopicPartition, int] | None, key: TopicPartition) -> int | None:
    """Up to where a partition is on disk, as the checkpoint says: 0 for one that is new, None if nobody knows."""
    point = NO_POINT if points is None else points.get(key, 0)
    return None if point == NO_POINT else point


def partitions_on_disk(fs: FileSystem, data_dir: Path, topic: str) -> list[int]:
    """The partitions that have a directory, sorted. Raises OSError."""
    found = (parse_partition_dir(name, topic) for name in fs.listdir(data_dir))
    return sorted(partition for partition in found if partition is not None)


def topic_id_on_disk(fs: FileSystem, data_dir: Path, topic: str) -> bytes:
    """The topic's id, as the first partition on disk says; a new one if there is none."""
    for partition in partitions_on_disk(fs, data_dir, topic):
        path = partition_dir(data_dir, topic, partition) / PARTITION_METADATA_FILE
        try:
            lines = read_file(fs, path).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            continue
        for line in lines:
            if line.startswith("topic_id:"):
                try:
                    return decode_uuid(line.partition(":")[2].strip())
                except ValueError:
                    break
    return uuid.uuid4().bytes


def _forget_missing(found: Recovered, data_dir: Path, topic: str, on_disk: Sequence[int]) -> None:
    """Somebody removed a partition's directory: as with a broker, it starts anew, but not in silence."""
    for key, offset in list(found.recovery_points.items()):
        if key[0] == topic and key[1] not in on_disk:
            del found.recovery_points[key]
            if offset:
                reason = f"the directory is gone, and offsets up to {offset} were in it"
                found.cuts.append(Cut(partition_dir(data_dir, topic, key[1]), 0, 0, reason, key[1]))


def _by_partition(journals: Sequence[JournalContents]) -> dict[int, list[JournalEntry]]:
    entries: dict[int, list[JournalEntry]] = {}
    for journal in journals:
        for frame in journal.frames:
            all_synced_before = frame.synced == frame.flush - 1
            for entry in frame.entries:
                entries.setdefault(entry[0], []).append(JournalEntry(entry, all_synced_before))
    for of_partition in entries.values():
        # A partition that went to and fro between nodes goes on, in time and offset, in the other's journal.
        of_partition.sort(key=lambda each: each.entry[1])
    return entries


def _scan(log: PartitionLog, point: int | None, hint: Position | None) -> tuple[int, Scan]:
    """Up to where the log is good, and the index of the segment where that is."""
    segments = log.segments
    if not segments:
        return 0, Scan(0, 0, None)
    durable, gaps = point or 0, point is None
    index = 0
    # What lies wholly before the recovery point needs no look.
    while index + 1 < len(segments) and segments[index + 1].base_offset <= durable:
        index += 1
    start = _start(segments[index], durable, hint)
    if start is not None:
        log.remember(segments[index], durable, start.position)
    while True:
        scan = segments[index].scan(verify_from=durable, gaps=gaps, start=start)
        if scan.damage is not None or index + 1 == len(segments):
            return index, scan
        following = segments[index + 1].base_offset
        if scan.next_offset > following or (following > scan.next_offset >= durable and not gaps):
            reason = f"the next segment starts at offset {following}, and not at {scan.next_offset}"
            return index, Scan(scan.position, scan.next_offset, reason)
        index += 1
        start = None


def _start(segment: Segment, durable: int, hint: Position | None) -> Scan | None:
    """Where the scan of a segment can start, if the hint is about this place and a look at it agrees."""
    if hint is None or hint.offset != durable or hint.base_offset != segment.base_offset:
        return None
    if not 0 <= hint.position <= segment.size_bytes:
        return None
    head = segment.read(hint.position, EXTENT_BYTES)
    if head:
        extent = batch_extent(head, 0) if len(head) == EXTENT_BYTES else None
        if extent is None or extent[0] != durable:
            return None
    return Scan(hint.position, durable, None)


def _recover_log(
    fs: FileSystem,
    log: PartitionLog,
    index: int,
    scan: Scan,
    point: int | None,
    entries: Sequence[JournalEntry],
    cuts: list[Cut],
) -> None:
    durable = point or 0
    log.end_offset = scan.next_offset
    # An offset before the recovery point was on disk for good.
    if scan.next_offset < durable:
        where = log.segments[index].path if log.segments else log.directory
        reason = scan.damage or "the log ends here"
        raise CorruptLog(where, f"{reason}, and offsets up to {durable} were on disk", position=scan.position)
    log.mark_dirty(durable)
    batches = _continuation(log, durable, entries, cuts)
    if batches and batch_offsets(batches[-1])[1] >= scan.next_offset:
        log.cut(index, scan.position)
        log.truncate(batch_offsets(batches[0])[0])
        log.append_all(batches)
    elif scan.damage is not None:
        _cut_tail(fs, log, index, scan, point, cuts)


def _continuation(
    log: PartitionLog, durable: int, entries: Sequence[JournalEntry], cuts: list[Cut]
) -> list[bytes]:
    """The journals' batches behind the recovery point; they start within the log or at its end."""
    batches: list[bytes] = []
    end = log.end_offset
    for pending in entries:
        _, base_offset, batch = pending.entry
        if base_offset < durable:
            continue
        if base_offset > end:
            reason = f"the log ends at offset {end}, and its journal goes on at {base_offset}"
            if pending.all_synced_before:
                raise CorruptLog(log.directory, reason)
            # Between two syncs pages reach the disk in any order; nobody was told that these are safe.
            cuts.append(Cut(log.directory, 0, len(batch), reason, log.partition))
            break
        if batches and base_offset < end:
            raise CorruptLog(log.directory, f"its journal holds offset {base_offset} twice")
        batches.append(batch)
        end = batch_offsets(batch)[1]
    return batches


def _cut_tail(
    fs: FileSystem, log: PartitionLog, index: int, scan: Scan, point: int | None, cuts: list[Cut]
) -> None:
    segment: Segment = log.segments[index]
    reason = scan.damage or ""
    tail = segment.read(scan.position, segment.size_bytes - scan.position)
    is_last = index + 1 == len(log.segments)
    saved_as = None
    if not is_last or find_batch(tail, scan.next_offset) is not None:
        # With a recovery point we know that this was never promised to anybody: a power loss between two
        # syncs. Without one it may be anything.
        if point is None:
            raise CorruptLog(segment.path, f"{reason}, and more follows", position=scan.position)
        saved_as = segment.path.with_name(f"{segment.path.name}.{scan.position}{CUT_SUFFIX}")
        atomic_write(fs, saved_as, tail)
    cuts.append(Cut(segment.path, scan.position, len(tail), reason, log.partition, saved_as))
    for later in log.set_aside(index + 1):
        saved_as = later.path.with_name(later.path.name + CUT_SUFFIX)
        cuts.append(Cut(later.path, 0, later.size_bytes, reason, log.partition, saved_as))
    segment.cut(scan.position)


def position_of(log: PartitionLog) -> Position | None:
    """Where a log ends, None when it has no segment."""
    if not log.segments:
        return None
    last = log.segments[-1]
    return Position(log.end_offset, last.base_offset, last.size_bytes)


def note_recovery_points(
    fs: FileSystem,
    data_dir: Path,
    known: Mapping[TopicPartition, int],
    logs: Iterable[PartitionLog],
    topic: str,
) -> dict[TopicPartition, int]:
    """Write down that `logs` are on disk up to their ends; what is `known` about others is kept.

    Returns all that is known then. Raises OSError.
    """
    points = dict(known)
    positions: dict[TopicPartition, Position] = {}
    for log in logs:
        key = (topic, log.partition)
        points[key] = log.end_offset
        position = position_of(log)
        if position is not None:
            positions[key] = position
    write_offsets(fs, data_dir / RECOVERY_POINT_FILE, points)
    write_positions(fs, data_dir / POSITION_FILE, positions)
    return points
