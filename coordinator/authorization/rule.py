# SPDX-License-Identifier: Apache-2.0
"""The interface of a rule: which permissions a request needs, and how it is restricted if its client lacks some.

As in Kafka's KafkaApis, refused parts are taken out of a request before the coordinator gets it, and put into its
response in the places where a broker puts them.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from coordinator.authorization.permissions import Permission
from protocol.compiled_struct import FieldsValue, copy_with_fields
from protocol.errors import ErrorCode

Message = TypeVar("Message")

Decide: TypeAlias = Callable[[Permission], ErrorCode]
"""NONE if the client has a permission that the rule has named, else the error with which it is refused."""
Refuse: TypeAlias = Callable[[Any, ErrorCode, int], Any]
"""(request, error, version) -> the response of the api with this error in every place that can hold an error."""

NONE: Final = ErrorCode.NONE


class AuthorizationResult(NamedTuple):
    """The decision on a request; without any field set the request passes unchanged."""

    error: ErrorCode | None = None
    """The error with which all of the request is refused."""
    response: Any = None
    """The response to the request, of which nothing is left for a coordinator."""
    request: Any = None
    """The rest of the request for the coordinator."""
    merge: Callable[[Any], Any] | None = None
    """(the coordinator's response) -> the client's response"""
    needed: Callable[[Any], Iterable[Permission]] | None = None
    """(the coordinator's response) -> the permissions that the client needs to see all of it."""
    visible: Callable[[Any, Decide], Any] | None = None
    """(the coordinator's response, ...) -> the part that the client may see."""


PASSES: Final = AuthorizationResult()


class Rule(Protocol):
    """The rule of one api. `routing_group_ids` returns no group if every node can answer the request."""

    def find_permissions_to_look_up(self, request: Any, version: int) -> list[Permission]:
        """Return all permissions that have to be known before the request is restricted."""

    def restrict(self, request: Any, version: int, decide: Decide, refuse: Refuse) -> AuthorizationResult:
        """Restrict the request to its permitted parts; `refuse` makes its api's response to an error."""

    def routing_group_ids(self, request: Any, version: int) -> list[str]:
        """Return the groups whose coordinator gets the request."""
        return []


def copy_message_with(message: Message, **fields: Any) -> Message:
    """Return a copy of a message with other values in these fields."""
    if isinstance(message, FieldsValue):
        return copy_with_fields(message, **fields)
    made = copy.copy(message)
    for name, value in fields.items():
        setattr(made, name, value)
    return made
