# SPDX-License-Identifier: Apache-2.0
"""What Kafka's answers owe to Java: the hash of a string, and the order in which a hash map lists its keys."""

from collections.abc import Collection

from protocol.mypyc_shim import i64


def java_string_hash(text: str) -> int:
    """Java's String.hashCode: over UTF-16 code units, in 32 bits with a sign."""
    result: i64 = 0
    if text.isascii():  # what every request asks for
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
    """The keys as a java.util.HashMap lists them that they were put into in this order.

    By bucket of a table that doubles once it is three quarters full, within a bucket as they came.
    """
    capacity = 16
    while len(keys) * 4 > capacity * 3:
        capacity *= 2

    def bucket(key: str) -> int:
        hashed = java_string_hash(key) & 0xFFFFFFFF
        return (hashed ^ hashed >> 16) & (capacity - 1)

    return sorted(keys, key=bucket)
