# SPDX-License-Identifier: Apache-2.0
"""Topics as requests name them: by name, and in their newest versions by id (KIP-516)."""

from collections.abc import Iterable
from uuid import UUID

from coordinator.catalogue.catalogue import Catalogue
from coordinator.catalogue.topic import Topic
from coordinator.node import Node
from protocol.errors import ErrorCode
from protocol.hot.offset_fetch import OffsetFetchRequestTopic, OffsetFetchRequestTopics
from protocol.wire import ZERO_UUID


def find_topic(catalogue: Catalogue, name: str | None, topic_id: bytes | None) -> Topic | ErrorCode:
    """Return the topic with this id or, if the request's version has no ids and `topic_id` is None, with this name.

    Else return Kafka's error for its partitions: UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION.
    """
    if topic_id is not None:
        return catalogue.topics_by_id.get(topic_id) or ErrorCode.UNKNOWN_TOPIC_ID
    topic = None if name is None else catalogue.topics_by_name.get(name)
    return topic or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def trigger_topic_search(node: Node, key: str | bytes) -> None:
    """Request a search for a topic that is unknown or has too few partitions; `key` is its name or id in a request.

    The cluster behind this node, if any, may have the topic by now; the client retries.
    """
    look = node.catalogue_store.look_for
    if look is not None:
        look(key)


def request_unknown_topics_search(
    node: Node, topics: Iterable[OffsetFetchRequestTopic | OffsetFetchRequestTopics], *, by_id: bool
) -> None:
    """Request a search for those topics of an OffsetFetch that are unknown or have too few partitions.

    Versions that name topics answer for unknown ones as if they existed, because the next request may commit to them.
    """
    look, catalogue = node.catalogue_store.look_for, node.catalogue
    if look is None:
        return
    for topic in topics:
        key = topic.topic_id if by_id and isinstance(topic, OffsetFetchRequestTopics) else topic.name
        known = catalogue.by_id(key) if isinstance(key, bytes) else catalogue.get(key)
        if known is None or max(topic.partition_indexes, default=-1) >= known.partitions:
            look(key)


def topic_id_to_bytes(topic_id: UUID | None) -> bytes:
    """Return a topic's id as `find_topic` takes it; kafka-python's messages have None for the zero id."""
    return ZERO_UUID if topic_id is None else topic_id.bytes
