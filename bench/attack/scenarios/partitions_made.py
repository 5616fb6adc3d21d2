# SPDX-License-Identifier: Apache-2.0
"""100 requests of some 40 bytes, each of which creates a topic of 10,000 partitions: a million in all."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import CreateTopicsRequest


def frames(size: Size) -> list[bytes]:
    """All requests."""
    return [_create(f"p{number}") for number in range(100)]


def _create(name: str) -> bytes:
    topic = CreateTopicsRequest.CreatableTopic(
        version=2, name=name, num_partitions=10_000, replication_factor=1, assignments=[], configs=[]
    )
    message = CreateTopicsRequest(version=2, topics=[topic], timeout_ms=30_000, validate_only=False)
    return request(ApiKey.CREATE_TOPICS, 2, message)
