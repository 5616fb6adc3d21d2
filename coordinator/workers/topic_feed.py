# SPDX-License-Identifier: Apache-2.0
"""Sends the supervisor's topics to its workers: all of them once, in pieces, and from then on each change.

Each change has a version, the next number. A worker gets all topics as of some version and then every later change. The
newest changes are kept, so that a worker that reads slowly gets them when it reads; a worker that needs older changes,
or that asks, gets all topics again. Nothing is sent faster than it is read, so a stopped worker takes no memory here.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes, topic_pieces
from coordinator.workers.channel import encode
from coordinator.workers.messages import AllTopicsPiece, TopicsChanged

KEPT_BYTES_MAX: Final = 4 * 1024 * 1024


class FeedChannel(Protocol):
    """The channel over which the feed sends messages to a worker."""

    @property
    def is_open(self) -> bool:
        """True if the worker still reads."""

    def write(self, frame: bytes) -> None:
        """Send an encoded message."""

    async def wait_until_writable(self) -> None:
        """Return once the channel has room for more, or the worker reads no more."""


class TopicFeed:
    """The messages to send; the owner of the catalogue calls `publish_changes` after each change."""

    def __init__(self, catalogue: Callable[[], Catalogue]) -> None:
        self._catalogue = catalogue
        self.version = 0
        self._kept: deque[bytes] = deque()  # the changes up to `version`
        self._kept_bytes = 0
        self._subscriptions: dict[WorkerFeedSubscription, None] = {}  # a set that keeps its order

    def publish_changes(self, changes: Changes) -> None:
        """Keep the changes of the catalogue as messages, and wake the subscriptions."""
        for piece in changes.split_into_pieces():
            self.version += 1
            frame = encode(TopicsChanged(self.version, piece))
            self._kept.append(frame)
            self._kept_bytes += len(frame)
        while self._kept_bytes > KEPT_BYTES_MAX:
            self._kept_bytes -= len(self._kept.popleft())
        for subscription in self._subscriptions:
            subscription.wake()

    def next_after(self, version: int) -> bytes | None:
        """Return the message with the change after a version; None if it is not kept any more."""
        index = version - (self.version - len(self._kept))
        return self._kept[index] if index >= 0 else None

    def encode_all_topics(self) -> Iterator[bytes]:
        """Yield all current topics in messages of bounded size."""
        topics = self._catalogue().snapshot_topics()
        version = self.version
        yield encode(AllTopicsPiece(version, is_first=True))
        for piece in topic_pieces(topics):
            yield encode(AllTopicsPiece(version, topics=piece))
        yield encode(AllTopicsPiece(version, is_last=True))

    def subscribe(self, reader: FeedChannel) -> "WorkerFeedSubscription":
        """Return a subscription of `reader`, whose `send_until_closed` the caller must run."""
        subscription = WorkerFeedSubscription(self, reader)
        self._subscriptions[subscription] = None
        return subscription

    def unsubscribe(self, subscription: "WorkerFeedSubscription") -> None:
        """Remove the subscription of a reader that is gone."""
        self._subscriptions.pop(subscription, None)
        subscription.wake()


class WorkerFeedSubscription:
    """Sends the messages of a feed to one worker."""

    def __init__(self, feed: TopicFeed, reader: FeedChannel) -> None:
        self._feed = feed
        self._reader = reader
        self._sent: int | None = None
        self._wakeup = asyncio.Event()

    def start_anew(self) -> None:
        """Send all topics again, because the worker has missed a change."""
        self._sent = None
        self.wake()

    def wake(self) -> None:
        """Wake `send_until_closed`, which may have something to send."""
        self._wakeup.set()

    async def send_until_closed(self) -> None:
        """Send messages as fast as the worker reads them, until it reads no more."""
        while self._reader.is_open:
            self._wakeup.clear()
            if self._sent is None:
                await self._send_everything()
            elif self._sent < self._feed.version:
                await self._send_next(self._sent)
            else:
                await self._wakeup.wait()

    async def _send_everything(self) -> None:
        self._sent = self._feed.version
        for frame in self._feed.encode_all_topics():
            if self._reader.is_open:
                self._reader.write(frame)
                await self._reader.wait_until_writable()
                await asyncio.sleep(0)  # a turn of the loop for each

    async def _send_next(self, sent: int) -> None:
        frame = self._feed.next_after(sent)
        if frame is None:
            self._sent = None
            return
        self._sent = sent + 1
        self._reader.write(frame)
        await self._reader.wait_until_writable()
