# SPDX-License-Identifier: Apache-2.0
"""200 cheap Metadata, each of which creates a topic: dear where a change costs what there is (`--topics 100000`)."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import MetadataRequest


def frames(size: Size) -> list[bytes]:
    """All requests."""
    return [_ask(f"m{number}") for number in range(200)]


def _ask(name: str) -> bytes:
    topics = [MetadataRequest.MetadataRequestTopic(version=9, name=name)]
    return request(
        ApiKey.METADATA, 9, MetadataRequest(version=9, topics=topics, allow_auto_topic_creation=True)
    )
