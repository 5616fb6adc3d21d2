# SPDX-License-Identifier: Apache-2.0
"""The declaration of an api, which each module of this folder makes once, as `API`, at its end.

All tables are made of these declarations (`table.py`): which versions are offered and how each is decoded, handled
and answered, how long a request may be, and where a response has errors. mypy checks a handler against the messages of
its api: it reports one that takes or returns another api's messages.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, TypeVar

from coordinator.api.context import InSteps, ParkedSentinel, RequestContext, Silent
from coordinator.node import Node
from protocol.apis import ApiKey, VersionRange
from protocol.bounds import FrameBound
from protocol.codec import ApiSchema
from protocol.errors import ErrorCode

Request = TypeVar("Request")
Response = TypeVar("Response")


@dataclass(frozen=True, eq=False)
class Api(Generic[Request, Response]):
    """One api: its messages, the versions that are served, and the functions that serve them."""

    schema: ApiSchema[Request, Response]
    _: KW_ONLY
    versions: VersionRange
    """The versions of the schema that are offered."""
    handle: Callable[[Node, Request, RequestContext], Response | ParkedSentinel | Silent]
    """Answers a request, at once or later; never awaits, and never blocks."""
    error_response: Callable[[Request, ErrorCode, int], Response]
    """(request, error, version) -> the response with this error in place of every result."""
    frame: FrameBound
    """The bound of the length of a request; a longer one is not decoded."""
    changes: bool | Callable[[Request], bool]
    """True if a request changes something: then it is carried out even if its client has closed the connection."""
    waits_for_members: bool = False
    """True if a parked request waits for other members: on a closed connection it does not delay later requests."""
    handle_in_steps: Callable[[Node, Request, RequestContext], InSteps[Response]] | None = None
    """Answers a long request; each yield lets the event loop serve others. None if `handle` does that, too."""
    adapt: Callable[[Response, int], Response] | None = None
    """(response, version) -> the response in the form of the version; None if the codec alone produces that form."""
    in_pieces: Callable[[Response, int], Any] | None = None
    """(response, version) -> the form to encode in steps, if a response to a parked request is too long to be encoded
    at once; else None."""
    refuse_version: Callable[[Node], Response] | None = None
    """Answers, in version 0, requests in unserved versions. If None, they end the connection, as in Kafka."""
    offered_from: int | None = None
    """The first version that ApiVersions lists, if that is not the first one that is served."""
    error_parts: tuple[str, ...] = ()
    """The names of the lists of a response, one inside the other, whose items may have an `error_code`."""
    counts_part_errors: bool = False
    """True if the handler counts the errors of parts itself, so that responses without errors need not be searched."""
    counts_top_error: bool = True
    """True if the top-level `error_code` of a response is counted, provided the response has one."""
    repeats: bool = False
    """True if clients repeat a request byte for byte: then it is decoded once."""
    short_answers: bool = False
    """True if responses are no longer than their requests: they are served even while too many bytes are unsent."""
    answer_bytes_max: Callable[[Node, Request, int], int] | None = None
    """(node, request, version) -> an upper bound of the response's bytes; None if only encoding it would show them."""

    @property
    def key(self) -> ApiKey:
        """The number of the api in Kafka's protocol."""
        return self.schema.key
