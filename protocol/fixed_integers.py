# SPDX-License-Identifier: Apache-2.0
"""Reads single integers of a fixed size, of which every request has a few.

Compiled by mypyc, each read is a few shifts; a Struct would cost a call out of the compiled code, and a tuple. Without
compilation, or for many integers at once, a Struct is quicker.
"""

from protocol.mypyc_shim import i64


def int16_at(data: bytes, pos: int) -> int:
    """Return the int16 at `pos`, big-endian and signed. Raises IndexError if the bytes end before."""
    high: i64 = data[pos]
    low: i64 = data[pos + 1]
    value: i64 = high << 8 | low
    return value - ((value & 0x8000) << 1)


def int32_at(data: bytes, pos: int) -> int:
    """Return the int32 at `pos`, big-endian and signed. Raises IndexError if the bytes end before."""
    first: i64 = data[pos]
    second: i64 = data[pos + 1]
    third: i64 = data[pos + 2]
    fourth: i64 = data[pos + 3]
    value: i64 = first << 24 | second << 16 | third << 8 | fourth
    return value - ((value & 0x80000000) << 1)
