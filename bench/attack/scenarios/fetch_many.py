# SPDX-License-Identifier: Apache-2.0
"""OffsetFetch of as many topics, and of as many groups, as a request may have."""

from bench.attack.frames import Size, names, request
from protocol import hot
from protocol.apis import ApiKey
from protocol.newtypes import GroupId


def frames(size: Size) -> list[bytes]:
    """Two requests."""
    topics = [hot.OffsetFetchRequestTopics(name=name, partition_indexes=[0]) for name in names("t", 24_000)]
    groups = [hot.OffsetFetchRequestGroup(group_id=GroupId(name), topics=[]) for name in names("g", 49_000)]
    one = [hot.OffsetFetchRequestGroup(group_id=GroupId("big"), topics=topics)]
    return [
        request(ApiKey.OFFSET_FETCH, 8, hot.OffsetFetchRequest(groups=wanted)) for wanted in (one, groups)
    ]
