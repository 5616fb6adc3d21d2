# SPDX-License-Identifier: Apache-2.0
"""The gate before our coordinators: nothing passes that the cluster would not let its client do."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from coordinator.authorization.authorizer import Authorizer
from coordinator.authorization.permissions import DESCRIBE_CLUSTER, Decisions, Permission
from coordinator.authorization.rule import AuthorizationResult, Rule
from coordinator.authorization.rules import RULES
from coordinator.gateway import answers, rewriting
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.promise import Promise
from coordinator.gateway.ways import (
    COORDINATOR,
    HERE,
    LENGTH_BYTES,
    ClientSession,
    NoAnswer,
    Route,
    Verdict,
)
from protocol.errors import ErrorCode

Adopt = Callable[[list[str], Callable[[ErrorCode], None]], bool]
"""(groups, done) -> whether all of them are ours already. Where they are not, `done` is called, now or later: with NONE
once they are, or with why they cannot be."""


def all_are_ours(_groups: list[str], _done: Callable[[ErrorCode], None]) -> bool:
    """Of a gateway that takes no groups over."""
    return True


class Needs(NamedTuple):
    """A request, or a response, and the permissions that decide over it."""

    message: Any
    permissions: list[Permission]


class Restricted(NamedTuple):
    """What becomes of a request, and the groups that its coordinator is asked about."""

    result: AuthorizationResult
    groups: list[str]


class PermissionGate:
    """Judges what is bound for a coordinator."""

    def __init__(
        self,
        authorizer_of: Callable[[ClientSession], Authorizer],
        offloader: Offloader,
        adopt: Adopt = all_are_ours,
    ) -> None:
        """`adopt` makes groups ours before a request about them passes."""
        self._authorizer_of = authorizer_of
        self._offloader = offloader
        self._adopt = adopt

    async def judge(self, session: ClientSession, route: Route, frame: bytes) -> Verdict:
        """A verdict on the request; where its response depends on permissions, that response, which was asked for.

        Waits where a permission is not known, a group is not ours yet, or the request is long.
        """
        run, long = self._offloader.run, is_long(frame)
        rule, version, authorizer = RULES[route.api_key], route.version, self._authorizer_of(session)
        needed = partial(_needed, rule, version, frame)
        request, permissions = await run(session, needed, is_long=long)
        decisions = None if long else authorizer.known(permissions)
        if decisions is None:
            decisions = await authorizer.check(permissions)
        restricted = partial(_restricted, rule, version, frame, request, decisions)
        result, groups = await run(session, restricted, is_long=long)
        if result.error is not None:
            return await self._refused(session, frame, result.error)
        if result.response is not None:
            answer = partial(answers.answer, frame, result.response)
            return Verdict(HERE, await run(session, answer, is_long=long))
        error = await self._adopted(session, groups)
        if error is not ErrorCode.NONE:
            return await self._refused(session, frame, error)
        sent = None
        if result.request is not None:
            left = partial(answers.request, frame, result.request)
            sent = await run(session, left, is_long=long)
        if result.merge is None and result.visible is None:
            return Verdict(COORDINATOR, sent)
        try:
            response = await session.ask(COORDINATOR, sent or _with_length(frame))
        except NoAnswer:
            return await self._refused(session, frame, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return Verdict(HERE, await self._filtered(session, route, result, response))

    async def _refused(self, session: ClientSession, frame: bytes, error: ErrorCode) -> Verdict:
        refusal = partial(answers.refusal, frame, error)
        return Verdict(HERE, await self._offloader.run(session, refusal, is_long=is_long(frame)))

    async def _adopted(self, session: ClientSession, groups: list[str]) -> ErrorCode:
        """NONE once the groups are ours, or why they cannot be.

        Asked once: a group that goes back later is refused by its coordinator.
        """
        adopted: Promise[ErrorCode] = Promise(session.go_on)
        if not groups or self._adopt(groups, adopted.keep):
            return ErrorCode.NONE
        return await adopted

    async def _filtered(
        self, session: ClientSession, route: Route, result: AuthorizationResult, frame: bytes
    ) -> bytes:
        """The response without what the client may not see, and with what was refused of the request."""
        run, long = self._offloader.run, is_long(frame)
        needed = partial(_needed_to_see, route, result, frame)
        response, permissions = await run(session, needed, is_long=long)
        decisions = await self._authorizer_of(session).check(permissions)
        seen = partial(_seen, route, result, frame, response, decisions)
        return await run(session, seen, is_long=long)


def _with_length(frame: bytes) -> bytes:
    return len(frame).to_bytes(LENGTH_BYTES, "big") + frame


def _needed(rule: Rule, version: int, frame: bytes) -> Needs:
    request = answers.decoded(frame)
    # Of one that names nothing the broker is asked something all the same: it may be of nobody who has logged in.
    return Needs(request, rule.permissions(request, version) or [DESCRIBE_CLUSTER])


def _restricted(rule: Rule, version: int, frame: bytes, request: Any, decisions: Decisions) -> Restricted:
    result = rule.restrict(request, version, decisions.__getitem__, answers.handled(frame).error_response)
    left = request if result.request is None else result.request
    return Restricted(result, rule.groups(left, version))


def _needed_to_see(route: Route, result: AuthorizationResult, frame: bytes) -> Needs:
    response = rewriting.decoded_answer(route.api_key, route.version, frame)
    return Needs(response, [] if result.needed is None else list(result.needed(response)))


def _seen(
    route: Route, result: AuthorizationResult, frame: bytes, response: Any, decisions: Decisions
) -> bytes:
    if result.visible is not None:
        response = result.visible(response, decisions.__getitem__)
    if result.merge is not None:
        response = result.merge(response)
    return rewriting.encoded(route.api_key, route.version, frame, response)
