# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit of the 10,000 partitions of one topic, and of as many as a request may have."""

from bench.attack.frames import Size, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, Offset


def frames(size: Size) -> list[bytes]:
    """Two requests."""
    rows = [hot.OffsetCommitRequestPartition(index, Offset(1)) for index in range(10_000)]
    wide = [hot.OffsetCommitRequestTopic(name="wide", partitions=rows)]
    many = [hot.OffsetCommitRequestTopic(name="wide", partitions=rows) for _ in range(4)]
    return [
        request(ApiKey.OFFSET_COMMIT, 8, hot.OffsetCommitRequest(group_id=GroupId("many"), topics=topics))
        for topics in (wide, many)
    ]
