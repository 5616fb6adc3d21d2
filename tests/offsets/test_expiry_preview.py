# SPDX-License-Identifier: Apache-2.0
"""The preview of expiry says what the check then does."""

import pytest

from coordinator.jobs.expiry_preview import (
    ROWS_MAX,
    ExpiringGroupTopic,
    ExpiryPreview,
    add_groups_to_preview,
    merge_into_first_preview,
    preview_expiry,
)
from coordinator.jobs.expiry_task import delete_expired_offsets
from protocol.newtypes import Partition
from tests.groups.harness import WALL_START_MS, Cluster
from tests.support.consumer_protocol import encode_subscription

RETENTION_MS = 604_800_000
DAY_MS = 86_400_000


def some_groups() -> Cluster:
    """Groups of every kind, with offsets that were committed within three days."""
    cluster = Cluster()
    for number in range(3):
        cluster.commit(1, group=f"simple-{number}")
        cluster.commit(1, group=f"simple-{number}", topic="u", partition=number)
        cluster.clock.passed_ms += DAY_MS
    cluster.commit(1, group="own", version=4, retention_ms=5 * DAY_MS)
    for group in ("stable", "left"):
        joined = cluster.member(group=group, protocols=[("range", encode_subscription(["t"]))]).response
        member = joined.member_id
        cluster.sync(member, joined.generation_id, {member: b""}, group=group)
        for topic in ("t", "u") if group == "stable" else ("t",):
            cluster.commit(1, topic=topic, group=group, member_id=member, generation=joined.generation_id)
    cluster.clock.passed_ms += DAY_MS
    cluster.leave(member, group="left")
    return cluster


@pytest.mark.parametrize("within_days", [0, 1, 2.9, 3, 3.5, 4, 5, 5.5, 6, 7, 8])
async def test_what_is_foretold_happens(within_days: float) -> None:
    cluster = some_groups()
    within_ms = int(within_days * DAY_MS)
    foretold = await preview_expiry(cluster.manager, (), cluster.clock, within_ms)
    assert (foretold.now_ms, foretold.within_ms) == (cluster.clock.wall_ms(), within_ms)
    cluster.clock.passed_ms += within_ms
    groups = len(cluster.shard.groups)
    assert await delete_expired_offsets(cluster.manager, cluster.clock) == foretold.offsets
    assert groups - len(cluster.shard.groups) == foretold.finished_groups
    assert sum(row.offsets for row in foretold.rows) == foretold.offsets


def test_the_rows() -> None:
    cluster = some_groups()
    now_ms = cluster.clock.wall_ms()
    assert now_ms == WALL_START_MS + 4 * DAY_MS
    preview = add_groups_to_preview(
        cluster.shard.groups.values(), ExpiryPreview(now_ms, 7 * DAY_MS, RETENTION_MS)
    )
    first = WALL_START_MS + RETENTION_MS
    assert ExpiringGroupTopic("simple-1", "Empty", "u", 1, first + DAY_MS, first + DAY_MS) in preview.rows
    assert ExpiringGroupTopic("own", "Empty", "t", 1, first + DAY_MS, first + DAY_MS) in preview.rows
    left = [row for row in preview.rows if row.group == "left"]
    assert left == [ExpiringGroupTopic("left", "Empty", "t", 1, now_ms + RETENTION_MS, now_ms + RETENTION_MS)]
    stable = [row.topic for row in preview.rows if row.group == "stable"]
    assert stable == ["u"], "what is consumed does not expire"
    assert preview.due == 0


def test_many_rows_are_counted_and_not_listed() -> None:
    cluster = Cluster()
    for group in ("a", "b"):
        topics = (f"topic-{number}" for number in range(ROWS_MAX // 2 + 5))
        cluster.commit_all({topic: {0: 1} for topic in topics}, group=group)
    preview = ExpiryPreview(cluster.clock.wall_ms(), 100 * DAY_MS, RETENTION_MS)
    add_groups_to_preview(cluster.shard.groups.values(), preview)
    assert (len(preview.rows), preview.unlisted_rows) == (ROWS_MAX, 10)
    assert (preview.offsets, preview.groups) == (ROWS_MAX + 10, 2)


async def test_nodes_are_added_up_and_partitions_that_are_away_are_named() -> None:
    cluster, other = some_groups(), some_groups()
    other.manager.remove_groups_for_partition(Partition(0))
    other.manager.begin_load(Partition(0))
    one, two = [
        await preview_expiry(each.manager, [4], each.clock, 100 * DAY_MS) for each in (cluster, other)
    ]
    assert (two.offsets, two.missing_partitions) == (0, [0, 4])
    expected = (one.offsets, one.groups, one.finished_groups, len(one.rows))
    both = merge_into_first_preview([one, two])
    assert (both.offsets, both.groups, both.finished_groups, len(both.rows)) == expected
    assert both.missing_partitions == [4, 0, 4]
