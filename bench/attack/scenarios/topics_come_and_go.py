# SPDX-License-Identifier: Apache-2.0
"""A topic is created and deleted, again and again, in every connection."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import CreateTopicsRequest, DeleteTopicsRequest


def frames(size: Size) -> list[bytes]:
    """Both requests."""
    topic = CreateTopicsRequest.CreatableTopic(
        version=2, name="comes-and-goes", num_partitions=1, replication_factor=1, assignments=[], configs=[]
    )
    create = CreateTopicsRequest(version=2, topics=[topic], timeout_ms=30_000, validate_only=False)
    delete = DeleteTopicsRequest(version=3, topic_names=["comes-and-goes"], timeout_ms=30_000)
    return [request(ApiKey.CREATE_TOPICS, 2, create), request(ApiKey.DELETE_TOPICS, 3, delete)]
