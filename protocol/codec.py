# SPDX-License-Identifier: Apache-2.0
"""The types of the codec of one API and version, and of all codecs of one API."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from protocol.apis import ApiKey, VersionRange

Request = TypeVar("Request")
Response = TypeVar("Response")

NEVER_FLEXIBLE: Final = 1 << 15
"""A number above every version, which is an int16 on the wire."""


class Codec(NamedTuple, Generic[Request, Response]):
    """The decoders and encoders of the request and the response of one API and version.

    The decoders take the buffer and the position where the body starts, ignore bytes after the body, and
    raise ProtocolError only. The encoders return the body, and leave out fields that the version does not
    have.
    """

    decode_request: Callable[[bytes, int], Request]
    encode_response: Callable[[Response], bytes]
    decode_response: Callable[[bytes, int], Response]
    encode_request: Callable[[Request], bytes]
    flexible: bool
    decode_request_in_steps: Callable[[bytes, int], Generator[None, None, Request]] | None = None
    """Decodes with a yield to the event loop every 100 items, or 500 of a hot message; None if at most 10,000 come."""


@dataclass(frozen=True, eq=False)
class ApiSchema(Generic[Request, Response]):
    """The messages of one API: their classes, and the codec of every version that their schema has."""

    key: ApiKey
    request: type[Request]
    response: type[Response]
    codecs: Mapping[int, Codec[Request, Response]]

    @property
    def versions(self) -> VersionRange:
        """The versions of the schema; fewer may be served."""
        return VersionRange(min(self.codecs), max(self.codecs))

    @property
    def first_flexible(self) -> int:
        """The version from which on messages have tagged fields (KIP-482), or NEVER_FLEXIBLE."""
        return min(
            (number for number, codec in self.codecs.items() if codec.flexible), default=NEVER_FLEXIBLE
        )
