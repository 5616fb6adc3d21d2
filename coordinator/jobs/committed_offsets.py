# SPDX-License-Identifier: Apache-2.0
"""All committed offsets of a node, read in steps while they go on changing."""

from collections.abc import Iterator, Mapping

from coordinator.partitions.manager import GroupMetadataManager
from protocol.newtypes import GroupId
from storage.format.records import OffsetAndMetadata


def iterate_committed_offsets(
    manager: GroupMetadataManager,
) -> Iterator[tuple[GroupId, Iterator[tuple[str, int, int]]]]:
    """Yield each group that has committed offsets, with their rows: topic, partition, offset.

    Offsets that come or go between two steps may be missed; a topic's partitions are read at once.
    """
    for shard in list(manager.owned_partitions.values()):
        for kept in list(shard.groups.values()):
            if kept.offsets.count:
                yield kept.group_id, _offsets(kept.offsets.by_topic)


def _offsets(by_topic: Mapping[str, Mapping[int, OffsetAndMetadata]]) -> Iterator[tuple[str, int, int]]:
    for topic in list(by_topic):
        for partition, value in list(by_topic.get(topic, {}).items()):
            yield topic, partition, value.offset
