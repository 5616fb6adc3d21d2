# SPDX-License-Identifier: Apache-2.0
"""The client side of Kafka's protocol: our own requests as frames, and the responses to them."""

from collections.abc import Sequence
from typing import TypeVar

from protocol.codec import Codec
from protocol.errors import Truncated
from protocol.headers import RequestHeader, encode_request_header, has_flexible_response_header
from protocol.wire import skip_tags

Request = TypeVar("Request")
Response = TypeVar("Response")

LENGTH_BYTES = 4
CORRELATION_ID_BYTES = 4


def encode_request(codec: Codec[Request, Response], header: RequestHeader, request: Request) -> bytes:
    """Return the whole frame of a request, with its length; `codec` is that of the header's API and version."""
    return b"".join(frame_request(codec, header, [codec.encode_request(request)]))


def frame_request(
    codec: Codec[Request, Response], header: RequestHeader, body: Sequence[bytes]
) -> list[bytes]:
    """Return the pieces of a request's frame, given the pieces of its body."""
    head = encode_request_header(header, flexible=codec.flexible)
    length = len(head) + sum(map(len, body))
    return [length.to_bytes(LENGTH_BYTES, "big") + head, *body]


def decode_answer(codec: Codec[Request, Response], api_key: int, frame: bytes, start: int = 0) -> Response:
    """Return the response in a frame; `start` is the place of the correlation id: 4 if the frame has its length.

    Raises ProtocolError for bytes that are no response of this API and version.
    """
    pos = start + CORRELATION_ID_BYTES
    try:
        if has_flexible_response_header(api_key, codec.flexible):
            pos = skip_tags(frame, pos)
        return codec.decode_response(frame, pos)
    except IndexError:
        raise Truncated(f"a response in {len(frame)} bytes") from None
