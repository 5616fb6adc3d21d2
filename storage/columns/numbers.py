# SPDX-License-Identifier: Apache-2.0
"""Reads many numbers and strings at once from one buffer, each at a position of its own."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PADDING: Final = 16
"""The zero bytes behind the last byte, which can be read without a check."""
VARINT_BYTES_MAX: Final = 9
"""The longest varint read here; a longer one, which is rare, does not fit 63 bits and is left to the slow way."""


class BulkReader:
    """A buffer to read from. A position outside of it reads zeros, so callers check the positions."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._bytes = np.frombuffer(data + bytes(PADDING), np.uint8)
        self.size = len(data)
        self._shorts = self._view("<i2")
        self._ints = self._view("<i4")
        self._longs = self._view("<i8")

    def _view(self, dtype: str) -> npt.NDArray[Any]:
        # One overlapping number per byte position. Little-endian only because numpy gathers these faster.
        size = np.dtype(dtype).itemsize
        return np.ndarray((len(self._bytes) - size + 1,), dtype, self._bytes, strides=(1,))

    def _inside(self, positions: Longs) -> Longs:
        if len(positions) and (int(positions.max()) > self.size or int(positions.min()) < 0):
            return np.where((positions < 0) | (positions > self.size), self.size, positions)
        return positions

    def unsigned_bytes(self, positions: Longs) -> Longs:
        """Return the unsigned byte at each position."""
        return self._bytes[self._inside(positions)].astype(np.int64)

    def int16(self, positions: Longs) -> Longs:
        """Return the big-endian INT16 at each position."""
        return self._shorts[self._inside(positions)].byteswap().astype(np.int64)

    def int32(self, positions: Longs) -> Longs:
        """Return the big-endian INT32 at each position."""
        return self._ints[self._inside(positions)].byteswap().astype(np.int64)

    def int64(self, positions: Longs) -> Longs:
        """Return the big-endian INT64 at each position."""
        values: Longs = self._longs[self._inside(positions)].byteswap()
        return values

    def unsigned_varints_at(self, positions: Longs) -> tuple[Longs, Longs, Bools]:
        """Return the unsigned varint at each position, where it ends, and whether it is valid."""
        value = self.unsigned_bytes(positions)
        end = positions + 1
        more = np.flatnonzero(value >= 0x80)
        good = np.ones(len(positions), np.bool_)
        value[more] &= 0x7F
        for shift in range(7, 7 * VARINT_BYTES_MAX, 7):
            if not len(more):
                return value, end, good
            byte = self.unsigned_bytes(end[more])
            value[more] |= (byte & 0x7F) << shift
            end[more] += 1
            more = more[byte >= 0x80]
        good[more] = False
        return value, end, good

    def signed_varints_at(self, positions: Longs) -> tuple[Longs, Longs, Bools]:
        """Return the signed varint at each position; see `unsigned_varints_at`."""
        value, end, good = self.unsigned_varints_at(positions)
        return (value >> 1) ^ -(value & 1), end, good

    def strings(self, starts: Longs, sizes: Longs, where: Bools) -> pa.Array:
        """Return a binary array: `sizes[i]` bytes from `starts[i]` if `where[i]` is true, else null.

        The strings must not overlap.
        """
        picked = np.flatnonzero(where)
        if not len(picked):
            return pa.nulls(len(where), pa.binary())
        begin = starts[picked]
        if np.any(begin[1:] < begin[:-1]):
            picked = picked[np.argsort(begin, kind="stable")]
            begin = starts[picked]
        offsets = np.empty(2 * len(picked), np.int32)
        offsets[0::2] = begin
        offsets[1::2] = begin + sizes[picked]
        # One long array of the strings and the gaps between them; only the strings are copied.
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._bytes)]
        both = pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)
        index = np.zeros(len(where), np.int32)
        index[picked] = np.arange(0, len(offsets), 2)
        mask = None if len(picked) == len(where) else ~where
        return both.take(pa.array(index, mask=mask))
