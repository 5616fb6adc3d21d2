# SPDX-License-Identifier: Apache-2.0
"""Rules of requests that name one group, or several."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from coordinator.authorization.group_request_topics import TopicsRulePart
from coordinator.authorization.permissions import DESCRIBE_CLUSTER, Operation, Permission, group_permission
from coordinator.authorization.rule import (
    NONE,
    PASSES,
    AuthorizationResult,
    Decide,
    Refuse,
    Rule,
    copy_message_with,
)
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeGroupsRequest, ListGroupsRequest, ListGroupsResponse

OPERATIONS_FROM: Final = 3
"""The version from which on DescribeGroups can ask for the authorized operations."""
REPORTED: Final = (Operation.READ, Operation.DELETE, Operation.DESCRIBE)
"""The operations on groups that are reported."""

MESSAGES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.UNKNOWN_SERVER_ERROR: "The server experienced an unexpected error when processing the request.",
}
"""Kafka's text for an error (Errors), for responses that have a field for it."""


def _nothing(_request: Any, _version: int) -> ErrorCode:
    return NONE


@dataclass(frozen=True, slots=True)
class SingleGroupRule(Rule):
    """The rule of a request about one group: refuses all of it, if the group is not permitted, or single topics."""

    operation: Operation = Operation.READ
    topics: TopicsRulePart | None = None
    needs_topics: bool = False
    """True if nothing is left for the coordinator once all topics are refused."""
    refused_as: Callable[[Any], Any] | None = None
    """Makes the request whose refusal the client gets."""
    checked_before: Callable[[Any, int], ErrorCode] = _nothing
    """(request, version) -> the error that comes before the permissions, or NONE."""

    def find_permissions_to_look_up(self, request: Any, version: int) -> list[Permission]:
        """Return the permissions that the request needs: the one for its group, and one for each topic."""
        topics = (
            [] if self.topics is None else self.topics.find_permissions_to_look_up(request.topics, version)
        )
        return [group_permission(self.operation, request.group_id), *topics]

    def routing_group_ids(self, request: Any, version: int) -> list[str]:
        """Return the one group that the request names."""
        return [request.group_id]

    def restrict(self, request: Any, version: int, decide: Decide, refuse: Refuse) -> AuthorizationResult:
        """Refuse the request if its group is refused, else its refused topics, which come first in the response."""
        error = self.checked_before(request, version)
        if error is NONE:
            error = decide(group_permission(self.operation, request.group_id))
        if error is NONE and self.topics is not None:
            error = self.topics.find_failed_decision_error(request.topics, version, decide)
        if error is not NONE:
            if self.refused_as is None:
                return AuthorizationResult(error)
            return AuthorizationResult(response=refuse(self.refused_as(request), error, version))
        refused = (
            [] if self.topics is None else self.topics.make_refused_topics(request.topics, version, decide)
        )
        if self.topics is None or not refused:
            return PASSES
        left = self.topics.select_permitted_topics(request.topics, version, decide)
        if self.needs_topics and not left:
            return AuthorizationResult(
                response=copy_message_with(refuse(request, NONE, version), topics=refused)
            )

        def merge(response: Any) -> Any:
            if getattr(response, "error_code", 0):  # of the group: the response has nothing else then
                return response
            return copy_message_with(response, topics=[*refused, *response.topics])

        return AuthorizationResult(request=copy_message_with(request, topics=left), merge=merge)


class RefusedGroupsOrder(Enum):
    """The place of the refused groups in a response."""

    FIRST = auto()
    LAST = auto()
    AS_ASKED = auto()


@dataclass(frozen=True, slots=True)
class SeveralGroupsRule(Rule):
    """Refuses each group of a request that names several, if its permission is missing."""

    operation: Operation
    asked: str
    """The field of the request with the names."""
    answered: str
    """The field of the response with a row for each group."""
    place: RefusedGroupsOrder

    def find_permissions_to_look_up(self, request: Any, version: int) -> list[Permission]:
        """Return the permissions that the request needs: one for each group that it names."""
        return [group_permission(self.operation, name) for name in self._names(request)]

    def routing_group_ids(self, request: Any, version: int) -> list[str]:
        """Return all groups that the request names."""
        return list(self._names(request))

    def _names(self, request: Any) -> Sequence[str]:
        names: Sequence[str] = getattr(request, self.asked)
        return names

    def restrict(self, request: Any, version: int, decide: Decide, refuse: Refuse) -> AuthorizationResult:
        """Decide on each group on its own."""
        names = self._names(request)
        if self.place is RefusedGroupsOrder.LAST:
            names = list(dict.fromkeys(names))
        errors = {name: decide(group_permission(self.operation, name)) for name in names}
        left = [name for name in names if errors[name] is NONE]
        if len(left) == len(names):
            return PASSES

        def merge(response: Any) -> Any:
            answered = iter(getattr(response, self.answered))
            refusals = self._refusals(request, errors, version, refuse)
            rows = [refusals[name] for name in names if name in refusals]
            if self.place is RefusedGroupsOrder.FIRST:
                rows = [*rows, *answered]
            elif self.place is RefusedGroupsOrder.LAST:
                rows = [*answered, *rows]
            else:
                refused = iter(rows)
                rows = [next(answered if errors[name] is NONE else refused) for name in names]
            return copy_message_with(response, **{self.answered: rows})

        if not left:
            nothing = copy_message_with(request, **{self.asked: []})
            return AuthorizationResult(response=merge(refuse(nothing, NONE, version)))
        return AuthorizationResult(request=copy_message_with(request, **{self.asked: left}), merge=merge)

    def _refusals(
        self, request: Any, errors: Mapping[str, ErrorCode], version: int, refuse: Refuse
    ) -> dict[str, Any]:
        """Return the rows of refused groups by name; the groups with the same error come from one response."""
        names_by_error: dict[ErrorCode, list[str]] = {}
        for name, error in errors.items():
            names_by_error.setdefault(error, []).append(name)
        names_by_error.pop(NONE, None)
        rows: dict[str, Any] = {}
        for error, names in names_by_error.items():
            response = refuse(copy_message_with(request, **{self.asked: names}), error, version)
            rows.update(zip(names, getattr(response, self.answered), strict=True))
        return rows


class DescribeGroupsRule(SeveralGroupsRule):
    """The rule of DescribeGroups, which adds the allowed operations to the response if asked for (KIP-430)."""

    __slots__ = ()

    def find_permissions_to_look_up(self, request: DescribeGroupsRequest, version: int) -> list[Permission]:
        """Return one permission for each group, or those for all of `REPORTED` if the request asks for operations."""
        if not _asks_for_operations(request, version):
            return super().find_permissions_to_look_up(request, version)
        return [group_permission(operation, name) for name in request.groups for operation in REPORTED]

    def restrict(
        self, request: DescribeGroupsRequest, version: int, decide: Decide, refuse: Refuse
    ) -> AuthorizationResult:
        """Decide on each group on its own, and add the allowed operations if the request asks for them."""
        result = super().restrict(request, version, decide, refuse)
        if not _asks_for_operations(request, version) or result.response is not None:
            return result

        def report(response: Any) -> Any:
            for group in response.groups:
                if not group.error_code:
                    group.authorized_operations = {
                        int(operation)
                        for operation in REPORTED
                        if decide(group_permission(operation, group.group_id)) is NONE
                    }
            return response if result.merge is None else result.merge(response)

        return result._replace(merge=report)


def _asks_for_operations(request: DescribeGroupsRequest, version: int) -> bool:
    return version >= OPERATIONS_FROM and request.include_authorized_operations


class CoordinatorKeysRule(SeveralGroupsRule):
    """The rule of FindCoordinator with several keys; a refused group gets a text only if its permission is unknown."""

    __slots__ = ()

    def _refusals(
        self, request: Any, errors: Mapping[str, ErrorCode], version: int, refuse: Refuse
    ) -> dict[str, Any]:
        rows = super()._refusals(request, errors, version, refuse)
        for name, row in rows.items():
            error = errors[name]
            if error is not ErrorCode.GROUP_AUTHORIZATION_FAILED:
                row.error_message = MESSAGES.get(error, error.name)
        return rows


@dataclass(frozen=True, slots=True)
class FindCoordinatorRule(Rule):
    """Refuses to find groups that may not be described.

    The location of a group reveals nothing about the group, so no coordinator is asked.
    """

    several: CoordinatorKeysRule
    several_from: int

    def find_permissions_to_look_up(self, request: Any, version: int) -> list[Permission]:
        """Return the permissions that the request needs: one for each group that it names."""
        if version >= self.several_from:
            return self.several.find_permissions_to_look_up(request, version)
        return [group_permission(self.several.operation, request.key)]

    def restrict(self, request: Any, version: int, decide: Decide, refuse: Refuse) -> AuthorizationResult:
        """Decide on each group on its own; the response of the versions with one key has a text for its error."""
        if version >= self.several_from:
            return self.several.restrict(request, version, decide, refuse)
        error = decide(group_permission(self.several.operation, request.key))
        if error is NONE:
            return PASSES
        response = copy_message_with(
            refuse(request, error, version), error_message=MESSAGES.get(error, error.name)
        )
        return AuthorizationResult(response=response)


class ListGroupsRule(Rule):
    """Shows all groups to a client that may describe the cluster, and otherwise the groups that it may describe."""

    def find_permissions_to_look_up(self, request: ListGroupsRequest, version: int) -> list[Permission]:
        """Return the permission for the cluster; the groups are known only with the response."""
        return [DESCRIBE_CLUSTER]

    def restrict(
        self, request: ListGroupsRequest, version: int, decide: Decide, refuse: Refuse
    ) -> AuthorizationResult:
        """Pass the request, and filter its response if the client may not describe the cluster."""
        error = decide(DESCRIBE_CLUSTER)
        if error is NONE:
            return PASSES
        if error is not ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return AuthorizationResult(error)

        def visible(response: ListGroupsResponse, decide: Decide) -> ListGroupsResponse:
            seen = []
            for group in response.groups:
                error = decide(group_permission(Operation.DESCRIBE, group.group_id))
                if error is NONE:
                    seen.append(group)
                elif error is not ErrorCode.GROUP_AUTHORIZATION_FAILED:
                    refusal: ListGroupsResponse = refuse(request, error, version)
                    return refusal
            response.groups = seen
            return response

        return AuthorizationResult(
            needed=lambda response: [
                group_permission(Operation.DESCRIBE, group.group_id) for group in response.groups
            ],
            visible=visible,
        )
