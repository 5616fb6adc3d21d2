# SPDX-License-Identifier: Apache-2.0
"""What an api is to a node. Each api declares it once, as `API`, at the end of its module in this folder.

All tables are made of these declarations (`table.py`): which versions are offered and how each is decoded, handled
and answered, how long a request may be, and where an answer has errors. mypy holds a handler to the messages of its
api: one that takes or returns another api's is refused where it is declared.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, TypeVar

from coordinator.api.context import InSteps, Parked, RequestContext, Silent
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
    """What is offered, of the versions in the schema."""
    handle: Callable[[Node, Request, RequestContext], Response | Parked | Silent]
    """Answers a request, at once or later; never awaits, never blocks."""
    error_response: Callable[[Request, ErrorCode, int], Response]
    """(request, error, version) -> the response with this error wherever the request would have got an answer."""
    frame: FrameBound
    """The longest request that is kept and decoded."""
    changes: bool | Callable[[Request], bool]
    """Whether a request changes something. If so, it is carried out although its client has closed the connection."""
    waits_for_members: bool = False
    """Whether a parked request waits for other members of its group: on a closed connection it holds nothing back."""
    handle_in_steps: Callable[[Node, Request, RequestContext], InSteps[Response]] | None = None
    """Answers a long request, giving way to others wherever it yields; None where `handle` does that, too."""
    adapt: Callable[[Response, int], Response] | None = None
    """(response, version) -> the response as the version can have it, where the codec alone does not see to that."""
    in_pieces: Callable[[Response, int], Any] | None = None
    """(response, version) -> what is encoded in steps, of a response to a parked request that is too long to be made
    at once; None where it is not."""
    refuse_version: Callable[[Node], Response] | None = None
    """Answers, in version 0, versions that are not served. Without it they end the connection, as in Kafka."""
    told_from: int | None = None
    """The version from which on ApiVersions lists it, where that is not the first one that is served."""
    error_parts: tuple[str, ...] = ()
    """The lists of a response, one inside the other, whose items may have an `error_code`."""
    counts_part_errors: bool = False
    """Whether the handler counts the errors of parts itself, so that good answers need not be looked through."""
    counts_top_error: bool = True
    """Whether an `error_code` on top, where a response has one, is counted."""
    repeats: bool = False
    """Whether clients repeat a request byte for byte. Then it is decoded once."""
    short_answers: bool = False
    """Whether answers are no longer than their requests: members are served even while too much is unsent."""
    answer_bytes_max: Callable[[Node, Request, int], int] | None = None
    """(node, request, version) -> a bound of the bytes of the answer, where it can be found without making that."""

    @property
    def key(self) -> ApiKey:
        """Kafka's number of the api."""
        return self.schema.key
