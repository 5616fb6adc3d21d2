# SPDX-License-Identifier: Apache-2.0
"""Encodes and decodes the records of `__consumer_offsets`.

A key's version gives the kind of record: 0 and 1 an offset (`offset_record`), 2 a group of the classic protocol
(`group_record`); other records are kept unchanged.
"""

from typing import Final, TypeAlias

from protocol.frozen_struct import FrozenStruct
from protocol.newtypes import GroupId
from storage.errors import CorruptRecord
from storage.format.fields import FieldReader
from storage.format.group_record import (
    GROUP_KEY_VERSION,
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    decode_group_metadata,
    encode_group_key,
    encode_group_metadata,
)
from storage.format.offset_record import (
    OFFSET_KEYS,
    OFFSET_VALUE_DEFAULT,
    OffsetAndMetadata,
    OffsetCommitRecord,
    TopicOffsetCommits,
    choose_value_version,
    decode_offset,
    decode_offset_record,
    encode_offset_key,
    encode_offset_value,
)

__all__ = [
    "OFFSET_VALUE_DEFAULT",
    "GroupMetadataRecord",
    "GroupMetadataValue",
    "MemberValue",
    "OffsetAndMetadata",
    "OffsetCommitRecord",
    "Record",
    "TopicOffsetCommits",
    "UnknownRecord",
    "decode_group_metadata",
    "decode_key_and_value",
    "decode_offset",
    "encode_group_metadata",
    "encode_offset_value",
    "encode_record_key",
    "encode_record_value",
    "find_unserved_group",
]

OTHER_GROUP_KEYS: Final = frozenset({3, 17})
"""The key versions of consumer groups (KIP-848) and streams groups, which commit offsets as classic groups do."""


class UnknownRecord(FrozenStruct, frozen=True):
    """A record of a kind that this program does not know, kept byte for byte."""

    key_version: int
    key: bytes
    value: bytes | None


Record: TypeAlias = OffsetCommitRecord | GroupMetadataRecord | UnknownRecord


def encode_record_key(record: Record) -> bytes:
    """Encode the key of `record`. Raises RecordTooLarge for a name of more than 32,767 bytes."""
    if isinstance(record, OffsetCommitRecord):
        return encode_offset_key(record.group, record.topic, record.partition)
    if isinstance(record, GroupMetadataRecord):
        return encode_group_key(record.group)
    return record.key


def encode_record_value(record: Record, offset_value_version: int = OFFSET_VALUE_DEFAULT) -> bytes | None:
    """Encode the value of `record`; return None for a tombstone.

    An offset with an expiry of its own is always written as version 1, the only one that can hold it.
    Raises RecordTooLarge for a string of more than 32,767 bytes.
    """
    if isinstance(record, UnknownRecord):
        return record.value
    if record.value is None:
        return None
    if isinstance(record, GroupMetadataRecord):
        return encode_group_metadata(record.value)
    return encode_offset_value(record.value, choose_value_version(record.value, offset_value_version))


def decode_key_and_value(key: bytes | None, value: bytes | None) -> Record:
    """Decode a record's `key` and `value`; ignore bytes after their last field, as Kafka does.

    Raises CorruptRecord if they are cut short, hold a null in a field that cannot be null, or if the
    value of a known kind of key has a version above 4.
    """
    if key is None:
        raise CorruptRecord("the key is null")
    if key[:2] in OFFSET_KEYS:
        return decode_offset_record(key, value)
    reader = FieldReader(key, "key")
    version = reader.int16()
    if version == GROUP_KEY_VERSION:
        group = GroupId(reader.string())
        return GroupMetadataRecord(group, None if value is None else decode_group_metadata(value))
    return UnknownRecord(version, key, value)


def find_unserved_group(record: UnknownRecord) -> GroupId | None:
    """Return the group that a record creates or removes, if it is of a protocol that is not served; else None."""
    if record.key_version not in OTHER_GROUP_KEYS:
        return None
    try:
        return GroupId(FieldReader(record.key[2:], "key").string())
    except CorruptRecord:
        return None  # no group to serve, whatever it is
