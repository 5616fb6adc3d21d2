# SPDX-License-Identifier: Apache-2.0
"""A worker's catalogue: a copy of the supervisor's, which alone changes it and puts it on disk."""

from collections.abc import Callable
from pathlib import Path

from coordinator.catalogue import file_format
from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.store import CatalogueStore, Change, T
from coordinator.cluster.messages import Changed, ChangeTopics
from coordinator.cluster.topic_changes import difference
from storage.errors import StorageError


class RemoteCatalogueStore(CatalogueStore):
    """The same to handlers as `CatalogueStore`: a change is visible, and answered, once it is on disk.

    An edit is tried on a copy, and the difference sent to the supervisor. What is on disk comes from there, before
    the answer does. Where another worker was faster, the edit is tried again on what is new.
    """

    def __init__(self, data_dir: Path, content: bytes, send: Callable[[ChangeTopics], None]) -> None:
        super().__init__(data_dir, NoDisk())
        self._catalogue = file_format.decode(content, self.path)
        self._send = send

    def replaced(self, content: bytes) -> None:
        """The supervisor has another catalogue on disk now."""
        self._take_over(file_format.decode(content, self.path))

    def answered(self, answer: Changed) -> None:
        """The supervisor has done what was asked last, or could not, or must be asked again."""
        changes, self._under_way = self._under_way, []
        if answer.conflict:
            self._gathering = changes + self._gathering
            changes = []
        elif answer.error:
            for change in changes:
                change.outcome = StorageError(self.path, answer.error)
        self._tell(changes + self._start_next())

    def _write(self, draft: Catalogue, changes: list[Change]) -> None:
        self._under_way = changes
        self._send(ChangeTopics(difference(self.catalogue, draft)))


class NoDisk:
    """In place of the thread that writes: a worker writes no catalogue."""

    def __call__(self, call: Callable[[], T], on_done: Callable[[T | BaseException], None]) -> None:
        raise AssertionError("a worker writes no catalogue")
