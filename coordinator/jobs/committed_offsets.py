# SPDX-License-Identifier: Apache-2.0
"""All committed offsets of a node, read in steps while they go on changing."""

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator.lag.lag_book import CommittedGroup, CommittedOffset, every_topic
from coordinator.partitions.manager import GroupMetadataManager
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
                group = kept.group
                has_consumers = group.member_count > 0 and group.protocol_type == CONSUMER
                is_read = group.is_subscribed_to if has_consumers else every_topic
                yield CommittedGroup(
                    kept.group_id, group.member_count, _offsets(kept.offsets.by_topic), is_read
                )


def _offsets(by_topic: Mapping[str, Mapping[int, OffsetAndMetadata]]) -> Iterator[CommittedOffset]:
    for topic in list(by_topic):
        for partition, value in list(by_topic.get(topic, {}).items()):
            yield topic, partition, value.offset, value.commit_timestamp
