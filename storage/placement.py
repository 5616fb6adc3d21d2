# SPDX-License-Identifier: Apache-2.0
"""Which partition of `__consumer_offsets` a group lives in."""

from functools import lru_cache
from typing import Final

from protocol.java import java_string_hash

CACHED_ID_LENGTH_MAX: Final = 128
"""Of longer group ids the partition is found anew each time: some thousands of them would fill the memory."""


def partition_for(group_id: str, num_partitions: int) -> int:
    """abs(hashCode) modulo the number of partitions; abs of the smallest int counts as 0 (Utils.abs)."""
    if len(group_id) > CACHED_ID_LENGTH_MAX:
        return _partition_for.__wrapped__(group_id, num_partitions)
    return _partition_for(group_id, num_partitions)


@lru_cache(maxsize=1 << 16)
def _partition_for(group_id: str, num_partitions: int) -> int:
    hashed = java_string_hash(group_id)
    return (0 if hashed == -(1 << 31) else abs(hashed)) % num_partitions
