# SPDX-License-Identifier: Apache-2.0
"""What a rule says: which permissions a request needs, and what becomes of one whose client has some of them only.

As in Kafka's KafkaApis: what is refused of a request is taken out before the coordinator sees it, and put back into its
response in the places where a broker has it.
"""

import copy
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from coordinator.authorization.permissions import Permission
from protocol.compiled_struct import FieldsValue, replaced
from protocol.errors import ErrorCode

Message = TypeVar("Message")

Decide: TypeAlias = Callable[[Permission], ErrorCode]
"""NONE where the client has a permission that the rule has named, else the error that it is refused with."""
Refuse: TypeAlias = Callable[[Any, ErrorCode, int], Any]
"""(request, error, version) -> the response of the api with this error, wherever an error can stand in it."""

NONE: Final = ErrorCode.NONE


class AuthorizationResult(NamedTuple):
    """What becomes of a request. Nothing of it set: it passes as it is."""

    error: ErrorCode | None = None
    """All of it is refused with this."""
    response: Any = None
    """It gets this response; nothing of it is left for a coordinator."""
    request: Any = None
    """What is left of it for the coordinator."""
    merge: Callable[[Any], Any] | None = None
    """(the coordinator's response) -> the client's"""
    needed: Callable[[Any], Iterable[Permission]] | None = None
    """(the coordinator's response) -> the permissions without which something in it is not to be seen."""
    visible: Callable[[Any, Decide], Any] | None = None
    """(the coordinator's response, ...) -> what the client is to see of it."""


PASSES: Final = AuthorizationResult()


class Rule(Protocol):
    """The rule of one api; it names no group where every node can answer."""

    def permissions(self, request: Any, version: int) -> list[Permission]:
        """All that have to be known before the request is restricted."""

    def restrict(self, request: Any, version: int, decide: Decide, refuse: Refuse) -> AuthorizationResult:
        """What becomes of the request; `refuse` makes its api's response of an error."""

    def groups(self, request: Any, version: int) -> list[str]:
        """The groups whose coordinator is asked."""
        return []


def changed(message: Message, **fields: Any) -> Message:
    """A message with other fields than this one."""
    if isinstance(message, FieldsValue):
        return replaced(message, **fields)
    made = copy.copy(message)
    for name, value in fields.items():
        setattr(made, name, value)
    return made
