# SPDX-License-Identifier: Apache-2.0
"""All committed offsets of a node, read in steps while they go on changing."""

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator.lag.lag_book import CommittedGroup, CommittedOffset, CommittedTopic
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry
from storage.format.records import OffsetAndMetadata

CONSUMER: Final = "consumer"
"""The protocol type of the members that subscribe to topics."""


def iterate_committed_offsets(manager: GroupMetadataManager) -> Iterator[CommittedGroup]:
    """Yield each group that has committed offsets, with these.

    Offsets that come or go between two steps may be missed; a topic's partitions are read at once.
    """
    for shard in list(manager.owned_partitions.values()):
        for kept in list(shard.groups.values()):
            if kept.offsets.count:
                yield CommittedGroup(kept.group_id, kept.group.member_count, _topics(kept))


def _topics(kept: GroupEntry) -> Iterator[CommittedTopic]:
    group, by_topic = kept.group, kept.offsets.by_topic
    has_consumers = group.member_count > 0 and group.protocol_type == CONSUMER
    for topic in list(by_topic):
        is_read = not has_consumers or group.is_subscribed_to(topic)
        yield CommittedTopic(topic, _offsets(by_topic.get(topic, {})), is_read)


def _offsets(partitions: Mapping[int, OffsetAndMetadata]) -> Iterator[CommittedOffset]:
    for partition, value in list(partitions.items()):
        yield partition, value.offset, value.commit_timestamp
