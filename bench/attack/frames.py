# SPDX-License-Identifier: Apache-2.0
"""Requests as whole frames, as attackers send them."""

import struct
from typing import Any, NamedTuple

from protocol.apis import ApiKey
from protocol.headers import RequestHeader, encode_request_header
from protocol.message_codecs import find_message_codec

TOPIC_PARTITIONS = 2


class Size(NamedTuple):
    """What the node holds: groups `g0`, `g1` …, each with an offset in a topic, and topics `t0`, `t1` …

    The group `big` has 10,000 offsets in the topic `wide`.
    """

    groups: int
    topics: int


def header(api: ApiKey, version: int) -> bytes:
    """The header of a request."""
    return encode_request_header(
        RequestHeader(api, version, 1, "attack"), flexible=find_message_codec(api, version).flexible
    )


def raw(api: ApiKey, version: int, body: bytes) -> bytes:
    """A frame with this body, whatever that is."""
    frame = header(api, version) + body
    return struct.pack(">i", len(frame)) + frame


def request(api: ApiKey, version: int, message: Any) -> bytes:
    """A frame with a well-formed request."""
    return raw(api, version, find_message_codec(api, version).encode_request(message))


def names(kind: str, count: int) -> list[str]:
    """`g0`, `g1` and so on."""
    return [f"{kind}{number}" for number in range(count)]
