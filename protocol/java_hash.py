# SPDX-License-Identifier: Apache-2.0
"""Java's hash of a string and its order of a hash map's keys, on which Kafka's responses depend."""

from collections.abc import Collection

from protocol.mypyc_shim import i64


def java_string_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 code units, in 32 bits, signed."""
    result: i64 = 0
    if text.isascii():  # the case of nearly every request
        data = text.encode()
        for at in range(len(data)):
            byte: i64 = data[at]
            result = (result * 31 + byte) & 0xFFFFFFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for at in range(0, len(units), 2):
            unit: i64 = units[at] << 8 | units[at + 1]
            result = (result * 31 + unit) & 0xFFFFFFFF
    return result - (1 << 32) if result >= 1 << 31 else result


def hash_map_order(keys: Collection[str]) -> list[str]:
    """Return the keys in the order of a java.util.HashMap into which they were put in this order.

    They are ordered by bucket of a table that doubles once it is three quarters full, within a bucket as given.
    """
    capacity = 16
    while len(keys) * 4 > capacity * 3:
        capacity *= 2

    def bucket(key: str) -> int:
        hashed = java_string_hash(key) & 0xFFFFFFFF
        return (hashed ^ hashed >> 16) & (capacity - 1)

    return sorted(keys, key=bucket)
