# SPDX-License-Identifier: Apache-2.0
"""A worker's catalogue: a copy of the catalogue of the supervisor, which alone changes topics and stores them."""

import asyncio
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.catalogue_writer import CatalogueWriter, Drops, PendingEdit
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.limits import DEFAULT_LIMITS, TopicLimits
from coordinator.catalogue.names import OFFSETS_TOPIC
from coordinator.catalogue.topic import Topic
from coordinator.telemetry.logs import get_logger
from coordinator.workers.messages import (
    AllTopicsPiece,
    AskTopics,
    ChangeTopics,
    FromWorker,
    TopicChangeReply,
    TopicsChanged,
)
from storage.errors import StorageError

log = get_logger("catalogue")

UNKNOWN: Final = -1


class CatalogueReplica(CatalogueWriter):
    """Behaves like `CatalogueStore` to handlers: a change is visible, and answered, once it is on disk.

    An edit is tried on a draft, and the difference is sent to the supervisor. The supervisor sends what is on disk in
    versions (`topic_feed.py`); its response counts once the worker has that version. If another worker was faster, the
    edit is tried again on the new topics.
    """

    def __init__(
        self,
        path: Path,
        offsets_topic: Topic,
        send: Callable[[FromWorker], None],
        new_topic_id: Callable[[], bytes],
        limits: TopicLimits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(path, new_topic_id)
        self._catalogue = Catalogue(offsets_topic, limits=limits)
        self._send = send
        self.version = UNKNOWN
        """The version of the topics, with no topic of a later one, once all that follows from it is done."""
        self.coming_version = UNKNOWN
        """The version of the topics that are being taken over."""
        self.on_version: Callable[[int], None] = lambda _version: None
        """Called with each version once the catalogue has its topics."""
        self._inbox: deque[AllTopicsPiece | TopicsChanged | TopicChangeReply] = deque()
        self._incoming: Catalogue | None = None
        self._reads_later = False
        self._answer: TopicChangeReply | None = None
        self.arrived = asyncio.Event()
        """Set once the catalogue has all topics."""

    def queue_message(self, message: AllTopicsPiece | TopicsChanged | TopicChangeReply) -> None:
        """Queue a message about topics from the supervisor.

        The message waits for another turn, because many may come at once; while edits are tried on a draft, because the
        catalogue below the draft must not change; and while earlier messages are taken over.
        """
        self._inbox.append(message)
        if self.later is None:
            self._read()
        elif not self._reads_later:
            self._reads_later = True
            self.later(self._read)

    def replace_offsets_topic(self, topic_id: bytes, partitions: int) -> None:
        """Give `__consumer_offsets` the id and partitions that it has at the cluster, where clients see them."""
        topic = Topic(name=OFFSETS_TOPIC, id=topic_id, partitions=partitions)
        for catalogue in (self._catalogue, self._incoming):
            if catalogue is not None and catalogue.offsets_topic != topic:
                catalogue.replace_offsets_topic(topic)

    def _read(self) -> None:
        self._reads_later = False
        if self._inbox and self._draft is None and self._taking_over is None:
            self._taking_over = self._take_over_inbox()
            self._go_on_taking_over()

    def _take_over_inbox(self) -> Drops:
        while self._inbox and self._draft is None:
            yield from self._handle(self._inbox.popleft())
            self._finish_if_there()

    def _go_on(self) -> list[PendingEdit]:
        announced = super()._go_on()
        self._read()
        return announced

    def _handle(self, message: AllTopicsPiece | TopicsChanged | TopicChangeReply) -> Drops:
        match message:
            case AllTopicsPiece():
                yield from self._all_topics(message)
            case TopicsChanged():
                yield from self._changed(message)
            case TopicChangeReply():
                self._answer = message

    def _not_taken_over(self) -> None:
        super()._not_taken_over()
        self._ask_anew()

    def _taken_over(self) -> None:
        self._read()

    def _all_topics(self, message: AllTopicsPiece) -> Drops:
        if message.is_first:
            self._incoming = Catalogue(self.catalogue.offsets_topic, limits=self.catalogue.limits)
        if self._incoming is None:
            return  # the rest of a list that was given up
        self._incoming.apply_and_list_deleted(Changes(created=message.topics))
        yield None
        if message.is_last:
            gone = yield from self.catalogue.find_ids_missing_in(self._incoming)
            self.coming_version = message.version
            # First, so that no topic is created again before the old one's offsets are dropped.
            yield from self._take_over(Changes(deleted=gone))
            if not gone:
                # Topics may have been created and deleted unnoticed: report that no offsets of these are left, too.
                yield from self._drop(())
            self.catalogue.take_over_state_of(self._incoming)
            self._incoming = None
            self.version = message.version
            self.arrived.set()
            self.on_version(self.version)

    def _changed(self, message: TopicsChanged) -> Drops:
        if self.version == UNKNOWN:
            return  # all topics are on their way
        if message.version != self.version + 1:
            log.warning("missed a change of topics", have=self.version, got=message.version)
            self._ask_anew()
            return
        self.coming_version = message.version
        yield from self._take_over(message.changes)
        self.version = message.version
        self.on_version(self.version)

    def _ask_anew(self) -> None:
        self.version, self._incoming = UNKNOWN, None
        self._send(AskTopics())

    def _finish_if_there(self) -> None:
        """Finish, fail or repeat the edits once the supervisor's response and its version have arrived."""
        answer = self._answer
        if answer is None or self.version < answer.version:
            return
        self._answer = None
        if answer.conflict:
            self._gathering = self._under_way + self._gathering
            self._under_way = []
        if answer.error:
            self._failed(StorageError(self.path, answer.error))
        else:
            self._finish()

    def _keep(self, changes: Changes) -> None:
        pieces = list(changes.split_into_pieces())
        for number, piece in enumerate(pieces, 1):
            self._send(ChangeTopics(piece, is_last=number == len(pieces)))
