# SPDX-License-Identifier: Apache-2.0
"""Follows the cluster's brokers and topics, and reports what changed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from coordinator.telemetry.logs import get_logger
from coordinator.upstream.cluster import UpstreamBroker, UpstreamCluster
from coordinator.upstream.errors import UpstreamError
from coordinator.upstream.topic_diff import (
    SeenTopic,
    TopicDiff,
    UnconfirmedChanges,
    compute_topics_after_diff,
    diff_topics,
    list_topics_to_confirm,
)
from coordinator.upstream.topics import UpstreamTopicsReader

log = get_logger("upstream")

OnTopics = Callable[[TopicDiff], Awaitable[None]]
OnBrokers = Callable[[Mapping[int, UpstreamBroker]], None]
SOONEST_S: Final = 0.2
"""The shortest pause between two looks, in seconds, however often `refresh_soon` is called."""


class UpstreamMonitor:
    """Reads the cluster's metadata every `upstream.metadata.refresh.ms`, and at once after `refresh_soon`.

    While no broker responds nothing changes: what was known stays known.
    """

    def __init__(
        self,
        cluster: UpstreamCluster,
        known: Mapping[str, SeenTopic],
        *,
        refresh_ms: int,
        on_topics: OnTopics,
        on_brokers: OnBrokers,
    ) -> None:
        """Follow `cluster`; `known` are the topics that are known from before, with the ids they had.

        `on_topics` is awaited with each change of topics before the next look; if it raises, the change is found
        again. `on_brokers` is called with all brokers if they differ from those before, and the first time.
        """
        self._cluster = cluster
        self._topics = UpstreamTopicsReader(cluster)
        self._known = dict(known)
        self._doubts = UnconfirmedChanges()
        self._refresh_ms = refresh_ms
        self._on_topics = on_topics
        self._on_brokers = on_brokers
        self._brokers: Mapping[int, UpstreamBroker] = {}
        self._turn = 0
        self._wanted = asyncio.Event()
        self.failing: str | None = None
        """Why the newest look failed, in one line; None if it succeeded."""

    @property
    def brokers(self) -> Mapping[int, UpstreamBroker]:
        """The brokers by id, as of the newest look."""
        return self._brokers

    @property
    def topics(self) -> Mapping[str, SeenTopic]:
        """The topics by name, as they were handed to `on_topics`."""
        return self._known

    def refresh_soon(self) -> None:
        """Look at once, because a topic or a broker was seen that is not known."""
        self._wanted.set()

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        while True:
            self._wanted.clear()
            try:
                await self.refresh_and_report_changes()
            except UpstreamError as error:
                self._failed(str(error))
            except Exception as error:
                log.exception("a look at the cluster has failed at what was not foreseen")
                self._failed(f"upstream.bootstrap.servers: {self._cluster.last_answering_address}: {error!r}")
            await asyncio.sleep(SOONEST_S)
            try:
                async with asyncio.timeout(self._refresh_ms / 1000):
                    await self._wanted.wait()
            except TimeoutError:
                pass

    async def refresh_and_report_changes(self) -> TopicDiff:
        """Look once, report what changed, and return it. Raises UpstreamError; then nothing has changed."""
        look = await self._topics.fetch_all_topics()
        asked = list_topics_to_confirm(self._known, look)
        answered_by = self._next_broker() if asked else None
        answers = await self._topics.fetch_topics_by_name(asked, node_id=answered_by) if asked else {}
        change, doubts = diff_topics(
            self._known,
            look,
            answers,
            self._doubts,
            answered_by=answered_by,
            brokers=len(self._cluster.brokers),
        )
        if change:
            await self._on_topics(change)
            self._known = compute_topics_after_diff(self._known, change)
        self._doubts = doubts
        self._report_brokers()
        self._recovered()
        return change

    def _next_broker(self) -> int | None:
        """Return the broker to ask by name, another in each look: one that is cut off has an old view."""
        ids = sorted(self._cluster.brokers)
        self._turn += 1
        return ids[self._turn % len(ids)] if ids else None

    def _report_brokers(self) -> None:
        brokers = self._cluster.brokers
        if dict(brokers) != dict(self._brokers):
            self._brokers = brokers
            self._on_brokers(brokers)

    def _failed(self, error: str) -> None:
        if self.failing is None:
            log.warning("the cluster does not answer", error=error)
        self.failing = error

    def _recovered(self) -> None:
        if self.failing is not None:
            log.info("the cluster answers again", brokers=len(self._brokers))
        self.failing = None
