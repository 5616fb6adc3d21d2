# SPDX-License-Identifier: Apache-2.0
"""Decodes the pieces of a chunk into rows in Arrow columns: most records in bulk, rare ones one by one."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from protocol.newtypes import Offset
from storage.columns.batch_finder import Chunk
from storage.columns.batches import BatchColumns
from storage.columns.numbers import Bools, Longs
from storage.columns.record_by_record_decoder import Row, record_row
from storage.columns.record_columns import Keys, Values, offset_keys, offset_values, read_record_fields
from storage.columns.record_finder import BOUNDS, BulkReadLimits, ChunkRows, find_records
from storage.columns.schema import BATCH_COLUMNS, KEY_TYPES, OFFSET_COMMIT, RECORD_COLUMNS
from storage.disk.properties import encode_uuid

_TOPIC_ID_BYTES: Final = 16


def decode(chunk: Chunk, columns: Sequence[str], bounds: BulkReadLimits = BOUNDS) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a chunk, in the order of the log, with the columns of these names.

    Columns of repeated values have a dictionary: groups, topics, topic ids, compression and type of key.
    """
    batches = BatchColumns(chunk)
    first = 0
    while first < len(chunk.starts):
        slowly: set[int] = set()
        decoded = _Decoded(batches, find_records(chunk, batches, first, slowly, bounds))
        # Seldom: the slow way reports the errors of these pieces.
        while decoded.damaged:
            slowly |= decoded.damaged
            decoded = _Decoded(batches, find_records(chunk, batches, first, slowly, bounds))
        yield pa.RecordBatch.from_arrays([decoded.column(name) for name in columns], list(columns))
        first = decoded.bodies.stop


class _Decoded:
    """The rows of some pieces; a column is made when it is requested."""

    def __init__(self, batches: BatchColumns, bodies: ChunkRows) -> None:
        self.bodies = bodies
        self._batches = batches
        self._buffer = bodies.buffer
        self._records = read_record_fields(self._buffer, bodies.starts, bodies.ends)
        self._bulk: Bools = bodies.ends >= 0
        bad = np.unique(bodies.pieces[self._bulk & ~self._records.good])
        odd = np.flatnonzero(
            (batches.base_offset < 0) | (batches.last_offset < batches.base_offset) | batches.is_far
        )
        self.damaged: set[int] = {*bad.tolist(), *odd.tolist()} & set(bodies.pieces[self._bulk].tolist())
        """The pieces whose records cannot be read in bulk."""

    # ---------------------------------------------------------- the records of offsets

    @cached_property
    def _offset(self) -> Longs:
        offset: Longs = self._batches.base_offset[self.bodies.pieces] + self._records.offset_delta
        return offset

    @cached_property
    def _timestamp(self) -> Longs:
        pieces, batches = self.bodies.pieces, self._batches
        own = batches.base_timestamp[pieces] + self._records.timestamp_delta
        return np.where(batches.is_log_append_time[pieces], batches.max_timestamp[pieces], own)

    @cached_property
    def _keys(self) -> Keys:
        keys = offset_keys(self._buffer, self._records)
        keys.good &= self._bulk & ~self._batches.is_control[self.bodies.pieces]
        return keys

    @cached_property
    def _values(self) -> Values:
        return offset_values(self._buffer, self._records, self._keys.good)

    @cached_property
    def _good(self) -> Bools:
        return self._values.good

    @cached_property
    def _present(self) -> Bools:
        """True for rows of offsets that are no tombstones."""
        return self._good & (self._records.value_size >= 0)

    # ---------------------------------------------------------- the other records

    @cached_property
    def _slow(self) -> list[Row]:
        """The content of the rows that are not offsets in a good form."""
        return [self._slow_row(row) for row in self._slow_at.tolist()]

    @cached_property
    def _slow_at(self) -> Longs:
        return np.flatnonzero(~self._good)

    def _slow_row(self, row: int) -> Row:
        found = self.bodies.slow.get(row)
        if found is not None:
            return found
        record = (
            Offset(int(self._offset[row])),
            int(self._timestamp[row]),
            self._bytes("key", row),
            self._bytes("value", row),
        )
        return record_row(record, control=bool(self._batches.is_control[self.bodies.pieces[row]]))

    def _bytes(self, which: str, row: int) -> bytes | None:
        start = int(getattr(self._records, which)[row])
        size = int(getattr(self._records, f"{which}_size")[row])
        return None if size < 0 else self._buffer.data[start : start + size]

    # ---------------------------------------------------------- columns

    def column(self, name: str) -> pa.Array:
        """Return a column by its name in BATCH_COLUMNS or RECORD_COLUMNS."""
        if name in BATCH_COLUMNS.names:
            return self._batches.column(name, self.bodies.pieces, self.bodies.damages)
        if name in self._numbers_of_offsets:
            return self._numbers(name, *self._numbers_of_offsets[name])
        other = {
            "group": self._groups,
            "topic": self._topics,
            "metadata": lambda: self._metadata,
            "metadata_bytes": lambda: pc.binary_length(self._metadata),
            "topic_id": self._topic_ids,
            "key_type": self._key_types,
        }
        return other[name]() if name in other else self._rare(name)

    @cached_property
    def _numbers_of_offsets(self) -> dict[str, tuple[Longs, Bools]]:
        """The columns with numbers: their values in rows of offsets, and the rows that have one."""
        keys, values, good, present = self._keys, self._values, self._good, self._present
        return {
            "offset": (self._offset, good),
            "timestamp": (self._timestamp, good),
            "key_version": (keys.version, good),
            "topic_partition": (keys.partition, good),
            "tombstone": ((good & ~present).astype(np.int64), good),
            "value_version": (values.version, present),
            "committed_offset": (values.offset, present),
            "committed_leader_epoch": (values.leader_epoch, present),
            "commit_timestamp": (values.commit_timestamp, present),
            "expire_timestamp": (values.expire_timestamp, present & (values.expire_timestamp != -1)),
        }

    def _groups(self) -> pa.Array:
        return self._names("group", self._keys.group, self._keys.group_size)

    def _topics(self) -> pa.Array:
        return self._names("topic", self._keys.topic, self._keys.topic_size)

    def _rare_values(self, name: str) -> pa.Array:
        return pa.array([row.get(name) for row in self._slow], RECORD_COLUMNS.field(name).type)

    def _rare(self, name: str) -> pa.Array:
        """Return a column that has no values in rows of offsets."""
        count = len(self._good)
        if not self._slow:
            return pa.nulls(count, RECORD_COLUMNS.field(name).type)
        return self._rare_values(name).take(self._slow_index)

    @cached_property
    def _slow_index(self) -> pa.Array:
        """The index of each slow row in `_slow`; null for the others."""
        index = np.zeros(len(self._good), np.int32)
        index[self._slow_at] = np.arange(len(self._slow_at))
        return pa.array(index, mask=self._good)

    def _numbers(self, name: str, values: Longs, valid: Bools) -> pa.Array:
        kind = RECORD_COLUMNS.field(name).type
        if self._slow:
            found = [(at, row[name]) for at, row in self._slow_items() if row.get(name) is not None]
            if found:
                values, valid = values.copy(), valid.copy()
                at = [place for place, _ in found]
                values[at] = [value for _, value in found]
                valid[at] = True
        return pa.array(values, mask=None if valid.all() else ~valid).cast(kind)

    def _slow_items(self) -> Iterator[tuple[int, Row]]:
        return zip(self._slow_at.tolist(), self._slow, strict=True)

    def _texts(self, name: str, starts: Longs, sizes: Longs, where: Bools) -> pa.Array:
        """Return a column of texts as bytes, of rows of offsets and of the slow rows."""
        texts = self._buffer.strings(starts, sizes, where)
        if self._slow and any(name in row for row in self._slow):
            mask = pa.array(~self._good)
            texts = pc.replace_with_mask(texts, mask, self._rare_values(name).cast(pa.binary()))
        return texts

    def _names(self, name: str, starts: Longs, sizes: Longs) -> pa.Array:
        encoded = self._texts(name, starts, sizes, self._good).dictionary_encode()
        return pa.DictionaryArray.from_arrays(encoded.indices, _as_text(encoded.dictionary))

    @cached_property
    def _metadata(self) -> pa.Array:
        values = self._values
        return _as_text(self._texts("metadata", values.metadata, values.metadata_size, self._present))

    def _topic_ids(self) -> pa.Array:
        where = self._good & (self._values.topic_id > 0)
        sizes = np.full(len(where), _TOPIC_ID_BYTES, np.int64)
        encoded = self._buffer.strings(self._values.topic_id, sizes, where).dictionary_encode()
        texts = [encode_uuid(value) if any(value) else None for value in encoded.dictionary.to_pylist()]
        plain = pa.array(texts, pa.string()).take(encoded.indices)
        if self._slow and any(row.get("topic_id") for row in self._slow):
            plain = pc.replace_with_mask(plain, pa.array(~self._good), self._rare_values("topic_id"))
        return plain.dictionary_encode()

    def _key_types(self) -> pa.Array:
        index = np.full(len(self._good), KEY_TYPES.index(OFFSET_COMMIT), np.int32)
        mask = np.zeros(len(self._good), np.bool_)
        for at, row in self._slow_items():
            kind = row.get("key_type")
            if kind is None:
                mask[at] = True
            else:
                index[at] = KEY_TYPES.index(kind)
        return pa.DictionaryArray.from_arrays(pa.array(index, mask=mask), pa.array(KEY_TYPES))


def _as_text(values: pa.Array) -> pa.Array:
    """Return bytes as strings; invalid UTF-8 becomes U+FFFD, as in Java."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if value is None else value.decode("utf-8", "replace") for value in values.to_pylist()]
        return pa.array(texts, pa.string())
