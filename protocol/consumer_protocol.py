# SPDX-License-Identifier: Apache-2.0
"""The consumers' data in JoinGroup and SyncGroup: ConsumerProtocol subscriptions and assignments, v0-v3.

The bytes belong to the clients, which may send anything, so the readers return None if they cannot parse them. Later
versions only append, and Kafka's coordinator reads every version as v0
(ClassicGroup.computeSubscribedTopics): so do these readers. A subscription's v1 adds the owned partitions, v2 the
generation, v3 the rack (KIP-429, KIP-792, KIP-881).
"""

import struct

from protocol.errors import ProtocolError, Truncated
from protocol.wire import (
    INT16,
    INT32,
    array_struct,
    bad_count_error,
    bad_length_error,
)


def subscribed_topics(metadata: bytes) -> frozenset[str] | None:
    """Return the topics of a subscription, None if it cannot be parsed.

    For some of the bytes that give None, Kafka fails the whole rebalance, and never responds to the join.
    """
    try:
        topics, pos = _read_topics(metadata, 2)
        _skip_user_data(metadata, pos)
    except (ProtocolError, struct.error):
        return None
    return frozenset(topics)


def decode_assignment(data: bytes) -> dict[str, list[int]] | None:
    """Return the partitions of an assignment by topic, None if it cannot be parsed.

    Empty bytes assign nothing: a member that the leader left out gets them.
    """
    if not data:
        return {}
    try:
        partitions, pos = _read_partitions(data, 2)
        _skip_user_data(data, pos)
    except (ProtocolError, struct.error):
        return None
    return partitions


def _read_count(buf: bytes, pos: int, name: str, item_bytes: int) -> tuple[int, int]:
    (count,) = INT32(buf, pos)
    pos += 4
    if not 0 <= count * item_bytes <= len(buf) - pos:
        raise bad_count_error(count, name, len(buf) - pos)
    return count, pos


def _read_string(buf: bytes, pos: int) -> tuple[str, int]:
    (size,) = INT16(buf, pos)
    if size < 0:
        raise bad_length_error(size, "topic")
    end = pos + 2 + size
    return buf[pos + 2 : end].decode("utf-8", "replace"), end


def _read_topics(buf: bytes, pos: int) -> tuple[list[str], int]:
    count, pos = _read_count(buf, pos, "topics", 2)
    topics = []
    for _ in range(count):
        topic, pos = _read_string(buf, pos)
        topics.append(topic)
    return topics, pos


def _read_partitions(buf: bytes, pos: int) -> tuple[dict[str, list[int]], int]:
    count, pos = _read_count(buf, pos, "assigned_partitions", 6)
    partitions: dict[str, list[int]] = {}
    for _ in range(count):
        topic, pos = _read_string(buf, pos)
        size, pos = _read_count(buf, pos, "partitions", 4)
        partitions.setdefault(topic, []).extend(array_struct("i", size).unpack_from(buf, pos))
        pos += 4 * size
    return partitions, pos


def _skip_user_data(buf: bytes, pos: int) -> None:
    (size,) = INT32(buf, pos)
    if pos + 4 + max(size, 0) > len(buf):
        raise Truncated("user_data")
