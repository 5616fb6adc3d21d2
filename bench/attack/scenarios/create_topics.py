# SPDX-License-Identifier: Apache-2.0
"""CreateTopics of 10,000 topics in one request, that are there and that are not."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import CreateTopicsRequest


def frames(size: Size) -> list[bytes]:
    """Both requests."""
    return [_create(names("t", 10_000)), _create(names("another", 10_000))]


def _create(topics: list[str]) -> bytes:
    rows = [
        CreateTopicsRequest.CreatableTopic(
            version=2, name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        for name in topics
    ]
    message = CreateTopicsRequest(version=2, topics=rows, timeout_ms=30_000, validate_only=False)
    return request(ApiKey.CREATE_TOPICS, 2, message)
