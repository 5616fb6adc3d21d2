# SPDX-License-Identifier: Apache-2.0
"""What a rule says: which rights a request needs, and what becomes of one that has some of them only.

As in KafkaApis of Kafka 4.3: what is refused of a request is taken out before the coordinator sees it, and put back
into its answer in the places where a broker has it.
"""

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from coordinator.api.operations import Operation, Resource
from coordinator.gateway.questions import Right
from protocol.errors import ErrorCode

Request = TypeVar("Request")
Response = TypeVar("Response")

May = Callable[[Right], bool]
"""Whether the client has a right that was asked about."""

TOPIC_IDS_FROM: Final = 10
"""OffsetCommit and OffsetFetch name topics by their ids."""

NOT_FOR_GROUP: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
NOT_FOR_TOPIC: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class Judged(NamedTuple, Generic[Request, Response]):
    """What becomes of a request. Nothing of it set: it passes as it is."""

    error: ErrorCode | None = None
    """All of it is refused with this."""
    answer: Response | None = None
    """It is answered with this response; nothing of it is left for a coordinator."""
    request: Request | None = None
    """What is left of it for the coordinator."""
    merge: Callable[[Response], Response] | None = None
    """(the coordinator's response) -> the client's"""
    names: Callable[[Response], list[Right]] | None = None
    """(the coordinator's response) -> the rights without which something in it is not to be seen."""
    keep: Callable[[Response, May], Response] | None = None
    """(the coordinator's response, ...) -> what the client is to see of it."""


AnyJudged: TypeAlias = Judged[Any, Any]

PASSES: Final[AnyJudged] = Judged()


class Rule(Protocol[Request, Response]):
    """One api's, of its messages."""

    def rights(self, request: Request, version: int) -> list[Right]:
        """What has to be known before it is judged."""

    def judge(self, request: Request, version: int, may: May) -> Judged[Request, Response]:
        """What becomes of the request."""

    def groups(self, request: Request, version: int) -> list[str]:
        """Of which groups a coordinator is asked."""


AnyRule: TypeAlias = Rule[Any, Any]


def of_group(operation: Operation, name: str) -> Right:
    """The right to do this with a group."""
    return Right(Resource.GROUP, operation, name)


def of_topic(operation: Operation, topic: Any, version: int) -> Right:
    """The right to do this with a topic of OffsetCommit or OffsetFetch, which name it or have its id."""
    name: str | bytes = topic.topic_id if version >= TOPIC_IDS_FROM else topic.name
    return Right(Resource.TOPIC, operation, name)
