# SPDX-License-Identifier: Apache-2.0
"""Topics and partitions that clients name here for the first time: their requests wait until our nodes know them, too.

A client has them from a broker, which may have made them a moment ago; our nodes follow a little later, and would say
that there are no such topics, or partitions. So the supervisor is told, which looks at the cluster and answers once all
nodes have what it has found. Requests for a topic wait for that together, and not for longer than `WAIT_S`.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

Topic: TypeAlias = "str | bytes"
"""A name, or an id."""
Needed: TypeAlias = "tuple[Topic, int]"
"""A topic, and how many partitions it has to have; 0 where it only has to be there."""

WAIT_S: Final = 3.0
KNOWN_S: Final = 5.0
"""For so long nothing is asked again about a topic, or about partitions that it does not have."""
KNOWN_MAX: Final = 100_000

Later = Callable[[float, Callable[[], None]], object]
"""(seconds, call) -> calls it then (`loop.call_later`)."""


class _Waiting:
    """One request."""

    __slots__ = ("_done", "_left")

    def __init__(self, needed: Collection[Needed], done: Callable[[], None]) -> None:
        self._left = set(needed)
        self._done: Callable[[], None] | None = done

    def known(self, needed: Needed) -> None:
        self._left.discard(needed)
        if not self._left:
            self.end()

    def end(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            done()


class NewTopics:
    """`settle` is what a request asks, `looked_for` what the supervisor answers; `ask` is the way to it."""

    def __init__(self, now_s: Callable[[], float], later: Later) -> None:
        self.ask: Callable[[Mapping[Topic, int]], None] | None = None
        """Tells the supervisor of topics, and how many partitions they need; without it nothing waits."""
        self._now_s = now_s
        self._later = later
        self._known: dict[Topic, float] = {}
        """With the second until which that counts."""
        self._partitions: dict[Topic, int] = {}
        """How many of a topic our nodes know."""
        self._short: dict[Topic, float] = {}
        """Topics of which more partitions were named than there are, with the second until which that counts."""
        self._waiting: dict[Needed, list[_Waiting]] = {}

    def settle(
        self, topics: Collection[Topic], partitions: Mapping[Topic, int], done: Callable[[], None]
    ) -> bool:
        """Whether all of these topics were looked for, and all that need so many `partitions`, as far as they exist.

        Else `done` is called, later and once, when they were.
        """
        missing = self._missing(topics, partitions)
        if self.ask is None or not missing:
            return True
        waiting = _Waiting(missing.items(), done)
        new = {topic: count for topic, count in missing.items() if (topic, count) not in self._waiting}
        for needed in missing.items():
            self._waiting.setdefault(needed, []).append(waiting)
        self._later(WAIT_S, lambda: self._give_up(missing.items(), waiting))
        if new:
            self.ask(new)
        return False

    def _missing(self, topics: Collection[Topic], partitions: Mapping[Topic, int]) -> dict[Topic, int]:
        now_s, known = self._now_s(), self._partitions
        missing = {
            topic: partitions.get(topic, 0) for topic in topics if self._known.get(topic, 0.0) <= now_s
        }
        more = (topic for topic, count in partitions.items() if count > known.get(topic, 0))
        missing |= {topic: partitions[topic] for topic in more if self._short.get(topic, 0.0) <= now_s}
        return missing

    def looked_for(self, topics: Mapping[Topic, tuple[int, int]]) -> None:
        """Our nodes know those of these topics that there are.

        Of each: how many partitions were asked about, and how many are known, 0 where that is not certain.
        """
        self._make_room(len(topics))
        until_s = self._now_s() + KNOWN_S
        for topic, (count, known) in topics.items():
            self._known[topic] = until_s
            self._partitions[topic] = known
            if known < count:
                self._short[topic] = until_s
            for waiting in self._waiting.pop((topic, count), ()):
                waiting.known((topic, count))

    def _make_room(self, count: int) -> None:
        kept: dict[Topic, Any]
        for kept in (self._known, self._partitions, self._short):
            if len(kept) + count > KNOWN_MAX:
                kept.clear()

    def _give_up(self, missing: Collection[Needed], waiting: _Waiting) -> None:
        for needed in missing:
            left = self._waiting.get(needed)
            if left is not None and waiting in left:
                left.remove(waiting)
                if not left:
                    del self._waiting[needed]
        waiting.end()
