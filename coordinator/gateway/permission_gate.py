# SPDX-License-Identifier: Apache-2.0
"""The gate before our coordinators: nothing passes that the cluster would not let its client do.

The gate asks the broker on the client's own connection, so the broker answers for that client; a client that has not
logged in gets no further than at a broker. The gate remembers the answers of each connection for a while.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from coordinator.authorization.permissions import DESCRIBE_CLUSTER, Decisions, Permission, is_known
from coordinator.authorization.rule import AuthorizationResult, Rule
from coordinator.authorization.rules import RULES
from coordinator.gateway import answers, rewriting
from coordinator.gateway.beside import LONG_BYTES, Beside, Computing
from coordinator.gateway.permission_queries import PermissionQuery, permission_queries
from coordinator.gateway.ways import COORDINATOR, HERE, ClientSession, Rewrite, Route, Verdict
from protocol.errors import ErrorCode

T = TypeVar("T")

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

Adopt = Callable[[list[str], Callable[[ErrorCode], None]], bool]
"""(groups, done) -> whether all of them are ours already. Where they are not, `done` is called later: with NONE once
they are, or with why they cannot be."""


def all_are_ours(_groups: list[str], _done: Callable[[ErrorCode], None]) -> bool:
    """Of a gateway that takes no groups over."""
    return True


class Begun(NamedTuple):
    """What is found out of a request at first."""

    request: Any
    decisions: Decisions
    """The decisions that are known."""
    queries: Iterator[PermissionQuery]
    """About the others."""


class Settled(NamedTuple):
    """What becomes of a request, and the groups that its coordinator is asked about."""

    result: AuthorizationResult
    groups: list[str]


@dataclass(slots=True, eq=False)
class Pending:
    """A request before it passes."""

    asked: Route
    rule: Rule
    begun: Begun | None = None
    open_queries: int = 0
    failed: BaseException | None = None
    settled: Settled | None = None
    adopted: ErrorCode | None = None

    @property
    def decisions(self) -> Decisions:
        """What the client may do, as far as it is known."""
        assert self.begun is not None, "it was looked at"
        return self.begun.decisions


@dataclass(slots=True, eq=False)
class CachedPermissionCount:
    """How many permissions all connections of a process remember."""

    count: int = 0


@dataclass(slots=True, eq=False)
class PermissionCache:
    """What is remembered of one connection."""

    decisions: dict[Permission, tuple[ErrorCode, int]] = field(default_factory=dict)
    """With the millisecond until which each counts."""
    pending: Pending | None = None
    computing: Computing[object] | None = None
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


def cache_of(session: ClientSession, counted: CachedPermissionCount | None = None) -> PermissionCache:
    """What is remembered of this connection; `counted` counts what is of several."""
    cache = session.memory
    if cache is None:
        cache = session.memory = PermissionCache()
    assert isinstance(cache, PermissionCache), "nobody else remembers anything"
    if counted is not None:
        cache.counted = counted
    return cache


class PermissionGate:
    """Judges what is bound for a coordinator; `gate` is what the routes ask."""

    def __init__(
        self,
        mono_ms: Callable[[], int],
        cache_ms: int,
        beside: Beside,
        adopt: Adopt = all_are_ours,
    ) -> None:
        """`adopt` makes groups ours before a request about them passes."""
        self._mono_ms = mono_ms
        self._cache_ms = cache_ms
        self._beside = beside
        self._adopt = adopt
        self.remembered = CachedPermissionCount()

    def gate(self, session: ClientSession, asked: Route, frame: bytes) -> Verdict | None:
        """A verdict on the request.

        None while it waits: for a broker's answer, for its group to become ours, or for long work on it.
        """
        cache = cache_of(session, self.remembered)
        pending = cache.pending
        if pending is None:
            pending = cache.pending = Pending(asked, RULES[asked.api_key])
        if pending.failed is not None:
            raise pending.failed
        if pending.begun is None and not self._begin(session, cache, pending, frame):
            return None
        verdict = None if pending.open_queries else self._restrict(session, cache, pending, frame)
        if verdict is not None:
            cache.pending = None
        return verdict

    def _begin(self, session: ClientSession, cache: PermissionCache, pending: Pending, frame: bytes) -> bool:
        """Whether the request was looked at; what is not known yet is being asked then."""
        looked = partial(_look_at, pending, cache, self._mono_ms(), frame)
        begun = pending.begun = self._beside.computed(session, cache, len(frame), looked)
        if begun is None:
            return False
        self._find_out(session, cache, begun.queries, pending)
        return True

    def _find_out(
        self,
        session: ClientSession,
        cache: PermissionCache,
        left: Iterator[PermissionQuery],
        pending: Pending,
    ) -> None:
        def ask(count: int) -> None:
            for query in islice(left, count):
                pending.open_queries += 1
                session.ask_broker(query.frame, partial(heard, query))

        def heard(query: PermissionQuery, frame: bytes) -> None:
            if len(frame) > LONG_BYTES:
                self._beside.do(partial(query.read, frame), done)
            else:
                done(query.read(frame))

        def done(answer: Decisions | BaseException) -> None:
            if isinstance(answer, BaseException):
                pending.failed = answer
            else:
                pending.decisions.update(answer)
                cache.remember(answer, self._mono_ms() + self._cache_ms)
            pending.open_queries -= 1
            ask(1)
            if not pending.open_queries or pending.failed is not None:
                session.go_on()

        ask(QUERIES_AT_ONCE)

    def _restrict(
        self, session: ClientSession, cache: PermissionCache, pending: Pending, frame: bytes
    ) -> Verdict | None:
        """The verdict, once all permissions are known."""

        def computed(work: partial[T]) -> T | None:
            return self._beside.computed(session, cache, len(frame), work)

        if pending.settled is None:
            pending.settled = computed(partial(_settled, pending, frame))
            if pending.settled is None:
                return None
        result, groups = pending.settled.result, pending.settled.groups
        if result.error is not None:
            return _here(computed(partial(answers.refusal, frame, result.error)))
        if result.response is not None:
            return _here(computed(partial(answers.answer, frame, result.response)))
        error = self._become_ours(session, pending, groups)
        if error is None:
            return None
        if error is not ErrorCode.NONE:
            return _here(computed(partial(answers.refusal, frame, error)))
        changed = (
            None if result.request is None else computed(partial(answers.request, frame, result.request))
        )
        if result.request is not None and changed is None:
            return None
        return self._passing(session, cache, pending, result, changed)

    def _become_ours(self, session: ClientSession, pending: Pending, groups: list[str]) -> ErrorCode | None:
        """NONE once the groups of the request are ours, or why they cannot be; None while that is not known."""
        if pending.adopted is not None:
            return pending.adopted

        def done(error: ErrorCode) -> None:
            pending.adopted = error
            session.go_on()

        if not groups or self._adopt(groups, done):
            # Asked once: a group that goes meanwhile is refused by its coordinator.
            pending.adopted = ErrorCode.NONE
        return pending.adopted

    def _passing(
        self,
        session: ClientSession,
        cache: PermissionCache,
        pending: Pending,
        result: AuthorizationResult,
        changed: bytes | None,
    ) -> Verdict:
        """What goes to the coordinator, `changed` in place of the request, and what is done with its answer."""
        if result.visible is not None:
            filtered = self._filtering(session, cache, pending, result)
            return Verdict(COORDINATOR, changed, filtered, is_alone=True)
        if result.merge is None:
            return Verdict(COORDINATOR, changed)
        merged = rewriting.changed(*pending.asked[:2], result.merge)
        return Verdict(COORDINATOR, changed, self._beside.rewriting(session, merged))

    def _filtering(
        self, session: ClientSession, cache: PermissionCache, pending: Pending, result: AuthorizationResult
    ) -> Rewrite:
        """Take out of an answer what the client may not see, which is asked once the answer is there."""
        seeing = Pending(pending.asked, pending.rule)

        def change(frame: bytes) -> bytes | None:
            if seeing.failed is not None:
                raise seeing.failed
            if seeing.begun is None:
                looked = partial(_look_at_answer, seeing, cache, self._mono_ms(), result, frame)
                seeing.begun = self._beside.computed(session, cache, len(frame), looked)
                if seeing.begun is None:
                    return None
                self._find_out(session, cache, seeing.begun.queries, seeing)
            if seeing.open_queries:
                return None
            return self._beside.computed(
                session, cache, len(frame), partial(_filtered, seeing, result, frame)
            )

        return rewriting.whole(change)


def _look_at(pending: Pending, cache: PermissionCache, now_ms: int, frame: bytes) -> Begun:
    request = answers.decoded(frame)
    # Of one that names nothing the broker is asked something all the same: it may be of nobody who has logged in.
    permissions = pending.rule.permissions(request, pending.asked.version) or [DESCRIBE_CLUSTER]
    decisions: Decisions = {}
    queries = permission_queries(cache.missing(permissions, decisions, now_ms))
    if len(frame) > LONG_BYTES:
        return Begun(request, decisions, iter(list(queries)))  # made here, beside the event loop
    return Begun(request, decisions, queries)


def _look_at_answer(
    seeing: Pending, cache: PermissionCache, now_ms: int, result: AuthorizationResult, frame: bytes
) -> Begun:
    assert result.needed is not None, "what may not be seen is named"
    response = rewriting.decoded_answer(*seeing.asked[:2], frame)
    decisions: Decisions = {}
    missing = cache.missing(result.needed(response), decisions, now_ms)
    return Begun(response, decisions, iter(list(permission_queries(missing))))


def _filtered(seeing: Pending, result: AuthorizationResult, frame: bytes) -> bytes:
    assert result.visible is not None, "what may not be seen is taken out"
    assert seeing.begun is not None, "it was looked at"
    visible = result.visible(seeing.begun.request, seeing.decisions.__getitem__)
    merged = visible if result.merge is None else result.merge(visible)
    return rewriting.encoded(*seeing.asked[:2], frame, merged)


def _settled(pending: Pending, frame: bytes) -> Settled:
    assert pending.begun is not None, "it was looked at"
    request, version = pending.begun.request, pending.asked.version
    refuse = answers.handled(frame).error_response
    result = pending.rule.restrict(request, version, pending.decisions.__getitem__, refuse)
    left = request if result.request is None else result.request
    return Settled(result, pending.rule.groups(left, version))


def _here(answer: bytes | None) -> Verdict | None:
    return None if answer is None else Verdict(HERE, answer)
