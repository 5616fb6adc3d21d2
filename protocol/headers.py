# SPDX-License-Identifier: Apache-2.0
"""Request headers v1 and v2, response headers v0 and v1 (org.apache.kafka.common.requests.RequestHeader).

Header v2 and response header v1 have tagged fields and belong to the flexible versions of an API (KIP-482).
The client id keeps its classic encoding in every version, so that ApiVersions of any version can be read.
"""

import struct
from struct import Struct
from typing import Final

from protocol.apis import FIRST_FLEXIBLE, SUPPORTED, ApiKey
from protocol.errors import InvalidLength, Truncated, UnsupportedVersion
from protocol.structs import Frozen
from protocol.wire import skip_tags

_REQUEST: Final = Struct(
    ">iih"
).unpack_from  # the API key and the version together, the correlation id, a length
_REQUEST_BYTES: Final = 10
_RESPONSE_V0: Final = Struct(">ii").pack
_RESPONSE_V1: Final = Struct(">iix").pack

# api key << 16 | version → (api key, version, flexible), of every version that is served
_SERVED: Final[dict[int, tuple[int, int, bool]]] = {
    key << 16 | version: (int(key), version, version >= FIRST_FLEXIBLE[key])
    for key, versions in SUPPORTED.items()
    for version in range(versions.min, versions.max + 1)
}
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class RequestHeader(Frozen, frozen=True):
    """Who asks for what: `correlation_id` is echoed, `client_id` names the client and can be null."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def decode_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Read the header of a request and return it with the position where the body starts.

    Raises UnsupportedVersion, with the header, for an API key or version that is not served. ApiVersions
    is the exception: Kafka answers any version of it, so its header is returned and the caller looks at the
    version.
    Raises Truncated and InvalidLength for bytes that are no header.
    """
    try:
        key_and_version, correlation_id, size = _REQUEST(frame)
        served = _SERVED.get(key_and_version)
        api_key, version, flexible = served if served is not None else _unserved(key_and_version)
        pos = _REQUEST_BYTES
        client_id: str | None = None
        if size >= 0:
            end = pos + size
            client_id = frame[pos:end].decode("utf-8", "replace")
            pos = end
        elif size != -1:
            raise InvalidLength(f"client id: length {size}")
        if flexible:
            pos = skip_tags(frame, pos) if frame[pos] else pos + 1
    except (IndexError, struct.error):
        raise Truncated(f"a request header in {len(frame)} bytes") from None
    if pos > len(frame):
        raise Truncated(f"a request header in {len(frame)} bytes")
    header = RequestHeader(api_key, version, correlation_id, client_id)
    if served is None and api_key != _API_VERSIONS:
        raise UnsupportedVersion(header)
    return header, pos


def _unserved(key_and_version: int) -> tuple[int, int, bool]:
    """Return key, version and whether the header is flexible, of a version that is not served.

    RequestHeader.parse goes by the first flexible version of the API, whether or not the version exists. Of an API
    that is not served the header is read as far as every version has it: that connection is closed in any case.
    """
    api_key, version = struct.unpack(">hh", struct.pack(">i", key_and_version))
    try:
        return api_key, version, version >= FIRST_FLEXIBLE[ApiKey(api_key)]
    except (ValueError, KeyError):
        return api_key, version, False


def encode_request_header(header: RequestHeader, *, flexible: bool) -> bytes:
    """Write a request header, v2 if `flexible`; for our own clients and tests."""
    name = None if header.client_id is None else header.client_id.encode()
    size = -1 if name is None else len(name)
    head = struct.pack(">hhih", header.api_key, header.api_version, header.correlation_id, size)
    return head + (name or b"") + (b"\0" if flexible else b"")


def encode_response(correlation_id: int, body: bytes, flexible: bool) -> bytes:
    """Return the whole frame of a response, with its length; header v1 if `flexible`.

    ApiVersions has header v0 in all its versions (ApiVersionsResponse): its callers pass False.
    """
    return response_head(correlation_id, len(body), flexible) + body


def response_head(correlation_id: int, body_bytes: int, flexible: bool) -> bytes:
    """Return what comes before the body of a response: the length of the frame, and the header."""
    if flexible:
        return _RESPONSE_V1(body_bytes + 5, correlation_id)
    return _RESPONSE_V0(body_bytes + 4, correlation_id)
