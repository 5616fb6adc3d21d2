# SPDX-License-Identifier: Apache-2.0
"""Which ways requests and answers can take through a gateway: the words of its routes, its gate and its sessions."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from coordinator.runtime.promise import Promise
from protocol.errors import ErrorCode
from protocol.value import Value
from protocol.wire import PACK_INT32

Bytes: TypeAlias = bytes | memoryview

BROKER: Final = 0
COORDINATOR: Final = 1
HERE: Final = 2
"""Who answers: the first two are lanes, connections of ours."""

LENGTH_BYTES: Final = 4
"""Of the length before each request and answer."""
CORRELATION_ID_AT: Final = 8
"""In a request with its length."""
HEAD_BYTES: Final = 256
"""What of a request or answer is looked at first; of most answers that is all."""
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

    login_has_begun: bool
    """Whether the client has asked for a mechanism to log in."""

    @property
    def node_id(self) -> int:
        """That of the node that the client has connected to."""

    @property
    def client_is_gone(self) -> bool:
        """Whether the client has closed its connection, so that nobody reads answers any more."""

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


COLLECTED_BYTES_MAX: Final = 16 * 1024 * 1024
"""The most of an answer that is kept to be rewritten: far more than any cluster has brokers."""
Rewritten: TypeAlias = tuple[bytes, int] | None
"""What is sent in place of the first so many bytes of an answer; None where more of it is needed."""
UNCHANGED: Final = (b"", 0)
"""Of an answer that passes as it is."""
Rewriting: TypeAlias = Rewritten | Coroutine[Any, Any, tuple[bytes, int]]
"""As Rewritten, or, of an answer that is there as a whole, a coroutine that comes to that."""
Rewrite: TypeAlias = Callable[[ClientSession, bytes], Rewriting]
"""(client, an answer from its length on, as far as it has come) -> what becomes of it. Raises ProtocolError."""


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


AfterLogin: TypeAlias = Callable[[Ask], Ask]
"""Makes of what answers without a broker what does so only once the client has logged in."""


def at_any_time(ask: Ask) -> Ask:
    """Return `ask` itself: the `AfterLogin` of a gateway to a cluster that asks for no login."""
    return ask


class Route(Value):
    """What is done with the requests of one api and version on one kind of port."""

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
        """Of a request that is collected; others pass to the broker in the pieces in which they come."""
        self.bytes_max: Final = bytes_max
        """The longest request that is collected or screened."""
        self.rewrite: Final = rewrite
        """Of the answer to one that passes."""
        self.refusal: Final = refusal
        """(a request without its length, error) -> the answer where the coordinator is lost; without it that ends the
        connection."""
        self.changes: Final = changes
        """Whether such a request may change something. If not, it is dropped when its client is gone."""
        self.has_answer: Final = has_answer
        """(the head of a request, version) -> whether there will be an answer; None where more of it is needed."""
        self.screen: Final = screen
        """(a request as a whole with its length, perhaps with more behind it) -> what decides over it; None where it
        simply passes."""


class Routes(Protocol):
    """The routes of one kind of port."""

    found: dict[int, Route]
    """By the first four bytes of a request (`protocol.headers.route`)."""

    def unrouted(self, api_key: int, version: int) -> Route | None:
        """What handles what is not in `found`, if anything does."""


def with_length(frame: bytes) -> bytes:
    """The frame with its length before it, as it is sent."""
    return PACK_INT32(len(frame)) + frame


def head_of(data: memoryview, pos: int) -> bytes:
    """The head of the request or answer that begins here, as far as it is there; bytes, which are quicker to read."""
    if not pos and len(data) <= HEAD_BYTES:
        return data.tobytes()
    return data[pos : pos + HEAD_BYTES].tobytes()


def kept(data: memoryview) -> memoryview:
    """Copy what is left of a buffer that is read into again; what is most of bytes of its own stays there."""
    if not data:
        return NOTHING
    whole = data.obj
    if isinstance(whole, bytes) and len(whole) <= 2 * len(data):
        return data
    return memoryview(bytes(data))
