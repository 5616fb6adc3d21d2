# SPDX-License-Identifier: Apache-2.0
"""The committed offsets of one group: hard state, which only applying a record changes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from coordinator.groups.group_totals import GroupTotals, text_bytes
from protocol.mypyc_shim import mypyc_attr
from storage.format.records import OffsetAndMetadata, TopicOffsetCommits

_NONE: Final[dict[int, OffsetAndMetadata]] = {}
_NOTHING: Final[dict[str, dict[int, OffsetAndMetadata]]] = {}
"""The empty offsets that all groups without offsets share, which are replaced and never changed."""


@mypyc_attr(acyclic=True)
class CommittedOffsets:
    """The committed offsets by topic and partition, with their number and the bytes of their metadata.

    Only applying records, by `apply_offset` and `apply_commits`, changes them, live and while loading.
    """

    __slots__ = ("by_topic", "count", "metadata_bytes", "usage")

    def __init__(self, usage: GroupTotals) -> None:
        """Begin without offsets; those to come are counted in `usage`, the node's totals."""
        self.usage = usage
        self.by_topic: dict[str, dict[int, OffsetAndMetadata]] = _NOTHING
        self.count = 0
        self.metadata_bytes = 0

    def get_topic_offsets(self, topic: str) -> Mapping[int, OffsetAndMetadata]:
        """Return the offsets of one topic by partition; empty if it has none."""
        return self.by_topic.get(topic, _NONE)

    def all(self) -> Iterator[tuple[str, int, OffsetAndMetadata]]:
        """Yield every offset as (topic, partition, value), in the order of first commit."""
        for topic, partitions in self.by_topic.items():
            for partition, committed in partitions.items():
                yield topic, partition, committed

    def select_offsets(
        self, topic: str, partitions: Iterable[int]
    ) -> Iterator[tuple[str, int, OffsetAndMetadata]]:
        """Yield the present offsets of these partitions of a topic, in the form of `all`."""
        known = self.get_topic_offsets(topic)
        for partition in partitions:
            committed = known.get(partition)
            if committed is not None:
                yield topic, partition, committed

    def apply_offset(self, topic: str, partition: int, value: OffsetAndMetadata | None) -> None:
        """Set a partition's committed offset, or remove it if `value` is None, as in a tombstone."""
        partitions = self.by_topic.get(topic)
        before = None if partitions is None else partitions.get(partition)
        self._count(
            (value is not None) - (before is not None),
            (0 if value is None else text_bytes(value.metadata))
            - (0 if before is None else text_bytes(before.metadata)),
        )
        if value is None:
            if partitions is not None and partitions.pop(partition, None) is not None and not partitions:
                del self.by_topic[topic]
        elif partitions is None:
            self._begin(topic, {partition: value})
        else:
            partitions[partition] = value

    def apply_commits(self, commits: TopicOffsetCommits) -> None:
        """Set the committed offsets of all partitions of one topic in a commit."""
        values = commits.values
        partitions = self.by_topic.get(commits.topic)
        if partitions is None:
            self._begin(commits.topic, values)
            self._count(len(values), commits.metadata_bytes)
            return
        more_metadata_bytes = commits.metadata_bytes
        if self.metadata_bytes:
            for partition in values:
                before = partitions.get(partition)
                if before is not None:
                    more_metadata_bytes -= text_bytes(before.metadata)
        count = len(partitions)
        partitions.update(values)
        self._count(len(partitions) - count, more_metadata_bytes)

    def _begin(self, topic: str, values: dict[int, OffsetAndMetadata]) -> None:
        if not self.by_topic:
            self.by_topic = {}
        self.by_topic[topic] = values

    def _count(self, more: int, more_metadata_bytes: int) -> None:
        self.count += more
        self.usage.offsets += more
        if more_metadata_bytes:
            self.metadata_bytes += more_metadata_bytes
            self.usage.offset_metadata_bytes += more_metadata_bytes

    def subtract_from_totals(self) -> None:
        """Subtract the offsets from the node's totals: the group has left the cache."""
        usage, self.usage = self.usage, GroupTotals()
        usage.offsets -= self.count
        usage.offset_metadata_bytes -= self.metadata_bytes
