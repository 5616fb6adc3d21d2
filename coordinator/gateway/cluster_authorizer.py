# SPDX-License-Identifier: Apache-2.0
"""Finds out what a client may do by asking its broker on the client's own connection.

So the broker answers for that client, and a client that has not logged in gets no further than at a broker. The
responses are cached per connection.
"""

from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from coordinator.authorization.permissions import (
    DESCRIBE_CLUSTER,
    Decisions,
    Permission,
    is_definite_decision,
)
from coordinator.gateway.decode_slots import MANY_PERMISSIONS
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.permission_queries import PermissionQuery, permission_queries
from coordinator.gateway.routing_types import BROKER, Ask, ClientSession, Route, Verdict
from coordinator.runtime.promise import Promise
from protocol.bounds import REMEMBERED_NAME_MAX
from protocol.errors import ErrorCode

REMEMBERED_MAX: Final = 10_000
"""The number of permissions in a connection's cache from which it drops the older ones; one response may double it."""
REMEMBERED_ALWAYS: Final = 50
"""The number of permissions that each connection may cache, even if REMEMBERED_IN_ALL_MAX is reached."""
REMEMBERED_IN_ALL_MAX: Final = 100_000
"""The number of permissions that all connections of a process may cache together: about 50 MB."""

QUERIES_AT_ONCE: Final = 20
"""The number of queries for one request that may be in flight."""

NOT_KNOWN: Final = (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
"""The decision for permissions that are not cached, which has expired at millisecond 0."""


@dataclass(slots=True, eq=False)
class CachedPermissionTotal:
    """The number of permissions that all connections of a process have cached."""

    count: int = 0


@dataclass(slots=True, eq=False)
class ConnectionPermissionCache:
    """The cached permissions of one connection."""

    decisions: dict[Permission, tuple[ErrorCode, int]] = field(default_factory=dict)
    """The decisions by permission, each with the millisecond at which it expires."""
    counted: CachedPermissionTotal = field(default_factory=CachedPermissionTotal)

    def add_cached_decisions(
        self, permissions: Iterable[Permission], decisions: Decisions, now_ms: int
    ) -> list[Permission]:
        """Add the cached decisions on these permissions to `decisions`; return the other permissions."""
        missing = []
        for permission in permissions:
            decision, until_ms = self.decisions.get(permission, NOT_KNOWN)
            if until_ms > now_ms:
                decisions[permission] = decision
            else:
                missing.append(permission)
        return missing

    def remember(self, decisions: Decisions, until_ms: int) -> None:
        """Cache the decisions that are known; if there are too many, drop the older ones."""
        lasting = {
            permission: (decision, until_ms)
            for permission, decision in decisions.items()
            if is_definite_decision(permission, decision) and len(permission.name) <= REMEMBERED_NAME_MAX
        }
        if not self._has_room(len(lasting)):
            self.clear()
        if self._has_room(len(lasting)) and len(lasting) <= REMEMBERED_MAX:
            before = len(self.decisions)
            self.decisions.update(lasting)
            self.counted.count += len(self.decisions) - before

    def _has_room(self, count: int) -> bool:
        if len(self.decisions) + count <= REMEMBERED_ALWAYS:
            return True
        return len(self.decisions) <= REMEMBERED_MAX and self.counted.count + count <= REMEMBERED_IN_ALL_MAX

    def clear(self) -> None:
        """Drop all decisions, and count them no longer."""
        self.counted.count -= len(self.decisions)
        self.decisions = {}


class ClusterAuthorizers:
    """Makes the authorizers of a process, one for each client."""

    def __init__(self, mono_ms: Callable[[], int], cache_ms: int, offloader: Offloader) -> None:
        """Cache decisions for `cache_ms` milliseconds."""
        self.mono_ms = mono_ms
        self.cache_ms = cache_ms
        self.offloader = offloader
        self.remembered = CachedPermissionTotal()

    def get_client_authorizer(self, session: ClientSession) -> "ClusterAuthorizer":
        """Return the authorizer of this client."""
        found = session.memory
        if found is None:
            found = session.memory = ClusterAuthorizer(self, session)
        assert isinstance(found, ClusterAuthorizer), "a session stores only its authorizer there"
        return found

    def wrap_with_login_check(self, ask: Ask) -> Ask:
        """Return a handler that asks the client's broker something before it calls `ask`, which asks no broker.

        A broker closes the connection of a client that has not logged in (SaslServerAuthenticator).
        """
        return partial(self._after_login, ask)

    def _after_login(
        self, ask: Ask, session: ClientSession, route: Route, frame: bytes
    ) -> Verdict | Coroutine[Any, Any, Verdict]:
        if self.get_client_authorizer(session).decisions_if_all_known([DESCRIBE_CLUSTER]) is None:
            return self._once_answered(ask, session, route, frame)
        return ask(session, route, frame)

    async def _once_answered(self, ask: Ask, session: ClientSession, route: Route, frame: bytes) -> Verdict:
        await self.get_client_authorizer(session).fetch_decisions([DESCRIBE_CLUSTER])
        verdict = ask(session, route, frame)
        return verdict if isinstance(verdict, Verdict) else await verdict


class ClusterAuthorizer:
    """Asks the cluster about one client, on that client's connection."""

    __slots__ = ("_cache", "_session", "_shared")

    def __init__(self, shared: ClusterAuthorizers, session: ClientSession) -> None:
        self._shared = shared
        self._session = session
        self._cache = ConnectionPermissionCache(counted=shared.remembered)

    def decisions_if_all_known(self, permissions: Collection[Permission]) -> Decisions | None:
        """Return the decisions if all of them are cached, else None."""
        decisions: Decisions = {}
        missing = self._cache.add_cached_decisions(permissions, decisions, self._shared.mono_ms())
        return None if missing else decisions

    async def fetch_decisions(self, permissions: Collection[Permission]) -> Decisions:
        """Return the decisions, after asking the broker for those that are not cached.

        Raises ProtocolError if the broker's response cannot be read.
        """
        look = partial(_look_up, self._cache, permissions, self._shared.mono_ms())
        many = len(permissions) > MANY_PERMISSIONS
        decisions, queries = await self._shared.offloader.run(self._session, look, is_long=many)
        asked: deque[tuple[PermissionQuery, Promise[bytes]]] = deque()
        for query in queries:
            if len(asked) == QUERIES_AT_ONCE:
                decisions.update(await self._answer(*asked.popleft()))
            asked.append((query, self._session.send_own_request(BROKER, query.frame)))
        while asked:
            decisions.update(await self._answer(*asked.popleft()))
        return decisions

    async def _answer(self, query: PermissionQuery, answer: Promise[bytes]) -> Decisions:
        frame = await answer
        shared, read = self._shared, partial(query.read, frame)
        decisions = await shared.offloader.run(self._session, read, is_long=is_long(frame))
        self._cache.remember(decisions, shared.mono_ms() + shared.cache_ms)
        return decisions

    def drop_state(self) -> None:
        """Drop the cache, as the connection has ended."""
        self._cache.clear()


def _look_up(
    cache: ConnectionPermissionCache, permissions: Collection[Permission], now_ms: int
) -> tuple[Decisions, Iterator[PermissionQuery]]:
    """Return the cached decisions, and the queries for the others."""
    decisions: Decisions = {}
    queries = permission_queries(cache.add_cached_decisions(permissions, decisions, now_ms))
    # Many queries are encoded here, in the thread, and not when the event loop takes them.
    return decisions, iter(list(queries)) if len(permissions) > MANY_PERMISSIONS else queries
