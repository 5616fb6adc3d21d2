# SPDX-License-Identifier: Apache-2.0
"""What a client may do, asked of its broker on its own connection, so that the broker answers for that client.

A client that has not logged in gets no further than at a broker. The answers of each connection are remembered for a
while.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from coordinator.authorization.permissions import Decisions, Permission, is_known
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.permission_queries import PermissionQuery, permission_queries
from coordinator.gateway.places import MANY
from coordinator.gateway.promise import Promise
from coordinator.gateway.ways import BROKER, ClientSession
from protocol.errors import ErrorCode

REMEMBERED_MAX: Final = 10_000
"""A connection remembers so many permissions, and at times twice as many."""
REMEMBERED_ALWAYS: Final = 50
"""A connection may always remember so many; a member needs a few."""
REMEMBERED_IN_ALL_MAX: Final = 100_000
"""How many all connections of a process remember: some 50 MB."""
REMEMBERED_NAME_MAX: Final = 256
"""Of a group with a longer name nothing is remembered; topics have none."""

QUERIES_AT_ONCE: Final = 20
"""So many queries about one request are under way; one that names many groups has several about each."""

NOT_KNOWN: Final = (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
"""Counts until the millisecond 0."""


@dataclass(slots=True, eq=False)
class CachedPermissionCount:
    """How many permissions all connections of a process remember."""

    count: int = 0


@dataclass(slots=True, eq=False)
class PermissionCache:
    """What is remembered of one connection."""

    decisions: dict[Permission, tuple[ErrorCode, int]] = field(default_factory=dict)
    """With the millisecond until which each counts."""
    counted: CachedPermissionCount = field(default_factory=CachedPermissionCount)

    def missing(
        self, permissions: Iterable[Permission], decisions: Decisions, now_ms: int
    ) -> list[Permission]:
        """Put the decisions that are known of these permissions into `decisions`; return the others."""
        missing = []
        for permission in permissions:
            decision, until_ms = self.decisions.get(permission, NOT_KNOWN)
            if until_ms > now_ms:
                decisions[permission] = decision
            else:
                missing.append(permission)
        return missing

    def remember(self, decisions: Decisions, until_ms: int) -> None:
        """Keep the decisions that are known, in place of older ones where there are many."""
        lasting = {
            permission: (decision, until_ms)
            for permission, decision in decisions.items()
            if is_known(permission, decision) and len(permission.name) <= REMEMBERED_NAME_MAX
        }
        if not self._has_room(len(lasting)):
            self._forget()
        if self._has_room(len(lasting)) and len(lasting) <= REMEMBERED_MAX:
            before = len(self.decisions)
            self.decisions.update(lasting)
            self.counted.count += len(self.decisions) - before

    def _has_room(self, count: int) -> bool:
        if len(self.decisions) + count <= REMEMBERED_ALWAYS:
            return True
        return len(self.decisions) <= REMEMBERED_MAX and self.counted.count + count <= REMEMBERED_IN_ALL_MAX

    def _forget(self) -> None:
        self.counted.count -= len(self.decisions)
        self.decisions = {}

    def end(self) -> None:
        """The connection is over."""
        self._forget()


class Looked(NamedTuple):
    """What is known of some permissions."""

    decisions: Decisions
    queries: Iterator[PermissionQuery]
    """About the others."""


class ClusterAuthorizers:
    """The authorizers of all clients of a process."""

    def __init__(self, mono_ms: Callable[[], int], cache_ms: int, offloader: Offloader) -> None:
        """A decision counts for `cache_ms`."""
        self.mono_ms = mono_ms
        self.cache_ms = cache_ms
        self.offloader = offloader
        self.remembered = CachedPermissionCount()

    def of(self, session: ClientSession) -> "ClusterAuthorizer":
        """The one of this client."""
        found = session.memory
        if found is None:
            found = session.memory = ClusterAuthorizer(self, session)
        assert isinstance(found, ClusterAuthorizer), "nobody else remembers anything"
        return found


class ClusterAuthorizer:
    """Asks the cluster, on the client's own connection."""

    __slots__ = ("_cache", "_session", "_shared")

    def __init__(self, shared: ClusterAuthorizers, session: ClientSession) -> None:
        self._shared = shared
        self._session = session
        self._cache = PermissionCache(counted=shared.remembered)

    def known(self, permissions: Collection[Permission]) -> Decisions | None:
        """The decisions that are remembered; None where one of them is not."""
        decisions: Decisions = {}
        missing = self._cache.missing(permissions, decisions, self._shared.mono_ms())
        return None if missing else decisions

    async def check(self, permissions: Collection[Permission]) -> Decisions:
        """The decisions, of which the broker is asked those that are not remembered.

        Raises ProtocolError for an answer of the broker that is none.
        """
        look = partial(_look_up, self._cache, permissions, self._shared.mono_ms())
        many = len(permissions) > MANY
        decisions, queries = await self._shared.offloader.run(self._session, look, is_long=many)
        asked: deque[tuple[PermissionQuery, Promise[bytes]]] = deque()
        for query in queries:
            if len(asked) == QUERIES_AT_ONCE:
                decisions.update(await self._answer(*asked.popleft()))
            asked.append((query, self._session.ask(BROKER, query.frame)))
        while asked:
            decisions.update(await self._answer(*asked.popleft()))
        return decisions

    async def _answer(self, query: PermissionQuery, answer: Promise[bytes]) -> Decisions:
        frame = await answer
        shared, read = self._shared, partial(query.read, frame)
        decisions = await shared.offloader.run(self._session, read, is_long=is_long(frame))
        self._cache.remember(decisions, shared.mono_ms() + shared.cache_ms)
        return decisions

    def end(self) -> None:
        """The connection is over."""
        self._cache.end()


def _look_up(cache: PermissionCache, permissions: Collection[Permission], now_ms: int) -> Looked:
    decisions: Decisions = {}
    queries = permission_queries(cache.missing(permissions, decisions, now_ms))
    # Queries about many are made here, beside the event loop.
    return Looked(decisions, iter(list(queries)) if len(permissions) > MANY else queries)
