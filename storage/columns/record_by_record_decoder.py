# SPDX-License-Identifier: Apache-2.0
"""Decodes records into rows, one by one, through the ordinary codecs: right for every record, and slow."""

from struct import Struct
from typing import Any, Final

from storage.columns import schema
from storage.columns.schema import (
    GROUP_METADATA,
    NULL_KEY,
    OFFSET_COMMIT,
    TRANSACTION_MARKER,
    UNKNOWN,
)
from storage.disk.properties import encode_uuid
from storage.errors import CorruptBatch, CorruptRecord
from storage.format.batch import iter_records, read_unchecked_batch
from storage.format.markers import ABORT, COMMIT, parse_control_record_type
from storage.format.record_body import BatchRecord
from storage.format.records import (
    GroupMetadataRecord,
    MemberValue,
    OffsetCommitRecord,
    decode_group_metadata,
    decode_key_and_value,
    decode_offset,
)

Row = dict[str, Any]

_LONG_MAX: Final = (1 << 63) - 1

_SHORT: Final = Struct(">h")
_MARKERS: Final = {ABORT: schema.ABORT, COMMIT: schema.COMMIT}


def batch_rows(data: bytes) -> tuple[list[Row], str | None]:
    """Return the rows of an encoded batch, by the names of RECORD_COLUMNS, and the batch's error, or None.

    There is at least one row: an empty one if the batch has no record, or is damaged.
    """
    try:
        batch = read_unchecked_batch(data)
        records = list(iter_records(batch))
    except CorruptBatch as error:
        return [{}], error.reason
    # A varint can have 70 bits, but no valid offset or time does.
    if any(not (-_LONG_MAX <= number <= _LONG_MAX) for record in records for number in record[:2]):
        return [{}], "an offset or timestamp does not fit 64 bits"
    rows = [record_row(record, control=batch.is_control) for record in records]
    return rows or [{}], None


def record_row(record: BatchRecord, *, control: bool) -> Row:
    """Return a record's row, by the names of RECORD_COLUMNS; `control` is its batch's flag."""
    offset, timestamp, key, value = record
    row: Row = {"offset": offset, "timestamp": timestamp, "tombstone": value is None and not control}
    try:
        if control:
            _marker(row, key)
        else:
            _key(row, key, value)
            _value(row, value)
    except CorruptRecord as error:
        row["problem"] = error.reason
    if "problem" in row or row["key_type"] == UNKNOWN:
        row["raw_key"], row["raw_value"] = key, value
    return row


def _version(data: bytes | None) -> int | None:
    return None if data is None or len(data) < 2 else int(_SHORT.unpack_from(data)[0])


def _marker(row: Row, key: bytes | None) -> None:
    row["key_type"] = TRANSACTION_MARKER
    row["key_version"] = _version(key)
    kind = parse_control_record_type(key)
    if kind not in _MARKERS:
        raise CorruptRecord(f"control record type {kind} is not known")
    row["marker"] = _MARKERS[kind]


def _key(row: Row, key: bytes | None, value: bytes | None) -> None:
    version = row["key_version"] = _version(key)
    if key is None:
        row["key_type"] = NULL_KEY
    elif version in (0, 1):
        row["key_type"] = OFFSET_COMMIT
    elif version == 2:
        row["key_type"] = GROUP_METADATA
    else:
        row["key_type"] = UNKNOWN
    if row["key_type"] in (OFFSET_COMMIT, GROUP_METADATA):
        row["value_version"] = _version(value)
    record = decode_key_and_value(key, None)
    if isinstance(record, OffsetCommitRecord):
        row.update(group=record.group, topic=record.topic, topic_partition=record.partition)
    elif isinstance(record, GroupMetadataRecord):
        row["group"] = record.group


def _value(row: Row, value: bytes | None) -> None:
    if value is None:
        return
    if row["key_type"] == OFFSET_COMMIT:
        commit = decode_offset(value)
        row.update(
            committed_offset=commit.offset,
            committed_leader_epoch=commit.leader_epoch,
            metadata=commit.metadata,
            metadata_bytes=len(commit.metadata.encode()),
            commit_timestamp=commit.commit_timestamp,
            expire_timestamp=commit.expire_timestamp,
            topic_id=None if commit.topic_id is None else encode_uuid(commit.topic_id),
        )
    elif row["key_type"] == GROUP_METADATA:
        group = decode_group_metadata(value)
        row.update(
            protocol_type=group.protocol_type,
            generation=group.generation,
            protocol=group.protocol,
            leader=group.leader,
            state_timestamp=group.current_state_timestamp,
            members=[_member(member) for member in group.members],
        )


def _member(member: MemberValue) -> Row:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "session_timeout": member.session_timeout,
        "rebalance_timeout": member.rebalance_timeout,
    }
