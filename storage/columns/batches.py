# SPDX-License-Identifier: Apache-2.0
"""The columns of batches: the headers of all pieces of a chunk, read at once."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from storage.columns.batch_finder import Chunk
from storage.columns.numbers import Bools, BulkReader, Longs
from storage.columns.schema import BATCH_COLUMNS
from storage.format.batch import read_unchecked_batch
from storage.format.batch_format import (
    ATTRIBUTES_AT,
    BASE_OFFSET_AT,
    BASE_TIMESTAMP_AT,
    COMPRESSION_MASK,
    CONTROL,
    COUNT_AT,
    LAST_OFFSET_DELTA_AT,
    LEADER_EPOCH_AT,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    PRODUCER_EPOCH_AT,
    PRODUCER_ID_AT,
    TRANSACTIONAL,
)
from storage.format.compression import NAMES

COMPRESSIONS = pa.array(
    [*NAMES, *(f"unknown ({number})" for number in range(len(NAMES), COMPRESSION_MASK + 1))]
)

_FAR = 1 << 62


class BatchColumns:
    """The columns of a chunk's pieces: each attribute is an array with one value per piece."""

    def __init__(self, chunk: Chunk) -> None:
        self.buffer = BulkReader(chunk.data)
        starts = np.array(chunk.starts, np.int64)
        read = self.buffer
        placed = chunk.positions is not None
        self.position: Longs = np.array(chunk.positions, np.int64) if placed else starts + chunk.position
        # Damage can be longer than its column's 32 bits.
        self.batch_bytes: Longs = np.minimum(np.array(chunk.ends, np.int64) - starts, (1 << 31) - 1)
        self.base_offset = read.int64(starts + BASE_OFFSET_AT)
        self.leader_epoch = read.int32(starts + LEADER_EPOCH_AT)
        self.magic = read.unsigned_bytes(starts + MAGIC_AT)
        self.attributes = read.int16(starts + ATTRIBUTES_AT)
        self.last_offset: Longs = self.base_offset + read.int32(starts + LAST_OFFSET_DELTA_AT)
        self.base_timestamp = read.int64(starts + BASE_TIMESTAMP_AT)
        self.max_timestamp = read.int64(starts + MAX_TIMESTAMP_AT)
        self.producer_id = read.int64(starts + PRODUCER_ID_AT)
        self.producer_epoch = read.int16(starts + PRODUCER_EPOCH_AT)
        self.has_header: Bools = np.ones(len(starts), np.bool_)
        self._damages = chunk.damages
        for index, damage in chunk.damages.items():
            self.has_header[index] = damage.header
        for index in np.flatnonzero(self.has_header & (self.magic != MAGIC)).tolist():
            self._old(index, chunk.data[chunk.starts[index] : chunk.ends[index]])
        self.count = read.int32(starts + COUNT_AT)
        self.is_control: Bools = self.attributes & CONTROL != 0
        """True if the batch holds a marker."""
        self.is_log_append_time: Bools = self.attributes & LOG_APPEND_TIME != 0
        """True if the batch's own time counts instead of its records'."""
        self.is_far: Bools = (
            (self.base_offset >= _FAR) | (self.base_timestamp >= _FAR) | (self.base_timestamp <= -_FAR)
        )
        """True if offsets or timestamps are so near the limit of 64 bits that a sum might not fit."""

    def _old(self, index: int, data: bytes) -> None:
        """Set the fields of a message of an older format, which are elsewhere in it, or missing."""
        message = read_unchecked_batch(data)
        self.leader_epoch[index] = message.leader_epoch
        self.attributes[index] = message.attributes
        self.last_offset[index] = message.last_offset
        self.base_timestamp[index] = message.base_timestamp
        self.max_timestamp[index] = message.max_timestamp
        self.producer_id[index] = message.producer_id
        self.producer_epoch[index] = message.producer_epoch

    def column(self, name: str, pieces: Longs, damages: Mapping[int, str]) -> pa.Array:
        """Return a column of BATCH_COLUMNS, with one value for each of `pieces`.

        `damages` are the errors of pieces that were found after the chunk was made.
        """
        kind = BATCH_COLUMNS.field(name).type
        match name:
            case "position" | "batch_bytes":
                return pa.array(getattr(self, name)[pieces]).cast(kind)
            case "damage":
                return self._damage(pieces, damages)
            case "tail":
                tails = [index for index, damage in self._damages.items() if damage.reason is None]
                return pa.array(np.isin(pieces, tails)) if tails else pa.repeat(pa.scalar(False), len(pieces))
            case "crc_ok":
                return self._crc_ok(pieces)
            case "compression":
                values: Longs = self.attributes & COMPRESSION_MASK
            case "transactional":
                values = self.attributes & TRANSACTIONAL
            case "control":
                values = self.attributes & CONTROL
            case _:
                values = getattr(self, name)
        mask = None if self.has_header.all() else ~self.has_header[pieces]
        if kind == pa.bool_():
            return pa.array(values[pieces] != 0, mask=mask)
        if name == "compression":
            return pa.DictionaryArray.from_arrays(
                pa.array(values[pieces].astype(np.int32), mask=mask), COMPRESSIONS
            )
        return pa.array(values[pieces], mask=mask).cast(kind)

    def _damage(self, pieces: Longs, damages: Mapping[int, str]) -> pa.Array:
        reasons = {**{index: damage.reason for index, damage in self._damages.items()}, **damages}
        if not reasons:
            return pa.nulls(len(pieces), pa.string())
        return pa.array([reasons.get(piece) for piece in pieces.tolist()], pa.string())

    def _crc_ok(self, pieces: Longs) -> pa.Array:
        if not self._damages:
            return pa.repeat(pa.scalar(True), len(pieces))
        known = {index: damage.crc_ok for index, damage in self._damages.items()}
        return pa.array([known.get(piece, True) for piece in pieces.tolist()], pa.bool_())
