# SPDX-License-Identifier: Apache-2.0
"""The types with which a gateway describes the routes of requests and the handling of responses."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from coordinator.runtime.promise import Promise, Wake
from protocol.compiled_struct import FieldsValue
from protocol.errors import ErrorCode
from protocol.wire import PACK_INT32

Bytes: TypeAlias = bytes | memoryview

BROKER: Final = 0
COORDINATOR: Final = 1
HERE: Final = 2
"""Where a request is answered: by a broker or a coordinator, over their pipelines, or in this process (HERE)."""

LENGTH_BYTES: Final = 4
"""The size of the length before each request and response."""
CORRELATION_ID_AT: Final = 8
"""The position of the correlation id in a request that begins with its length."""
HEAD_BYTES: Final = 256
"""The part of a request or response that is read first, and of most responses the only part."""
NOTHING: Final = memoryview(b"")


class AwaitedResponseLost(Exception):
    """No response will come, because the coordinator was lost or the client is gone."""


class DroppableState(Protocol):
    """State of the permission gate for one connection."""

    def drop_state(self) -> None:
        """Drop the state, as the connection has ended."""


class TakeoverRequester(NamedTuple):
    """The client's request for which a group is taken over."""

    api_key: int
    wake: Wake
    """Continues the request once the group is taken over, or cannot be."""
    client_id: str
    peer_name: str
    """The client's address and port."""


class ClientSession(Protocol):
    """The interface of a session for the handlers of its requests."""

    memory: DroppableState | None
    """State of the permission gate for this connection."""

    login_has_begun: bool
    """True if the client has asked for a mechanism to log in."""

    @property
    def node_id(self) -> int:
        """The id of the node that the client has connected to."""

    @property
    def peer_name(self) -> str:
        """The client's address and port, for the log."""

    @property
    def client_is_gone(self) -> bool:
        """True if the client has closed its connection, so that responses are not read any more."""

    def send_own_request(self, pipeline: int, frame: bytes) -> Promise[bytes]:
        """Send a request of our own to a pipeline, and return a promise of its response; both begin with their length.

        The promise raises AwaitedResponseLost if the coordinator is lost or the client is gone.
        """

    def go_on(self) -> None:
        """Continue the request that waited for a promise, since the promise is resolved now."""

    def go_on_soon(self) -> None:
        """Schedule `go_on` for after other connections have had their turn."""

    def wait_until_answered(self) -> Promise[None]:
        """Return a promise that is resolved once the client has taken the responses to all earlier requests."""


COLLECTED_BYTES_MAX: Final = 16 * 1024 * 1024
"""The longest response that is collected to be rewritten: far more than the brokers of any cluster need."""
Rewritten: TypeAlias = tuple[bytes, int] | None
"""The bytes that replace the beginning of a response, and how many they replace; None if more of it is needed."""
UNCHANGED: Final = (b"", 0)
"""The result for a response that passes unchanged."""
Rewriting: TypeAlias = Rewritten | Coroutine[Any, Any, tuple[bytes, int]]
"""A Rewritten, or, for a response that has arrived whole, a coroutine that returns one."""
Rewrite: TypeAlias = Callable[[ClientSession, bytes], Rewriting]
"""(client, a response from its length on, as far as it has arrived) -> its rewritten form. Raises ProtocolError."""


class Verdict(NamedTuple):
    """The decision on a collected request."""

    way: int
    """BROKER, COORDINATOR or HERE."""
    frame: bytes | None = None
    """The response for HERE, else a replacement of the request or None for the request itself; with its length."""
    rewrite: Rewrite | None = None
    """Rewrites the response of the pipeline, if given."""


Ask: TypeAlias = Callable[[ClientSession, "Route", bytes], Verdict | Coroutine[Any, Any, Verdict]]
"""(client, route, the request without its length) -> a verdict, or a coroutine that returns one; while it waits, no
later request of the client is taken. Raises ProtocolError."""


AfterLogin: TypeAlias = Callable[[Ask], Ask]
"""Wraps a handler that answers without a broker, so that it does so only after the client's login."""


def leave_handler_unwrapped(ask: Ask) -> Ask:
    """Return `ask` itself: the `AfterLogin` of a gateway to a cluster that asks for no login."""
    return ask


class Route(FieldsValue):
    """The handling of requests of one api and version on one kind of port."""

    __match_args__: Final = (
        "api_key", "version", "ask", "bytes_max", "rewrite", "refusal", "changes", "has_answer", "screen",
    )  # fmt: skip
    __slots__ = __match_args__

    def __init__(
        self,
        api_key: int,
        version: int,
        ask: Ask | None = None,
        bytes_max: int = 0,
        rewrite: Rewrite | None = None,
        refusal: Callable[[bytes, ErrorCode], bytes] | None = None,
        changes: bool = True,
        has_answer: Callable[[bytes, int], bool | None] | None = None,
        screen: Callable[[bytes], Ask | None] | None = None,
    ) -> None:
        self.api_key: Final = api_key
        self.version: Final = version
        self.ask: Final = ask
        """Decides on collected requests; without it requests pass to the broker in pieces as they come."""
        self.bytes_max: Final = bytes_max
        """The longest request that is collected or screened."""
        self.rewrite: Final = rewrite
        """Rewrites the response to a request that passes."""
        self.refusal: Final = refusal
        """(a request without its length, error) -> the response if the coordinator is lost; without it the loss closes
        the connection."""
        self.changes: Final = changes
        """True if a request may change something; one that does not is dropped when its client is gone."""
        self.has_answer: Final = has_answer
        """(the head of a request, version) -> whether it will be answered; None if more of it is needed."""
        self.screen: Final = screen
        """(a whole request with its length, perhaps with more behind it) -> its handler, or None if it passes."""


class Routes(Protocol):
    """The routes of one kind of port."""

    found: dict[int, Route]
    """The routes by the first four bytes of a request (`protocol.headers.pack_api_key_and_version`)."""

    def find_unknown_version_route(self, api_key: int, version: int) -> Route | None:
        """Return the route of an api and version that is not in `found`, or None if it is not served."""


def with_length(frame: bytes) -> bytes:
    """Return a frame with its length before it."""
    return PACK_INT32(len(frame)) + frame


def get_head_bytes(data: memoryview, pos: int) -> bytes:
    """Return the first HEAD_BYTES of the request or response at `pos`, or fewer if fewer have arrived.

    The result is a copy, because `bytes` are quicker to read than a memoryview.
    """
    if not pos and len(data) <= HEAD_BYTES:
        return data.tobytes()
    return data[pos : pos + HEAD_BYTES].tobytes()


def copy_from_read_buffer(data: memoryview) -> memoryview:
    """Return a copy of a part of the shared read buffer, which the next read overwrites.

    A view that covers at least half of a `bytes` object is returned unchanged.
    """
    if not data:
        return NOTHING
    whole = data.obj
    if isinstance(whole, bytes) and len(whole) <= 2 * len(data):
        return data
    return memoryview(bytes(data))
