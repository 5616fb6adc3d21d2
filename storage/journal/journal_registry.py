# SPDX-License-Identifier: Apache-2.0
"""A list of the journals in use, outside of their directory: so a start notices a missing or foreign journal.

`open-journals` in the data directory (`open-journals.<node>` if several nodes share it) names each journal that may
hold the only copy of a flush, by its number and its salt. The name is on disk before the journal accepts a flush,
and is removed before the journal is. After a clean stop the list is empty, and has the id that is also in
`.kafka_cleanshutdown`: if the two differ, a broker or an older version has used the directory since.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from protocol.newtypes import Offset, Partition
from storage.disk.filesystem import FileSystem, atomic_write, read_file
from storage.disk.layout import (
    CLEAN_SHUTDOWN_FILE,
    CLEANER_OFFSET_FILE,
    JOURNAL_DIR,
    OPEN_JOURNALS_FILE,
    POSITION_FILE,
    RECOVERY_POINT_FILE,
    SPARE_JOURNAL,
    TEMPORARY_SUFFIX,
    journal_dirs,
    journal_list_path,
    journal_name,
    parse_journal,
    parse_journal_list_path,
)
from storage.disk.properties import random_id
from storage.errors import CorruptLog
from storage.journal.journal_reader import JournalContents

_VERSION: Final = 1
_LOST: Final = "what was accepted since the last checkpoint may be only in it"
_OTHER_FILES: Final = frozenset(
    {
        CLEANER_OFFSET_FILE,
        SPARE_JOURNAL,
        RECOVERY_POINT_FILE,
        POSITION_FILE,
        RECOVERY_POINT_FILE + TEMPORARY_SUFFIX,
        POSITION_FILE + TEMPORARY_SUFFIX,
    }
)


class JournalRegistryContents(msgspec.Struct, frozen=True):
    """The content of the file: the journals in use, salts by number; `closed` is the id of a clean stop."""

    journals: dict[int, bytes] = {}
    closed: str | None = None
    version: int = _VERSION


class _CleanMark(msgspec.Struct):
    id: str | None = None


def read_journals_in_use(fs: FileSystem, path: Path) -> JournalRegistryContents | None:
    """Read the list of journals; return None if it was never written. Raises CorruptLog if invalid, and OSError."""
    try:
        data = read_file(fs, path)
    except FileNotFoundError:
        return None
    return parse_registry_file(data, path)


def parse_registry_file(data: bytes, path: Path) -> JournalRegistryContents:
    """Parse the content of such a file. Raises CorruptLog if it is invalid."""
    try:
        note = msgspec.json.decode(data, type=JournalRegistryContents)
    except (msgspec.DecodeError, ValueError) as error:
        raise CorruptLog(path, f"it does not say which journals are in use: {error}") from error
    if note.version != _VERSION:
        raise CorruptLog(path, f"version {note.version}, and this is {_VERSION}")
    return note


def write_registry_file(fs: FileSystem, directory: Path, journals: Mapping[int, bytes]) -> None:
    """Replace a directory's list of journals in use by these. Durable on return. Raises OSError."""
    atomic_write(
        fs, journal_list_path(directory), msgspec.json.encode(JournalRegistryContents(dict(journals)))
    )


class JournalRegistry:
    """The list of the journals that a node has in use, as last written by this process."""

    __slots__ = ("_directory", "_fs", "journals")

    def __init__(self, fs: FileSystem, directory: Path) -> None:
        self.journals: dict[int, bytes] | None = None
        """The salts of the journals by number; None until this process has written the list."""
        self._fs = fs
        self._directory = directory

    def write_journals_in_use(self, journals: Mapping[int, bytes]) -> None:
        """Replace the list by these journals. Durable on return. Raises OSError."""
        write_registry_file(self._fs, self._directory, journals)
        self.journals = dict(journals)


def mark_clean_stop(fs: FileSystem, data_dir: Path, directory: Path) -> None:
    """Mark a clean stop in the file that Kafka uses; the mark's id shows whether the directory is used later.

    Raises OSError.
    """
    stop = random_id(fs)
    atomic_write(fs, journal_list_path(directory), msgspec.json.encode(JournalRegistryContents(closed=stop)))
    # Kafka (CleanShutdownFileHandler) reads a mark with a field that it does not know as one without an epoch.
    mark = {"version": 0, "brokerEpoch": -1, "id": stop}
    atomic_write(fs, data_dir / CLEAN_SHUTDOWN_FILE, msgspec.json.encode(mark))


def consume_clean_mark(fs: FileSystem, data_dir: Path) -> bool:
    """Begin to use a directory, and remove its mark of a clean stop.

    Returns whether no broker and no older version has written into the directory since this version stopped
    using it. Raises CorruptLog and OSError.
    """
    note = read_journals_in_use(fs, data_dir / OPEN_JOURNALS_FILE)
    as_left = is_directory_unchanged(fs, data_dir)
    if as_left and note is not None and note.closed is not None:
        # Before the mark goes: without it the next start would not trust the note.
        write_registry_file(fs, data_dir / JOURNAL_DIR, {})
    fs.remove(data_dir / CLEAN_SHUTDOWN_FILE)
    return as_left


def remove_clean_mark(fs: FileSystem, data_dir: Path) -> None:
    """Remove the mark of a clean stop from a directory under repair, and keep its list of journals valid.

    Raises OSError.
    """
    try:
        consume_clean_mark(fs, data_dir)
    except CorruptLog:  # the next start reports it
        fs.remove(data_dir / CLEAN_SHUTDOWN_FILE)


def is_directory_unchanged(fs: FileSystem, data_dir: Path) -> bool:
    """Return the result of `consume_clean_mark`, but change nothing. Raises CorruptLog and OSError."""
    note = read_journals_in_use(fs, data_dir / OPEN_JOURNALS_FILE)
    if note is None or note.closed is None:
        return note is not None
    try:
        return is_matching_clean_mark(note, read_file(fs, data_dir / CLEAN_SHUTDOWN_FILE))
    except FileNotFoundError:
        return False


def is_matching_clean_mark(note: JournalRegistryContents, clean_mark: bytes) -> bool:
    """Return whether the content of `.kafka_cleanshutdown` has the id of the noted stop."""
    try:
        return msgspec.json.decode(clean_mark, type=_CleanMark).id == note.closed
    except msgspec.DecodeError:
        return False


def find_journal_directories(fs: FileSystem, data_dir: Path) -> list[Path]:
    """Return the directories of journals that exist or should exist. Raises CorruptLog and OSError."""
    names = fs.listdir(data_dir)
    found = set(journal_dirs(names, data_dir))
    for name in names:
        directory = parse_journal_list_path(data_dir / name)
        if directory is not None:
            note = read_journals_in_use(fs, data_dir / name)
            if note is not None and note.journals:
                found.add(directory)
    return sorted(found)


def check_journals_match(
    directory: Path,
    journals: Sequence[JournalContents],
    noted: Mapping[int, bytes] | None,
    points: Mapping[Partition, Offset],
) -> None:
    """Raise CorruptLog unless the journals found in a directory are those `noted` as in use; None if unknown.

    Batches before `points`, each partition's recovery point, are in the segments: a journal with no other
    batches is not needed, whichever version wrote it.
    """
    for error in find_journal_errors(directory, journals, noted, points):
        raise error


def find_journal_errors(
    directory: Path,
    journals: Sequence[JournalContents],
    noted: Mapping[int, bytes] | None,
    points: Mapping[Partition, Offset],
) -> Iterator[CorruptLog]:
    """Yield the error of `check_journals_match` for each journal that is missing, or not of this directory."""
    found = {journal.number: journal for journal in journals}
    known = noted or {}
    for number, salt in known.items():
        path = directory / journal_name(number)
        if number not in found:
            yield CorruptLog(path, f"the journal that was in use is missing: {_LOST}")
        elif found[number].salt != salt:
            yield CorruptLog(path, f"this is not the journal that was in use, which is missing: {_LOST}")
    for journal in journals:
        # Older versions note nothing.
        unknown = journal.number not in known and not (noted is None and journal.version == 1)
        if unknown and not _is_in_segments(journal, points):
            reason = "this journal was not in use here: it is another directory's, or of an earlier time"
            yield CorruptLog(journal.path, reason, position=journal.frames[0].position)


def _is_in_segments(journal: JournalContents, points: Mapping[Partition, Offset]) -> bool:
    entries = (entry for frame in journal.frames for entry in frame.entries)
    return all(entry.base_offset < points.get(entry.partition, 0) for entry in entries)


def remove_gone_nodes_journals(fs: FileSystem, directories: Iterable[Path], kept: Collection[Path]) -> None:
    """Remove the files that gone nodes have left in `directories`, except those in `kept`. Raises OSError."""
    for directory in directories:
        unlist_journals(fs, directory, kept)
        for name in fs.listdir(directory):
            path = directory / name
            if path not in kept and (parse_journal(name) is not None or name in _OTHER_FILES):
                fs.remove(path)
        if not fs.listdir(directory):
            fs.rmdir(directory)
            fs.fsync_dir(directory.parent)


def unlist_journals(fs: FileSystem, directory: Path, kept: Collection[Path]) -> None:
    """Remove all journals from a directory's list, except those in `kept`."""
    note = read_journals_in_use(fs, journal_list_path(directory))
    if note is None:
        return
    journals = {n: salt for n, salt in note.journals.items() if directory / journal_name(n) in kept}
    if journals or directory.name == JOURNAL_DIR:
        write_registry_file(fs, directory, journals)
    else:
        fs.remove(journal_list_path(directory))
        fs.fsync_dir(directory.parent)
