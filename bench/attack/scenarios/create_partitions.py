# SPDX-License-Identifier: Apache-2.0
"""CreatePartitions of 10,000 topics in one request."""

from bench.attack.frames import TOPIC_PARTITIONS, Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import CreatePartitionsRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    topics = [
        CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=TOPIC_PARTITIONS + 1, assignments=None)
        for name in names("t", 10_000)
    ]
    message = CreatePartitionsRequest(version=1, topics=topics, timeout_ms=30_000, validate_only=False)
    return [request(ApiKey.CREATE_PARTITIONS, 1, message)]
