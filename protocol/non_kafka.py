# SPDX-License-Identifier: Apache-2.0
"""Detects clients of other protocols by their first bytes, which Kafka's protocol would read as a length.

All these lengths are far above any request's, so only the error path of code that reads lengths calls this.
"""

from typing import Final

from protocol.errors import ProtocolError

_TLS_HANDSHAKE: Final = b"\x16\x03"
"""The beginning of a TLS record of the type handshake, in any version of TLS (RFC 8446, 5.1)."""
_HANDSHAKE_FAILURE: Final = b"\x15\x03\x03\x00\x02\x02\x28"
"""The fatal alert of that name, at which clients give up; if a connection only ends, they try again and again."""

_METHODS: Final = frozenset(
    {b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI "}
)
"""The beginnings of requests of HTTP/1, and with PRI of HTTP/2."""
_TEXT: Final = (
    b"This port serves Kafka's protocol and no HTTP; metrics, /health and /ready have a port of their own.\n"
)
_BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
    % (len(_TEXT), _TEXT)
)


class NotKafka(ProtocolError):
    """The first bytes are of another protocol; `answer` reports the wrong port in that protocol."""

    def __init__(self, reason: str, answer: bytes) -> None:
        super().__init__(reason)
        self.answer = answer


def find_other_protocol_error(length: int) -> NotKafka | None:
    """Return the error for the other protocol whose first four bytes are this length; None if it is unknown."""
    start = length.to_bytes(4, "big", signed=True)
    if start.startswith(_TLS_HANDSHAKE):
        return NotKafka("this looks like TLS; only plaintext is served here", _HANDSHAKE_FAILURE)
    if start in _METHODS:
        return NotKafka("this looks like HTTP; metrics are on the port of metrics.listen", _BAD_REQUEST)
    return None
