# SPDX-License-Identifier: Apache-2.0
"""The record of a group of the classic protocol: only this module knows the fields of its key and its value.

Kafka's classes are `GroupMetadataKey`, the group's id, and `GroupMetadataValue`, of which versions 0 to 4 are read and
3 is written; KIP-915 made version 4 flexible. To change the written form, add a version; never change the meaning of an
old one.
"""

from struct import Struct
from typing import Final

from protocol.frozen_struct import FrozenStruct
from protocol.newtypes import GroupId, MemberId
from storage.errors import CorruptRecord
from storage.format.fields import (
    FieldReader,
    encode_compact_string,
    encode_nullable_string,
    encode_short_string,
)
from storage.format.varints import encode_unsigned_varint

GROUP_KEY_VERSION: Final = 2
GROUP_VALUE_DEFAULT: Final = 3

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_LONG: Final = Struct(">q")
_TWO_INTS: Final = Struct(">ii")


class MemberValue(FrozenStruct, frozen=True):
    """A member of a stored group. Timeouts are milliseconds; `rebalance_timeout` is -1 in value version 0."""

    member_id: MemberId
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(FrozenStruct, frozen=True):
    """A generation of a group. `current_state_timestamp` (ms) is -1 if the version has none."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: MemberId | None
    current_state_timestamp: int
    members: tuple[MemberValue, ...]


class GroupMetadataRecord(FrozenStruct, frozen=True):
    """The record of one classic group; `value` None deletes the group."""

    group: GroupId
    value: GroupMetadataValue | None


# ------------------------------------------------------------------ writing


def encode_group_key(group: GroupId) -> bytes:
    """Encode the key of a group. Raises RecordTooLarge for a name of more than 32,767 bytes."""
    return _SHORT.pack(GROUP_KEY_VERSION) + encode_short_string("group", group)


def encode_group_metadata(value: GroupMetadataValue, version: int = GROUP_VALUE_DEFAULT) -> bytes:
    """Encode a group metadata value of `version` 0-4; leave out the fields that the version does not have."""
    if version == 4:
        return _encode_group_flexible(value)
    if not 0 <= version < 4:
        raise ValueError(f"group metadata value version {version} cannot be written")
    parts = [
        _SHORT.pack(version),
        encode_short_string("protocol_type", value.protocol_type),
        _INT.pack(value.generation),
        encode_nullable_string("protocol", value.protocol),
        encode_nullable_string("leader", value.leader),
    ]
    if version >= 2:
        parts.append(_LONG.pack(value.current_state_timestamp))
    parts.append(_INT.pack(len(value.members)))
    for member in value.members:
        parts.append(encode_short_string("member_id", member.member_id))
        if version >= 3:
            parts.append(encode_nullable_string("group_instance_id", member.group_instance_id))
        parts.append(encode_short_string("client_id", member.client_id))
        parts.append(encode_short_string("client_host", member.client_host))
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
        encode_compact_string(value.protocol_type),
        _INT.pack(value.generation),
        encode_compact_string(value.protocol),
        encode_compact_string(value.leader),
        _LONG.pack(value.current_state_timestamp),
        encode_unsigned_varint(len(value.members) + 1),
    ]
    for member in value.members:
        parts += (
            encode_compact_string(member.member_id),
            encode_compact_string(member.group_instance_id),
            encode_compact_string(member.client_id),
            encode_compact_string(member.client_host),
            _TWO_INTS.pack(member.rebalance_timeout, member.session_timeout),
            encode_unsigned_varint(len(member.subscription) + 1),
            member.subscription,
            encode_unsigned_varint(len(member.assignment) + 1),
            member.assignment,
            b"\x00",
        )
    parts.append(b"\x00")
    return b"".join(parts)


# ------------------------------------------------------------------ reading


def decode_group_metadata(value: bytes) -> GroupMetadataValue:
    """Decode a group metadata value of any version 0-4. Raises CorruptRecord."""
    reader = FieldReader(value, "group metadata value")
    version = reader.int16()
    if version == 4:
        return _decode_group_flexible(reader)
    if not 0 <= version < 4:
        raise CorruptRecord(f"group metadata value version {version} is not known")
    protocol_type, generation = reader.string(), reader.int32()
    protocol, leader = reader.nullable_string(), _member_id(reader.nullable_string())
    timestamp = reader.int64() if version >= 2 else -1
    members = tuple(_decode_member(reader, version) for _ in range(reader.check_array_length(reader.int32())))
    return GroupMetadataValue(protocol_type, generation, protocol, leader, timestamp, members)


def _member_id(text: str | None) -> MemberId | None:
    return None if text is None else MemberId(text)


def _decode_member(reader: FieldReader, version: int) -> MemberValue:
    member_id = MemberId(reader.string())
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout = reader.int32() if version >= 1 else -1
    session_timeout = reader.int32()
    subscription, assignment = reader.bytes_of_size(reader.int32()), reader.bytes_of_size(reader.int32())
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
    protocol, leader = reader.nullable_compact_string(), _member_id(reader.nullable_compact_string())
    timestamp = reader.int64()
    members = []
    for _ in range(reader.check_array_length(reader.uvarint() - 1)):
        member_id, instance_id = MemberId(reader.compact_string()), reader.nullable_compact_string()
        client_id, client_host = reader.compact_string(), reader.compact_string()
        rebalance_timeout, session_timeout = reader.int32(), reader.int32()
        subscription = reader.bytes_of_size(reader.uvarint() - 1)
        assignment = reader.bytes_of_size(reader.uvarint() - 1)
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
