# SPDX-License-Identifier: Apache-2.0
"""OffsetDelete of all offsets of a group with 10,000 of them, and of partitions of 20,000 topics."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import OffsetDeleteRequest

Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic


def frames(size: Size) -> list[bytes]:
    """Both requests."""
    wide = [("wide", range(10_000))]
    return [_request(wide), _request([(name, range(1)) for name in names("t", 20_000)])]


def _request(topics: list[tuple[str, range]]) -> bytes:
    rows = [
        Topic(
            name=name,
            partitions=[Topic.OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
        )
        for name, indexes in topics
    ]
    return request(ApiKey.OFFSET_DELETE, 0, OffsetDeleteRequest(group_id="big", topics=rows))
