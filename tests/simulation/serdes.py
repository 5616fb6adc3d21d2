# SPDX-License-Identifier: Apache-2.0
"""The records of `__consumer_offsets` by Kafka's schemas, read strictly and with no code of ours.

Written from OffsetCommitKey.json, OffsetCommitValue.json, GroupMetadataKey.json and GroupMetadataValue.json of Apache
Kafka. A record that is longer or shorter than its schema is Unreadable.
"""

import struct
from typing import Any, NamedTuple


class Unreadable(ValueError):
    """Kafka's serdes would not read this."""


class OffsetKey(NamedTuple):
    """OffsetCommitKey, versions 0 and 1."""

    group: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    """GroupMetadataKey, version 2."""

    group: str


class OffsetValue(NamedTuple):
    """OffsetCommitValue, versions 0 to 3."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int


class Member(NamedTuple):
    """MemberMetadata of a GroupMetadataValue."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


class GroupValue(NamedTuple):
    """GroupMetadataValue, versions 0 to 3."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[Member, ...]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def number(self, format_: str) -> int:
        size = struct.calcsize(format_)
        if self.pos + size > len(self.data):
            raise Unreadable(f"cut short: {self.data!r}")
        self.pos += size
        return int(struct.unpack_from(format_, self.data, self.pos - size)[0])

    def take(self, size: int) -> bytes:
        if size < 0 or self.pos + size > len(self.data):
            raise Unreadable(f"{size} bytes at {self.pos} of {self.data!r}")
        self.pos += size
        return self.data[self.pos - size : self.pos]

    def string(self) -> str:
        return self.take(self.number(">h")).decode("utf-8")

    def nullable(self) -> str | None:
        size = self.number(">h")
        return None if size == -1 else self.take(size).decode("utf-8")

    def blob(self) -> bytes:
        return self.take(self.number(">i"))

    def end(self) -> None:
        if self.pos != len(self.data):
            raise Unreadable(f"{len(self.data) - self.pos} bytes too many in {self.data!r}")


def read_record(
    key: bytes | None, value: bytes | None
) -> tuple[OffsetKey | GroupKey, OffsetValue | GroupValue | None]:
    """A record's key and value; None is a tombstone. Raises Unreadable."""
    if key is None:
        raise Unreadable("a record without a key")
    reader = _Reader(key)
    version = reader.number(">h")
    try:
        if version in (0, 1):
            named: Any = OffsetKey(reader.string(), reader.string(), reader.number(">i"))
            read: Any = _offset
        elif version == 2:
            named, read = GroupKey(reader.string()), _group
        else:
            raise Unreadable(f"a key of version {version}")
        reader.end()
        return named, None if value is None else read(_Reader(value))
    except UnicodeDecodeError as error:
        raise Unreadable(str(error)) from None


def _offset(reader: _Reader) -> OffsetValue:
    version = reader.number(">h")
    if not 0 <= version <= 3:
        raise Unreadable(f"an offset value of version {version}")
    offset = reader.number(">q")
    epoch = reader.number(">i") if version >= 3 else -1
    metadata, at = reader.string(), reader.number(">q")
    expires = reader.number(">q") if version == 1 else -1
    reader.end()
    return OffsetValue(offset, epoch, metadata, at, expires)


def _group(reader: _Reader) -> GroupValue:
    version = reader.number(">h")
    if not 0 <= version <= 3:
        raise Unreadable(f"a group value of version {version}")
    protocol_type, generation = reader.string(), reader.number(">i")
    protocol, leader = reader.nullable(), reader.nullable()
    since = reader.number(">q") if version >= 2 else -1
    members = tuple(_member(reader, version) for _ in range(reader.number(">i")))
    reader.end()
    return GroupValue(protocol_type, generation, protocol, leader, since, members)


def _member(reader: _Reader, version: int) -> Member:
    member_id = reader.string()
    instance = reader.nullable() if version >= 3 else None
    client_id, host = reader.string(), reader.string()
    rebalance = reader.number(">i") if version >= 1 else -1
    return Member(
        member_id,
        instance,
        client_id,
        host,
        rebalance,
        reader.number(">i"),
        reader.blob(),
        reader.blob(),
    )


def topics_of(subscription: bytes) -> frozenset[str]:
    """The topics of a ConsumerProtocolSubscription; its later fields are passed over. Raises Unreadable."""
    reader = _Reader(subscription)
    reader.number(">h")
    return frozenset(reader.string() for _ in range(reader.number(">i")))
