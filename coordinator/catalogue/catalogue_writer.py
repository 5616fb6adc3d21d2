# SPDX-License-Identifier: Apache-2.0
"""Makes a change of topics visible only once it is kept.

A change is tried on a draft (`topics.Draft`). What it comes to is kept, on disk or by the supervisor, and then the
catalogue takes it over and those who asked are answered. So no topic is seen, or promised, that a crash takes back, and
a failure leaves nothing to undo. One write is under way at a time; changes that arrive meanwhile share the next one.
Whatever is done costs what changes, not what there is; and edits of many topics give way to others between their steps.
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
"""Steps, some of which wait for a ticket to be durable, or to have failed."""
CHANGES_PER_WRITE_MAX: Final = 100
"""So many edits share a write, and are answered in one go."""
STEPS_PER_SLICE: Final = 20
"""After so many steps others get a turn of the event loop."""
TAKEN_OVER_PER_SLICE: Final = 4
"""After so many steps of taking over what is kept others get a turn; such a step is longer."""
END: Final = object()


class Change(msgspec.Struct):
    """An edit that waits to be kept, and who is called then."""

    edit: Callable[[Draft], Steps[Any]]
    done: Callable[[Any], None]
    is_only_tried: bool = False
    outcome: Any = None


class ChangesClosed(Exception):
    """The node stops, and takes no changes of topics any more: its partitions could not follow them."""


class CatalogueWriter(ABC):
    """The catalogue, and the changes on their way into it.

    What is kept is taken over in slices: first topics go, then others change or come. `on_changed(changes)` is called
    on the event loop for each part of it, and `on_topics_deleted(names)` once all are gone that go, before those who
    asked for it are answered. Kafka drops the offsets of such topics (GroupCoordinator.onPartitionsDeleted). What it
    returns is gone through in slices, and until its end no other change is seen: so no commit goes to a new topic of
    such a name while offsets in the old one are dropped. Where it yields a ticket, that is waited for.
    """

    def __init__(self, path: Path, new_topic_id: Callable[[], bytes]) -> None:
        self.path = path
        self.later: Callable[[Callable[[], None]], object] | None = None
        """Calls something in another turn of the event loop; without it nothing gives way."""
        self.on_topics_deleted: Callable[[Sequence[str]], Drops | None] = lambda _names: None
        self.on_changed: Callable[[Changes], None] = lambda _changes: None
        self.look_for: Callable[[str | bytes], None] | None = None
        """Brings the next look at the cluster forward, for a topic, by name or id, or for more partitions of it.

        An api calls it when a client names a topic or partition that this node does not know. It is None on a node
        without a cluster behind it.
        """
        self._on_gone: Callable[[Sequence[str]], None] = lambda _names: None
        """Called with topics that are not in the catalogue any more, in the turn in which others are told."""
        self.new_topic_id = new_topic_id
        self._catalogue: Catalogue | None = None
        self._gathering: list[Change] = []
        self._under_way: list[Change] = []
        self._trying: list[Change] = []
        self._draft: Steps[Changes] | None = None
        self.is_closed = False
        self._taking_over: Drops | None = None

    @property
    def catalogue(self) -> Catalogue:
        """What is kept: the same object for the life of the keeper. Only once it is loaded."""
        assert self._catalogue is not None, "the catalogue has not been loaded"
        return self._catalogue

    def change(self, edit: Callable[[Draft], T], done: Callable[[T | BaseException], None]) -> None:
        """Let `edit` change a draft of the catalogue; its result counts once that is kept.

        `done` is called with the result, or with the exception that kept it from that: at once where there is nothing
        to keep, else later. `edit` may run after other changes, and must decide by the topics that it is given.
        """
        self.change_in_steps(partial(_at_once, edit), done)

    def change_in_steps(
        self,
        edit: Callable[[Draft], Steps[T]],
        done: Callable[[T | BaseException], None],
        *,
        only_try: bool = False,
    ) -> None:
        """Change a draft of the catalogue as `change` does, with an edit that yields where it can give way to others.

        It should yield after every `TOPICS_PER_STEP` topics. With `only_try` nothing of it is kept. After `close`
        the outcome is ChangesClosed.
        """
        if self.is_closed:
            done(ChangesClosed())
            return
        self._gathering.append(Change(edit, done, only_try))
        if not self._under_way and self._draft is None:
            self._tell(self._go_on())

    def close(self) -> None:
        """Take no more changes; those that have come already go on until `is_idle`."""
        self.is_closed = True

    @property
    def is_idle(self) -> bool:
        """Whether no change is under way, and what was committed in deleted topics has been dropped."""
        waits = self._gathering or self._under_way or self._trying
        return not waits and self._draft is None and self._taking_over is None

    @abstractmethod
    def _keep(self, changes: Changes) -> None:
        """Begin to keep what is under way; `_kept` or `_failed` follows."""

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
        # The next write starts before its callers are called, so that a change made by an answer joins the queue.
        self._tell(changes + self._go_on())

    def _take_over(self, changes: Changes) -> Drops:
        """Let the catalogue be what is kept: topics go, what was committed in them is dropped, others come.

        So a topic that is made anew in the same change is not there before all of that is dropped.
        """
        gone: list[str] = []
        for piece in changes.pieces():
            if gone and not piece.deleted:
                yield from self._drop(gone)
                gone = []
            names = self.catalogue.apply(piece)
            self._log(piece, names)
            self._tell_changed(piece)
            if names:
                self._on_gone(names)  # at once: who has heard of it may answer in the next turn
            gone += names
            yield None
        if gone:
            yield from self._drop(gone)

    def _log(self, changes: Changes, deleted: Sequence[str]) -> None:
        """The life of topics is in the log at info, as that of groups."""
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

    def _tell_changed(self, changes: Changes) -> None:
        try:
            self.on_changed(changes)
        except Exception:
            log.exception("handing on a change of topics failed")

    def _drop(self, gone: Sequence[str]) -> Drops:
        """Drop what was committed in deleted topics."""
        try:
            yield from self.on_topics_deleted(gone) or ()
        except Exception:
            log.exception("offsets of deleted topics were not removed")

    def _go_on_taking_over(self) -> None:
        """Take over what is kept as far as one slice goes; at the end of all of it, go on."""
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
                    step.wait(self)
                    return
            except Exception:  # noqa: BLE001 - a change that is never over would hold up all others
                self._taking_over = None
                self._not_taken_over()
        self._taken_over()

    def release(self) -> None:
        """The ticket has come to its end that was waited for."""
        if self.later is None:
            self._go_on_taking_over()
        else:
            self.later(self._go_on_taking_over)

    def _not_taken_over(self) -> None:
        """A bug, which is being handled, kept the catalogue from becoming what is kept."""
        log.exception("a change of topics was not applied")

    def _taken_over(self) -> None:
        """The catalogue is what is kept."""
        self._finish()

    def _go_on(self) -> list[Change]:
        """Try what gathered, as far as one slice goes, and keep it; returns changes with nothing to keep."""
        made: list[Change] = []
        while self._draft is not None or self._gathering:
            if self._draft is None:
                self._trying = self._gathering[:CHANGES_PER_WRITE_MAX]
                del self._gathering[:CHANGES_PER_WRITE_MAX]
                self._draft = self._try(self._trying)
            changes = self._slice(self._draft)
            if changes is None:
                assert self.later is not None
                self.later(lambda: self._tell(self._go_on()))
                return made
            edits, self._trying, self._draft = self._trying, [], None
            if changes:
                self._under_way = edits
                self._keep(changes)
                return made
            made += edits
        return made

    def _slice(self, draft: Steps[Changes]) -> Changes | None:
        """What the draft comes to; None while there is more of it to do in another turn."""
        steps = 0
        try:
            while self.later is None or steps < STEPS_PER_SLICE:
                next(draft)
                steps += 1
        except StopIteration as end:
            changes: Changes = end.value
            return changes
        return None

    def _try(self, edits: Sequence[Change]) -> Steps[Changes]:
        draft = self.catalogue.draft()
        for change in edits:
            mark = draft.mark()
            try:
                change.outcome = yield from change.edit(draft)
                if change.is_only_tried:
                    yield from draft.undo_in_steps(mark)
            except Exception as error:
                # One who asked for something impossible must not spoil it for the others.
                log.exception("changing the catalogue failed")
                yield from draft.undo_in_steps(mark)
                change.outcome = error
            yield
        return (yield from draft.changes_in_steps())

    def _tell(self, changes: Sequence[Change]) -> None:
        errors: list[Exception] = []
        for change in changes:
            try:
                change.done(change.outcome)
            except Exception as error:  # noqa: BLE001 - raised below, once all have been called
                errors.append(error)
        if errors:
            raise ExceptionGroup("changes of the catalogue that could not be answered", errors)


def _at_once(edit: Callable[[Draft], T], draft: Draft) -> Steps[T]:
    """An edit of a single step."""
    yield from ()
    return edit(draft)


def _log_partitions(event: str, topics: Sequence[Topic]) -> None:
    """Log names and counts as two lists: a topic may be called `secret`, and the value of such a key is hidden."""
    log.info(
        event, topics=[topic.name for topic in topics], partitions=[topic.partitions for topic in topics]
    )
