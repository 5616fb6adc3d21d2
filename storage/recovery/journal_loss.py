# SPDX-License-Identifier: Apache-2.0
"""Finds journals that are damaged, cut, missing or of another directory, and continues without their lost batches.

A node does not start with such journals, since they may hold acknowledged batches of every partition.
An operator without a copy accepts the loss: all batches that can still be read go into the segments, each partition's
up to the first gap, and the bad journals are kept aside.
"""

from datetime import datetime
from pathlib import Path

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import merge_node_offset_files
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import (
    CLEANER_OFFSET_FILE,
    journal_dir,
    journal_list_path,
    parse_journal,
)
from storage.errors import CorruptLog, StorageError, storage_error
from storage.journal.journal_reader import JournalContents, read_journal
from storage.journal.journal_registry import (
    find_journal_directories,
    find_journal_errors,
    is_directory_unchanged,
    read_journals_in_use,
    remove_clean_mark,
    remove_gone_nodes_journals,
    write_registry_file,
)
from storage.recovery.log_recovery import DiscardedRange
from storage.recovery.recovery import (
    RecoveryAssumptions,
    find_or_generate_topic_id,
    read_recovery_points,
    recover,
    write_recovery_points,
)
from storage.settings import LogSettings


class AcceptedLoss(msgspec.Struct):
    """The damage of the journals, and the result of accepting it.

    `ends` is the offset at which each partition continues, `aside` the copies of the bad files, `cuts` the parts of the
    journals that could not be used.
    """

    damages: list[CorruptLog]
    ends: dict[Partition, Offset] = {}
    aside: list[Path] = []
    cuts: list[DiscardedRange] = []


def find_damage(fs: FileSystem, data_dir: Path, topic: str) -> list[CorruptLog]:
    """Return the errors of a stopped node's journals; change nothing. Raises OSError."""
    try:
        directories = _directories(fs, data_dir)
        as_left = is_directory_unchanged(fs, data_dir)
    except CorruptLog as error:
        return [error]
    points, _ = read_recovery_points(fs, (data_dir, *directories))
    in_segments = {key[1]: point for key, point in (points or {}).items() if key[0] == topic}
    damages: list[CorruptLog] = []
    for directory in directories:
        note = read_journals_in_use(fs, journal_list_path(directory))
        unknown = note is None or (directory == journal_dir(data_dir, None) and not as_left)
        noted = None if note is None or unknown else note.journals
        read: list[JournalContents] = []
        for name in fs.listdir(directory):
            number = parse_journal(name)
            if number is not None:
                try:
                    journal = read_journal(fs, directory / name, number, leniently=True)
                except CorruptLog as error:
                    damages.append(error)
                    noted = {n: salt for n, salt in noted.items() if n != number} if noted else noted
                    continue
                read.append(journal)
                damages += [journal.damage] if journal.damage is not None else []
        damages += find_journal_errors(directory, read, noted, in_segments)
    return damages


def _directories(fs: FileSystem, data_dir: Path) -> list[Path]:
    return list(dict.fromkeys([journal_dir(data_dir, None), *find_journal_directories(fs, data_dir)]))


def recover_despite_loss(
    fs: FileSystem, data_dir: Path, settings: LogSettings, now: datetime
) -> AcceptedLoss:
    """Continue without the journals' lost batches; the caller holds the directory's lock.

    Raises StorageError, also if a partition's own log is damaged: the operator has to repair that log first. Can be
    called again after any failure, and does nothing if the journals have no damage.
    """
    try:
        done = AcceptedLoss(find_damage(fs, data_dir, settings.topic))
        if done.damages:
            _keep_aside(fs, data_dir, done, now)
            _take_what_is_left(fs, data_dir, settings, done)
    except OSError as error:
        raise storage_error(data_dir, error, "repairing") from error
    return done


def _keep_aside(fs: FileSystem, data_dir: Path, done: AcceptedLoss, now: datetime) -> None:
    # Files, and not a directory, which a Kafka broker would take for a partition's.
    for path in sorted({Path(damage.path) for damage in done.damages}):
        if fs.exists(path):
            place = "" if path.parent == data_dir else f"{path.parent.name}-"
            aside = data_dir / f"damaged-{now:%Y%m%dT%H%M%SZ}-{place}{path.name}"
            atomic_write(fs, aside, read_file(fs, path))
            done.aside.append(aside)
            if path.parent == data_dir:  # the list of journals is invalid, so nothing is known
                fs.remove(path)


def _take_what_is_left(fs: FileSystem, data_dir: Path, settings: LogSettings, done: AcceptedLoss) -> None:
    topic, directories = settings.topic, _directories(fs, data_dir)
    topic_id = find_or_generate_topic_id(fs, data_dir, topic)
    given = RecoveryAssumptions(as_left=is_directory_unchanged(fs, data_dir), leniently=True)
    found = recover(fs, data_dir, settings, topic_id, journal_dirs=directories, given=given)
    try:
        found.make_durable(topic, at_start=False, include_indexes=True)
        for partition in sorted(found.failed):
            advice = f"repair it first: groupkeeper log repair --partition {partition} --execute"
            raise StorageError(data_dir, f"{found.failed[partition]}; {advice}")
        remove_clean_mark(fs, data_dir)
        write_recovery_points(fs, data_dir, found.recovery_points, found.logs.values(), topic)
        for log in found.logs.values():
            log.store_segment_list()
    finally:
        found.close_logs()
    merge_node_offset_files(fs, data_dir, directories, CLEANER_OFFSET_FILE)
    remove_gone_nodes_journals(fs, directories, ())
    write_registry_file(fs, journal_dir(data_dir, None), {})
    done.ends = {partition: log.end_offset for partition, log in found.logs.items()}
    done.cuts = found.cuts
