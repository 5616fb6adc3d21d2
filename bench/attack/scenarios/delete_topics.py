# SPDX-License-Identifier: Apache-2.0
"""DeleteTopics of 40,000 topics in one request: at first all are there, and groups have offsets in them."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import DeleteTopicsRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    message = DeleteTopicsRequest(version=5, topic_names=names("t", 40_000), timeout_ms=30_000)
    return [request(ApiKey.DELETE_TOPICS, 5, message)]
