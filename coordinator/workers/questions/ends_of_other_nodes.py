# SPDX-License-Identifier: Apache-2.0
"""Fetches the ends that groups of other nodes declare, for the lag in metrics and lists, which need not be exact."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final

from coordinator.catalogue.topic import Topic
from coordinator.catalogue.topic_configs import end_offsets_group_id
from coordinator.config import Settings
from coordinator.node import CommittedEndOffset, EndsByTopic, Partitions
from coordinator.runtime.slices import Nanos, Slices
from coordinator.workers.questions.cluster_end_requests import split_into_questions
from protocol.newtypes import GroupId

ANSWER_WITHIN_S: Final = 1.0
"""The seconds for all answers; the ends that have not come by then are unknown."""

FetchEnds = Callable[[GroupId, Partitions], Awaitable[EndsByTopic | None]]
"""Returns the ends that a group has committed in these partitions; None if they are not known now."""


async def fetch_ends_of_other_nodes(
    fetch: FetchEnds,
    settings: Settings,
    leads: Callable[[GroupId], bool],
    nanos: Nanos,
    topics: Collection[Topic],
    wanted: Partitions | None = None,
) -> dict[str, dict[int, CommittedEndOffset]]:
    """Return the known ends of the topics whose end groups this node does not lead.

    `wanted` has the partitions of each topic to ask for; None means all.
    """
    elsewhere: dict[GroupId, dict[str, Collection[int]]] = {}
    slices = Slices(nanos)
    for topic in topics:
        group_id = end_offsets_group_id(topic, settings)
        if group_id and not leads(group_id):
            elsewhere.setdefault(group_id, {})[topic.name] = (
                range(topic.partitions) if wanted is None else wanted[topic.name]
            )
        if slices.is_over:
            await slices.yield_to_event_loop()
    ends: dict[str, dict[int, CommittedEndOffset]] = {}
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_WITHIN_S):
            for group_id, named in elsewhere.items():
                for piece in split_into_questions(named):
                    for topic_name, known in (await fetch(group_id, piece) or {}).items():
                        ends.setdefault(topic_name, {}).update(known)
    return ends
