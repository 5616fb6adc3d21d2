# SPDX-License-Identifier: Apache-2.0
"""Clients of other protocols, known by their first bytes, which Kafka's protocol would take for a length.

All are far above what any request may have, so code that reads lengths comes here by itself.
"""

from typing import Final

from protocol.errors import ProtocolError

_TLS_HANDSHAKE: Final = b"\x16\x03"
"""A record of the type handshake, of any version of TLS (RFC 8446, 5.1)."""
_HANDSHAKE_FAILURE: Final = b"\x15\x03\x03\x00\x02\x02\x28"
"""The fatal alert of that name, for which clients give up; a connection that only ends they try again and again."""

_METHODS: Final = frozenset(
    {b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI "}
)
"""How a request of HTTP/1 begins, and with PRI one of HTTP/2."""
_TEXT: Final = (
    b"This port serves Kafka's protocol and no HTTP; metrics, /health and /ready have a port of their own.\n"
)
_BAD_REQUEST: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s"
    % (len(_TEXT), _TEXT)
)


class NotKafka(ProtocolError):
    """The first bytes are those of another protocol; `answer` says in that protocol that this is the wrong port."""

    def __init__(self, reason: str, answer: bytes) -> None:
        super().__init__(reason)
        self.answer = answer


def stranger(length: int) -> NotKafka | None:
    """Who has sent the four bytes that are this length; None where they are like no protocol that we know."""
    start = length.to_bytes(4, "big", signed=True)
    if start.startswith(_TLS_HANDSHAKE):
        return NotKafka("this looks like TLS; only plaintext is served here", _HANDSHAKE_FAILURE)
    if start in _METHODS:
        return NotKafka("this looks like HTTP; metrics are on the port of metrics.listen", _BAD_REQUEST)
    return None
