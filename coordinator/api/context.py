# SPDX-License-Identifier: Apache-2.0
"""The context of one request, and the results `PARKED` and `SILENT` of a handler."""

import enum
from collections.abc import Callable, Generator
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from coordinator.groups.outcome import Reply
from coordinator.tickets import DurabilityTicket, ReplyDependencies


class ParkedSentinel(enum.Enum):
    """The type of `PARKED`."""

    PARKED = "parked"


PARKED: Final = ParkedSentinel.PARKED
"""Returned by a handler whose response follows later, through `RequestContext.answer_parked_request`."""


class Silent(enum.Enum):
    """The type of `SILENT`: the client waits for no response, and none is sent."""

    SILENT = "silent"


SILENT: Final = Silent.SILENT
"""Returned by a handler if the client waits for no response: none is sent, and the connection goes on."""


class ResponseSink(Protocol):
    """The connection of a request, which takes the response to a parked request."""

    def answer_parked_request(self, ctx: "RequestContext", response: Any) -> None:
        """Send the response to a parked request."""

    def claim_first_api_use(self, api_key: int) -> bool:
        """Return whether this is the first call for this api, to log a message once for each connection."""

    def run_in_slices(self, ctx: "RequestContext", work: "Work") -> None:
        """Do the work that answers a request; each yield lets the event loop serve others."""


Work: TypeAlias = Generator[None, None, Any]
"""The work for one request: returns its response, or the pieces of its encoded body, or PARKED."""

Response = TypeVar("Response")
InSteps: TypeAlias = Generator[None, None, Response | ParkedSentinel]
"""The work of a handler for a long request: each yield lets the event loop serve others."""


class RequestContext(ReplyDependencies):
    """One request: its client, and the tickets that its reply has to wait for, which GroupAccess notes.

    The context also holds the request's place in the order of its connection. `frame` is the encoded reply, once made.
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
        "is_replaced",
        "is_unheard",
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
        """The client's address as Kafka shows it: "/127.0.0.1"."""
        self.api = api
        """The version of the api that handles the request (`single_api_version.SingleApiVersion`)."""
        self.request = request
        self.began_ns = 0
        """The time at which the node began to handle the request, by `Clock.nanos`."""
        self.frame: bytes | None = None
        self.rest: list[bytes] | None = None
        """The pieces that follow `frame` if the response is too long to be one piece."""
        self.is_large = False
        """True if the request itself is long, and is handled in slices."""
        self.is_unheard = False
        """True if the connection is closed, so that no response is sent."""
        self.is_counted = False
        """True if the budget of unsent bytes already counts the data of the response, until the request is answered."""
        self.is_replaced = False
        """True if an append that the response depends on is lost, or may be: an error is sent instead."""
        self.on_abandoned: Callable[[], None] | None = None
        """Called if the client closes the connection while the request is parked; None if that would save no work."""

    def stop_abandoned_work(self) -> None:
        """Stop the work for the request, because its client is gone and reads no response."""
        if self.on_abandoned is not None:
            self.on_abandoned()

    def claim_first_api_use(self) -> bool:
        """Return True the first time that a request of this api calls it on this connection, else False."""
        return self.sink.claim_first_api_use(self.api_key)

    def answer_by_sliced_work(self, work: Work) -> ParkedSentinel:
        """Park the request and answer it by `work`; each of its yields lets the event loop serve others."""
        self.sink.run_in_slices(self, work)
        return PARKED

    def answer_parked_request(self, response: Any) -> None:
        """Answer a request that was parked. Only the first response counts."""
        self.sink.answer_parked_request(self, response)


def deliver(reply: Reply, ticket: DurabilityTicket) -> None:
    """Give a group's reply to the request that it answers; it is sent once `ticket` is durable."""
    request = cast(RequestContext, reply.caller)
    request.add_ticket(ticket)
    request.answer_parked_request(reply.response)
