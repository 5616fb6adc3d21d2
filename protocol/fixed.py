# SPDX-License-Identifier: Apache-2.0
"""Integers of a fixed size, for the few that every request has: compiled, each is some shifts.

A Struct, which is quicker for many at once and where nothing is compiled, is a call out of the compiled code that makes
a tuple.
"""

from protocol.mypyc_shim import i64


def int16_at(data: bytes, pos: int) -> int:
    """Return the int16 at `pos`, big-endian, with its sign. Raises IndexError where the bytes end before."""
    high: i64 = data[pos]
    low: i64 = data[pos + 1]
    value: i64 = high << 8 | low
    return value - ((value & 0x8000) << 1)


def int32_at(data: bytes, pos: int) -> int:
    """Return the int32 at `pos`, big-endian, with its sign. Raises IndexError where the bytes end before."""
    first: i64 = data[pos]
    second: i64 = data[pos + 1]
    third: i64 = data[pos + 2]
    fourth: i64 = data[pos + 3]
    value: i64 = first << 24 | second << 16 | third << 8 | fourth
    return value - ((value & 0x80000000) << 1)
