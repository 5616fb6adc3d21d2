# SPDX-License-Identifier: Apache-2.0
"""The catalogue of a single node or a supervisor, stored in the data directory and written in the io thread."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.catalogue_writer import CatalogueWriter, T
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.deletions import NOTHING, DeletedTopicsWithOffsets
from coordinator.catalogue.errors import OffsetsTopicChanged
from coordinator.catalogue.file import CatalogueFile
from coordinator.catalogue.limits import DEFAULT_LIMITS, TopicLimits
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.telemetry.logs import get_logger
from protocol.newtypes import Partition
from storage.disk.filesystem import FileSystem

log = get_logger("catalogue")


class BlockingRunner(Protocol):
    """Runs `call` where it may block, then `on_done` on the event loop, with its result or exception."""

    def __call__(self, call: Callable[[], T], on_done: Callable[[T | BaseException], None]) -> None: ...


class CatalogueStore(CatalogueWriter):
    """The catalogue in `catalogue.json`, and the changes that wait to be applied to it."""

    def __init__(
        self,
        data_dir: Path,
        submit: BlockingRunner,
        *,
        fs: FileSystem,
        new_topic_id: Callable[[], bytes],
        limits: TopicLimits = DEFAULT_LIMITS,
    ) -> None:
        self._file = CatalogueFile(fs, data_dir)
        super().__init__(self._file.path, new_topic_id)
        self._submit = submit
        self._limits = limits
        self.deletions = DeletedTopicsWithOffsets(0)
        """The deleted topics in which partitions may still hold offsets; available once they are loaded."""
        self.topics_version: Callable[[], int] = lambda: 0
        """Returns the version of the topics, for nodes that are notified of changes."""
        self._on_gone = self._went
        self._notes = self._noted_notes = 0  # how many were begun, and up to which one all are on disk
        self._coming = Changes()  # the creations, stored once the deletions are applied

    def load_or_create(self, offsets_partitions: int) -> Catalogue:
        """Read the catalogue, or create one in a new data directory, so that its ids stay. Blocks.

        Raises CorruptCatalogue, MissingCatalogue, OffsetsTopicChanged, or another StorageError for a file that cannot
        be read or made.
        """
        try:
            catalogue = self._file.read()
        except FileNotFoundError:
            self._file.refuse_lost_file()
            offsets_topic = Topic(name=OFFSETS_TOPIC, id=self.new_topic_id(), partitions=offsets_partitions)
            catalogue = Catalogue(offsets_topic)
        found = self._file.deletions  # which continues the count even if none is left to be dropped
        self.deletions = DeletedTopicsWithOffsets(offsets_partitions) if found is None else found
        there = catalogue.offsets_topic.partitions
        if there != offsets_partitions:
            raise OffsetsTopicChanged(
                self.path,
                f"offsets.topic.num.partitions is {offsets_partitions}, but this data was made with {there}, "
                "which places every group",
            )
        if self._file.is_doubtful:  # new, of an older version, or with a torn tail
            self._file.make(
                catalogue.offsets_topic, catalogue.snapshot_topics(), self.deletions.to_stored_deletions()
            )
        self._file.mark_existence()
        catalogue.limits = self._limits
        self._catalogue = catalogue
        return catalogue

    def _keep(self, changes: Changes) -> None:
        # A topic that is created again is written after the note that the offsets in the old one were dropped, or
        # with the whole file, should the note have failed. Else a start would drop the offsets in the new topic.
        changes, self._coming = changes.split_off_creations()
        self._write(changes)

    def _write(self, changes: Changes) -> None:
        file, catalogue = self._file, self.catalogue
        # A snapshot for the other thread: a list of all topics, but only after a failure.
        there = catalogue.snapshot_topics() if file.is_doubtful else None
        deletions = self.deletions.to_stored_deletions() if there is not None else NOTHING

        def write() -> None:
            if there is not None:
                file.make(catalogue.offsets_topic, there, deletions)
            file.append(changes)

        def written(result: BaseException | None) -> None:
            if isinstance(result, BaseException):
                self._failed(result)
                return
            self._kept(changes)

        self._submit(write, written)

    def _went(self, names: Sequence[str]) -> None:
        self.deletions.note_deleted(names, self.topics_version())

    def persist_finished_drops(
        self,
        dropped: Mapping[Partition, int],
        done: Callable[[bool], None],
        is_damaged: Callable[[Partition], bool] = lambda _partition: False,
    ) -> None:
        """Note durably that partitions hold no offsets in the deleted topics up to a number.

        `done` is called with whether the note is on disk, at once if it is known to be. If it is not, the next stored
        change writes the note as well. Damaged partitions have no leader that could drop anything.
        """
        news: dict[int, list[Partition]] = {}
        for partition, number in dropped.items():
            if self.deletions.record_drops_through(partition, number):
                news.setdefault(number, []).append(partition)
        self.deletions.forget_dropped(is_damaged)
        if not news and self._notes == self._noted_notes:
            done(True)
            return
        self._notes += 1
        self._submit(self._noting(news), partial(self._noted, self._notes, done))

    def _noting(self, news: Mapping[int, Sequence[Partition]]) -> Callable[[], None]:
        """Return the function that writes the note, or after a failure the whole file if no change is in progress."""
        file = self._file
        if not file.is_doubtful or self._under_way or self._taking_over is not None:
            return lambda: file.append_dropped(news)
        offsets_topic, topics = self.catalogue.offsets_topic, self.catalogue.snapshot_topics()
        deletions = self.deletions.to_stored_deletions()
        return lambda: file.make(offsets_topic, topics, deletions)

    def _noted(self, number: int, done: Callable[[bool], None], result: BaseException | None) -> None:
        if isinstance(result, BaseException):
            log.error("the catalogue was not written", error=str(result))
        else:
            self._noted_notes = number
        done(result is None)

    def _taken_over(self) -> None:
        if self._coming:
            changes, self._coming = self._coming, Changes()
            self._write(changes)
            return
        if self._file.is_mostly_changes:
            self._make_anew()
        super()._taken_over()

    def _make_anew(self) -> None:
        """Rewrite the file with the current topics; later changes are written after it, in the same thread."""
        file, offsets_topic, topics = (
            self._file,
            self.catalogue.offsets_topic,
            self.catalogue.snapshot_topics(),
        )
        deletions = self.deletions.to_stored_deletions()

        def made(result: BaseException | None) -> None:
            if isinstance(result, BaseException):
                log.warning("the catalogue was not rewritten; the file stays as it is", error=str(result))

        self._submit(lambda: file.make(offsets_topic, topics, deletions), made)
