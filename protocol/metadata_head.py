# SPDX-License-Identifier: Apache-2.0
"""The beginning of a Metadata response, v0-v13: the brokers, which come before the topics.

A proxy replaces the brokers' addresses, and passes on the rest unchanged.
"""

import struct
from collections.abc import Iterable
from typing import Final, NamedTuple

from protocol.errors import InvalidLength, ProtocolError
from protocol.wire import (
    INT16,
    INT32,
    NULL_INT16,
    PACK_INT32,
    pack_compact_string,
    pack_frame_length,
    pack_string,
    pack_uvarint,
    read_compact_count,
    read_compact_nullable_string,
    read_compact_string,
    skip_tags,
)

RACK_FROM: Final = 1
THROTTLE_FROM: Final = 3
FLEXIBLE_FROM: Final = 9
BROKERS_MAX: Final = 10_000

_FRAME_BYTES: Final = 8


class ListedBroker(NamedTuple):
    """A broker in the list of a response."""

    node_id: int
    host: str
    port: int
    rack: str | None


class MetadataHead(NamedTuple):
    """The bytes of a response before its brokers, the brokers, and the position after them."""

    before: bytes
    brokers: list[ListedBroker]
    end: int


def read_metadata_head(frame: bytes, version: int) -> MetadataHead | None:
    """Read a response, with its length and header, up to the end of its brokers; None if it is cut off before.

    Raises ProtocolError for bytes that are no response, and for more than BROKERS_MAX brokers.
    """
    try:
        head = _read(frame, version)
    except (IndexError, struct.error):
        head = None
    if head is not None and head.end <= len(frame):
        return head
    if len(frame) >= _FRAME_BYTES and len(frame) >= 4 + INT32(frame, 0)[0]:
        raise ProtocolError("a Metadata response that ends within its brokers")
    return None


def encode_metadata_head(
    frame: bytes, head: MetadataHead, brokers: Iterable[ListedBroker], version: int
) -> bytes:
    """Return the bytes, with the new length, that replace the first `head.end` bytes of the response `frame`.

    Raises FrameTooLarge if the response would be longer than an int32 length allows.
    """
    listed = list(brokers)
    flexible = version >= FLEXIBLE_FROM
    count = pack_uvarint(len(listed) + 1) if flexible else PACK_INT32(len(listed))
    written = b"".join([head.before, count, *(encode_listed_broker(broker, version) for broker in listed)])
    (length,) = INT32(frame, 0)
    return pack_frame_length(length + len(written) - head.end) + written[4:]


def _read(frame: bytes, version: int) -> MetadataHead:
    pos = _FRAME_BYTES
    flexible = version >= FLEXIBLE_FROM
    if flexible:
        pos = skip_tags(frame, pos)
    if version >= THROTTLE_FROM:
        pos += 4
    before = frame[:pos]
    count, pos = read_compact_count(frame, pos) if flexible else (INT32(frame, pos)[0], pos + 4)
    if not 0 <= count <= BROKERS_MAX:
        raise InvalidLength(f"a Metadata response with {count} brokers")
    brokers = []
    for _ in range(count):
        broker, pos = read_listed_broker(frame, pos, version)
        brokers.append(broker)
    return MetadataHead(before, brokers, pos)


def read_listed_broker(frame: bytes, pos: int, version: int) -> tuple[ListedBroker, int]:
    """Read one broker in the format of this version of Metadata, and return it with the position after it.

    Raises IndexError and struct.error, or returns a position beyond the end, if it is cut off.
    """
    (node_id,) = INT32(frame, pos)
    pos += 4
    if version >= FLEXIBLE_FROM:
        host, pos = read_compact_string(frame, pos, "host")
        (port,) = INT32(frame, pos)
        rack, pos = read_compact_nullable_string(frame, pos + 4, "rack")
        return ListedBroker(node_id, host, port, rack), skip_tags(frame, pos)
    name, pos = _read_string(frame, pos)
    (port,) = INT32(frame, pos)
    pos += 4
    rack = None
    if version >= RACK_FROM:
        rack, pos = _read_string(frame, pos)
    return ListedBroker(node_id, name or "", port, rack), pos


def _read_string(frame: bytes, pos: int) -> tuple[str | None, int]:
    (size,) = INT16(frame, pos)
    pos += 2
    if size < 0:
        return None, pos
    return frame[pos : pos + size].decode("utf-8", "replace"), pos + size


def encode_listed_broker(broker: ListedBroker, version: int) -> bytes:
    """Return the bytes of one broker in the format of this version of Metadata."""
    node_id, port = PACK_INT32(broker.node_id), PACK_INT32(broker.port)
    if version >= FLEXIBLE_FROM:
        rack = b"\0" if broker.rack is None else pack_compact_string(broker.rack)
        return node_id + pack_compact_string(broker.host) + port + rack + b"\0"
    rack = NULL_INT16 if broker.rack is None else pack_string(broker.rack)
    return node_id + pack_string(broker.host) + port + (rack if version >= RACK_FROM else b"")
