# SPDX-License-Identifier: Apache-2.0
"""One request on its way through a node, and the answers `PARKED` and `SILENT`."""

import enum
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from coordinator.groups.outcome import Reply
from coordinator.tickets import DurabilityTicket, ReplyDependencies


class Parked(enum.Enum):
    """The type of `PARKED`."""

    PARKED = "parked"


PARKED: Final = Parked.PARKED
"""Returned by a handler whose answer comes later, through `RequestContext.complete`."""


class Silent(enum.Enum):
    """The type of `SILENT`: the client reads no answer, and gets none."""

    SILENT = "silent"


SILENT: Final = Silent.SILENT
"""Returned by a handler where the client waits for no answer: it gets none, and goes on."""


class ResponseSink(Protocol):
    """Where a parked request's answer goes: its connection."""

    def complete(self, ctx: "RequestContext", response: Any) -> None:
        """Answer a parked request."""

    def is_first(self, api_key: int) -> bool:
        """Whether this is asked for the first time about this api, for what is to be said once on a connection."""

    def in_slices(self, ctx: "RequestContext", work: "Work") -> None:
        """Do the work that answers a request, giving way to others wherever it yields."""


Work: TypeAlias = Generator[None, None, Any]
"""Answers one request: returns its response, or the pieces of its encoded body, or PARKED."""

Response = TypeVar("Response")
InSteps: TypeAlias = Generator[None, None, Response | Parked]
"""Answers a long request as a handler does, giving way to others wherever it yields."""


class RequestContext(ReplyDependencies):
    """One request: who sent it, and what its reply has to wait for, which GroupAccess notes.

    It is also the request's place in the order of its connection: `frame` is the encoded reply once there is one.
    """

    __slots__ = (
        "api",
        "api_key",
        "api_version",
        "began_ns",
        "client_host",
        "client_id",
        "correlation_id",
        "frame",
        "is_counted",
        "is_large",
        "is_unheard",
        "is_void",
        "on_abandoned",
        "request",
        "rest",
        "sink",
    )

    def __init__(
        self,
        sink: ResponseSink,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str,
        client_host: str,
        api: Any = None,
        request: Any = None,
    ) -> None:
        super().__init__()
        self.sink = sink
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.client_host = client_host
        """As Kafka shows it: "/127.0.0.1"."""
        self.api = api
        """What handles it (`handled.Handled`)."""
        self.request = request
        self.began_ns = 0
        """When the node began with it, by `Clock.nanos`."""
        self.frame: bytes | None = None
        self.rest: list[bytes] | None = None
        """What follows `frame` of an answer that is too long to be one piece."""
        self.is_large = False
        """Whether the request itself is long, and is handled in slices."""
        self.is_unheard = False
        """Whether the connection is closed, so that no response is sent."""
        self.is_counted = False
        """Whether what the answer is made of is in the budget of unsent bytes already, until it is answered."""
        self.is_void = False
        """Whether what was found out for the answer may never become true: an error is answered instead."""
        self.on_abandoned: Callable[[], None] | None = None
        """What to do when the client goes away while this is parked, where that saves work."""

    def abandon(self) -> None:
        """The client is gone: the answer is not read."""
        if self.on_abandoned is not None:
            self.on_abandoned()

    @property
    def is_first(self) -> bool:
        """Whether this is asked for the first time about a request of the same api on this connection before."""
        return self.sink.is_first(self.api_key)

    def in_slices(self, work: Work) -> Parked:
        """Park the request and answer it by work that gives way to others wherever it yields."""
        self.sink.in_slices(self, work)
        return PARKED

    def complete(self, response: Any) -> None:
        """Answer a request that was parked. Only the first answer counts."""
        self.sink.complete(self, response)


def deliver(reply: Reply, ticket: DurabilityTicket) -> None:
    """Give a group's reply to the request that it answers, to leave once `ticket` is durable."""
    request = cast(RequestContext, reply.caller)
    request.wait_for(ticket)
    request.complete(reply.response)
