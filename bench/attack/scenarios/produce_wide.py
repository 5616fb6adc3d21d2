# SPDX-License-Identifier: Apache-2.0
"""Produce that names 20,000 partitions."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import ProduceRequest

Topic = ProduceRequest.TopicProduceData


def frames(size: Size) -> list[bytes]:
    """One request."""
    rows = [Topic.PartitionProduceData(version=7, index=index, records=b"") for index in range(20_000)]
    topics = [Topic(version=7, name="wide", partition_data=rows)]
    message = ProduceRequest(version=7, transactional_id=None, acks=1, timeout_ms=1_000, topic_data=topics)
    return [request(ApiKey.PRODUCE, 7, message)]
