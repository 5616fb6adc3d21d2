# SPDX-License-Identifier: Apache-2.0
"""Makes changes of topics from workers in the supervisor's catalogue.

A worker decides by the topics that it knows, and asks for the difference. The supervisor makes the change only if its
topics are still as the worker saw them; else the worker decides again, by the new topics.
"""

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from coordinator.catalogue.changes import Changes, StaleChange
from coordinator.catalogue.steps import Steps
from coordinator.catalogue.store import CatalogueStore
from coordinator.catalogue.topics import Draft
from coordinator.workers.messages import ChangeTopics


def apply_all_or_none_in_steps(changes: Sequence[Changes], draft: Draft) -> Steps[bool]:
    """Make all changes, a step for each, or none if one does not fit any more; return whether they were made.

    They do not fit, either, if other changes have used up the room within the limits; a worker that then decides again
    finds the limit reached.
    """
    mark, before = draft.get_savepoint(), msgspec.structs.replace(draft.totals)
    try:
        for each in changes:
            draft.apply_and_list_deleted(each)
            yield
    except StaleChange:
        yield from draft.undo_in_steps(mark)
        return False
    if draft.limits.would_exceed(before, draft.totals):
        yield from draft.undo_in_steps(mark)
        return False
    return True


class WorkerChangeAssembler:
    """The changes that workers ask for in pieces, the last of which is still to come."""

    def __init__(self, store: CatalogueStore) -> None:
        self._store = store
        self._pieces: dict[int, list[Changes]] = {}

    def collect_piece_and_submit(
        self, node: int, message: ChangeTopics, done: Callable[[bool | BaseException], None]
    ) -> None:
        """Take a piece of a change from a node's worker; `done` gets the result of the whole change."""
        self._pieces.setdefault(node, []).append(message.changes)
        if message.is_last:
            self._store.submit_stepwise_edit(
                partial(apply_all_or_none_in_steps, self._pieces.pop(node)), done
            )

    def drop_pieces(self, node: int) -> None:
        """Drop the pieces of a node whose worker has ended."""
        self._pieces.pop(node, None)
