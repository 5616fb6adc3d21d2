# SPDX-License-Identifier: Apache-2.0
"""Metadata of all topics, again and again."""

from bench.attack.frames import Size, request
from protocol.apis import ApiKey
from protocol.kafka_python_messages import MetadataRequest


def frames(size: Size) -> list[bytes]:
    """One request."""
    return [request(ApiKey.METADATA, 9, MetadataRequest(version=9, topics=None))]
