# SPDX-License-Identifier: Apache-2.0
"""The gate before our coordinators: passes on only those parts of a request that the cluster permits."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, NamedTuple

from coordinator.authorization.authorizer import Authorizer
from coordinator.authorization.permissions import DESCRIBE_CLUSTER, Decisions, Permission
from coordinator.authorization.rule import AuthorizationResult
from coordinator.authorization.rules_by_api import RULES
from coordinator.gateway import answers, rewriting
from coordinator.gateway.decode_slots import MANY_PERMISSIONS, DecodeSlot, DecodeSlots
from coordinator.gateway.offload import Offloader, is_long
from coordinator.gateway.routing_types import (
    COORDINATOR,
    HERE,
    LENGTH_BYTES,
    AwaitedResponseLost,
    ClientSession,
    Route,
    TakeoverRequester,
    Verdict,
    with_length,
)
from protocol.apis import ApiKey
from protocol.errors import ErrorCode

OF_MEMBERS: Final = frozenset({ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP})
ABOUT_ABSENT: Final = frozenset(
    {ApiKey.DESCRIBE_GROUPS, ApiKey.OFFSET_FETCH, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE}
)
"""The apis that use the cluster for groups that are not here."""

Adopt = Callable[[str, TakeoverRequester], Coroutine[Any, Any, ErrorCode]]
"""(group, request) -> NONE once the group is taken over or ours, else the error for the request."""


async def adopt_nothing(_group: str, _requester: TakeoverRequester) -> ErrorCode:
    """Return NONE: the `Adopt` of a gateway that takes no groups over."""
    return ErrorCode.NONE


AnswerAbsent = Callable[[ClientSession, Route, bytes, list[str]], Coroutine[Any, Any, bytes | None]]
"""(client, route, a request of ABOUT_ABSENT without its length, its groups) -> the response with its length; None if
all groups are here. Raises AwaitedResponseLost."""


async def answer_no_absent_groups(
    _session: ClientSession, _route: Route, _frame: bytes, _groups: list[str]
) -> None:
    """Return None: the `AnswerAbsent` of a gateway that takes no groups over."""


class MessageAndNeededPermissions(NamedTuple):
    """A request or response, and the permissions that it needs."""

    message: Any
    """The decoded message; None for a long one, which is decoded again when it is needed again."""
    permissions: list[Permission]


class RequestAndRuleResult(NamedTuple):
    """A request, and the result of its rule."""

    request: Any
    result: AuthorizationResult


class GateDecision(NamedTuple):
    """The decision on a request whose permissions are known."""

    answer: bytes | None
    """The response, if the request is refused or nothing of it is left."""
    sent: bytes | None
    """The request that the coordinator gets, if it is a changed one."""
    groups: list[str]
    """The groups that the request is about, if it matters whether they are here."""
    is_filtered: bool
    """True if the coordinator's response is changed before the client gets it."""


FindNeeds = Callable[[bool], MessageAndNeededPermissions | None]
"""(whether a decode slot is held) -> the needed permissions; None if that takes a slot and none is held."""


class PermissionGate:
    """Decides on requests for a coordinator."""

    def __init__(
        self,
        authorizer_of: Callable[[ClientSession], Authorizer],
        offloader: Offloader,
        adopt: Adopt = adopt_nothing,
        answer_absent: AnswerAbsent = answer_no_absent_groups,
    ) -> None:
        """Take groups over with `adopt` before a JoinGroup, or a commit without a member, passes.

        `answer_absent` answers requests about groups, or deletions, if some of the groups are not here.
        """
        self._authorizer_of = authorizer_of
        self._offloader = offloader
        self._adopt = adopt
        self._answer_absent = answer_absent
        self._slots = DecodeSlots()

    async def handle_request(self, session: ClientSession, route: Route, frame: bytes) -> Verdict:
        """Decide on a request; if permissions limit its response, too, send the request and filter the response here.

        Waits if a permission is not cached, a group is not ours yet, or the request is long.
        """
        slot = DecodeSlot(self._slots, session)
        try:
            return await self._judge(session, route, frame, slot)
        finally:
            slot.release()

    async def _judge(self, session: ClientSession, route: Route, frame: bytes, slot: DecodeSlot) -> Verdict:
        run, long, authorizer = self._offloader.run, is_long(frame), self._authorizer_of(session)
        needed = partial(_needed, route, frame, long)
        request, permissions = await self._needs(session, needed, slot, is_long=long)
        decisions = None if slot.is_held else authorizer.decisions_if_all_known(permissions)
        if decisions is None:
            decisions = await authorizer.fetch_decisions(permissions)
        restrict = partial(_restricted, route, frame, request, decisions)
        outcome = await run(session, partial(_outcome, route, frame, restrict), is_long=long)
        if outcome.answer is not None:
            return Verdict(HERE, outcome.answer)
        if outcome.groups and route.api_key not in ABOUT_ABSENT:
            # Only once: if the group is given back later, its coordinator refuses the request.
            (group,) = outcome.groups
            client_id = answers.decode_client_id(frame)
            requester = TakeoverRequester(route.api_key, session.go_on, client_id, session.peer_name)
            error = await self._adopt(group, requester)
            if error is not ErrorCode.NONE:
                return await self._refused(session, frame, error)
        try:
            answer = await self._answered(session, route, frame, outcome)
        except AwaitedResponseLost:
            return await self._refused(session, frame, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if answer is None:
            return Verdict(COORDINATOR, outcome.sent)
        if not outcome.is_filtered:
            return Verdict(HERE, answer)
        long = long or is_long(answer)
        needed = partial(_needed_to_see, route, restrict, answer, long)
        response, permissions = await self._needs(session, needed, slot, is_long=long)
        decisions = await authorizer.fetch_decisions(permissions)
        seen = partial(_seen, route, restrict, answer, response, decisions)
        return Verdict(HERE, await run(session, seen, is_long=long))

    async def _answered(
        self, session: ClientSession, route: Route, frame: bytes, outcome: GateDecision
    ) -> bytes | None:
        """Return the coordinators' response, or None if request and response pass between our node and the client."""
        if outcome.groups and route.api_key in ABOUT_ABSENT:
            left = frame if outcome.sent is None else outcome.sent[LENGTH_BYTES:]
            answer = await self._answer_absent(session, route, left, outcome.groups)
            if answer is not None:
                return answer
        return (
            await session.send_own_request(COORDINATOR, outcome.sent or with_length(frame))
            if outcome.is_filtered
            else None
        )

    async def _needs(
        self, session: ClientSession, look: FindNeeds, slot: DecodeSlot, *, is_long: bool
    ) -> MessageAndNeededPermissions:
        needs = await self._offloader.run(session, partial(look, slot.is_held), is_long=is_long)
        if needs is None:
            await slot.acquire()
            needs = await self._offloader.run(session, partial(look, True), is_long=is_long)
            assert needs is not None, "a slot is held"
        return needs

    async def _refused(self, session: ClientSession, frame: bytes, error: ErrorCode) -> Verdict:
        refusal = partial(answers.make_error_response, frame, error)
        return Verdict(HERE, await self._offloader.run(session, refusal, is_long=is_long(frame)))


def _needed(route: Route, frame: bytes, is_long: bool, has_slot: bool) -> MessageAndNeededPermissions | None:
    request = answers.decode_coordinator_request(frame)
    # The broker gets a query even if the request names nothing: the client may not have logged in.
    permissions = RULES[route.api_key].find_permissions_to_look_up(request, route.version) or [
        DESCRIBE_CLUSTER
    ]
    return _unless_many(request, permissions, is_long, has_slot)


def _unless_many(
    message: Any, permissions: list[Permission], is_long: bool, has_slot: bool
) -> MessageAndNeededPermissions | None:
    if len(permissions) > MANY_PERMISSIONS and not has_slot:
        return None
    return MessageAndNeededPermissions(None if is_long else message, permissions)


def _restricted(route: Route, frame: bytes, request: Any, decisions: Decisions) -> RequestAndRuleResult:
    request = answers.decode_coordinator_request(frame) if request is None else request
    rule, refuse = RULES[route.api_key], answers.find_request_api(frame).error_response
    return RequestAndRuleResult(request, rule.restrict(request, route.version, decisions.__getitem__, refuse))


def _outcome(route: Route, frame: bytes, restrict: Callable[[], RequestAndRuleResult]) -> GateDecision:
    request, result = restrict()
    if result.error is not None:
        return GateDecision(answers.make_error_response(frame, result.error), None, [], False)
    if result.response is not None:
        return GateDecision(answers.encode_response_to_request(frame, result.response), None, [], False)
    sent = None
    if result.request is not None:
        request, sent = result.request, answers.encode_changed_request(frame, result.request)
    is_filtered = result.merge is not None or result.visible is not None
    groups = (
        []
        if _is_of_member(route.api_key, request)
        else RULES[route.api_key].routing_group_ids(request, route.version)
    )
    return GateDecision(None, sent, groups, is_filtered)


def _is_of_member(api_key: int, request: Any) -> bool:
    """Return whether a request is a member's: as an absent group has no members here, it is for our node.

    A JoinGroup with the empty id is for our node, too: no member can join that group, which only has committed offsets.
    """
    if api_key == ApiKey.OFFSET_COMMIT:
        return bool(request.generation_id_or_member_epoch >= 0)
    return api_key in OF_MEMBERS or (api_key == ApiKey.JOIN_GROUP and not request.group_id)


def _needed_to_see(
    route: Route, restrict: Callable[[], RequestAndRuleResult], answer: bytes, is_long: bool, has_slot: bool
) -> MessageAndNeededPermissions | None:
    response = rewriting.decode_framed_response(route.api_key, route.version, answer)
    needed = restrict().result.needed
    return _unless_many(response, [] if needed is None else list(needed(response)), is_long, has_slot)


def _seen(
    route: Route,
    restrict: Callable[[], RequestAndRuleResult],
    answer: bytes,
    response: Any,
    decisions: Decisions,
) -> bytes:
    """Return the response without the parts that the client may not see, and with the refused parts of the request."""
    if response is None:
        response = rewriting.decode_framed_response(route.api_key, route.version, answer)
    result = restrict().result
    if result.visible is not None:
        response = result.visible(response, decisions.__getitem__)
    if result.merge is not None:
        response = result.merge(response)
    return rewriting.encode_replacement(route.api_key, route.version, answer, response)
