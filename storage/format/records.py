# SPDX-License-Identifier: Apache-2.0
"""The records of `__consumer_offsets`: typed objects and their bytes.

Key versions 0 and 1 name an offset, 2 a group of the classic protocol; others are carried as they are.
Value versions read: 0-4 of both kinds. Written: offsets as version 3 (or 4, where `offsets.value.version`
asks for it; 1 whenever a commit brought its own expiry), groups as version 3. The schemas are Kafka's
`OffsetCommitKey`, `OffsetCommitValue`, `GroupMetadataKey` and `GroupMetadataValue`; KIP-915 made their
version 4 flexible. To change what is written here, add a version; never another meaning to an old one.
"""

from struct import Struct
from struct import error as struct_error
from typing import Final, TypeAlias

import msgspec

from protocol.structs import Frozen
from storage.errors import CorruptRecord
from storage.format.fields import FieldReader, compact_string, nullable_string, short_string, uvarint

OFFSET_COMMIT_KEY: Final = 1
GROUP_METADATA_KEY: Final = 2
OTHER_GROUP_KEYS: Final = frozenset({3, 17})
"""Consumer groups of KIP-848 and streams groups: they commit offsets as classic groups do."""
OFFSET_VALUE_DEFAULT: Final = 3
GROUP_VALUE_DEFAULT: Final = 3
VALUE_VERSION_MAX: Final = 4

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_OFFSET: Final = Struct(">hq")
_OFFSET_AND_EPOCH: Final = Struct(">hqi")
_LONG: Final = Struct(">q")
_TWO_LONGS: Final = Struct(">qq")
_TWO_INTS: Final = Struct(">ii")
_NO_TOPIC_ID: Final = bytes(16)
_TOPIC_ID_TAG: Final = 0
_OFFSET_KEYS: Final = frozenset({b"\x00\x00", b"\x00\x01"})
_PLAIN_OFFSET: Final = Struct(">hqihq")
"""Version 3 without metadata."""


class OffsetAndMetadata(Frozen, frozen=True):
    """What a commit says about one partition. Times are milliseconds since the epoch.

    `leader_epoch` is -1 where none was given. `topic_id` (16 bytes) is kept by value version 4 only.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None = None
    topic_id: bytes | None = None


class OffsetCommitRecord(Frozen, frozen=True):
    """One partition's committed offset; `value` None deletes it."""

    group: str
    topic: str
    partition: int
    value: OffsetAndMetadata | None


class OffsetCommits(msgspec.Struct):
    """What one commit says about one topic: a log record for each partition, none of them a tombstone.

    The same as that many OffsetCommitRecords, in the form in which commits come and memory keeps them.
    """

    group: str
    topic: str
    values: dict[int, OffsetAndMetadata]
    metadata_bytes: int = 0
    """Of all values: how much memory their metadata takes at most; whoever puts some in says so."""


class MemberValue(Frozen, frozen=True):
    """A member of a stored group. Timeouts are milliseconds; `rebalance_timeout` is -1 in value version 0."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(Frozen, frozen=True):
    """A generation of a group. `current_state_timestamp` (ms) is -1 where the version has none."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: tuple[MemberValue, ...]


class GroupMetadataRecord(Frozen, frozen=True):
    """One classic group; `value` None deletes it."""

    group: str
    value: GroupMetadataValue | None


class UnknownRecord(Frozen, frozen=True):
    """A record of a kind that this program does not know, kept byte for byte."""

    key_version: int
    key: bytes
    value: bytes | None


Record: TypeAlias = OffsetCommitRecord | GroupMetadataRecord | UnknownRecord


# ------------------------------------------------------------------ writing


def offset_key_prefix(group: str, topic: str) -> bytes:
    """The key of an offset record up to its partition.

    Raises RecordTooLarge when either name needs more than 32,767 bytes.
    """
    return b"\x00\x01" + short_string("group", group) + short_string("topic", topic)


def encode_record_key(record: Record) -> bytes:
    """The key of `record`. Raises RecordTooLarge for a name of more than 32,767 bytes."""
    if isinstance(record, OffsetCommitRecord):
        return offset_key_prefix(record.group, record.topic) + _INT.pack(record.partition)
    if isinstance(record, GroupMetadataRecord):
        return b"\x00\x02" + short_string("group", record.group)
    return record.key


def encode_record_value(record: Record, offset_value_version: int = OFFSET_VALUE_DEFAULT) -> bytes | None:
    """The value of `record`, or None for a tombstone.

    An offset with an expiry of its own is always written as version 1, the only one that can hold it.
    Raises RecordTooLarge for a string of more than 32,767 bytes.
    """
    if isinstance(record, UnknownRecord):
        return record.value
    if record.value is None:
        return None
    if isinstance(record, GroupMetadataRecord):
        return encode_group_metadata(record.value)
    if record.value.expire_timestamp is not None:
        offset_value_version = 1
    return encode_offset(record.value, offset_value_version)


def encode_offset(value: OffsetAndMetadata, version: int = OFFSET_VALUE_DEFAULT) -> bytes:
    """An offset commit value of `version` 0-4; what that version cannot hold is left out."""
    if version == 4:
        return _encode_offset_flexible(value)
    metadata = short_string("metadata", value.metadata)
    if version == 3:
        head = _OFFSET_AND_EPOCH.pack(3, value.offset, value.leader_epoch)
        return head + metadata + _LONG.pack(value.commit_timestamp)
    head = _OFFSET.pack(version, value.offset)
    if version == 1:
        expire = -1 if value.expire_timestamp is None else value.expire_timestamp
        return head + metadata + _TWO_LONGS.pack(value.commit_timestamp, expire)
    if version in (0, 2):
        return head + metadata + _LONG.pack(value.commit_timestamp)
    raise ValueError(f"offset commit value version {version} cannot be written")


def _encode_offset_flexible(value: OffsetAndMetadata) -> bytes:
    head = _OFFSET_AND_EPOCH.pack(4, value.offset, value.leader_epoch)
    tail = _LONG.pack(value.commit_timestamp)
    tags = b"\x00"
    if value.topic_id is not None and value.topic_id != _NO_TOPIC_ID:
        tags = b"\x01\x00\x10" + value.topic_id
    return head + compact_string(value.metadata) + tail + tags


def encode_group_metadata(value: GroupMetadataValue, version: int = GROUP_VALUE_DEFAULT) -> bytes:
    """A group metadata value of `version` 0-4; what that version cannot hold is left out."""
    if version == 4:
        return _encode_group_flexible(value)
    if not 0 <= version < 4:
        raise ValueError(f"group metadata value version {version} cannot be written")
    parts = [
        _SHORT.pack(version),
        short_string("protocol_type", value.protocol_type),
        _INT.pack(value.generation),
        nullable_string("protocol", value.protocol),
        nullable_string("leader", value.leader),
    ]
    if version >= 2:
        parts.append(_LONG.pack(value.current_state_timestamp))
    parts.append(_INT.pack(len(value.members)))
    for member in value.members:
        parts.append(short_string("member_id", member.member_id))
        if version >= 3:
            parts.append(nullable_string("group_instance_id", member.group_instance_id))
        parts.append(short_string("client_id", member.client_id))
        parts.append(short_string("client_host", member.client_host))
        if version >= 1:
            parts.append(_INT.pack(member.rebalance_timeout))
        parts.append(_TWO_INTS.pack(member.session_timeout, len(member.subscription)))
        parts.append(member.subscription)
        parts.append(_INT.pack(len(member.assignment)))
        parts.append(member.assignment)
    return b"".join(parts)


def _encode_group_flexible(value: GroupMetadataValue) -> bytes:
    parts = [
        _SHORT.pack(4),
        compact_string(value.protocol_type),
        _INT.pack(value.generation),
        compact_string(value.protocol),
        compact_string(value.leader),
        _LONG.pack(value.current_state_timestamp),
        uvarint(len(value.members) + 1),
    ]
    for member in value.members:
        parts += (
            compact_string(member.member_id),
            compact_string(member.group_instance_id),
            compact_string(member.client_id),
            compact_string(member.client_host),
            _TWO_INTS.pack(member.rebalance_timeout, member.session_timeout),
            uvarint(len(member.subscription) + 1),
            member.subscription,
            uvarint(len(member.assignment) + 1),
            member.assignment,
            b"\x00",
        )
    parts.append(b"\x00")
    return b"".join(parts)


# ------------------------------------------------------------------ reading


def decode_record(key: bytes | None, value: bytes | None) -> Record:
    """The record that `key` and `value` hold; bytes after their last field are ignored, as Kafka does.

    Raises CorruptRecord when they are cut short, hold a null where there cannot be one, or when the
    value of a known kind of key has a version above 4.
    """
    if key is None:
        raise CorruptRecord("the key is null")
    if key[:2] in _OFFSET_KEYS:
        return _decode_offset_record(key, value)
    reader = FieldReader(key, "key")
    version = reader.int16()
    if version == GROUP_METADATA_KEY:
        group = reader.string()
        return GroupMetadataRecord(group, None if value is None else decode_group_metadata(value))
    return UnknownRecord(version, key, value)


def other_group(record: UnknownRecord) -> str | None:
    """The group that this record makes, or removes, if it is of a protocol that is not served; else None."""
    if record.key_version not in OTHER_GROUP_KEYS:
        return None
    try:
        return FieldReader(record.key[2:], "key").string()
    except CorruptRecord:
        return None  # whatever it is, nothing is served of it


def _decode_offset_record(key: bytes, value: bytes | None) -> OffsetCommitRecord:
    # Without a reader, since nearly all records are of this kind.
    try:
        group_end = 4 + _SHORT.unpack_from(key, 2)[0]
        topic_start = group_end + 2
        topic_end = topic_start + _SHORT.unpack_from(key, group_end)[0]
        (partition,) = _INT.unpack_from(key, topic_end)
    except struct_error as error:
        raise CorruptRecord(f"the key of an offset is cut short: {len(key)} bytes") from error
    if not 4 <= group_end < topic_start <= topic_end:
        raise CorruptRecord("the key of an offset has no group, or no topic")
    try:
        group, topic = key[4:group_end].decode(), key[topic_start:topic_end].decode()
    except UnicodeDecodeError:
        # As Java decodes it; tried second, since it is slower and hardly ever needed.
        group = key[4:group_end].decode("utf-8", "replace")
        topic = key[topic_start:topic_end].decode("utf-8", "replace")
    if value is None:
        return OffsetCommitRecord(group, topic, partition, None)
    if len(value) == _PLAIN_OFFSET.size:
        version, offset, epoch, size, timestamp = _PLAIN_OFFSET.unpack(value)
        if version == 3 and size == 0:
            return OffsetCommitRecord(
                group, topic, partition, OffsetAndMetadata(offset, epoch, "", timestamp)
            )
    return OffsetCommitRecord(group, topic, partition, decode_offset(value))


def decode_offset(value: bytes) -> OffsetAndMetadata:
    """The offset commit value of any version 0-4. Raises CorruptRecord."""
    reader = FieldReader(value, "offset commit value")
    version = reader.int16()
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise CorruptRecord(f"offset commit value version {version} is not known")
    offset = reader.int64()
    epoch = reader.int32() if version >= 3 else -1
    if version == 4:
        metadata, timestamp = reader.compact_string(), reader.int64()
        topic_id = reader.tags().get(_TOPIC_ID_TAG)
        if topic_id is not None and len(topic_id) != 16:
            raise CorruptRecord(f"topic id of {len(topic_id)} bytes")
        if topic_id == _NO_TOPIC_ID:
            topic_id = None
        return OffsetAndMetadata(offset, epoch, metadata, timestamp, None, topic_id)
    metadata, timestamp = reader.string(), reader.int64()
    # Kafka's OffsetAndMetadata.fromRecord: -1 stands for "no expiry of its own".
    expire = reader.int64() if version == 1 else -1
    return OffsetAndMetadata(offset, epoch, metadata, timestamp, None if expire == -1 else expire)


def decode_group_metadata(value: bytes) -> GroupMetadataValue:
    """The group metadata value of any version 0-4. Raises CorruptRecord."""
    reader = FieldReader(value, "group metadata value")
    version = reader.int16()
    if version == 4:
        return _decode_group_flexible(reader)
    if not 0 <= version < 4:
        raise CorruptRecord(f"group metadata value version {version} is not known")
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader = reader.nullable_string(), reader.nullable_string()
    timestamp = reader.int64() if version >= 2 else -1
    members = tuple(_decode_member(reader, version) for _ in range(reader.array_length(reader.int32())))
    return GroupMetadataValue(protocol_type, generation, protocol, leader, timestamp, members)


def _decode_member(reader: FieldReader, version: int) -> MemberValue:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout = reader.int32() if version >= 1 else -1
    session_timeout = reader.int32()
    subscription, assignment = reader.blob(reader.int32()), reader.blob(reader.int32())
    return MemberValue(
        member_id,
        instance_id,
        client_id,
        client_host,
        rebalance_timeout,
        session_timeout,
        subscription,
        assignment,
    )


def _decode_group_flexible(reader: FieldReader) -> GroupMetadataValue:
    protocol_type, generation = reader.compact_string(), reader.int32()
    protocol, leader = reader.nullable_compact_string(), reader.nullable_compact_string()
    timestamp = reader.int64()
    members = []
    for _ in range(reader.array_length(reader.uvarint() - 1)):
        member_id, instance_id = reader.compact_string(), reader.nullable_compact_string()
        client_id, client_host = reader.compact_string(), reader.compact_string()
        rebalance_timeout, session_timeout = reader.int32(), reader.int32()
        subscription = reader.blob(reader.uvarint() - 1)
        assignment = reader.blob(reader.uvarint() - 1)
        reader.tags()
        members.append(
            MemberValue(
                member_id,
                instance_id,
                client_id,
                client_host,
                rebalance_timeout,
                session_timeout,
                subscription,
                assignment,
            )
        )
    reader.tags()
    return GroupMetadataValue(protocol_type, generation, protocol, leader, timestamp, tuple(members))
