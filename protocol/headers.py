# SPDX-License-Identifier: Apache-2.0
"""Request headers v1 and v2, response headers v0 and v1 (org.apache.kafka.common.requests.RequestHeader).

Header v2 and response header v1 have tagged fields and belong to the flexible versions of an API (KIP-482).
The client id keeps its classic encoding in every version, so that ApiVersions of any version can be read.
"""

import struct
from typing import Final

from protocol.apis import ApiKey
from protocol.compiled_struct import FieldsValue
from protocol.errors import InvalidLength, Truncated, UnsupportedVersion
from protocol.fixed_integers import int16_at, int32_at
from protocol.mypyc_shim import mypyc_attr
from protocol.wire import pack_int32, skip_tags, text_at

_VERSION_AT: Final = 2
_CORRELATION_ID_AT: Final = 4
_CLIENT_ID_AT: Final = 8
_CLIENT_ID_SIZE_BYTES: Final = 2
_CORRELATION_ID_BYTES: Final = 4
_NO_TAGS: Final = b"\0"

ROUTE_BYTES: Final = 4
"""The bytes at the start of a request that select its handler: the API key and the version."""


@mypyc_attr(acyclic=True)
class RequestHeader(FieldsValue):
    """The header of a request; the response repeats `correlation_id`, and `client_id` can be null."""

    __match_args__: Final = ("api_key", "api_version", "correlation_id", "client_id")
    __slots__ = __match_args__

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None) -> None:
        self.api_key: Final = api_key
        self.api_version: Final = api_version
        self.correlation_id: Final = correlation_id
        self.client_id: Final = client_id


def pack_api_key_and_version(api_key: int, version: int) -> int:
    """Return the first four bytes of every request of this API and version, as an unsigned number."""
    return (api_key & 0xFFFF) << 16 | version & 0xFFFF


def read_api_key_and_version(frame: bytes) -> int:
    """Return the first four bytes of a request as `pack_api_key_and_version` does; raises Truncated if it has fewer."""
    if len(frame) < ROUTE_BYTES:
        raise Truncated(f"a request header in {len(frame)} bytes")
    return frame[0] << 24 | frame[1] << 16 | frame[2] << 8 | frame[3]


def decode_request_header(frame: bytes, flexible: bool) -> tuple[RequestHeader, int]:
    """Read the header of a request, v2 if `flexible`, and return it with the position where the body starts.

    Raises Truncated and InvalidLength for bytes that are no header.
    """
    try:
        api_key, version = int16_at(frame, 0), int16_at(frame, _VERSION_AT)
        correlation_id, size = int32_at(frame, _CORRELATION_ID_AT), int16_at(frame, _CLIENT_ID_AT)
        pos = _CLIENT_ID_AT + _CLIENT_ID_SIZE_BYTES
        client_id: str | None = None
        if size >= 0:
            end = pos + size
            client_id = text_at(frame, pos, end)
            pos = end
        elif size != -1:
            raise InvalidLength(f"client id: length {size}")
        if flexible:
            pos = skip_tags(frame, pos) if frame[pos] else pos + 1
    except IndexError:
        raise Truncated(f"a request header in {len(frame)} bytes") from None
    if pos > len(frame):
        raise Truncated(f"a request header in {len(frame)} bytes")
    return RequestHeader(api_key, version, correlation_id, client_id), pos


def unsupported_version_error(frame: bytes) -> UnsupportedVersion:
    """Return the error for a request whose API or version is not supported.

    Only the part of the header that all versions have is read: the connection is closed in any case. Raises Truncated
    and InvalidLength for bytes that are no header.
    """
    header, _ = decode_request_header(frame, False)
    return UnsupportedVersion(header.api_key, header.api_version)


def has_flexible_response_header(api_key: int, flexible: bool) -> bool:
    """Return whether a version's responses have header v1; `flexible` is True if their bodies have tagged fields.

    Responses of ApiVersions have header v0 in every version: clients read them before they know the server's versions
    (KIP-511, ApiVersionsResponse).
    """
    return flexible and api_key != ApiKey.API_VERSIONS


def encode_request_header(header: RequestHeader, *, flexible: bool) -> bytes:
    """Return an encoded request header, v2 if `flexible`; for our own clients and tests."""
    name = None if header.client_id is None else header.client_id.encode()
    size = -1 if name is None else len(name)
    head = struct.pack(">hhih", header.api_key, header.api_version, header.correlation_id, size)
    return head + (name or b"") + (b"\0" if flexible else b"")


def encode_response(correlation_id: int, body: bytes, flexible: bool) -> bytes:
    """Return the whole frame of a response, with its length; header v1 if `flexible`."""
    return _with_head(correlation_id, len(body), flexible, body)


def encode_response_frame_head(correlation_id: int, body_bytes: int, flexible: bool) -> bytes:
    """Return the bytes before the body of a response: the length of the frame, and the header."""
    return _with_head(correlation_id, body_bytes, flexible, b"")


def _with_head(correlation_id: int, body_bytes: int, flexible: bool, body: bytes) -> bytes:
    tags = _NO_TAGS if flexible else b""
    size = pack_int32(_CORRELATION_ID_BYTES + len(tags) + body_bytes)
    return b"%b%b%b%b" % (size, correlation_id.to_bytes(4, "big", signed=True), tags, body)
