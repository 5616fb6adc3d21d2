# SPDX-License-Identifier: Apache-2.0
"""What a codec of one api and version is, and what all of one api are together."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from protocol.apis import ApiKey, VersionRange

Request = TypeVar("Request")
Response = TypeVar("Response")

NEVER_FLEXIBLE: Final = 1 << 15
"""Above every version, which is an int16 on the wire."""


class Codec(NamedTuple, Generic[Request, Response]):
    """The four directions of one API and version.

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
    """Gives way every hundred items or every 500 of a hot message; None where it has few, or ten thousand at most."""


@dataclass(frozen=True, eq=False)
class ApiSchema(Generic[Request, Response]):
    """The messages of one api: their classes, and the codec of every version that their schema has."""

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
        """The version from which on there are tagged fields (KIP-482); NEVER_FLEXIBLE where there is none."""
        return min(
            (number for number, codec in self.codecs.items() if codec.flexible), default=NEVER_FLEXIBLE
        )
