# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit of 10,000 partitions at once, each of another topic."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, Offset


def frames(size: Size) -> list[bytes]:
    """One request."""
    row = hot.OffsetCommitRequestPartition(0, Offset(1))
    topics = [hot.OffsetCommitRequestTopic(name=name, partitions=[row]) for name in names("t", 10_000)]
    return [
        request(ApiKey.OFFSET_COMMIT, 8, hot.OffsetCommitRequest(group_id=GroupId("many"), topics=topics))
    ]
