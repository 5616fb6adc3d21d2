# SPDX-License-Identifier: Apache-2.0
"""The items of a long array as rows of bytes of one size, so that all of them are processed at once.

Hardly one of a hundred offsets has metadata. So their items have one size on the wire, as have their records in the log
and the responses to them, with the same fields at other places. A slice with a step takes one byte of every row: a few
dozen slices convert all rows from one form to another, although a hundred items have a thousand values.
"""

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Any, Final

from protocol.mypyc_shim import mypyc_attr


@mypyc_attr(acyclic=True)
class EncodedRows:
    """Rows of `row_bytes` bytes, one after the other; each begins with fields of fixed size, the rest is ignored."""

    __slots__ = ("count", "data", "row_bytes")

    def __init__(self, data: bytes, row_bytes: int) -> None:
        self.data: Final = data
        self.row_bytes: Final = row_bytes
        self.count: Final = len(data) // row_bytes

    def unpack(self, fmt: str) -> Iterator[Any]:
        """Yield a tuple for each row with its first fields, big-endian, by their format for `struct`."""
        return _row(fmt, self.row_bytes).iter_unpack(self.data)

    def slice_rows(self, start: int, stop: int) -> "EncodedRows":
        """Return the rows with the numbers from `start` to the one before `stop`."""
        return EncodedRows(self.data[start * self.row_bytes : stop * self.row_bytes], self.row_bytes)

    def copy_columns_into(
        self, column_start: int, column_end: int, out: bytearray, at: int, out_row_bytes: int
    ) -> None:
        """Copy the bytes from `column_start` to before `column_end` of every row to `at` in the same row of `out`.

        The rows of `out` have `out_row_bytes` bytes.
        """
        data, row_bytes = (
            bytearray(self.data),
            self.row_bytes,
        )  # slices of bytes would be converted at each step
        for place in range(column_start, column_end):
            out[at::out_row_bytes] = data[place::row_bytes]
            at += 1

    def to_bytes_by_template(self, width: int, item: bytes) -> bytes:
        """Return one copy of `item` for every row, in which the row's first `width` bytes replace those of `item`."""
        size_bytes = len(item)
        if self.row_bytes == size_bytes:
            out = bytearray(self.data)
            for at in range(width, size_bytes):
                out[at::size_bytes] = bytearray(item[at : at + 1] * self.count)
        else:
            out = bytearray(item * self.count)
            self.copy_columns_into(0, width, out, 0, size_bytes)
        return bytes(out)


@lru_cache(maxsize=64)
def _row(fmt: str, row_bytes: int) -> Struct:
    fields = Struct(">" + fmt)
    return Struct(f"{fields.format}{row_bytes - fields.size}x")


def read_rows_if_uniform(buf: bytes, pos: int, count: int, width: int, tail: bytes) -> EncodedRows | None:
    """Return the `count` items at `pos` as rows if each has just `width` bytes and then `tail`, else None."""
    row_bytes = width + len(tail)
    data = buf[pos : pos + count * row_bytes]
    for at, byte in enumerate(tail, width):
        if data[at::row_bytes].count(byte) != count:
            return None
    return EncodedRows(data, row_bytes)
