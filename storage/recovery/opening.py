# SPDX-License-Identifier: Apache-2.0
"""Opens a node's logs at its start, after their recovery (`recovery`), and removes its journals at a clean stop."""

from collections.abc import Collection
from pathlib import Path

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.checkpoint_file import SegmentPosition, TopicPartition, merge_node_offset_files
from storage.disk.layout import CLEANER_OFFSET_FILE, SPARE_JOURNAL, parse_journal
from storage.errors import CorruptLog
from storage.journal.journal import Journal, remove_or_recycle
from storage.journal.journal_registry import (
    find_journal_directories,
    mark_clean_stop,
    remove_gone_nodes_journals,
    unlist_journals,
)
from storage.journal.node_data_directory import NodeDataDirectory
from storage.partition.log import PartitionLog
from storage.recovery.log_recovery import DiscardedRange, recover_log
from storage.recovery.recovery import (
    PartitionRecoveryInputs,
    RecoveredDirectory,
    RecoveryAssumptions,
    recover,
    store_broker_end_offsets,
    write_recovery_points,
)


class OpenedPartitions(msgspec.Struct):
    """The partitions of a node, all on disk up to their ends, and its new journal."""

    logs: dict[Partition, PartitionLog]
    failed: dict[Partition, CorruptLog]
    cuts: tuple[DiscardedRange, ...]
    points: dict[TopicPartition, Offset]
    journal: Journal
    last_flush: int
    kept: set[Path]
    """The older journals that the repair of a failed partition needs."""
    kept_here: dict[int, bytes]
    """The salts, by number, of the kept journals in the node's own directory."""
    unread: dict[Partition, PartitionRecoveryInputs]
    """The failed partitions that the disk could not read, and what `recover_skipped_partition` needs to retry."""


def recover_logs_and_begin_journal(
    directory: NodeDataDirectory,
    owned: Collection[Partition] | None,
    journals_to_keep: Collection[Path],
    given: RecoveryAssumptions,
) -> OpenedPartitions:
    """Read everything from disk, make it durable in the segments, and start a new journal.

    `owned` are the partitions of a node that shares the directory with others, and None for a lone node. The journals
    in `journals_to_keep` are not removed. Raises CorruptLog, StorageError, and OSError.
    """
    fs, data_dir = directory.fs, directory.data_dir
    others: list[Path] = []
    if owned is None:  # several nodes may have shared the directory, the last time
        others = [each for each in find_journal_directories(fs, data_dir) if each != directory.journal_dir]
    found = recover(
        fs,
        data_dir,
        directory.settings,
        directory.topic_id,
        journal_dirs=(directory.journal_dir, *others),
        partitions=owned,
        given=given,
    )
    try:
        found.make_durable(directory.settings.topic, at_start=given.at_start)
        found.note_broker_writes(fs, data_dir, directory.settings.topic, at_start=given.at_start)
        return _begin(directory, found, owned, journals_to_keep, others)
    except BaseException:
        found.close_logs()
        raise


def _begin(
    directory: NodeDataDirectory,
    found: RecoveredDirectory,
    owned: Collection[Partition] | None,
    kept: Collection[Path],
    others: Collection[Path],
) -> OpenedPartitions:
    fs, settings = directory.fs, directory.settings
    fs.mkdir(directory.journal_dir)
    fs.fsync_dir(directory.data_dir)
    known = found.recovery_points
    if owned is not None:
        known = {key: known[key] for key in known if key[1] in owned}
    points = write_recovery_points(
        fs, directory.recovery_point_directory, known, found.logs.values(), settings.topic
    )
    for log in found.logs.values():
        log.store_segment_list()
    journal = Journal.create(
        fs,
        directory.journal_dir,
        found.journals[-1].number + 1 if found.journals else 1,
        step_bytes=settings.journal_step_bytes,
        discarded_from=found.last_flush + 1,
    )
    all_kept = found.find_journals_of_partitions(found.failed) | set(kept)
    kept_here = {each.number: each.salt for each in found.journals if each.path in all_kept}
    try:
        directory.in_use.write_journals_in_use(kept_here | {journal.number: journal.salt})
    except BaseException:
        journal.close()
        raise
    _clear_away(directory, found, all_kept, others)
    return OpenedPartitions(
        found.logs,
        found.failed,
        tuple(found.cuts),
        points,
        journal,
        found.last_flush,
        all_kept,
        kept_here,
        found.unread,
    )


def _clear_away(
    directory: NodeDataDirectory, found: RecoveredDirectory, kept: Collection[Path], others: Collection[Path]
) -> None:
    """Remove the journals, which the segments supersede, and the notes in `others`, except the `kept` journals."""
    fs = directory.fs
    for old in found.journals:
        if old.path not in kept:
            remove_or_recycle(fs, old.path, spare_bytes_max=directory.settings.journal_spare_bytes_max)
    fs.fsync_dir(directory.journal_dir)
    merge_node_offset_files(fs, directory.data_dir, others, CLEANER_OFFSET_FILE)
    remove_gone_nodes_journals(fs, others, kept)


def open_handed_over_partition(
    directory: NodeDataDirectory,
    partition: Partition,
    recovery_point: Offset,
    position: SegmentPosition | None,
) -> tuple[PartitionLog, list[DiscardedRange]]:
    """Open a partition that another node has left whole in its segments; return also the ranges left out.

    Raises CorruptLog and OSError, with the log closed.
    """
    log = directory.make_unloaded_log(partition)
    try:
        cuts = recover_log(directory.fs, log, recovery_point, position, clean=True)
        if log.needs_fsync:
            log.fsync()
        log.store_segment_list()
    except BaseException:
        log.close_files()
        raise
    return log, cuts


def recover_skipped_partition(
    directory: NodeDataDirectory, partition: Partition, by: PartitionRecoveryInputs
) -> tuple[PartitionLog, list[DiscardedRange]]:
    """Open a partition that the disk could not read at the start, and make it durable; return also the ranges left out.

    Raises CorruptLog and OSError, with the log closed.
    """
    log = directory.make_unloaded_log(partition)
    try:
        cuts = recover_log(directory.fs, log, by.point, by.hint, by.entries, as_left=by.as_left)
        if log.needs_fsync:
            log.fsync()
        if not by.as_left:
            log.leader_epochs().write()
            ends = {(directory.settings.topic, partition): log.end_offset}
            store_broker_end_offsets(directory.fs, directory.data_dir, ends)
    except BaseException:
        log.close_files()
        raise
    return log, cuts


def remove_journals_at_stop(directory: NodeDataDirectory, kept: Collection[Path], *, mark: bool) -> None:
    """Remove the journals, which the segments supersede, and with `mark` mark a clean stop, as a Kafka broker does.

    Sets no mark while journals are `kept`. Raises OSError.
    """
    fs, journals = directory.fs, directory.journal_dir
    unlist_journals(fs, journals, kept)
    for name in fs.listdir(journals):
        path = journals / name
        if name == SPARE_JOURNAL or (parse_journal(name) is not None and path not in kept):
            fs.remove(path)
    if fs.listdir(journals):
        return
    # A Kafka broker refuses a data directory with a directory in it that is no partition.
    fs.rmdir(journals)
    fs.fsync_dir(directory.data_dir)
    if mark:
        mark_clean_stop(fs, directory.data_dir, journals)
