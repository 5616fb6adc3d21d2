# SPDX-License-Identifier: Apache-2.0
"""Makes a change of topics visible only once it is stored.

A change is tried on a draft (`topics.Draft`). Its outcome is stored, on disk or by the supervisor; then the catalogue
applies it and the callers get their results. So clients never see a topic that a crash takes back, and a failure leaves
nothing to undo. One write is in progress at a time; changes that arrive meanwhile share the next one. The cost of a
change depends on its size, not on the number of topics; edits of many topics yield to the event loop between their
steps.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.steps import Steps
from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topics import Draft
from coordinator.telemetry.logs import get_logger
from coordinator.tickets import DurabilityTicket

log = get_logger("catalogue")

T = TypeVar("T")
Drops = Iterator[DurabilityTicket | None]
"""Steps of dropping offsets; a step may yield a ticket, to wait until it is durable or has failed."""
CHANGES_PER_WRITE_MAX: Final = 100
"""The maximum number of edits that share a write, and whose callbacks run together."""
STEPS_PER_SLICE: Final = 20
"""The number of steps after which a draft yields to the event loop."""
TAKEN_OVER_PER_SLICE: Final = 4
"""The number of steps, which are longer, after which applying stored changes yields to the event loop."""
END: Final = object()


class PendingEdit(msgspec.Struct):
    """An edit that waits to be stored, with the callback for its outcome."""

    edit: Callable[[Draft], Steps[Any]]
    done: Callable[[Any], None]
    is_only_tried: bool = False
    outcome: Any = None


class ChangesClosed(Exception):
    """The node is stopping and takes no more changes of topics, because its partitions could not follow them."""


class CatalogueWriter(ABC):
    """The catalogue and the changes that wait to be applied to it.

    Stored changes are applied in slices: topics are deleted first, then others are changed or created.
    `on_changed(changes)` is called on the event loop for each part, and `on_topics_deleted(names)` once all deleted
    topics are gone, before the callers get their results. Kafka drops the offsets of such topics
    (GroupCoordinator.onPartitionsDeleted). The iterator that `on_topics_deleted` returns is run in slices, and until
    its end no other change is visible: so no commit goes to a new topic of the same name while offsets in the old one
    are dropped. If the iterator yields a ticket, the writer waits for the ticket.
    """

    def __init__(self, path: Path, new_topic_id: Callable[[], bytes]) -> None:
        self.path = path
        self.later: Callable[[Callable[[], None]], object] | None = None
        """Calls a function in a later turn of the event loop; without it no work yields to the event loop."""
        self.on_topics_deleted: Callable[[Sequence[str]], Drops | None] = lambda _names: None
        self.on_changed: Callable[[Changes], None] = lambda _changes: None
        self.look_for: Callable[[str | bytes], None] | None = None
        """Makes the node read the cluster's topics sooner, for a topic (by name or id) or for more of its partitions.

        An api calls it when a client names a topic or partition that this node does not know. It is None on a node
        without a cluster behind it.
        """
        self._on_gone: Callable[[Sequence[str]], None] = lambda _names: None
        """Called with the names of topics that have left the catalogue, in the same turn as `on_changed`."""
        self.new_topic_id = new_topic_id
        self._catalogue: Catalogue | None = None
        self._gathering: list[PendingEdit] = []
        self._under_way: list[PendingEdit] = []
        self._trying: list[PendingEdit] = []
        self._draft: Steps[Changes] | None = None
        self.is_closed = False
        self._taking_over: Drops | None = None

    @property
    def catalogue(self) -> Catalogue:
        """The stored catalogue, the same object for the life of the writer; available once it is loaded."""
        assert self._catalogue is not None, "the catalogue has not been loaded"
        return self._catalogue

    def submit_edit_with_callback(
        self, edit: Callable[[Draft], T], done: Callable[[T | BaseException], None]
    ) -> None:
        """Change a draft of the catalogue by `edit`, whose result counts once the change is stored.

        `done` is called with the result, or with the exception that prevented it: at once if there is nothing to store,
        else later. `edit` may run after other changes, and must decide by the topics that it is given.
        """
        self.submit_stepwise_edit(partial(_at_once, edit), done)

    def submit_stepwise_edit(
        self,
        edit: Callable[[Draft], Steps[T]],
        done: Callable[[T | BaseException], None],
        *,
        only_try: bool = False,
    ) -> None:
        """Change a draft of the catalogue like `submit_edit_with_callback`, by an edit that yields between its steps.

        It should yield after every `TOPICS_PER_STEP` topics. With `only_try` its changes are not stored. After
        `refuse_further_changes` the outcome is ChangesClosed.
        """
        if self.is_closed:
            done(ChangesClosed())
            return
        self._gathering.append(PendingEdit(edit, done, only_try))
        if not self._under_way and self._draft is None:
            self._notify(self._go_on())

    def refuse_further_changes(self) -> None:
        """Take no more changes; the changes that have already arrived go on until `is_idle`."""
        self.is_closed = True

    @property
    def is_idle(self) -> bool:
        """True if no change is in progress and the offsets in deleted topics have been dropped."""
        waits = self._gathering or self._under_way or self._trying
        return not waits and self._draft is None and self._taking_over is None

    @abstractmethod
    def _keep(self, changes: Changes) -> None:
        """Begin to store the changes; `_kept` or `_failed` follows."""

    def _kept(self, changes: Changes) -> None:
        self._taking_over = self._take_over(changes)
        self._go_on_taking_over()

    def _failed(self, error: BaseException) -> None:
        log.error("the catalogue was not written", changes=len(self._under_way), error=str(error))
        for change in self._under_way:
            change.outcome = error
        self._finish()

    def _finish(self) -> None:
        changes, self._under_way = self._under_way, []
        # The next write starts before the callbacks run, so that a change made by a callback joins the queue.
        self._notify(changes + self._go_on())

    def _take_over(self, changes: Changes) -> Drops:
        """Apply the stored changes to the catalogue: delete topics, drop their offsets, then create others.

        So a topic that the same change creates again does not exist before all offsets in the old one are dropped.
        """
        gone: list[str] = []
        for piece in changes.split_into_pieces():
            if gone and not piece.deleted:
                yield from self._drop(gone)
                gone = []
            names = self.catalogue.apply_and_list_deleted(piece)
            self._log(piece, names)
            self._notify_changed(piece)
            if names:
                self._on_gone(names)  # at once: a node that knows it may respond in the next turn
            gone += names
            yield None
        if gone:
            yield from self._drop(gone)

    def _log(self, changes: Changes, deleted: Sequence[str]) -> None:
        """Log the life of topics at info, as that of groups."""
        if deleted:
            log.info("topics deleted", topics=list(deleted))
        if changes.grown:
            grown = [self.catalogue.by_id(each.id) for each in changes.grown]
            _log_partitions("topics have more partitions", [topic for topic in grown if topic is not None])
        if changes.configured:
            changed = [self.catalogue.by_id(each.id) for each in changes.configured]
            log.info("topic settings changed", topics=[topic.name for topic in changed if topic is not None])
        if changes.created:
            _log_partitions("topics created", changes.created)

    def _notify_changed(self, changes: Changes) -> None:
        try:
            self.on_changed(changes)
        except Exception:
            log.exception("handing on a change of topics failed")

    def _drop(self, gone: Sequence[str]) -> Drops:
        """Drop the offsets that were committed in deleted topics."""
        try:
            yield from self.on_topics_deleted(gone) or ()
        except Exception:
            log.exception("offsets of deleted topics were not removed")

    def _go_on_taking_over(self) -> None:
        """Apply the stored changes for one slice, or up to a ticket; after the last step, call `_taken_over`."""
        steps = 0
        while self._taking_over is not None:
            if self.later is not None and steps >= TAKEN_OVER_PER_SLICE:
                self.later(self._go_on_taking_over)
                return
            steps += 1
            try:
                step = next(self._taking_over, END)
                if step is END:
                    self._taking_over = None
                elif isinstance(step, DurabilityTicket) and step.is_pending:
                    step.add_waiter(self)
                    return
            except Exception:  # noqa: BLE001 - a change that is never over would hold up all others
                self._taking_over = None
                self._not_taken_over()
        self._taken_over()

    def resume_after_ticket(self) -> None:
        """Continue, because the ticket that the writer waited for is durable or has failed."""
        if self.later is None:
            self._go_on_taking_over()
        else:
            self.later(self._go_on_taking_over)

    def _not_taken_over(self) -> None:
        """Handle the current exception, a bug that kept stored changes from being applied."""
        log.exception("a change of topics was not applied")

    def _taken_over(self) -> None:
        """Finish the changes, which the catalogue has applied."""
        self._finish()

    def _go_on(self) -> list[PendingEdit]:
        """Try the gathered changes for one slice and store the outcome; return changes with nothing to store."""
        made: list[PendingEdit] = []
        while self._draft is not None or self._gathering:
            if self._draft is None:
                self._trying = self._gathering[:CHANGES_PER_WRITE_MAX]
                del self._gathering[:CHANGES_PER_WRITE_MAX]
                self._draft = self._try(self._trying)
            changes = self._slice(self._draft)
            if changes is None:
                assert self.later is not None
                self.later(lambda: self._notify(self._go_on()))
                return made
            edits, self._trying, self._draft = self._trying, [], None
            if changes:
                self._under_way = edits
                self._keep(changes)
                return made
            made += edits
        return made

    def _slice(self, draft: Steps[Changes]) -> Changes | None:
        """Run one slice of the draft and return its changes, None if work is left for another turn."""
        steps = 0
        try:
            while self.later is None or steps < STEPS_PER_SLICE:
                next(draft)
                steps += 1
        except StopIteration as end:
            changes: Changes = end.value
            return changes
        return None

    def _try(self, edits: Sequence[PendingEdit]) -> Steps[Changes]:
        draft = self.catalogue.make_draft()
        for change in edits:
            mark = draft.get_savepoint()
            try:
                change.outcome = yield from change.edit(draft)
                if change.is_only_tried:
                    yield from draft.undo_in_steps(mark)
            except Exception as error:
                # An edit that fails must not spoil the others.
                log.exception("changing the catalogue failed")
                yield from draft.undo_in_steps(mark)
                change.outcome = error
            yield
        return (yield from draft.collect_changes_in_steps())

    def _notify(self, changes: Sequence[PendingEdit]) -> None:
        errors: list[Exception] = []
        for change in changes:
            try:
                change.done(change.outcome)
            except Exception as error:  # noqa: BLE001 - raised below, once all have been called
                errors.append(error)
        if errors:
            raise ExceptionGroup("changes of the catalogue that could not be answered", errors)


def _at_once(edit: Callable[[Draft], T], draft: Draft) -> Steps[T]:
    """Run an edit as a single step."""
    yield from ()
    return edit(draft)


def _log_partitions(event: str, topics: Sequence[Topic]) -> None:
    """Log names and counts as two lists: a topic may be called `secret`, and the value of such a key is hidden."""
    log.info(
        event, topics=[topic.name for topic in topics], partitions=[topic.partitions for topic in topics]
    )
