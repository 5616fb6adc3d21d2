# SPDX-License-Identifier: Apache-2.0
"""The gate before our coordinators: nothing passes that the cluster would not let its client do."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from coordinator.authorization.authorizer import Authorizer
from coordinator.authorization.permissions import DESCRIBE_CLUSTER, Decisions, Permission
from coordinator.authorization.rule import AuthorizationResult
from coordinator.authorization.rules import RULES
from coordinator.gateway import answers, rewriting
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.places import MANY, Place, Places
from coordinator.gateway.promise import Wake
from coordinator.gateway.ways import (
    COORDINATOR,
    HERE,
    ClientSession,
    NoAnswer,
    Route,
    Verdict,
    with_length,
)
from protocol.errors import ErrorCode

Adopt = Callable[[list[str], Wake], Coroutine[Any, Any, ErrorCode]]
"""(groups, ...) -> NONE once all of the groups are ours, or why they cannot be."""


async def all_are_ours(_groups: list[str], _wake: Wake) -> ErrorCode:
    """Of a gateway that takes no groups over."""
    return ErrorCode.NONE


class Needs(NamedTuple):
    """A request, or a response, and the permissions that decide over it."""

    message: Any
    """None of a long one, which is decoded again where it is needed again."""
    permissions: list[Permission]


class Restricted(NamedTuple):
    """A request, and what its rule makes of it."""

    request: Any
    result: AuthorizationResult


class Outcome(NamedTuple):
    """What becomes of a request once its permissions are known."""

    answer: bytes | None
    """Where it is refused, or nothing of it is left."""
    sent: bytes | None
    """What goes to the coordinator in its place."""
    groups: list[str]
    """Those that the coordinator is asked about."""
    is_filtered: bool
    """Whether the client gets another response than the coordinator's."""


Look = Callable[[bool], Needs | None]
"""(whether there is a place for many) -> what is needed; None where that is too much without a place."""


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
        self._places = Places()

    async def judge(self, session: ClientSession, route: Route, frame: bytes) -> Verdict:
        """A verdict on the request; where its response depends on permissions, that response, which was asked for.

        Waits where a permission is not known, a group is not ours yet, or the request is long.
        """
        place = self._places.of(session)
        try:
            return await self._judge(session, route, frame, place)
        finally:
            place.end()

    async def _judge(self, session: ClientSession, route: Route, frame: bytes, place: Place) -> Verdict:
        run, long, authorizer = self._offloader.run, is_long(frame), self._authorizer_of(session)
        needed = partial(_needed, route, frame, long)
        request, permissions = await self._needs(session, needed, place, is_long=long)
        decisions = None if place.is_held else authorizer.known(permissions)
        if decisions is None:
            decisions = await authorizer.check(permissions)
        restrict = partial(_restricted, route, frame, request, decisions)
        outcome = await run(session, partial(_outcome, route, frame, restrict), is_long=long)
        if outcome.answer is not None:
            return Verdict(HERE, outcome.answer)
        # Once: a group that goes back later is refused by its coordinator.
        error = await self._adopt(outcome.groups, session.go_on)
        if error is not ErrorCode.NONE:
            return await self._refused(session, frame, error)
        if not outcome.is_filtered:
            return Verdict(COORDINATOR, outcome.sent)
        try:
            answer = await session.ask(COORDINATOR, outcome.sent or with_length(frame))
        except NoAnswer:
            return await self._refused(session, frame, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        long = long or is_long(answer)
        needed = partial(_needed_to_see, route, restrict, answer, long)
        response, permissions = await self._needs(session, needed, place, is_long=long)
        decisions = await authorizer.check(permissions)
        seen = partial(_seen, route, restrict, answer, response, decisions)
        return Verdict(HERE, await run(session, seen, is_long=long))

    async def _needs(self, session: ClientSession, look: Look, place: Place, *, is_long: bool) -> Needs:
        needs = await self._offloader.run(session, partial(look, place.is_held), is_long=is_long)
        while needs is None:
            await place.take()
            needs = await self._offloader.run(session, partial(look, True), is_long=is_long)
        return needs

    async def _refused(self, session: ClientSession, frame: bytes, error: ErrorCode) -> Verdict:
        refusal = partial(answers.refusal, frame, error)
        return Verdict(HERE, await self._offloader.run(session, refusal, is_long=is_long(frame)))


def _needed(route: Route, frame: bytes, is_long: bool, has_place: bool) -> Needs | None:
    request = answers.decoded(frame)
    # Of one that names nothing the broker is asked something all the same: it may be of nobody who has logged in.
    permissions = RULES[route.api_key].permissions(request, route.version) or [DESCRIBE_CLUSTER]
    return _unless_many(request, permissions, is_long, has_place)


def _unless_many(message: Any, permissions: list[Permission], is_long: bool, has_place: bool) -> Needs | None:
    if len(permissions) > MANY and not has_place:
        return None
    return Needs(None if is_long else message, permissions)


def _restricted(route: Route, frame: bytes, request: Any, decisions: Decisions) -> Restricted:
    request = answers.decoded(frame) if request is None else request
    rule, refuse = RULES[route.api_key], answers.handled(frame).error_response
    return Restricted(request, rule.restrict(request, route.version, decisions.__getitem__, refuse))


def _outcome(route: Route, frame: bytes, restrict: Callable[[], Restricted]) -> Outcome:
    request, result = restrict()
    if result.error is not None:
        return Outcome(answers.refusal(frame, result.error), None, [], False)
    if result.response is not None:
        return Outcome(answers.answer(frame, result.response), None, [], False)
    sent = None
    if result.request is not None:
        request, sent = result.request, answers.request(frame, result.request)
    is_filtered = result.merge is not None or result.visible is not None
    return Outcome(None, sent, RULES[route.api_key].groups(request, route.version), is_filtered)


def _needed_to_see(
    route: Route, restrict: Callable[[], Restricted], answer: bytes, is_long: bool, has_place: bool
) -> Needs | None:
    response = rewriting.decoded_answer(route.api_key, route.version, answer)
    needed = restrict().result.needed
    return _unless_many(response, [] if needed is None else list(needed(response)), is_long, has_place)


def _seen(
    route: Route, restrict: Callable[[], Restricted], answer: bytes, response: Any, decisions: Decisions
) -> bytes:
    """The response without what the client may not see, and with what was refused of the request."""
    if response is None:
        response = rewriting.decoded_answer(route.api_key, route.version, answer)
    result = restrict().result
    if result.visible is not None:
        response = result.visible(response, decisions.__getitem__)
    if result.merge is not None:
        response = result.merge(response)
    return rewriting.encoded(route.api_key, route.version, answer, response)
