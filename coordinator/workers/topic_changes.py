# SPDX-License-Identifier: Apache-2.0
"""Changes of topics from a worker, made in the one catalogue.

A worker decides on what it knows, and asks for the difference. It is made only if the topics in it are still as the
worker saw them; else the worker decides again, on what is new.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from coordinator.catalogue.changes import Changes, StaleChange
from coordinator.catalogue.steps import Steps
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topics import Draft
from coordinator.workers.messages import ChangeTopics


def apply_changes(changes: Sequence[Changes], draft: Draft) -> Steps[bool]:
    """Make all changes, or, where one does not fit any more, none; whether they were made. A step for each.

    They do not fit, either, where others have taken the room that the limits leave: the worker then sees that itself.
    """
    mark, before = draft.mark(), msgspec.structs.replace(draft.totals)
    try:
        for each in changes:
            draft.apply(each)
            yield
    except StaleChange:
        yield from draft.undo_in_steps(mark)
        return False
    if draft.limits.are_crossed(before, draft.totals):
        yield from draft.undo_in_steps(mark)
        return False
    return True


class RequestedChanges:
    """Changes that workers ask for, in pieces whose last is still to come."""

    def __init__(self, store: CatalogueStore) -> None:
        self._store = store
        self._pieces: dict[int, list[Changes]] = {}

    def came(self, node: int, message: ChangeTopics, done: Callable[[bool | BaseException], None]) -> None:
        """A piece has come from the worker of a node; `done` hears what became of the change."""
        self._pieces.setdefault(node, []).append(message.changes)
        if message.is_last:
            self._store.change_in_steps(partial(apply_changes, self._pieces.pop(node)), done)

    def forget(self, node: int) -> None:
        """The worker of this node has ended."""
        self._pieces.pop(node, None)
