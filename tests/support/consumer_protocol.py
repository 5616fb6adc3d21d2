# SPDX-License-Identifier: Apache-2.0
"""What consumers send in JoinGroup and SyncGroup: ConsumerProtocol subscriptions and assignments, v0-v3."""

from collections.abc import Iterable, Mapping, Sequence

from protocol.wire import (
    NULL_INT16,
    NULL_INT32,
    PACK_INT16,
    PACK_INT32,
    array_struct,
    pack_bytes,
    pack_string,
)


def encode_subscription(
    topics: Iterable[str],
    *,
    version: int = 3,
    user_data: bytes | None = None,
    owned_partitions: Mapping[str, Sequence[int]] | None = None,
    generation_id: int = -1,
    rack_id: str | None = None,
) -> bytes:
    """Return an encoded subscription; fields that `version` does not have are left out."""
    names = list(topics)
    out = [PACK_INT16(version), PACK_INT32(len(names)), *map(pack_string, names)]
    out.append(NULL_INT32 if user_data is None else pack_bytes(user_data))
    if version >= 1:
        out.append(_pack_partitions(owned_partitions or {}))
    if version >= 2:
        out.append(PACK_INT32(generation_id))
    if version >= 3:
        out.append(NULL_INT16 if rack_id is None else pack_string(rack_id))
    return b"".join(out)


def encode_assignment(
    partitions: Mapping[str, Sequence[int]], *, version: int = 3, user_data: bytes | None = None
) -> bytes:
    """Return an encoded assignment; all versions have the same fields."""
    packed_data = NULL_INT32 if user_data is None else pack_bytes(user_data)
    return PACK_INT16(version) + _pack_partitions(partitions) + packed_data


def _pack_partitions(partitions: Mapping[str, Sequence[int]]) -> bytes:
    out = [PACK_INT32(len(partitions))]
    for topic, indexes in partitions.items():
        out += (pack_string(topic), PACK_INT32(len(indexes)), array_struct("i", len(indexes)).pack(*indexes))
    return b"".join(out)
