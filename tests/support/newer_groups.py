# SPDX-License-Identifier: Apache-2.0
"""Members of the groups that no Python client can be in: streams groups (KIP-1071) and share groups (KIP-932).

Their heartbeats are written byte by byte here: kafka-python has no such messages, and our own should not cancel out.
"""

import socket
import struct
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tests.support.waiting import wait_until

JOIN: Final = 0
LEAVE: Final = -1
NONE: Final = 0
NOT_READY: Final = {14, 15, 16}  # the coordinator loads, is not available, or is another broker
LONG_SESSIONS: Final[dict[str, str | int]] = {
    f"group.{kind}.{name}": 600_000
    for kind in ("streams", "share")
    for name in ("session.timeout.ms", "max.session.timeout.ms")
}
"""A broker's settings with which members that send no heartbeats stay for longer than any test takes."""

_NULL: Final = b"\0"
_NO_TAGS: Final = b"\0"


@contextmanager
def member_of(kind: str, bootstrap: str, group: str, topic: str) -> Iterator[str]:
    """A member of a streams or a share group, from its first heartbeat until it leaves; the member's id.

    It sends no others, so its broker needs LONG_SESSIONS.
    """
    member_id = str(uuid.uuid4())

    def has_joined() -> bool:
        code = heartbeat(kind, bootstrap, group, member_id, topic, JOIN)
        assert code in {NONE, *NOT_READY}, f"heartbeat to {group}: error {code}"
        return code == NONE

    wait_until(has_joined, what=f"a coordinator of {group}")
    try:
        yield member_id
    finally:
        assert heartbeat(kind, bootstrap, group, member_id, topic, LEAVE) == NONE


def heartbeat(kind: str, bootstrap: str, group: str, member_id: str, topic: str, epoch: int) -> int:
    """Send one heartbeat (StreamsGroupHeartbeat v0, ShareGroupHeartbeat v1); its error code."""
    if kind == "streams":
        return _sent(bootstrap, 88, 0, _streams(group, member_id, topic, epoch))
    return _sent(bootstrap, 76, 1, _share(group, member_id, topic, epoch))


def _share(group: str, member_id: str, topic: str, epoch: int) -> bytes:
    topics = _NULL if epoch == LEAVE else _array(_string(topic))
    return _string(group) + _string(member_id) + struct.pack(">i", epoch) + _NULL + topics + _NO_TAGS


def _streams(group: str, member_id: str, topic: str, epoch: int) -> bytes:
    head = _string(group) + _string(member_id) + struct.pack(">ii", epoch, 0) + _NULL + _NULL
    if epoch == LEAVE:
        # no topology, no tasks, process, endpoint, tags and offsets
        rest = struct.pack(">ib", -1, -1) + 3 * _NULL + _NULL + struct.pack(">b", -1) + 3 * _NULL
    else:
        no_tasks, no_more = 3 * _array(), 3 * _NULL
        process = _string(member_id) + struct.pack(">b", -1)
        rest = struct.pack(">i", 60_000) + _topology(topic) + no_tasks + process + no_more
    return head + rest + b"\0" + _NO_TAGS  # nobody is to shut down


def _topology(topic: str) -> bytes:
    """One subtopology that reads one topic."""
    sources = (
        _array(_string(topic)) + 5 * _array()
    )  # no patterns, changelogs, repartitioned topics, copartitions
    subtopology = _string("0") + sources + _NO_TAGS
    return struct.pack(">bi", 1, 1) + _array(subtopology) + _NO_TAGS


def _string(text: str) -> bytes:
    size, length = len(text) + 1, b""
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return length + bytes([size]) + text.encode()


def _array(*items: bytes) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)


def _sent(bootstrap: str, api_key: int, version: int, body: bytes) -> int:
    host, port = bootstrap.rsplit(":", 1)
    frame = struct.pack(">hhi", api_key, version, 1) + struct.pack(">h", 3) + b"raw" + _NO_TAGS + body
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        with connection.makefile("rb") as answers:
            (length,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(length)
    # the correlation id, no tags, the throttle time
    code: int = struct.unpack_from(">h", answer, 4 + 1 + 4)[0]
    return code
