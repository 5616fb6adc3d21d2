# SPDX-License-Identifier: Apache-2.0
"""The record of a committed offset: only this module knows the fields of its key and its value.

    key      version i16 (0 or 1), group STRING, topic STRING, partition i32
    value    version i16, offset i64, leader epoch i32 (from 3 on), metadata STRING (4: COMPACT_STRING),
             commit time i64, expiry i64 (1 alone), tagged fields (4 alone: 0 is the topic's id)

Kafka's classes are `OffsetCommitKey` and `OffsetCommitValue`; KIP-915 made version 4 of the value flexible. Versions 0
to 4 of the value are read. We write version 3, or 4 if `offsets.value.version` asks for it, and 1 for a commit with an
expiry of its own. To change the written form, add a version; never change the meaning of an old one.

Nearly all offsets have value version 3 and no metadata. From the partition on, their records have one form: PLAIN_TAIL
packs that in one piece, for BatchBuilder and RecordDecoder. Both must agree with `encode_offset_value` and
`decode_offset` (tests/storage/test_one_owner.py).
"""

from struct import Struct
from struct import error as struct_error
from typing import Any, Final

from protocol.compiled_struct import FieldsValue
from protocol.mypyc_shim import mypyc_attr
from protocol.newtypes import GroupId, Offset
from protocol.rows import EncodedRows
from protocol.wire import array_struct
from storage.errors import CorruptRecord
from storage.format.fields import FieldReader, encode_compact_string, encode_short_length, encode_short_string
from storage.format.record_body import (
    NO_HEADERS,
    NO_TIMESTAMP_DELTA,
    count_same_size_deltas,
    encode_attributes_and_deltas,
    encode_field,
    encode_offset_deltas,
    size_field,
)

OFFSET_VALUE_DEFAULT: Final = 3
OFFSET_VALUE_VERSION_MAX: Final = 4
WITH_EXPIRY: Final = 1
"""The only version of the value that can hold an expiry."""

OFFSET_KEY: Final = b"\x00\x01"
"""The version with which our keys begin."""
OFFSET_KEYS: Final = frozenset({b"\x00\x00", OFFSET_KEY})
PARTITION_BYTES: Final = 4
"""The size of the partition, which ends a key."""
TOMBSTONE_BYTES_MIN: Final = 17
"""The least bytes of an offset's record in a batch, without the names of its group and topic."""
OFFSET_TAIL_BYTES_MIN: Final = 30
"""The least bytes of an offset's record that is no tombstone, without its `key_size_and_prefix`, in any version."""

PLAIN_TAIL: Final = Struct(">iBhqihqB")
"""The fields of a plain offset's record from its partition on: partition; the value's size, version, offset, leader
epoch, metadata size and time; and the number of headers."""
PLAIN_TAIL_BYTES: Final = PLAIN_TAIL.size
PLAIN_VALUE_SIZE: Final = 48
"""The size of a plain value, 24 bytes, as a zig-zag varint."""
PLAIN_VERSION: Final = 3
_PACK_PLAIN: Final = Struct(">i3sqixxqx").pack
"""Packs PLAIN_TAIL with its constant fields in one piece, because each argument costs time."""
_PLAIN_TAIL_4: Final = Struct(
    ">iBhqiBqBB"
)  # in version 4: the metadata's size is one byte, and there are no tags
_EMPTY_COMPACT: Final = 1
_VALUE_HEAD: Final = bytes((PLAIN_VALUE_SIZE, 0, PLAIN_VERSION))
"""The size and version of a plain value."""
PLAIN_ROW: Final = "iqi"
"""The fields that differ between plain offsets of one commit: partition, offset and leader epoch."""
PLAIN_ROW_BYTES: Final = 16
_PLAIN_VALUE: Final = Struct(">hqihq")

_SHORT: Final = Struct(">h")
_INT: Final = Struct(">i")
_HEAD: Final = Struct(">hq")
_HEAD_WITH_EPOCH: Final = Struct(">hqi")
_LONG: Final = Struct(">q")
_TWO_LONGS: Final = Struct(">qq")
_NO_TOPIC_ID: Final = bytes(16)
_TOPIC_ID_TAG: Final = 0


@mypyc_attr(acyclic=True)
class OffsetAndMetadata(FieldsValue):
    """The offset that a commit sets for one partition. Times are milliseconds since the epoch.

    `leader_epoch` is -1 if none was given. `topic_id` (16 bytes) is kept by value version 4 only.
    """

    __match_args__: Final = (
        "offset",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "expire_timestamp",
        "topic_id",
    )
    __slots__ = __match_args__

    def __init__(
        self,
        offset: Offset,
        leader_epoch: int,
        metadata: str,
        commit_timestamp: int,
        expire_timestamp: int | None = None,
        topic_id: bytes | None = None,
    ) -> None:
        self.offset: Final = offset
        self.leader_epoch: Final = leader_epoch
        self.metadata: Final = metadata
        self.commit_timestamp: Final = commit_timestamp
        self.expire_timestamp: Final = expire_timestamp
        self.topic_id: Final = topic_id


@mypyc_attr(acyclic=True)
class OffsetCommitRecord(FieldsValue):
    """The record of one partition's committed offset; `value` None deletes the offset."""

    __match_args__: Final = ("group", "topic", "partition", "value")
    __slots__ = __match_args__

    def __init__(self, group: GroupId, topic: str, partition: int, value: OffsetAndMetadata | None) -> None:
        self.group: Final = group
        self.topic: Final = topic
        self.partition: Final = partition
        self.value: Final = value


@mypyc_attr(acyclic=True)
class TopicOffsetCommits(FieldsValue):
    """The offsets of one commit for one topic: a log record for each partition, none of them a tombstone.

    It equals that many OffsetCommitRecords, in the form in which commits arrive and memory keeps them.
    """

    __match_args__: Final = ("group", "topic", "values", "metadata_bytes")
    __slots__ = ("group", "metadata_bytes", "rows", "topic", "values")

    def __init__(
        self,
        group: GroupId,
        topic: str,
        values: dict[int, OffsetAndMetadata],
        metadata_bytes: int = 0,
        rows: EncodedRows | None = None,
    ) -> None:
        self.group: Final = group
        self.topic: Final = topic
        self.values: Final = values
        self.metadata_bytes = metadata_bytes
        """The upper bound of the memory that the values' metadata takes; code that adds metadata raises it."""
        self.rows = rows
        """The values as rows that begin as PLAIN_ROW, if that saves making them from the values, else None.

        Only set if no value has metadata or an expiry, and all have the same time. Rows are packed unchanged."""

    def pop_partition(self, partition: int) -> OffsetAndMetadata:
        """Remove and return a partition's value. Raises KeyError if there is none."""
        self.rows = None
        return self.values.pop(partition)


def count_committed_offsets(commits: list[TopicOffsetCommits]) -> int:
    """Return the number of offsets in the commits."""
    count = 0
    for commit in commits:
        count += len(commit.values)
    return count


# ------------------------------------------------------------------ keys


def offset_key_prefix(group: GroupId, topic: str) -> bytes:
    """Encode the key of an offset up to its partition.

    Raises RecordTooLarge if either name needs more than 32,767 bytes.
    """
    first, second = group.encode(), topic.encode()
    first_length, second_length = (
        encode_short_length("group", len(first)),
        encode_short_length("topic", len(second)),
    )
    return b"%b%b%b%b%b" % (OFFSET_KEY, first_length, first, second_length, second)


def encode_offset_key(group: GroupId, topic: str, partition: int) -> bytes:
    """Encode the key of an offset. Raises RecordTooLarge if either name needs more than 32,767 bytes."""
    return offset_key_prefix(group, topic) + _INT.pack(partition)


def key_size_and_prefix(group: GroupId, topic: str) -> bytes:
    """Encode the size of an offset's whole key, and the key up to its partition.

    Raises RecordTooLarge if either name needs more than 32,767 bytes.
    """
    prefix = offset_key_prefix(group, topic)
    return size_field(len(prefix) + PARTITION_BYTES) + prefix


def find_name_ends(key: bytes, pos: int) -> tuple[int, int]:
    """Return where the group's and the topic's name end in the key of an offset that begins at `pos`.

    The group's begins at `pos` + 4, the topic's 2 after it; the partition follows. Raises CorruptRecord.
    """
    try:
        group_end = pos + 4 + _SHORT.unpack_from(key, pos + 2)[0]
        topic_end = group_end + 2 + _SHORT.unpack_from(key, group_end)[0]
    except struct_error as error:
        raise CorruptRecord(f"the key of an offset is cut short: {len(key) - pos} bytes") from error
    if not pos + 4 <= group_end < group_end + 2 <= topic_end <= len(key):
        raise CorruptRecord("the key of an offset has no group, or no topic")
    return group_end, topic_end


def decode_utf8_name_as_java(data: bytes) -> str:
    """Decode a name in a key; invalid UTF-8 as Java decodes it, so that it names the same group."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        # Tried second, since it is slower and hardly ever needed.
        return data.decode("utf-8", "replace")


def decode_offset_record(key: bytes, value: bytes | None) -> OffsetCommitRecord:
    """Decode a record with an offset's key, of version 0 or 1. Raises CorruptRecord."""
    group_end, topic_end = find_name_ends(key, 0)
    if len(key) < topic_end + PARTITION_BYTES:
        raise CorruptRecord(f"the key of an offset is cut short: {len(key)} bytes")
    (partition,) = _INT.unpack_from(key, topic_end)
    group, topic = (
        decode_utf8_name_as_java(key[4:group_end]),
        decode_utf8_name_as_java(key[group_end + 2 : topic_end]),
    )
    return OffsetCommitRecord(
        GroupId(group), topic, partition, None if value is None else decode_offset(value)
    )


# ------------------------------------------------------------------ values


def encode_offset_value(value: OffsetAndMetadata, version: int = OFFSET_VALUE_DEFAULT) -> bytes:
    """Encode an offset commit value of `version` 0-4; leave out the fields that the version does not have."""
    if version == 4:
        return _encode_offset_flexible(value)
    metadata = encode_short_string("metadata", value.metadata)
    if version == 3:
        head = _HEAD_WITH_EPOCH.pack(3, value.offset, value.leader_epoch)
        return head + metadata + _LONG.pack(value.commit_timestamp)
    head = _HEAD.pack(version, value.offset)
    if version == 1:
        expire = -1 if value.expire_timestamp is None else value.expire_timestamp
        return head + metadata + _TWO_LONGS.pack(value.commit_timestamp, expire)
    if version in (0, 2):
        return head + metadata + _LONG.pack(value.commit_timestamp)
    raise ValueError(f"offset commit value version {version} cannot be written")


def _encode_offset_flexible(value: OffsetAndMetadata) -> bytes:
    head = _HEAD_WITH_EPOCH.pack(4, value.offset, value.leader_epoch)
    tail = _LONG.pack(value.commit_timestamp)
    tags = b"\x00"
    if value.topic_id is not None and value.topic_id != _NO_TOPIC_ID:
        tags = b"\x01\x00\x10" + value.topic_id
    return head + encode_compact_string(value.metadata) + tail + tags


def choose_value_version(value: OffsetAndMetadata, version: int) -> int:
    """Return the version to write a value in if `version` is configured: an expiry needs its own."""
    return version if value.expire_timestamp is None else WITH_EXPIRY


def encode_partition_and_value(partition: int, value: OffsetAndMetadata | None, version: int) -> bytes:
    """Encode the end of an offset's record, behind the names: partition, size and value, and no headers.

    Raises RecordTooLarge for metadata of more than 32,767 bytes that the version cannot hold.
    """
    if value is None:
        return _INT.pack(partition) + encode_field(None) + NO_HEADERS
    if not value.metadata and value.expire_timestamp is None:
        if version == PLAIN_VERSION:
            return encode_plain_tail(partition, value)
        if version == 4 and not value.topic_id:
            return _PLAIN_TAIL_4.pack(
                partition,
                PLAIN_VALUE_SIZE,
                4,
                value.offset,
                value.leader_epoch,
                _EMPTY_COMPACT,
                value.commit_timestamp,
                0,
                0,
            )
    return (
        _INT.pack(partition)
        + encode_field(encode_offset_value(value, choose_value_version(value, version)))
        + NO_HEADERS
    )


def encode_plain_tail(partition: int, value: OffsetAndMetadata) -> bytes:
    """Encode a tail as `encode_partition_and_value` does for version 3 and a value without metadata and expiry."""
    return _PACK_PLAIN(partition, _VALUE_HEAD, value.offset, value.leader_epoch, value.commit_timestamp)


def pack_plain_offsets_into_rows(values: dict[int, OffsetAndMetadata]) -> EncodedRows:
    """Pack plain offsets into rows of PLAIN_ROW."""
    fields: list[Any] = [0] * (3 * len(values))
    at = 0
    for partition, value in values.items():
        # One by one: a compiled function would make a tuple of them first.
        fields[at] = partition
        fields[at + 1] = value.offset
        fields[at + 2] = value.leader_epoch
        at += 3
    return EncodedRows(array_struct(PLAIN_ROW, len(values)).pack(*fields), PLAIN_ROW_BYTES)


def encode_plain_records(names: bytes, rows: EncodedRows, commit_timestamp: int, delta: int) -> bytes:
    """Encode whole records of plain offsets that were all committed at the same time; rows begin as PLAIN_ROW.

    `names` is the topic's `key_size_and_prefix`, `delta` the offset delta of the first.
    """
    runs: list[bytes] = []
    at = 0
    while at < rows.count:
        count = min(rows.count - at, count_same_size_deltas(delta))
        runs.append(_records_alike(names, rows.slice_rows(at, at + count), commit_timestamp, delta))
        at += count
        delta += count
    return b"".join(runs)


def _records_alike(names: bytes, rows: EncodedRows, commit_timestamp: int, delta: int) -> bytes:
    """Encode records of one size, which differ only in their rows and in their offset deltas."""
    delta_bytes = len(encode_attributes_and_deltas(delta)) - len(NO_TIMESTAMP_DELTA)
    head = (
        size_field(len(encode_attributes_and_deltas(delta)) + len(names) + PLAIN_TAIL_BYTES)
        + NO_TIMESTAMP_DELTA
    )
    tail = _PACK_PLAIN(0, _VALUE_HEAD, 0, 0, commit_timestamp)
    record = head + bytes(delta_bytes) + names + tail
    size_bytes = len(record)
    out = bytearray(record * rows.count)
    at = len(head)
    EncodedRows(encode_offset_deltas(delta, rows.count), delta_bytes).copy_columns_into(
        0, delta_bytes, out, at, size_bytes
    )
    at += delta_bytes + len(names)
    rows.copy_columns_into(0, PARTITION_BYTES, out, at, size_bytes)
    at += PARTITION_BYTES + len(_VALUE_HEAD)
    rows.copy_columns_into(PARTITION_BYTES, PLAIN_ROW_BYTES, out, at, size_bytes)
    return bytes(out)


def decode_offset(value: bytes) -> OffsetAndMetadata:
    """Decode an offset commit value of any version 0-4. Raises CorruptRecord."""
    if len(value) == _PLAIN_VALUE.size:
        version, offset, epoch, size, timestamp = _PLAIN_VALUE.unpack(value)
        if version == PLAIN_VERSION and size == 0:
            return OffsetAndMetadata(offset, epoch, "", timestamp)
    return _decode_any_offset(value)


def _decode_any_offset(value: bytes) -> OffsetAndMetadata:
    reader = FieldReader(value, "offset commit value")
    version = reader.int16()
    if not 0 <= version <= OFFSET_VALUE_VERSION_MAX:
        raise CorruptRecord(f"offset commit value version {version} is not known")
    offset = Offset(reader.int64())
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
