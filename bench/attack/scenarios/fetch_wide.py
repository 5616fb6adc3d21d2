# SPDX-License-Identifier: Apache-2.0
"""Fetch of 20,000 partitions of a topic, and of all partitions of the offsets topic from their start."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import FetchRequest

Topic = FetchRequest.FetchTopic


def frames(size: Size) -> list[bytes]:
    """Both requests."""
    return [_fetch("wide", 20_000), _fetch("__consumer_offsets", 50)]


def _fetch(name: str, partitions: int) -> bytes:
    rows = [
        Topic.FetchPartition(
            version=11,
            partition=index,
            fetch_offset=0,
            partition_max_bytes=1 << 20,
            current_leader_epoch=-1,
            log_start_offset=-1,
        )
        for index in range(partitions)
    ]
    message = FetchRequest(
        version=11,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=50 << 20,
        isolation_level=1,
        session_id=0,
        session_epoch=-1,
        topics=[Topic(version=11, topic=name, partitions=rows)],
        forgotten_topics_data=[],
        rack_id="",
    )
    return request(ApiKey.FETCH, 11, message)
