# SPDX-License-Identifier: Apache-2.0
"""Metadata of 40,000 topics by name that are not there, in one request."""

from bench.attack.frames import Size, names, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import MetadataRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    topics = [MetadataRequest.MetadataRequestTopic(version=9, name=name) for name in names("u", 40_000)]
    message = MetadataRequest(version=9, topics=topics, allow_auto_topic_creation=False)
    return [request(ApiKey.METADATA, 9, message)]
