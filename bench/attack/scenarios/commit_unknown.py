# SPDX-License-Identifier: Apache-2.0
"""OffsetCommit of topics that do not exist, as many as a request may have."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId, Offset


def frames(size: Size) -> list[bytes]:
    """One with a partition of each, one with none."""
    row = [hot.OffsetCommitRequestPartition(0, Offset(1))]
    some = [hot.OffsetCommitRequestTopic(name=name, partitions=row) for name in names("none", 24_000)]
    none = [hot.OffsetCommitRequestTopic(name=name) for name in names("none", 49_000)]
    return [
        request(
            ApiKey.OFFSET_COMMIT, version, hot.OffsetCommitRequest(group_id=GroupId("many"), topics=topics)
        )
        for version, topics in ((7, some), (8, none))
    ]
