# SPDX-License-Identifier: Apache-2.0
"""The catalogue's file on disk: read at the start, appended to, and rewritten once most of it is changes. Blocks."""

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinator.catalogue import file_format
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.deletions import NOTHING, DeletedTopicsWithOffsets, StoredDeletions
from coordinator.catalogue.errors import MissingCatalogue
from coordinator.catalogue.topic import Topic
from coordinator.telemetry.logs import get_logger
from protocol.newtypes import Partition
from storage.disk.filesystem import FileSystem, atomic_write, read_file, replace_file_content
from storage.errors import StorageError, storage_error

log = get_logger("catalogue")

FILE_NAME: Final = "catalogue.json"
MARK_NAME: Final = "catalogue-kept"
"""The file next to the catalogue from its first day on: a directory without both is new, or a broker's."""
REWRITE_BYTES_MIN: Final = 1024 * 1024
"""The bytes of changes up to which the file is never rewritten."""


class CatalogueFile:
    """The file `catalogue.json` in a data directory, for one thread at a time."""

    def __init__(self, fs: FileSystem, data_dir: Path) -> None:
        self.path = data_dir / FILE_NAME
        self._mark = data_dir / MARK_NAME
        self._fs = fs
        self._made_bytes = 0
        self._end = 0
        self._is_doubtful = True
        self.deletions: DeletedTopicsWithOffsets | None = None
        """The deletions that `read` has found in the file."""

    def read(self) -> Catalogue:
        """Return the topics that are in the file, without a torn tail.

        Raises FileNotFoundError, CorruptCatalogue, or another StorageError for a file that cannot be read.
        """
        try:
            data = read_file(self._fs, self.path)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise storage_error(self.path, error, "reading the catalogue") from error
        found = file_format.decode(data, self.path)
        if found.is_torn:
            log.warning(
                "cut an incomplete change of topics",
                path=str(self.path),
                position=found.end,
                cut_bytes=len(data) - found.end,
            )
        self._made_bytes, self._end = found.made_bytes, found.end
        self._is_doubtful = found.is_torn or not found.made_bytes
        self.deletions = found.deletions
        return found.catalogue

    def refuse_lost_file(self) -> None:
        """Raise MissingCatalogue if there was a file once."""
        if self._fs.exists(self._mark):
            raise MissingCatalogue(
                self.path,
                "the file is missing, and with it the topics, their ids and the number of partitions: put it back; "
                "`groupkeeper log repair --catalogue` shows what can be done without it",
            )

    def mark_existence(self) -> None:
        """Note that the file exists, so that its loss is noticed. Raises StorageError."""
        try:
            if not self._fs.exists(self._mark):
                atomic_write(self._fs, self._mark, f"{FILE_NAME} belongs here\n".encode())
        except OSError as error:
            raise storage_error(self._mark, error, "writing") from error

    @property
    def is_mostly_changes(self) -> bool:
        """True if most of the file is changes, so that it should be rewritten."""
        return self._end - self._made_bytes > max(self._made_bytes, REWRITE_BYTES_MIN)

    @property
    def is_doubtful(self) -> bool:
        """True if the file has to be rewritten before anything is appended.

        A failed write may have left anything, a torn tail has to go, and a file of an older version has no lines.
        """
        return self._is_doubtful

    def make(
        self, offsets_topic: Topic, topics: Collection[Topic], deletions: StoredDeletions = NOTHING
    ) -> None:
        """Replace the file by these topics and deletions, atomically and durably. Raises StorageError."""
        data = b"".join(file_format.encode_file_in_parts(offsets_topic, topics, deletions))
        try:
            replace_file_content(self._fs, self.path, data, sync=True)
        except OSError as error:  # the old file is unchanged
            raise storage_error(self.path, error, "writing the catalogue") from error
        self._write(lambda: self._fs.fsync_dir(self.path.parent))
        self._made_bytes = self._end = len(data)
        self._is_doubtful = False
        self.mark_existence()

    def append(self, changes: Changes) -> None:
        """Append changes to the file, durably. Raises StorageError; then `is_doubtful`."""
        pieces = enumerate(changes.split_into_pieces())
        self._add(
            [file_format.encode_changes(piece, continues_line_before=number > 0) for number, piece in pieces]
        )

    def append_dropped(self, dropped: Mapping[int, Sequence[Partition]]) -> None:
        """Append, by the number of a deleted topic, which partitions hold no offsets in the topics up to that number.

        It is on disk on return. Raises StorageError; then `is_doubtful`.
        """
        self._add([file_format.encode_finished_drops(dropped)] if dropped else [])

    def _add(self, data: list[bytes]) -> None:
        if self._is_doubtful:
            raise StorageError(self.path, "an earlier write has failed")
        if not data:
            return
        self._write(lambda: self._append(data))
        self._end += sum(map(len, data))

    def _append(self, data: list[bytes]) -> None:
        file = self._fs.open(self.path)
        try:
            file.pwrite(data, self._end)
            file.fsync()
        finally:
            file.close()

    def _write(self, write: Callable[[], None]) -> None:
        try:
            write()
        except OSError as error:
            self._is_doubtful = True
            raise storage_error(self.path, error, "writing the catalogue") from error
