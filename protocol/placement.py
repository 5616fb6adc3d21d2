# SPDX-License-Identifier: Apache-2.0
"""Which partition of `__consumer_offsets` a group lives in."""

from protocol.java import java_string_hash
from protocol.names import GroupId, Partition


def partition_for(group_id: GroupId, num_partitions: int) -> Partition:
    """abs(hashCode) modulo the number of partitions; abs of the smallest int counts as 0 (Utils.abs)."""
    hashed = java_string_hash(group_id)
    if hashed < 0:
        hashed = 0 if hashed == -(1 << 31) else -hashed
    return Partition(hashed % num_partitions)
