# SPDX-License-Identifier: Apache-2.0
"""Which journals are in use, noted outside of their directory: so a start notices one that is gone, or foreign.

`open-journals` in the data directory (`open-journals.<node>` where several nodes share it) names each journal
that something may still be only in, by its number and its salt. It is on disk before anything is accepted into a
journal that it names, and names one no more before that is removed. After a clean stop it names none, and the id
that is also in `.kafka_cleanshutdown`: where the two differ, a broker or an older version was here since.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from protocol.names import Offset, Partition
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
    journal_dir_of,
    journal_dirs,
    journal_name,
    open_journals_file,
    parse_journal,
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


class JournalRegistryFile(msgspec.Struct, frozen=True):
    """What the file says: the journals in use, salts by number; `closed` is the id of a clean stop."""

    journals: dict[int, bytes] = {}
    closed: str | None = None
    version: int = _VERSION


class _CleanMark(msgspec.Struct):
    id: str | None = None


def read_note(fs: FileSystem, path: Path) -> JournalRegistryFile | None:
    """What was noted; None where nothing ever was. Raises CorruptLog when it makes no sense, and OSError."""
    try:
        data = read_file(fs, path)
    except FileNotFoundError:
        return None
    return parse_note(data, path)


def parse_note(data: bytes, path: Path) -> JournalRegistryFile:
    """What the content of such a file says. Raises CorruptLog when it makes no sense."""
    try:
        note = msgspec.json.decode(data, type=JournalRegistryFile)
    except (msgspec.DecodeError, ValueError) as error:
        raise CorruptLog(path, f"it does not say which journals are in use: {error}") from error
    if note.version != _VERSION:
        raise CorruptLog(path, f"version {note.version}, and this is {_VERSION}")
    return note


def write_note(fs: FileSystem, directory: Path, journals: Mapping[int, bytes]) -> None:
    """Note that these journals of a directory are in use. Durable on return. Raises OSError."""
    atomic_write(fs, open_journals_file(directory), msgspec.json.encode(JournalRegistryFile(dict(journals))))


class JournalRegistry:
    """The journals that a node has in use, as it last noted them for itself."""

    __slots__ = ("_directory", "_fs", "journals")

    def __init__(self, fs: FileSystem, directory: Path) -> None:
        self.journals: dict[int, bytes] | None = None
        """Their salts by number; None before anything was noted by this process."""
        self._fs = fs
        self._directory = directory

    def note(self, journals: Mapping[int, bytes]) -> None:
        """Note these instead. Durable on return. Raises OSError."""
        write_note(self._fs, self._directory, journals)
        self.journals = dict(journals)


def leave_closed(fs: FileSystem, data_dir: Path, directory: Path) -> None:
    """Mark a clean stop, as a Kafka broker does, and in a way that shows whether anybody was here since.

    Raises OSError.
    """
    stop = random_id(fs)
    atomic_write(fs, open_journals_file(directory), msgspec.json.encode(JournalRegistryFile(closed=stop)))
    # Kafka (CleanShutdownFileHandler) takes a mark with a field that it does not know for one without an epoch.
    mark = {"version": 0, "brokerEpoch": -1, "id": stop}
    atomic_write(fs, data_dir / CLEAN_SHUTDOWN_FILE, msgspec.json.encode(mark))


def take_over(fs: FileSystem, data_dir: Path) -> bool:
    """Begin to use a directory: it is not marked as cleanly stopped any more.

    Returns whether it is as its last user of this kind left it: no broker and no older version has written there
    since. Raises CorruptLog and OSError.
    """
    note = read_note(fs, data_dir / OPEN_JOURNALS_FILE)
    as_left = is_as_left(fs, data_dir)
    if as_left and note is not None and note.closed is not None:
        # Before the mark goes: without it the note would not be believed at the next start.
        write_note(fs, data_dir / JOURNAL_DIR, {})
    fs.remove(data_dir / CLEAN_SHUTDOWN_FILE)
    return as_left


def distrust(fs: FileSystem, data_dir: Path) -> None:
    """A directory that is mended is not marked as cleanly stopped any more, and what is noted in it stays true.

    Raises OSError.
    """
    try:
        take_over(fs, data_dir)
    except CorruptLog:  # the next start names it
        fs.remove(data_dir / CLEAN_SHUTDOWN_FILE)


def is_as_left(fs: FileSystem, data_dir: Path) -> bool:
    """As `take_over` returns, and changes nothing. Raises CorruptLog and OSError."""
    note = read_note(fs, data_dir / OPEN_JOURNALS_FILE)
    if note is None or note.closed is None:
        return note is not None
    try:
        return is_closed_by(note, read_file(fs, data_dir / CLEAN_SHUTDOWN_FILE))
    except FileNotFoundError:
        return False


def is_closed_by(note: JournalRegistryFile, clean_mark: bytes) -> bool:
    """Whether the content of `.kafka_cleanshutdown` is of the stop that is noted."""
    try:
        return msgspec.json.decode(clean_mark, type=_CleanMark).id == note.closed
    except msgspec.DecodeError:
        return False


def noted_dirs(fs: FileSystem, data_dir: Path) -> list[Path]:
    """The directories of journals that there are, and those that there should be. Raises CorruptLog and OSError."""
    names = fs.listdir(data_dir)
    found = set(journal_dirs(names, data_dir))
    for name in names:
        directory = journal_dir_of(data_dir / name)
        if directory is not None:
            note = read_note(fs, data_dir / name)
            if note is not None and note.journals:
                found.add(directory)
    return sorted(found)


def refuse_strangers(
    directory: Path,
    journals: Sequence[JournalContents],
    noted: Mapping[int, bytes] | None,
    points: Mapping[Partition, Offset],
) -> None:
    """Raise CorruptLog unless the journals found in a directory are those that were in use; None: that is not known.

    What lies before `points`, up to where each partition is on disk, is in the segments: a journal with nothing
    else is not needed, whichever version wrote it.
    """
    for error in strangers(directory, journals, noted, points):
        raise error


def strangers(
    directory: Path,
    journals: Sequence[JournalContents],
    noted: Mapping[int, bytes] | None,
    points: Mapping[Partition, Offset],
) -> Iterator[CorruptLog]:
    """What `refuse_strangers` would raise, for each journal that is missing, or not of this directory."""
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


def clear_journals(fs: FileSystem, directories: Iterable[Path], kept: Collection[Path]) -> None:
    """Remove what nodes that are gone have left in `directories`, but for what is `kept`. Raises OSError."""
    for directory in directories:
        note_only(fs, directory, kept)
        for name in fs.listdir(directory):
            path = directory / name
            if path not in kept and (parse_journal(name) is not None or name in _OTHER_FILES):
                fs.remove(path)
        if not fs.listdir(directory):
            fs.rmdir(directory)
            fs.fsync_dir(directory.parent)


def note_only(fs: FileSystem, directory: Path, kept: Collection[Path]) -> None:
    """Of what is noted for a directory, only what is `kept` is still in use."""
    note = read_note(fs, open_journals_file(directory))
    if note is None:
        return
    journals = {n: salt for n, salt in note.journals.items() if directory / journal_name(n) in kept}
    if journals or directory.name == JOURNAL_DIR:
        write_note(fs, directory, journals)
    else:
        fs.remove(open_journals_file(directory))
        fs.fsync_dir(directory.parent)
