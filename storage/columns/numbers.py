# SPDX-License-Identifier: Apache-2.0
"""Many numbers and strings at once out of one buffer, each from a position of its own."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

PADDING: Final = 16
"""So many bytes behind the last one can be read without looking, as zeros."""
VARINT_BYTES_MAX: Final = 9
"""A varint of ten bytes, which hardly anybody writes, is left to the slow way: it does not fit 63 bits."""


class Buffer:
    """Bytes to read from. A position outside of them reads zeros, so ask first what may be believed."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._bytes = np.frombuffer(data + bytes(PADDING), np.uint8)
        self.size = len(data)
        self._shorts = self._view("<i2")
        self._ints = self._view("<i4")
        self._longs = self._view("<i8")

    def _view(self, dtype: str) -> npt.NDArray[Any]:
        # A number at every position: they overlap. Little-endian only because numpy gathers these faster.
        size = np.dtype(dtype).itemsize
        return np.ndarray((len(self._bytes) - size + 1,), dtype, self._bytes, strides=(1,))

    def _inside(self, positions: Longs) -> Longs:
        if len(positions) and (int(positions.max()) > self.size or int(positions.min()) < 0):
            return np.where((positions < 0) | (positions > self.size), self.size, positions)
        return positions

    def int8(self, positions: Longs) -> Longs:
        """The byte at each position, without a sign."""
        return self._bytes[self._inside(positions)].astype(np.int64)

    def int16(self, positions: Longs) -> Longs:
        """INT16, big-endian."""
        return self._shorts[self._inside(positions)].byteswap().astype(np.int64)

    def int32(self, positions: Longs) -> Longs:
        """INT32, big-endian."""
        return self._ints[self._inside(positions)].byteswap().astype(np.int64)

    def int64(self, positions: Longs) -> Longs:
        """INT64, big-endian."""
        values: Longs = self._longs[self._inside(positions)].byteswap()
        return values

    def uvarint(self, positions: Longs) -> tuple[Longs, Longs, Bools]:
        """Unsigned varints, where each ends, and which of them can be believed."""
        value = self.int8(positions)
        end = positions + 1
        more = np.flatnonzero(value >= 0x80)
        good = np.ones(len(positions), np.bool_)
        value[more] &= 0x7F
        for shift in range(7, 7 * VARINT_BYTES_MAX, 7):
            if not len(more):
                return value, end, good
            byte = self.int8(end[more])
            value[more] |= (byte & 0x7F) << shift
            end[more] += 1
            more = more[byte >= 0x80]
        good[more] = False
        return value, end, good

    def zigzag(self, positions: Longs) -> tuple[Longs, Longs, Bools]:
        """Signed varints, as `uvarint`."""
        value, end, good = self.uvarint(positions)
        return (value >> 1) ^ -(value & 1), end, good

    def strings(self, starts: Longs, sizes: Longs, where: Bools) -> pa.Array:
        """So many bytes from each start, binary, for where there are some that do not overlap; elsewhere null."""
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
        # One long array of strings and the gaps between them, of which nothing is copied but what is taken.
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._bytes)]
        both = pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)
        index = np.zeros(len(where), np.int32)
        index[picked] = np.arange(0, len(offsets), 2)
        mask = None if len(picked) == len(where) else ~where
        return both.take(pa.array(index, mask=mask))
