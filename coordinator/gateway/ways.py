# SPDX-License-Identifier: Apache-2.0
"""Which ways requests and answers can take through a gateway: the words of its routes, its gate and its sessions."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from coordinator.gateway.promise import Promise
from protocol.errors import ErrorCode
from protocol.wire import PACK_INT32

Bytes: TypeAlias = bytes | memoryview

BROKER: Final = 0
COORDINATOR: Final = 1
HERE: Final = 2
"""Who answers: the first two are lanes, connections of ours."""
LANES: Final = (BROKER, COORDINATOR)

LENGTH_BYTES: Final = 4
"""Of the length before each request and answer."""
NOTHING: Final = memoryview(b"")


class NoAnswer(Exception):
    """There will be no answer: the coordinator was lost, or the client is gone."""


class Memory(Protocol):
    """What somebody remembers of a connection."""

    def end(self) -> None:
        """The connection is over."""


class ClientSession(Protocol):
    """A session as it is seen by what is asked about its requests."""

    memory: Memory | None
    """What those who are asked remember of this connection."""

    def ask(self, lane: int, frame: bytes) -> Promise[bytes]:
        """Send a request of our own to a lane, and return a promise of its answer; both have their length.

        The promise raises NoAnswer if the coordinator is lost or the client is gone.
        """

    def go_on(self) -> None:
        """Run on what waits for a promise that was resolved."""

    def go_on_soon(self) -> None:
        """Call `go_on` once other connections have had their turn."""

    def all_answered(self) -> Promise[None]:
        """Return a promise that is resolved once the client has taken the answers to all earlier requests."""


RewriteAtOnce: TypeAlias = Callable[[bytes], tuple[bytes, int] | None]
"""(an answer from its length on, as far as it has come) -> (what is sent, in place of its first so many bytes); None
where more of it is needed. Raises ProtocolError."""
Rewriting: TypeAlias = tuple[bytes, int] | Coroutine[Any, Any, tuple[bytes, int]] | None
Rewrite: TypeAlias = Callable[[ClientSession, bytes], Rewriting]
"""(client, ...) -> as RewriteAtOnce, or a coroutine that comes to that, where all of the answer is there."""


class Verdict(NamedTuple):
    """What becomes of a request that was asked about."""

    way: int
    """BROKER, COORDINATOR or HERE."""
    frame: bytes | None = None
    """With its length: for HERE the answer, else what is sent in place of the request, None for the request itself."""
    rewrite: Rewrite | None = None
    """What is done with the answer of a lane."""


Ask: TypeAlias = Callable[[ClientSession, "Route", bytes], Verdict | Coroutine[Any, Any, Verdict]]
"""(client, route, the request without its length) -> a verdict, or a coroutine that comes to one; while it waits, no
request behind it is taken. Raises ProtocolError."""


class Route(NamedTuple):
    """What is done with the requests of one api and version on one kind of port."""

    api_key: int
    version: int
    ask: Ask | None = None
    """Of a request that is collected; others pass to the broker in the pieces in which they come."""
    bytes_max: int = 0
    """The longest request that is collected."""
    rewrite: Rewrite | None = None
    """Of the answer to one that passes."""
    refusal: Callable[[bytes, ErrorCode], bytes] | None = None
    """(a request without its length, error) -> the answer where the coordinator is lost; without it that ends the
    connection."""
    changes: bool = True
    """Whether such a request may change something. If not, it is dropped when its client is gone."""
    has_answer: Callable[[memoryview], bool | None] | None = None
    """(a request from its length on) -> whether there will be an answer; None where more of it is needed."""


def at_once(rewrite: RewriteAtOnce) -> Rewrite:
    """As `rewrite`, whoever the client is."""
    return lambda _session, frame: rewrite(frame)


class Routes(Protocol):
    """The routes of one kind of port."""

    @property
    def found(self) -> Mapping[int, Route]:
        """By the first four bytes of a request (`protocol.headers.route`)."""

    def unrouted(self, api_key: int, version: int) -> Route | None:
        """What handles what is not in `found`, if anything does."""


def with_length(frame: bytes) -> bytes:
    """The frame with its length before it, as it is sent."""
    return PACK_INT32(len(frame)) + frame


def kept(data: memoryview) -> memoryview:
    """Copy what is left of a buffer that is read into again; what is most of bytes of its own stays there."""
    if not data:
        return NOTHING
    whole = data.obj
    if isinstance(whole, bytes) and len(whole) <= 2 * len(data):
        return data
    return memoryview(bytes(data))
