# SPDX-License-Identifier: Apache-2.0
"""The parts of Produce that a proxy needs: if a request gets a response, and the addresses in responses, v10-v13.

`NodeEndpoints` (KIP-951) is a tagged field at the very end of a response, with the leaders that a producer should
use; everything before it is skipped, and passed on unchanged. v13 has topic ids in place of names.
"""

import struct
from collections.abc import Callable
from typing import Final

from protocol.bounds import TAGS_MAX
from protocol.errors import InvalidLength, ProtocolError, TooManyItems, Truncated
from protocol.fixed_integers import int16_at, int32_at
from protocol.metadata_head import FLEXIBLE_FROM as LISTED_FLEXIBLE_FROM
from protocol.metadata_head import ListedBroker, encode_listed_broker, read_listed_broker
from protocol.wire import MAX_STRING_BYTES, PACK_INT32, pack_uvarint, read_uvarint, skip_tags

ENDPOINTS_FROM: Final = 10
TOPIC_IDS_FROM: Final = 13
TRANSACTIONAL_ID_FROM: Final = 3
FLEXIBLE_FROM: Final = 9

HEAD_BYTES_MAX: Final = 2 * MAX_STRING_BYTES + 128
"""The number of bytes at the start of a request in which the acks field ends, however long its strings are."""

_NODE_ENDPOINTS: Final = 0
_NOTHING_MOVED: Final = bytes(7)
"""The end of nearly all responses: the last partition and topic without tagged fields, no throttle time, no tagged
field. Endpoints end with a host, a port, a rack and their own tagged fields: at most the last 6 bytes are 0."""
_CLIENT_ID_AT: Final = 12
_FIXED_BYTES: Final = 4 + 2 + 8 + 8 + 8
"""The bytes of a partition's index, error, base offset, append time and log start offset."""

Move = Callable[[ListedBroker], "ListedBroker | None"]
"""Returns the address by which clients reach a node; None leaves the node out."""


def expects_response(frame: bytes, version: int) -> bool | None:
    """Return whether a broker responds to a request, given its bytes from the length on: not to one with acks=0.

    The first HEAD_BYTES_MAX bytes are enough. Returns None if the bytes end before the acks. Raises ProtocolError if
    the head of the request cannot be read.
    """
    try:
        return _acks(frame, version) != 0
    except IndexError:
        if len(frame) >= min(HEAD_BYTES_MAX, 4 + int32_at(frame, 0)):
            raise Truncated("the head of a Produce request") from None
    return None


def make_endpoint_replacer(version: int, move: Move) -> Callable[[bytes], bytes]:
    """Return a function that applies `move` to every node of `NodeEndpoints` in a whole response with its length.

    The function returns the same bytes if there are no nodes, and raises ProtocolError for bytes that are no response.
    """

    def move_endpoints(frame: bytes) -> bytes:
        if frame.endswith(_NOTHING_MOVED):
            return frame
        try:
            pos = _after_partitions(frame, version) + 4  # the throttle time
            return _move(frame, pos, move)
        except (IndexError, struct.error):
            raise Truncated("a Produce response") from None

    return move_endpoints


def _acks(head: bytes, version: int) -> int:
    pos = _after_string(head, _CLIENT_ID_AT)
    if version >= FLEXIBLE_FROM:
        pos = _after_compact(head, skip_tags(head, pos))
    elif version >= TRANSACTIONAL_ID_FROM:
        pos = _after_string(head, pos)
    return int16_at(head, pos)


def _after_string(buf: bytes, pos: int) -> int:
    size = int16_at(buf, pos)
    if size < -1:
        raise InvalidLength(f"a string of {size} bytes")
    return pos + 2 + max(size, 0)


def _after_compact(buf: bytes, pos: int) -> int:
    size, pos = read_uvarint(buf, pos)
    return pos + max(size - 1, 0)


def _after_partitions(frame: bytes, version: int) -> int:
    topics, pos = read_uvarint(frame, skip_tags(frame, 8))
    for _ in range(_bounded(topics - 1, frame)):
        pos = pos + 16 if version >= TOPIC_IDS_FROM else _after_compact(frame, pos)
        partitions, pos = read_uvarint(frame, pos)
        for _ in range(_bounded(partitions - 1, frame)):
            errors, pos = read_uvarint(frame, pos + _FIXED_BYTES)
            for _ in range(_bounded(errors - 1, frame)):
                pos = skip_tags(frame, _after_compact(frame, pos + 4))
            pos = skip_tags(frame, _after_compact(frame, pos))
        pos = skip_tags(frame, pos)
    return pos


def _bounded(count: int, frame: bytes) -> int:
    if count > len(frame):
        raise InvalidLength(f"{count} items in {len(frame)} bytes")
    return count


def _move(frame: bytes, pos: int, move: Move) -> bytes:
    """Return the frame with `move` applied to the nodes in the tagged fields that begin at `pos`."""
    count, after = read_uvarint(frame, pos)
    if count == 0:
        return frame
    if count > TAGS_MAX:
        raise TooManyItems(f"{count} tagged fields")
    out = [frame[4:after]]
    pos = after
    for _ in range(count):
        tag, pos = read_uvarint(frame, pos)
        size, pos = read_uvarint(frame, pos)
        content = frame[pos : pos + size]
        if len(content) < size:
            raise Truncated("a tagged field of a Produce response")
        pos += size
        if tag == _NODE_ENDPOINTS:
            content = _moved(content, move)
        out += [pack_uvarint(tag), pack_uvarint(len(content)), content]
    out.append(frame[pos:])
    body = b"".join(out)
    return PACK_INT32(len(body)) + body


def _moved(content: bytes, move: Move) -> bytes:
    count, pos = read_uvarint(content, 0)
    nodes = []
    for _ in range(_bounded(count - 1, content)):
        listed, pos = read_listed_broker(content, pos, LISTED_FLEXIBLE_FROM)
        moved = move(listed)
        if moved is not None:
            nodes.append(encode_listed_broker(moved, LISTED_FLEXIBLE_FROM))
    if pos > len(content):
        raise ProtocolError("nodes that do not fit into their field")
    return pack_uvarint(len(nodes) + 1) + b"".join(nodes)
