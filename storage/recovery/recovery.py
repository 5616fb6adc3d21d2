# SPDX-License-Identifier: Apache-2.0
"""Recovers a data directory: reads the segments, and writes the journals' batches over them (`log_recovery`).

Each partition has a recovery point, the offset up to which everything is known to be on disk. Before it
anything unreadable is damage: the partition is reported as failed, and its bytes are left alone. Behind it
the journals are the truth. The segments' batches behind it are written once more from the journals, because
after a failed fsync a page can seem fine and still never have reached the disk. Behind the journals' batches every
whole batch is kept, and only a torn tail is cut.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import (
    SegmentPosition,
    TopicPartition,
    read_offsets,
    read_positions,
    write_offsets,
    write_positions,
)
from storage.disk.filesystem import FileSystem, new_uuid, read_file
from storage.disk.layout import (
    JOURNAL_DIR,
    LOG_START_FILE,
    PARTITION_METADATA_FILE,
    POSITION_FILE,
    RECOVERY_POINT_FILE,
    TAKEN_OVER_FILE,
    journal_list_path,
    parse_journal,
    parse_partition_dir,
    partition_dir,
)
from storage.disk.properties import decode_uuid
from storage.errors import CorruptLog, is_unreadable, storage_error
from storage.journal.journal_reader import (
    JournalContents,
    exclude_discarded_frames,
    read_journal,
    read_journals,
)
from storage.journal.journal_registry import check_journals_match, read_journals_in_use
from storage.partition.log import PartitionLog
from storage.recovery.log_recovery import DiscardedRange, JournalEntry, log_end_position, recover_log
from storage.settings import LogSettings

UNKNOWN_END: Final = Offset(-1)
"""The end, in the file of taken-over offsets, of a partition that a broker wrote and that could not be read yet."""
NO_POINT: Final = Offset(-1)
"""The recovery point, in the checkpoint, of a partition that was already damaged before the first checkpoint."""


class RecoveryAssumptions(msgspec.Struct, frozen=True):
    """The facts about a directory that recovery cannot read from the directory itself.

    - `last_flush`: the last flush that was accepted, if known; only for the first directory of journals
    - `in_use`: the salts, by number, of the journals that must exist in the first directory of journals, from the
      process that has them open; None to take them from the list on disk
    - `clean`: the directory was left cleanly, so the files derived from the segments are trusted
    - `as_left`: only programs that keep the lists of segments and journals have written to the directory
    - `at_start`: a partition that the disk cannot read counts as damaged, and the others serve; no retry follows soon
    - `leniently`: the operator has accepted the journals' losses, so all readable frames count
    """

    last_flush: int | None = None
    in_use: dict[int, bytes] | None = None
    clean: bool = False
    as_left: bool = True
    at_start: bool = False
    leniently: bool = False


class PartitionRecoveryInputs(msgspec.Struct, frozen=True):
    """The facts that recovery uses for one partition: see `recover_log`."""

    point: Offset | None
    hint: SegmentPosition | None
    entries: Sequence[JournalEntry]
    as_left: bool


class RecoveredDirectory(msgspec.Struct):
    """The result of recovering a data directory. The logs may have been written to, and are not synced."""

    logs: dict[Partition, PartitionLog]
    failed: dict[Partition, CorruptLog]
    cuts: list[DiscardedRange]
    recovery_points: dict[TopicPartition, Offset]
    positions: dict[TopicPartition, SegmentPosition]
    journals: list[JournalContents]
    """The journals of the first journal directory; `last_flush` belongs to them."""
    other_journals: list[JournalContents]
    last_flush: int
    has_points: bool
    """True if recovery points had ever been noted in the directory."""
    unread: dict[Partition, PartitionRecoveryInputs] = {}
    """The failed partitions that the disk could not read: a retry may help."""
    foreign: set[Partition] = set()
    """The partitions that a broker was the last to write."""

    def recover_partition(
        self,
        fs: FileSystem,
        topic: str,
        log: PartitionLog,
        by: PartitionRecoveryInputs,
        given: RecoveryAssumptions,
    ) -> None:
        """Recover a partition's log, or note why it cannot be used. Raises an OSError that may be temporary."""
        try:
            self.cuts += recover_log(
                fs, log, by.point, by.hint, by.entries, clean=given.clean, as_left=by.as_left
            )
            self.logs[log.partition] = log
        except (CorruptLog, OSError) as error:
            self.mark_partition_failed((topic, log.partition), _damage(log, error, at_start=given.at_start))
            if isinstance(error, OSError):
                self.unread[log.partition] = by

    def mark_partition_failed(self, key: TopicPartition, error: CorruptLog) -> None:
        """Note that a partition cannot be used, and keep its recovery point."""
        self.logs.pop(key[1], None)
        self.failed[key[1]] = error
        # Not 0 if unknown: the next start would take the damage for the torn end of a last write.
        self.recovery_points.setdefault(key, Offset(0) if self.has_points else NO_POINT)

    def make_durable(self, topic: str, *, at_start: bool, include_indexes: bool = False) -> None:
        """Sync the recovered logs; with `include_indexes`, their derived files, too. `at_start`: see
        `RecoveryAssumptions`.

        Raises OSError.
        """
        for log in list(self.logs.values()):
            try:
                if include_indexes and log.needs_fsync:
                    log.write_derived_files(seal=True)
                else:
                    log.write_or_remove_indexes_after_recovery()
                if log.needs_fsync:
                    log.fsync()
            except (CorruptLog, OSError) as error:
                self.mark_partition_failed((topic, log.partition), _damage(log, error, at_start=at_start))

    def note_broker_writes(self, fs: FileSystem, data_dir: Path, topic: str, *, at_start: bool) -> None:
        """Store the end offset and the leader epochs of each partition that a Kafka broker was the last to write.

        A failed partition gets UNKNOWN_END. `at_start`: see `RecoveryAssumptions`. Durable on return. Raises OSError.
        """
        for log in [self.logs[partition] for partition in self.foreign & self.logs.keys()]:
            try:
                log.leader_epochs().write()
            except (CorruptLog, OSError) as error:
                self.mark_partition_failed((topic, log.partition), _damage(log, error, at_start=at_start))
        ends = {(topic, partition): UNKNOWN_END for partition in self.foreign & self.failed.keys()}
        for partition in self.foreign & self.logs.keys():
            ends[topic, partition] = self.logs[partition].end_offset
        store_broker_end_offsets(fs, data_dir, ends)

    def close_logs(self) -> None:
        """Close the files of all logs."""
        for log in self.logs.values():
            log.close_files()

    def find_journals_of_partitions(self, partitions: Collection[Partition]) -> set[Path]:
        """Return the journals with entries of these partitions: those of failed ones are kept for their repair."""
        return {
            journal.path
            for journal in (*self.journals, *self.other_journals)
            if any(entry.partition in partitions for frame in journal.frames for entry in frame.entries)
        }


def recover(
    fs: FileSystem,
    data_dir: Path,
    settings: LogSettings,
    topic_id: bytes,
    *,
    journal_dirs: Sequence[Path],
    partitions: Collection[Partition] | None = None,
    given: RecoveryAssumptions,
) -> RecoveredDirectory:
    """Read a data directory, and write all accepted batches into its segments.

    `journal_dirs` are those of all nodes whose journals count, the calling node's first; `partitions`
    those that may be touched, by default all. Can be called again after any failure. Raises CorruptLog for a
    journal that is damaged, missing or not of this directory, and StorageError.
    """
    try:
        known = read_recovery_points(fs, (data_dir, *journal_dirs))
        found = _in_journals(fs, journal_dirs, settings.topic, known, given)
        entries = _by_partition((*found.journals, *found.other_journals), given)
        on_disk = partitions_on_disk(fs, data_dir, settings.topic)
        starts = read_offsets(fs, data_dir / LOG_START_FILE) or {}
        # A new log begins at its noted start, too.
        started = {partition for topic, partition in starts if topic == settings.topic}
        if partitions is not None:
            started &= set(partitions)
            on_disk = [partition for partition in on_disk if partition in partitions]
            entries = {partition: each for partition, each in entries.items() if partition in partitions}
        else:
            _fail_missing(found, data_dir, settings.topic, on_disk, starts)
        if not given.as_left:
            found.foreign |= found.failed.keys()
        taken_over = read_offsets(fs, data_dir / TAKEN_OVER_FILE) or {}
        try:
            for partition in sorted({*on_disk, *entries, *started} - found.failed.keys()):
                directory = partition_dir(data_dir, settings.topic, partition)
                key = (settings.topic, partition)
                point, hint = recovery_point(known[0], key), known[1].get(key)
                as_left = given.as_left and taken_over.get(key) != UNKNOWN_END
                by = PartitionRecoveryInputs(point, hint, entries.get(partition, ()), as_left)
                if not as_left:
                    found.foreign.add(partition)
                log = PartitionLog(fs, directory, partition, settings, topic_id)
                found.recover_partition(fs, settings.topic, log, by, given)
        except BaseException:
            found.close_logs()
            raise
    except OSError as error:
        raise storage_error(data_dir, error, "recovery") from error
    return found


def _in_journals(
    fs: FileSystem,
    directories: Sequence[Path],
    topic: str,
    known: tuple[dict[TopicPartition, Offset] | None, dict[TopicPartition, SegmentPosition]],
    given: RecoveryAssumptions,
) -> RecoveredDirectory:
    """Read the journals, and no log yet. Raises CorruptLog and OSError."""
    points, positions = known
    in_segments = {key[1]: point for key, point in (points or {}).items() if key[0] == topic}
    read: list[list[JournalContents]] = []
    cuts: list[DiscardedRange] = []
    for directory in directories:
        is_first = directory == directories[0]
        if given.leniently:
            journals = _what_is_left(fs, directory, cuts)
        else:
            journals = read_journals(fs, directory, last_flush=given.last_flush if is_first else None)
            noted = given.in_use if is_first and given.in_use is not None else _noted(fs, directory, given)
            check_journals_match(directory, journals, noted, in_segments)
        read.append(journals)
    journals, others = (read[0], [each for rest in read[1:] for each in rest]) if read else ([], [])
    last_flush = given.last_flush
    found = RecoveredDirectory(
        {}, {}, cuts, points or {}, positions, journals, others, last_flush or 0, points is not None
    )
    for journal in journals:
        if journal.frames:
            found.last_flush = max(found.last_flush, journal.frames[-1].flush)
        elif journal.discarded_from and last_flush is None:
            found.last_flush = max(found.last_flush, journal.discarded_from - 1)
    for journal in (*journals, *others):
        if journal.lost_bytes:
            end = journal.frames[-1].end if journal.frames else 0
            found.cuts.append(DiscardedRange(journal.path, end, journal.lost_bytes, "a torn frame"))
    return found


def _noted(fs: FileSystem, directory: Path, given: RecoveryAssumptions) -> dict[int, bytes] | None:
    """Return the salts of the journals that should be in a directory, by number; None if that was not noted."""
    note = read_journals_in_use(fs, journal_list_path(directory))
    is_main = directory.name == JOURNAL_DIR
    return None if note is None or (is_main and not given.as_left) else note.journals


def _what_is_left(fs: FileSystem, directory: Path, cuts: list[DiscardedRange]) -> list[JournalContents]:
    """Return all readable frames of the journals that belong to this directory."""
    note = read_journals_in_use(fs, journal_list_path(directory))
    journals: list[JournalContents] = []
    for name in fs.listdir(directory):
        number = parse_journal(name)
        if number is None:
            continue
        try:
            journal = read_journal(fs, directory / name, number, leniently=True)
        except CorruptLog as error:
            cuts.append(DiscardedRange(directory / name, error.position or 0, 0, error.reason))
            continue
        known = journal.version == 1 if note is None else note.journals.get(number) == journal.salt
        if known:
            journals.append(journal)
    return exclude_discarded_frames(journals)


def _damage(log: PartitionLog, error: CorruptLog | OSError, *, at_start: bool) -> CorruptLog:
    """Close a log that cannot be used, and return its damage. Raises an OSError that may be temporary."""
    log.close_files()
    if isinstance(error, CorruptLog):
        return error
    if not (at_start and is_unreadable(error)):
        raise error
    return CorruptLog(
        error.filename or log.directory, f"recovering it failed: {error.strerror}", errno=error.errno
    )


def read_recovery_points(
    fs: FileSystem, directories: Iterable[Path]
) -> tuple[dict[TopicPartition, Offset] | None, dict[TopicPartition, SegmentPosition]]:
    """Return each partition's recovery point and its position, by all notes in `directories`.

    Each note was true when it was made, and stays true: the highest counts. None means that nothing was noted.
    Raises OSError.
    """
    points: dict[TopicPartition, Offset] | None = None
    positions: dict[TopicPartition, SegmentPosition] = {}
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


def recovery_point(points: Mapping[TopicPartition, Offset] | None, key: TopicPartition) -> Offset | None:
    """Return a partition's recovery point from the checkpoint: 0 for a new partition, None if unknown."""
    point = NO_POINT if points is None else points.get(key, Offset(0))
    return None if point == NO_POINT else point


def partitions_on_disk(fs: FileSystem, data_dir: Path, topic: str) -> list[Partition]:
    """Return the partitions that have a directory, sorted. Raises OSError."""
    found = (parse_partition_dir(name, topic) for name in fs.listdir(data_dir))
    return sorted(partition for partition in found if partition is not None)


def find_or_generate_topic_id(fs: FileSystem, data_dir: Path, topic: str) -> bytes:
    """Return the topic's id from the first partition on disk that holds it; a new one if none does.

    Skips a partition that cannot be read. Raises OSError, also if no id was found and a partition cannot be read.
    """
    unreadable: OSError | None = None
    for partition in partitions_on_disk(fs, data_dir, topic):
        path = partition_dir(data_dir, topic, partition) / PARTITION_METADATA_FILE
        try:
            lines = read_file(fs, path).decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            continue
        except OSError as error:
            if not is_unreadable(error):
                raise
            unreadable = error
            continue
        for line in lines:
            if line.startswith("topic_id:"):
                try:
                    return decode_uuid(line.partition(":")[2].strip())
                except ValueError:
                    break
    if unreadable is not None:
        raise unreadable
    return new_uuid(fs)


def _fail_missing(
    found: RecoveredDirectory,
    data_dir: Path,
    topic: str,
    on_disk: Sequence[int],
    starts: Mapping[TopicPartition, Offset],
) -> None:
    """Fail each partition whose directory is missing although its recovery point says that it held offsets.

    A broker would create the directory again, empty, and report nothing. A partition whose log starts at or after its
    recovery point has lost nothing, and is created again here as well.
    """
    for key, offset in list(found.recovery_points.items()):
        if key[0] == topic and key[1] not in on_disk:
            if offset > starts.get(key, Offset(0)) or offset == NO_POINT:
                what = f"offsets up to {offset} were" if offset > 0 else "a damaged log was"
                reason = f"the directory is missing, and {what} in it"
                found.mark_partition_failed(key, CorruptLog(partition_dir(data_dir, topic, key[1]), reason))
            else:
                del found.recovery_points[key]


def _by_partition(
    journals: Sequence[JournalContents], given: RecoveryAssumptions
) -> dict[Partition, list[JournalEntry]]:
    entries: dict[Partition, list[JournalEntry]] = {}
    # If a loss was accepted, batches behind it no longer count as acknowledged.
    promised = not given.leniently
    for journal in journals:
        for frame in journal.frames:
            all_synced_before = promised and frame.synced == frame.flush - 1
            for entry in frame.entries:
                entries.setdefault(entry.partition, []).append(JournalEntry(entry, all_synced_before))
    for of_partition in entries.values():
        # A partition that moved between nodes continues, in time and offset, in the other's journal.
        of_partition.sort(key=lambda each: each.entry.base_offset)
    return entries


def store_broker_end_offsets(fs: FileSystem, data_dir: Path, ends: Mapping[TopicPartition, Offset]) -> None:
    """Store, by partition, the offset up to which a broker wrote, or UNKNOWN_END. Durable on return. Raises OSError."""
    known = read_offsets(fs, data_dir / TAKEN_OVER_FILE) or {}
    noted = {key: end for key, end in {**known, **ends}.items() if end}
    if noted != known:
        write_offsets(fs, data_dir / TAKEN_OVER_FILE, noted)


def write_recovery_points(
    fs: FileSystem,
    data_dir: Path,
    known: Mapping[TopicPartition, Offset],
    logs: Iterable[PartitionLog],
    topic: str,
) -> dict[TopicPartition, Offset]:
    """Note that `logs` are on disk up to their ends; keep the `known` recovery points of others.

    Returns all recovery points. Raises OSError.
    """
    points = dict(known)
    positions: dict[TopicPartition, SegmentPosition] = {}
    for log in logs:
        key = (topic, log.partition)
        points[key] = log.end_offset
        position = log_end_position(log)
        if position is not None:
            positions[key] = position
    write_offsets(fs, data_dir / RECOVERY_POINT_FILE, points)
    write_positions(fs, data_dir / POSITION_FILE, positions)
    return points
