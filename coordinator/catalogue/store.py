# SPDX-License-Identifier: Apache-2.0
"""The catalogue of a node that is alone, and of a supervisor: kept in the data directory, written in the io thread."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.errors import OffsetsTopicChanged
from coordinator.catalogue.file import CatalogueFile
from coordinator.catalogue.keeper import CatalogueKeeper, T
from coordinator.catalogue.limits import DEFAULT_LIMITS, TopicLimits
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.telemetry.logs import get_logger
from storage.disk.filesystem import FileSystem

log = get_logger("catalogue")


class Submit(Protocol):
    """Runs `call` where it may block, then `on_done` on the event loop, with its result or what it raised."""

    def __call__(self, call: Callable[[], T], on_done: Callable[[T | BaseException], None]) -> None: ...


class CatalogueStore(CatalogueKeeper):
    """A catalogue, `catalogue.json`, and the changes on their way into it."""

    def __init__(
        self,
        data_dir: Path,
        submit: Submit,
        *,
        fs: FileSystem,
        new_topic_id: Callable[[], bytes],
        limits: TopicLimits = DEFAULT_LIMITS,
    ) -> None:
        self._file = CatalogueFile(fs, data_dir)
        super().__init__(self._file.path, new_topic_id)
        self._submit = submit
        self._limits = limits

    def load(self, offsets_partitions: int) -> Catalogue:
        """Read the catalogue; a new data directory gets one, so that its ids stay. Blocks.

        Raises CorruptCatalogue, MissingCatalogue, OffsetsTopicChanged, or another StorageError for a file that cannot
        be read or made.
        """
        try:
            catalogue = self._file.read()
        except FileNotFoundError:
            self._file.check_never_was()
            offsets_topic = Topic(name=OFFSETS_TOPIC, id=self.new_topic_id(), partitions=offsets_partitions)
            catalogue = Catalogue(offsets_topic)
        there = catalogue.offsets_topic.partitions
        if there != offsets_partitions:
            raise OffsetsTopicChanged(
                self.path,
                f"offsets.topic.num.partitions is {offsets_partitions}, but this data was made with {there}, "
                "which places every group",
            )
        if self._file.is_doubtful:  # new, of an older version, or with a torn tail
            self._file.make(catalogue.offsets_topic, catalogue.unsorted())
        self._file.mark()
        catalogue.limits = self._limits
        self._catalogue = catalogue
        return catalogue

    def _keep(self, changes: Changes) -> None:
        file, catalogue = self._file, self.catalogue
        # As it is now, for the other thread; a list of all topics, but only after a failure.
        there = catalogue.unsorted() if file.is_doubtful else None

        def write() -> None:
            if there is not None:
                file.make(catalogue.offsets_topic, there)
            file.append(changes)

        def written(result: BaseException | None) -> None:
            if isinstance(result, BaseException):
                self._failed(result)
                return
            self._kept(changes)

        self._submit(write, written)

    def _taken_over(self) -> None:
        if self._file.is_mostly_changes:
            self._make_anew()
        super()._taken_over()

    def _make_anew(self) -> None:
        """Let the file be what there is now; changes that follow are written after it, in the same thread."""
        file, offsets_topic, topics = self._file, self.catalogue.offsets_topic, self.catalogue.unsorted()

        def made(result: BaseException | None) -> None:
            if isinstance(result, BaseException):
                log.warning("the catalogue was not made anew, and goes on as it is", error=str(result))

        self._submit(lambda: file.make(offsets_topic, topics), made)
