# SPDX-License-Identifier: Apache-2.0
"""The rows of one range as numpy arrays, each made once, on first use."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

HOUR_MS: Final = 3_600_000

NEEDED: Final = (
    "file", "partition", "position", "batch_bytes", "base_offset", "last_offset", "leader_epoch", "producer_id",
    "transactional", "control", "crc_ok", "damage", "tail", "max_timestamp", "offset", "timestamp", "key_type",
    "key_version", "group", "topic", "topic_partition", "committed_offset", "committed_leader_epoch", "metadata",
    "metadata_bytes", "commit_timestamp", "expire_timestamp", "protocol_type", "generation", "protocol", "leader",
    "state_timestamp", "members", "tombstone", "marker", "raw_key", "problem",
)  # fmt: skip
"""The columns of the log's rows that the fold reads."""


class FoldInputRows:
    """The rows of one file in the order of the log.

    `place` is (partition, file, segment, position), the last being the byte of the first batch.
    """

    def __init__(self, table: pa.Table, place: tuple[int, str, int, int]) -> None:
        self.table = table.combine_chunks()
        self.place = place
        self.count = table.num_rows
        self._longs: dict[str, Longs] = {}
        self._bools: dict[str, Bools] = {}

    @property
    def partition_number(self) -> int:
        """The partition of the log to which the rows belong."""
        return self.place[0]

    def get_arrow_column(self, name: str) -> pa.Array:
        """Return the Arrow array of a column, with a dictionary or without."""
        column = self.table[name]
        return column.chunk(0) if column.num_chunks else pa.array([], column.type)

    def longs(self, name: str, null: int = -1) -> Longs:
        """Return a column of integers, with `null` for missing values."""
        if name not in self._longs:
            array = self.get_arrow_column(name)
            if array.null_count:
                array = pc.fill_null(array, pa.scalar(null, array.type))
            self._longs[name] = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        return self._longs[name]

    def bools(self, name: str, *, null: bool = False) -> Bools:
        """Return a column of booleans, with `null` for missing values."""
        if name not in self._bools:
            array = self.get_arrow_column(name)
            if array.null_count:
                array = pc.fill_null(array, null)
            self._bools[name] = array.to_numpy(zero_copy_only=False)
        return self._bools[name]

    def non_null_mask(self, name: str) -> Bools:
        """Return the mask of rows in which the column has a value."""
        array = self.table[name].combine_chunks()
        if not array.null_count:
            return np.ones(self.count, np.bool_)
        mask: Bools = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return mask

    def equality_mask(self, name: str, text: str) -> Bools:
        """Return the mask of rows in which a column of strings has this value."""
        array = self.get_arrow_column(name)
        if pa.types.is_dictionary(array.type):
            array = pc.equal(
                array.indices, pc.index(array.dictionary, pa.scalar(text)).cast(array.indices.type)
            )
        else:
            array = pc.equal(array, text)
        result: Bools = pc.fill_null(array, False).to_numpy(zero_copy_only=False)
        return result

    def column_values_at(self, name: str, rows: Longs) -> pa.Array:
        """Return the column's values in these rows; strings have no dictionary."""
        taken = self.get_arrow_column(name).take(pa.array(rows))
        return taken.dictionary_decode() if pa.types.is_dictionary(taken.type) else taken

    def encode_column_as_dictionary(self, name: str, rows: Longs) -> tuple[Longs, pa.Array]:
        """Return the same as the function `encode_dictionary`, for a column in these rows."""
        return encode_dictionary(self.get_arrow_column(name).take(pa.array(rows)))

    def value_at(self, name: str, row: int) -> Any:
        """Return one value as a Python object."""
        return self.table[name][int(row)].as_py()


def encode_dictionary(array: pa.Array) -> tuple[Longs, pa.Array]:
    """Return a number for each value, which must not be null, and the values by that number."""
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), encoded.dictionary


def combine_keys(parts: Sequence[Longs]) -> Longs:
    """Return one number for each row, which is equal for rows that are equal in all parts."""
    result = np.zeros(len(parts[0]), np.int64)
    width = 1
    for part in parts:
        values = part
        low = int(values.min(initial=0))
        span = int(values.max(initial=0)) - low + 1
        if span > len(values) + 65_536:  # far apart: renumber them
            _, values = np.unique(values, return_inverse=True)
            low, span = 0, int(values.max(initial=0)) + 1
        if width * span >= 1 << 62:
            _, result = np.unique(result, return_inverse=True)
            width = int(result.max(initial=0)) + 1
        result = result * span + (values - low)
        width *= span
    return result


class RowsByKey:
    """Rows sorted by key and, within a key, in their order: `order` has the rows, `starts` where each key begins."""

    def __init__(self, keys: Longs) -> None:
        self.order: Longs = np.argsort(keys, kind="stable")
        ordered = keys[self.order]
        self.new: Bools = np.ones(len(keys), np.bool_)
        self.new[1:] = ordered[1:] != ordered[:-1]
        self.starts: Longs = np.flatnonzero(self.new)
        self.first: Longs = self.order[self.starts]
        self.last: Longs = self.order[np.append(self.starts[1:], len(keys)) - 1] if len(keys) else self.first
        self.sizes: Longs = np.diff(np.append(self.starts, len(keys)))

    def sums(self, ordered: npt.NDArray[Any]) -> Longs:
        """Return the sum of values, given in the order of `order`, for each key."""
        if not len(self.starts):
            return np.zeros(0, np.int64)
        return np.add.reduceat(ordered.astype(np.int64), self.starts)

    def first_where(self, ordered: Bools) -> tuple[Longs, Longs]:
        """Return the keys with a true value, by their index in `starts`, and each first one's index in `order`."""
        places = np.flatnonzero(ordered)
        keys = np.searchsorted(self.starts, places, "right") - 1
        which, at = np.unique(keys, return_index=True)
        return which, places[at]
