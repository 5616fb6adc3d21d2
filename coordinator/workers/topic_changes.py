# SPDX-License-Identifier: Apache-2.0
"""Changes of topics from a worker, made in the one catalogue.

A worker decides on what it knows, and asks for the difference. It is made only if the topics in it are still as the
worker saw them; else the worker decides again, on what is new.
"""

from collections.abc import Sequence

import msgspec

from coordinator.catalogue.changes import Changes, Misfit
from coordinator.catalogue.steps import Steps
from coordinator.catalogue.topics import Draft


def apply_changes(changes: Sequence[Changes], draft: Draft) -> Steps[bool]:
    """Make all changes, or, where one does not fit any more, none; whether they were made. A step for each.

    They do not fit, either, where others have taken the room that the limits leave: the worker then sees that itself.
    """
    mark, before = draft.mark(), msgspec.structs.replace(draft.totals)
    try:
        for each in changes:
            draft.apply(each)
            yield
    except Misfit:
        yield from draft.undo_in_steps(mark)
        return False
    if draft.limits.are_crossed(before, draft.totals):
        yield from draft.undo_in_steps(mark)
        return False
    return True
