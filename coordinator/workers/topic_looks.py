# SPDX-License-Identifier: Apache-2.0
"""Gateways hold requests back that name a topic, or a partition, made a moment ago: until all workers have it too."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.changes import Changes
from coordinator.catalogue.topic import Topic
from coordinator.telemetry.logs import get_logger
from coordinator.workers.messages import TopicsLookedFor, TopicsSeen

log = get_logger("upstream")

LOOKS: Final = 3
"""So often the cluster is looked at for a topic: a broker may not know yet what another one has said."""
WITHIN_S: Final = 2.5
RECENT_MAX: Final = 20_000
"""Of so many names and ids it is known in which version they came, or grew: two for each topic."""


class TopicLooks:
    """`find` what gateways have seen; workers say with `has` which version of the topics they have."""

    def __init__(
        self,
        catalogue: Callable[[], Catalogue],
        version: Callable[[], int],
        look: Callable[[], Awaitable[None]],
    ) -> None:
        """`version` is the newest of the topics; `look` returns after a look at the cluster."""
        self._catalogue = catalogue
        self._version = version
        self._look = look
        self._at: dict[int, int] = {}
        self._made: dict[str | bytes, int] = {}
        self._moved = asyncio.Event()

    def changed(self, changes: Changes) -> None:
        """The catalogue, and with it the newest version, has these changes: remember the version of what was made."""
        version = self._version()
        for topic in (*changes.created, *filter(None, map(self._topic, (each.id for each in changes.grown)))):
            for key in (topic.name, topic.id):
                self._made.pop(key, None)  # the oldest come first
                self._made[key] = version
        while len(self._made) > RECENT_MAX:
            del self._made[next(iter(self._made))]

    def has(self, node: int, version: int) -> None:
        """A worker has the topics of this version."""
        self._at[node] = version
        self._moved.set()

    def gone(self, node: int) -> None:
        """The worker has ended; the next one has all topics before it serves."""
        self._at.pop(node, None)
        self._moved.set()

    async def find(self, seen: TopicsSeen) -> TopicsLookedFor:
        """Return once all workers have those of these topics, and their partitions, that the cluster has.

        After `WITHIN_S` it returns all the same, and says of none that they know it.
        """
        try:
            async with asyncio.timeout(WITHIN_S):
                for _ in range(LOOKS):
                    if self._are_known(seen):
                        break
                    await self._look()
                found = self._found(seen, self._partitions)
                await self._until_all_have(self._made_at(seen))
        except TimeoutError:
            log.info(
                "topics are not known everywhere in time",
                topics=[*seen.names, *map(bytes.hex, seen.ids)][:10],
            )
            return self._found(seen, lambda _topic: 0)
        return found

    def _found(self, seen: TopicsSeen, known: Callable[[str | bytes], int]) -> TopicsLookedFor:
        return TopicsLookedFor(
            {name: (count, known(name)) for name, count in seen.names.items()},
            {each: (count, known(each)) for each, count in seen.ids.items()},
        )

    def _topic(self, key: str | bytes) -> Topic | None:
        catalogue = self._catalogue()
        return catalogue.get(key) if isinstance(key, str) else catalogue.by_id(key)

    def _partitions(self, key: str | bytes) -> int:
        topic = self._topic(key)
        return 0 if topic is None else topic.partitions

    def _are_known(self, seen: TopicsSeen) -> bool:
        needed: dict[str | bytes, int] = dict([*seen.names.items(), *seen.ids.items()])
        return all(self._partitions(key) >= max(count, 1) for key, count in needed.items())

    def _made_at(self, seen: TopicsSeen) -> int:
        """The version in which the last of these topics came, or grew; 0 where all of them came long ago.

        Not the newest: a worker that is still busy with what came later has these topics.
        """
        named: list[str | bytes] = [*seen.names, *seen.ids]
        return max((self._made.get(key, 0) for key in named), default=0)

    async def _until_all_have(self, version: int) -> None:
        while any(at < version for at in self._at.values()):
            self._moved.clear()
            await self._moved.wait()
