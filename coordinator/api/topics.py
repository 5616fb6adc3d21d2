# SPDX-License-Identifier: Apache-2.0
"""Topics as requests name them: by name, and in their newest versions by id (KIP-516)."""

from uuid import UUID

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.topic import Topic
from protocol.errors import ErrorCode
from protocol.wire import ZERO_UUID


def find_topic(catalogue: Catalogue, name: str | None, topic_id: bytes | None) -> Topic | ErrorCode:
    """The topic with this id, or, where the version of the request knows no ids and `topic_id` is None, this name.

    Else what Kafka says of its partitions: UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION.
    """
    if topic_id is not None:
        return catalogue.topics_by_id.get(topic_id) or ErrorCode.UNKNOWN_TOPIC_ID
    topic = None if name is None else catalogue.topics_by_name.get(name)
    return topic or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def id_bytes(topic_id: UUID | None) -> bytes:
    """A topic's id as `find_topic` takes it; in kafka-python's messages the id of no topic is None."""
    return ZERO_UUID if topic_id is None else topic_id.bytes
