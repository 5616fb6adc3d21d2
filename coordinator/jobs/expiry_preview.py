# SPDX-License-Identifier: Apache-2.0
"""A preview of what the expiry task will remove, and when, if the groups stay as they are."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from coordinator.groups.offsets import expiry_and_deletion
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry
from coordinator.runtime.clock import Clock
from coordinator.runtime.slices import Slices

ROWS_MAX: Final = 20_000
"""The most rows that are listed; all are counted."""


class ExpiringGroupTopic(msgspec.Struct):
    """Expiring offsets of one group in one topic. Times are milliseconds since the epoch."""

    group: str
    state: str
    topic: str
    offsets: int
    first_ms: int
    last_ms: int


class ExpiryPreview(msgspec.Struct):
    """The offsets that expire until `within_ms` after `now_ms`, including offsets due already, which `due` counts.

    `groups` is the number of groups with such offsets; `finished_groups` of these groups keep no offsets, and expire
    as well. Groups of the `missing_partitions`, which are loading or failed, are not included.
    """

    now_ms: int
    within_ms: int
    retention_ms: int
    offsets: int = 0
    due: int = 0
    groups: int = 0
    finished_groups: int = 0
    rows: list[ExpiringGroupTopic] = []
    unlisted_rows: int = 0
    missing_partitions: list[int] = []

    def add_group(self, kept: GroupEntry) -> None:
        """Count the offsets of one group that expire within `within_ms`; removes nothing."""
        group = kept.group
        until_ms = self.now_ms + self.within_ms
        by_topic: dict[str, ExpiringGroupTopic] = {}
        offsets = 0
        for topic, _, at_ms in expiry_and_deletion.compute_expiry_times(
            group, self.retention_ms, kept.offsets.all()
        ):
            if at_ms > until_ms:
                continue
            offsets += 1
            self.due += at_ms <= self.now_ms
            row = by_topic.get(topic)
            if row is None:
                by_topic[topic] = ExpiringGroupTopic(
                    group.group_id, group.state.value, topic, 1, at_ms, at_ms
                )
            else:
                row.offsets += 1
                row.first_ms, row.last_ms = min(row.first_ms, at_ms), max(row.last_ms, at_ms)
        if not offsets:
            return
        self.offsets += offsets
        self.groups += 1
        self.finished_groups += expiry_and_deletion.has_nothing_left(group, kept.offsets, offsets)
        room = ROWS_MAX - len(self.rows)
        self.rows += list(by_topic.values())[:room]
        self.unlisted_rows += max(len(by_topic) - room, 0)


def add_groups_to_preview(groups: Iterable[GroupEntry], preview: ExpiryPreview) -> ExpiryPreview:
    """Add groups, which no other code uses meanwhile, to a preview and return it."""
    for kept in groups:
        preview.add_group(kept)
    return preview


def merge_into_first_preview(previews: Sequence[ExpiryPreview]) -> ExpiryPreview:
    """Add the previews of several nodes to the first of them, and return it."""
    whole = previews[0]
    for other in previews[1:]:
        whole.offsets += other.offsets
        whole.due += other.due
        whole.groups += other.groups
        whole.finished_groups += other.finished_groups
        whole.rows += other.rows
        whole.unlisted_rows += other.unlisted_rows
        whole.missing_partitions += other.missing_partitions
    return whole


async def preview_expiry(
    manager: GroupMetadataManager, failed_partitions: Iterable[int], clock: Clock, within_ms: int
) -> ExpiryPreview:
    """Preview all groups of the owned partitions, in slices between which the event loop serves others."""
    preview = ExpiryPreview(clock.wall_ms(), within_ms, manager.env.config.offsets_retention_ms)
    preview.missing_partitions = sorted({*manager.loading_partitions, *failed_partitions})
    slices = Slices(clock.nanos)
    for shard in list(manager.owned_partitions.values()):
        for kept in list(shard.groups.values()):
            if not kept.group.is_dead and not shard.is_lost:
                preview.add_group(kept)
            if slices.is_over:
                await slices.yield_to_event_loop()
    return preview
