# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit of 16,000 offsets, about what one batch holds: in one topic, and in 16,000 (choose `--topics 16000`)."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, Offset


def frames(size: Size) -> list[bytes]:
    """Two requests."""
    wide = [hot.OffsetCommitRequestTopic(name="wide", partitions=_rows(count)) for count in (10_000, 6_000)]
    many = [
        hot.OffsetCommitRequestTopic(name=name, partitions=_rows(1))
        for name in names("t", min(size.topics, 16_000))
    ]
    return [
        request(ApiKey.OFFSET_COMMIT, 8, hot.OffsetCommitRequest(group_id=GroupId("many"), topics=topics))
        for topics in (wide, many)
    ]


def _rows(count: int) -> list[hot.OffsetCommitRequestPartition]:
    return [hot.OffsetCommitRequestPartition(index, Offset(1)) for index in range(count)]
