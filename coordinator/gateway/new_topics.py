# SPDX-License-Identifier: Apache-2.0
"""Topics that clients name here for the first time: their requests wait until our nodes know them, too.

A client has them from a broker, which may have made them a moment ago; our nodes follow a little later, and would say
that there are no such topics. So the supervisor is told, which looks at the cluster and answers once all nodes have
what it has found. Requests for a topic wait for that together, and not for longer than `WAIT_S`.
"""

from collections.abc import Callable, Collection
from typing import Final, TypeAlias

Topic: TypeAlias = "str | bytes"
"""A name, or an id."""

WAIT_S: Final = 3.0
KNOWN_S: Final = 5.0
"""For so long nothing is asked again about a topic."""
KNOWN_MAX: Final = 100_000

Later = Callable[[float, Callable[[], None]], object]
"""(seconds, call) -> calls it then (`loop.call_later`)."""


class _Waiting:
    """One request."""

    __slots__ = ("_done", "_left")

    def __init__(self, topics: Collection[Topic], done: Callable[[], None]) -> None:
        self._left = set(topics)
        self._done: Callable[[], None] | None = done

    def known(self, topic: Topic) -> None:
        self._left.discard(topic)
        if not self._left:
            self.end()

    def end(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            done()


class NewTopics:
    """`settle` is what a request asks, `looked_for` what the supervisor answers; `ask` is the way to it."""

    def __init__(self, now_s: Callable[[], float], later: Later) -> None:
        self.ask: Callable[[Collection[Topic]], None] | None = None
        """Tells the supervisor of topics; without it nothing waits."""
        self._now_s = now_s
        self._later = later
        self._known: dict[Topic, float] = {}
        """With the second until which that counts."""
        self._waiting: dict[Topic, list[_Waiting]] = {}

    def settle(self, topics: Collection[Topic], done: Callable[[], None]) -> bool:
        """Whether all of these were looked for; else `done` is called, later and once, when they were."""
        now_s = self._now_s()
        missing = [topic for topic in dict.fromkeys(topics) if self._known.get(topic, 0.0) <= now_s]
        if self.ask is None or not missing:
            return True
        waiting = _Waiting(missing, done)
        new = [topic for topic in missing if topic not in self._waiting]
        for topic in missing:
            self._waiting.setdefault(topic, []).append(waiting)
        self._later(WAIT_S, lambda: self._give_up(missing, waiting))
        if new:
            self.ask(new)
        return False

    def looked_for(self, topics: Collection[Topic]) -> None:
        """Our nodes know those of these topics that there are."""
        if len(self._known) + len(topics) > KNOWN_MAX:
            self._known.clear()
        until_s = self._now_s() + KNOWN_S
        self._known.update(dict.fromkeys(topics, until_s))
        for topic in topics:
            for waiting in self._waiting.pop(topic, ()):
                waiting.known(topic)

    def _give_up(self, topics: Collection[Topic], waiting: _Waiting) -> None:
        for topic in topics:
            left = self._waiting.get(topic)
            if left is not None and waiting in left:
                left.remove(waiting)
                if not left:
                    del self._waiting[topic]
        waiting.end()
