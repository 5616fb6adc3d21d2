# SPDX-License-Identifier: Apache-2.0
"""Reads records in bulk: the envelope of each, and the keys and values of offsets in every version.

A record that these functions cannot read is not `good`: `record_by_record_decoder` reads it, or reports its error.
"""

import msgspec
import numpy as np

from storage.columns.numbers import Bools, BulkReader, Longs

_DELTA_MAX = 1 << 61
"""The limit of the deltas of offsets and timestamps; a larger one is damage."""


class RecordFields(msgspec.Struct):
    """The starts of keys and values, and their sizes (negative: null). Records that are not `good` are damaged."""

    timestamp_delta: Longs
    offset_delta: Longs
    key: Longs
    key_size: Longs
    value: Longs
    value_size: Longs
    good: Bools


class Keys(msgspec.Struct):
    """The parts of each offset's key, valid if it is `good`."""

    version: Longs
    group: Longs
    group_size: Longs
    topic: Longs
    topic_size: Longs
    partition: Longs
    good: Bools


class Values(msgspec.Struct):
    """The parts of each offset's value, if it is `good` and not null. `topic_id` is the id's position, or 0."""

    version: Longs
    offset: Longs
    leader_epoch: Longs
    metadata: Longs
    metadata_size: Longs
    commit_timestamp: Longs
    expire_timestamp: Longs
    topic_id: Longs
    good: Bools


def read_record_fields(buffer: BulkReader, starts: Longs, ends: Longs) -> RecordFields:
    """Read the fields of records; `starts` are the positions behind their sizes, `ends` where they end."""
    timestamp_delta, position, good = buffer.signed_varints_at(starts + 1)
    offset_delta, position, fine = buffer.signed_varints_at(position)
    good &= fine
    key_size, key, fine = buffer.signed_varints_at(position)
    good &= fine
    value_size, value, fine = buffer.signed_varints_at(key + np.maximum(key_size, 0))
    good &= (np.abs(timestamp_delta) < _DELTA_MAX) & (np.abs(offset_delta) < _DELTA_MAX)
    good &= fine & (value + np.maximum(value_size, 0) <= ends) & (key_size <= ends) & (value_size <= ends)
    return RecordFields(timestamp_delta, offset_delta, key, key_size, value, value_size, good)


def offset_keys(buffer: BulkReader, records: RecordFields) -> Keys:
    """Read the keys; only the keys of offsets, versions 0 and 1, are `good`."""
    end = records.key + records.key_size
    version = buffer.int16(records.key)
    group = records.key + 4
    group_size = buffer.int16(records.key + 2)
    topic = group + group_size + 2
    topic_size = buffer.int16(topic - 2)
    at = topic + topic_size
    good = records.good & (records.key_size >= 2) & ((version == 0) | (version == 1))
    good &= (group_size >= 0) & (topic_size >= 0) & (topic <= end) & (at + 4 <= end)
    return Keys(version, group, group_size, topic, topic_size, buffer.int32(at), good)


def offset_values(buffer: BulkReader, records: RecordFields, wanted: Bools) -> Values:
    """Read the values of the records that are `wanted`; a null value is good as well."""
    count = len(wanted)
    none = np.full(count, -1, np.int64)
    values = Values(
        version=none.copy(),
        offset=none.copy(),
        leader_epoch=none.copy(),
        metadata=np.zeros(count, np.int64),
        metadata_size=np.zeros(count, np.int64),
        commit_timestamp=none.copy(),
        expire_timestamp=none.copy(),
        topic_id=np.zeros(count, np.int64),
        good=wanted & (records.value_size < 0),
    )
    present = wanted & (records.value_size >= 2)
    version = buffer.int16(records.value)
    for number in range(5):
        rows = np.flatnonzero(present & (version == number))
        if len(rows):
            start = records.value[rows]
            _values(buffer, number, start, start + records.value_size[rows], rows, values)
    return values


def _values(buffer: BulkReader, version: int, start: Longs, end: Longs, rows: Longs, out: Values) -> None:
    """Read values of one version into the rows of `out`."""
    position = start + 10
    if version >= 3:
        out.leader_epoch[rows] = buffer.int32(position)
        position = position + 4
    good = np.ones(len(rows), np.bool_)
    if version == 4:
        size, metadata, good = buffer.unsigned_varints_at(position)
        size = size - 1
    else:
        size, metadata = buffer.int16(position), position + 2
    good &= size >= 0
    time = metadata + np.clip(size, 0, end - start)
    position = time + 8
    if version == 1:
        out.expire_timestamp[rows] = buffer.int64(position)
        position = position + 8
    if version == 4:
        topic_id, position, fine = _tags(buffer, position)
        out.topic_id[rows] = topic_id
        good &= fine
    out.version[rows] = version
    out.offset[rows] = buffer.int64(start + 2)
    out.metadata[rows] = metadata
    out.metadata_size[rows] = size
    out.commit_timestamp[rows] = buffer.int64(time)
    out.good[rows] = good & (size <= end - start) & (position <= end)


def _tags(buffer: BulkReader, position: Longs) -> tuple[Longs, Longs, Bools]:
    """Return the topic id's position, or 0; where the tagged fields end; whether they hold no other field."""
    count = buffer.unsigned_bytes(position)
    one = (
        (count == 1)
        & (buffer.unsigned_bytes(position + 1) == 0)
        & (buffer.unsigned_bytes(position + 2) == 16)
    )
    return np.where(one, position + 3, 0), position + np.where(one, 19, 1), one | (count == 0)
