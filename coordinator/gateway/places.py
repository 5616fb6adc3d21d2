# SPDX-License-Identifier: Apache-2.0
"""How many requests that name much are held decoded at a time; the others wait as bytes, which are counted.

What is made of names takes ten times the room of their bytes and more, and is kept while the cluster is asked.
"""

from collections import deque
from typing import Final

from coordinator.gateway.promise import Promise
from coordinator.gateway.ways import ClientSession

MANY: Final = 100
"""A request, or a response, that needs more permissions names much."""
PLACES: Final = 4
"""So many of them are held decoded at a time in a process."""


class Places:
    """Those of one process."""

    def __init__(self, count: int = PLACES) -> None:
        self._free = count
        self._waiting: deque[Place] = deque()

    def of(self, session: ClientSession) -> "Place":
        """The place of a session's request, which is not taken yet."""
        return Place(self, session)

    def take(self, place: "Place") -> bool:
        """Whether one is free; else the place waits for one."""
        if self._free:
            self._free -= 1
            return True
        self._waiting.append(place)
        return False

    def give_back(self) -> None:
        """Let the next have one."""
        if self._waiting:
            self._waiting.popleft().given()
        else:
            self._free += 1

    def leave(self, place: "Place") -> None:
        """This one waits no more."""
        self._waiting.remove(place)


class Place:
    """What a request that names much has, from the time it is decoded until its answer is there."""

    __slots__ = ("_given", "_places", "_session", "is_held")

    def __init__(self, places: Places, session: ClientSession) -> None:
        self._places = places
        self._session = session
        self._given: Promise[None] | None = None
        self.is_held = False

    async def take(self) -> None:
        """Wait for one, if it is not held yet.

        A client that leaves earlier answers unread would keep it, for the broker's answers wait behind those: so all of
        them are taken before.
        """
        if self.is_held:
            return
        await self._session.all_answered()
        self.is_held = self._places.take(self)
        if not self.is_held:
            self._given = Promise(self._session.go_on_soon)
            await self._given

    def given(self) -> None:
        """It is this one's turn."""
        assert self._given is not None, "it waits"
        given, self._given = self._given, None
        self.is_held = True
        given.keep(None)

    def end(self) -> None:
        """The request needs none any more."""
        if self.is_held:
            self.is_held = False
            self._places.give_back()
        elif self._given is not None:
            self._given = None
            self._places.leave(self)
