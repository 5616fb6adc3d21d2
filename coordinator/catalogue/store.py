# SPDX-License-Identifier: Apache-2.0
"""Keeps the catalogue on disk, and makes a change visible only once it is there.

A change is tried on a copy. The copy is written in the io thread, and when it is on disk the catalogue takes
it over and whoever asked is told. So nobody can see, or be promised, a topic that a crash takes back, and a
failed write leaves nothing to undo. One write is under way at a time; changes that arrive meanwhile share the
next one.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from coordinator.catalogue import file_format
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.ids import random_topic_id
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.logs import get_logger
from storage.errors import StorageError, storage_error
from storage.filesystem import FileSystem, RealFileSystem, atomic_write, read_file

log = get_logger("catalogue")

FILE_NAME: Final = "catalogue.json"

T = TypeVar("T")


class Submit(Protocol):
    """Runs `call` where it may block, then `on_done` on the event loop, with its result or what it raised."""

    def __call__(self, call: Callable[[], T], on_done: Callable[[T | BaseException], None]) -> None: ...


class OffsetsTopicChanged(StorageError):
    """`offsets.topic.num.partitions` is not what this data directory was made with."""


class Change(msgspec.Struct):
    """An edit that waits for the disk, and whom to tell."""

    edit: Callable[[Catalogue], Any]
    done: Callable[[Any], None]
    outcome: Any = None


class CatalogueStore:
    """`catalogue.json` in a data directory, and the changes on their way into it.

    `on_changed()` is called on the event loop once another catalogue is on disk, and then
    `on_topics_deleted(names)` is called on the event loop when topics are gone for good, before those who
    asked for it are answered. Kafka drops the offsets of such topics (GroupCoordinator.onPartitionsDeleted).
    """

    def __init__(
        self,
        data_dir: Path,
        submit: Submit,
        *,
        fs: FileSystem | None = None,
        new_topic_id: Callable[[], bytes] = random_topic_id,
    ) -> None:
        self.path = data_dir / FILE_NAME
        self.on_topics_deleted: Callable[[Sequence[str]], None] = lambda _names: None
        self.on_changed: Callable[[], None] = lambda: None
        self.new_topic_id = new_topic_id
        self._submit = submit
        self._fs = fs or RealFileSystem()
        self._catalogue: Catalogue | None = None
        self._gathering: list[Change] = []
        self._under_way: list[Change] = []

    @property
    def catalogue(self) -> Catalogue:
        """What is on disk: the same object for the life of the store. Only after `load`."""
        assert self._catalogue is not None, "the catalogue has not been loaded"
        return self._catalogue

    def load(self, offsets_partitions: int) -> Catalogue:
        """Read the catalogue; a new data directory gets one, so that its ids stay. Blocks.

        Raises CorruptCatalogue, OffsetsTopicChanged, or another StorageError for a file that cannot be read
        or made.
        """
        try:
            data = read_file(self._fs, self.path)
        except FileNotFoundError:
            offsets_topic = Topic(name=OFFSETS_TOPIC, id=self.new_topic_id(), partitions=offsets_partitions)
            self._catalogue = Catalogue(offsets_topic)
            self.save(self._catalogue)
            return self._catalogue
        except OSError as error:
            raise storage_error(self.path, error, "reading the catalogue") from error
        self._catalogue = file_format.decode(data, self.path)
        there = self._catalogue.offsets_topic.partitions
        if there != offsets_partitions:
            raise OffsetsTopicChanged(
                self.path,
                f"offsets.topic.num.partitions is {offsets_partitions}, but this data was made with {there}, "
                "which places every group",
            )
        return self._catalogue

    def save(self, catalogue: Catalogue) -> None:
        """Put `catalogue` in the file's place, all or nothing, and on disk. Blocks. Raises StorageError."""
        data = file_format.encode(catalogue)
        try:
            atomic_write(self._fs, self.path, data)
        except OSError as error:
            raise storage_error(self.path, error, "writing the catalogue") from error

    def change(self, edit: Callable[[Catalogue], T], done: Callable[[T | BaseException], None]) -> None:
        """Let `edit` change a copy of the catalogue; its result counts once the copy is on disk.

        `done` is called with the result, or with the exception that kept it from the disk: at once where there
        is nothing to write, else later. `edit` may run after other changes, and must decide by the catalogue
        that it is given.
        """
        self._gathering.append(Change(edit, done))
        if not self._under_way:
            self._tell(self._start_next())

    def _write(self, draft: Catalogue, changes: list[Change]) -> None:
        self._under_way = changes
        self._submit(lambda: self.save(draft), lambda result: self._written(draft, result))

    def _written(self, draft: Catalogue, result: BaseException | None) -> None:
        changes, self._under_way = self._under_way, []
        if isinstance(result, BaseException):
            log.error("catalogue not written", changes=len(changes), error=str(result))
            for change in changes:
                change.outcome = result
        else:
            self._take_over(draft)
        # The next write starts before anybody is told, so that a change made by an answer joins the queue.
        self._tell(changes + self._start_next())

    def _take_over(self, draft: Catalogue) -> None:
        gone = self.catalogue.missing_from(draft)
        self.catalogue.adopt(draft)
        self.on_changed()
        if gone:
            self.on_topics_deleted([topic.name for topic in gone])

    def _start_next(self) -> list[Change]:
        """Make one draft of all that gathered and write it; returns the changes, if it needs no write."""
        changes, self._gathering = self._gathering, []
        draft = self.catalogue.copy()
        for change in changes:
            attempt = draft.copy()
            try:
                change.outcome = change.edit(attempt)
            except Exception as error:
                # One who asked for something impossible must not spoil it for the others.
                log.exception("change of the catalogue failed")
                change.outcome = error
            else:
                draft = attempt
        if draft == self.catalogue:
            return changes
        self._write(draft, changes)
        return []

    def _tell(self, changes: list[Change]) -> None:
        errors: list[Exception] = []
        for change in changes:
            try:
                change.done(change.outcome)
            except Exception as error:  # noqa: BLE001 - raised below, once everybody has been told
                errors.append(error)
        if errors:
            raise ExceptionGroup("changes of the catalogue that could not be answered", errors)
