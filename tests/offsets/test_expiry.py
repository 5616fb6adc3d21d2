# SPDX-License-Identifier: Apache-2.0
"""The table of expiry in FORMATS.md, row by row one millisecond before and at its boundary; and the task around it."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.state import GroupState
from coordinator.groups.offsets.expiry_and_deletion import plan_offset_expiry
from coordinator.jobs import expiry_task
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.runtime.slices import SLICE_NS
from protocol.newtypes import GroupId, MemberId, Offset, Partition
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
    decode_key_and_value,
)
from tests.groups.harness import Cluster
from tests.net import requests
from tests.partitions.running import eventually, node
from tests.support.consumer_protocol import encode_subscription
from tests.support.groups import classic
from tests.support.log_lines import LogLines

RETENTION_MS = 604_800_000
COMMITTED_MS = 1_000_000_000
EMPTY_SINCE_MS = COMMITTED_MS + 5_000_000
EXPIRES_MS = COMMITTED_MS + 77
NEVER: int | None = None


class Row(NamedTuple):
    """A group, and when its offset in topic `t` goes: without a timestamp of its own, and with EXPIRES_MS."""

    state: GroupState
    protocol_type: str | None
    subscribed: frozenset[str] | None
    state_timestamp: int | None
    at_ms: int | None
    own_at_ms: int | None


NO_NODE: frozenset[str] = frozenset()
OTHERS = frozenset({"u"})
IT = frozenset({"t", "u"})
EMPTY, STABLE = GroupState.EMPTY, GroupState.STABLE
PREPARING, COMPLETING = GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE
BY_COMMIT = (COMMITTED_MS + RETENTION_MS, EXPIRES_MS)
BY_STATE = (EMPTY_SINCE_MS + RETENTION_MS, EXPIRES_MS)

TABLE = {
    "empty, consumers": Row(EMPTY, "consumer", NO_NODE, EMPTY_SINCE_MS, *BY_STATE),
    "empty, of another type": Row(EMPTY, "connect", None, EMPTY_SINCE_MS, *BY_STATE),
    "empty, from a record without a state timestamp": Row(EMPTY, "consumer", NO_NODE, None, *BY_COMMIT),
    "empty, another type, no state timestamp": Row(EMPTY, "connect", None, None, *BY_COMMIT),
    "stable, nobody consumes it": Row(STABLE, "consumer", OTHERS, EMPTY_SINCE_MS, *BY_COMMIT),
    "stable, nobody consumes anything": Row(STABLE, "consumer", NO_NODE, EMPTY_SINCE_MS, *BY_COMMIT),
    "stable, consumed": Row(STABLE, "consumer", IT, EMPTY_SINCE_MS, NEVER, NEVER),
    "stable, subscriptions unknown": Row(STABLE, "consumer", None, EMPTY_SINCE_MS, NEVER, NEVER),
    "stable, of another type": Row(STABLE, "connect", None, EMPTY_SINCE_MS, NEVER, NEVER),
    "standalone": Row(EMPTY, None, None, None, *BY_COMMIT),
    "preparing": Row(PREPARING, "consumer", OTHERS, EMPTY_SINCE_MS, NEVER, NEVER),
    "completing": Row(COMPLETING, "consumer", OTHERS, EMPTY_SINCE_MS, NEVER, NEVER),
    "preparing, of another type": Row(PREPARING, "connect", None, EMPTY_SINCE_MS, NEVER, NEVER),
    "completing, of another type": Row(COMPLETING, "connect", None, EMPTY_SINCE_MS, NEVER, NEVER),
}
LONG_AFTER_MS = EMPTY_SINCE_MS + 100 * RETENTION_MS


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("own", [False, True], ids=["", "with a timestamp of its own"])
def test_the_table(name: str, own: bool) -> None:
    row = TABLE[name]
    group = ClassicGroup(GroupId("g"))
    group.state, group.protocol_type = row.state, row.protocol_type
    group.subscribed_topics, group.current_state_timestamp = row.subscribed, row.state_timestamp
    committed = OffsetAndMetadata(Offset(5), -1, "", COMMITTED_MS, EXPIRES_MS if own else None)
    offsets = [("t", 3, committed)]
    at_ms = row.own_at_ms if own else row.at_ms
    tombstone = [OffsetCommitRecord(GroupId("g"), "t", 3, None)]

    if at_ms is None:
        assert plan_offset_expiry(group, LONG_AFTER_MS, RETENTION_MS, offsets).records == []
    else:
        assert plan_offset_expiry(group, at_ms - 1, RETENTION_MS, offsets).records == []
        assert plan_offset_expiry(group, at_ms, RETENTION_MS, offsets).records == tombstone
        assert plan_offset_expiry(group, LONG_AFTER_MS, RETENTION_MS, offsets).records == tombstone


def test_each_offset_expires_by_itself() -> None:
    group = ClassicGroup(GroupId("g"))
    offsets = [("t", index, OffsetAndMetadata(Offset(5), -1, "", COMMITTED_MS + index)) for index in range(4)]
    offsets.append(("u", 0, OffsetAndMetadata(Offset(5), -1, "", COMMITTED_MS, LONG_AFTER_MS)))
    gone = plan_offset_expiry(group, COMMITTED_MS + RETENTION_MS + 1, RETENTION_MS, offsets).records
    assert gone == [OffsetCommitRecord(GroupId("g"), "t", index, None) for index in (0, 1)]


# --- what it leaves ---


def cleanup(cluster: Cluster) -> int:
    return sum(cluster.manager.expire_offsets_in_steps(cluster.kept(), cluster.clock.wall_ms()))


def expired(kept: GroupEntry, wall_ms: int) -> list[Record]:
    return plan_offset_expiry(kept.group, wall_ms, RETENTION_MS, kept.offsets.all()).records


def reloaded(cluster: Cluster) -> dict[GroupId, GroupEntry]:
    """The groups after the partition was loaded from its log."""
    manager = cluster.manager
    manager.remove_groups_for_partition(Partition(0))
    shard = manager.begin_load(Partition(0))
    for key, value in cluster.log.records:
        shard.apply(decode_key_and_value(key, value))
    cluster.serve(shard)
    return shard.groups


def tombstones(cluster: Cluster) -> list[object]:
    return [decode_key_and_value(key, None) for key, value in cluster.log.records if value is None]


@pytest.mark.parametrize("generation", [0, 1, 7])
def test_a_group_without_offsets_goes_with_a_tombstone_if_it_was_stored(generation: int) -> None:
    cluster = Cluster()
    shard = cluster.shard
    if generation:
        value = GroupMetadataValue("consumer", generation, None, None, cluster.clock.wall_ms(), ())
        shard.append_and_apply([GroupMetadataRecord(GroupId("g"), value)])
    cluster.commit(1)
    group = cluster.group()
    assert group.generation_id == generation
    cluster.clock.passed_ms += RETENTION_MS

    assert cleanup(cluster) == 1

    assert group.state is GroupState.DEAD
    assert classic(cluster.manager, "g") is None
    stored = [GroupMetadataRecord(GroupId("g"), None)] if generation else []
    assert tombstones(cluster) == [OffsetCommitRecord(GroupId("g"), "t", 0, None), *stored]
    assert reloaded(cluster) == {}
    assert (cluster.stats.offset_expirations, cluster.stats.groups_expired) == (1, 1)


def test_a_group_with_an_offset_left_stays() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.clock.passed_ms += RETENTION_MS - 1
    cluster.commit(2, partition=1)
    cluster.clock.passed_ms += 1
    assert cleanup(cluster) == 1
    assert cluster.group().state is GroupState.EMPTY
    assert (cluster.committed(0), cluster.committed(1)) == (-1, 2)
    assert cluster.stats.groups_expired == 0


def test_a_group_with_members_stays_without_offsets() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1, protocols=[("range", encode_subscription(["u"]))])
    cluster.commit(1, member_id=member, generation=1)
    cluster.clock.passed_ms += RETENTION_MS
    assert cleanup(cluster) == 1
    assert cluster.group().state is GroupState.STABLE


def test_a_new_commit_renews_an_offset() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.clock.passed_ms += RETENTION_MS - 1
    cluster.commit(1)
    cluster.clock.passed_ms += RETENTION_MS - 1
    assert cleanup(cluster) == 0
    cluster.clock.passed_ms += 1
    assert cleanup(cluster) == 1


@pytest.mark.slow
@pytest.mark.gate
def test_many_tombstones_need_not_fit_in_one_append() -> None:
    cluster = Cluster()
    for partition in range(1_001):
        cluster.commit(1, partition=partition)
    appends = len(cluster.log.tickets)
    cluster.clock.passed_ms += RETENTION_MS
    assert cleanup(cluster) == 1_001
    assert len(cluster.log.tickets) - appends > 1
    assert reloaded(cluster) == {}


def test_what_was_loaded_expires_as_what_is_live() -> None:
    """A member's subscription, a state's timestamp and an own expire timestamp survive the log."""
    cluster = Cluster()
    (member,) = cluster.stable_group(1, protocols=[("range", encode_subscription(["u"]))])
    cluster.commit(1, member_id=member, generation=1)
    cluster.commit(1, topic="u", member_id=member, generation=1)
    cluster.commit(1, group="simple", version=4, retention_ms=50)
    again: Shard = cluster.log.replay()
    for now_ms in (0, 49, 50, RETENTION_MS - 1, RETENTION_MS):
        wall_ms = cluster.clock.wall_ms() + now_ms
        for group_id, kept in cluster.shard.groups.items():
            assert expired(kept, wall_ms) == expired(again.groups[group_id], wall_ms)


def test_a_stored_group_of_an_old_version_has_no_state_timestamp() -> None:
    shard = Shard(Partition(0))
    shard.apply(GroupMetadataRecord(GroupId("g"), GroupMetadataValue("consumer", 3, None, None, -1, ())))
    shard.apply(OffsetCommitRecord(GroupId("g"), "t", 0, OffsetAndMetadata(Offset(1), -1, "", COMMITTED_MS)))
    kept = shard.groups[GroupId("g")]
    assert kept.classic_group.current_state_timestamp is None
    assert expired(kept, COMMITTED_MS + RETENTION_MS - 1) == []
    assert len(expired(kept, COMMITTED_MS + RETENTION_MS)) == 1


def test_a_loaded_member_keeps_its_topics_from_expiring() -> None:
    shard = Shard(Partition(0))
    member = MemberValue(
        member_id=MemberId("m"),
        group_instance_id=None,
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=1,
        subscription=encode_subscription(["t"]),
        assignment=b"",
    )
    shard.apply(
        GroupMetadataRecord(
            GroupId("g"), GroupMetadataValue("consumer", 3, "range", MemberId("m"), 0, (member,))
        )
    )
    for topic in ("t", "u"):
        shard.apply(
            OffsetCommitRecord(GroupId("g"), topic, 0, OffsetAndMetadata(Offset(1), -1, "", COMMITTED_MS))
        )
    gone = expired(shard.groups[GroupId("g")], LONG_AFTER_MS)
    assert gone == [OffsetCommitRecord(GroupId("g"), "u", 0, None)]


# --- the task ---


async def test_the_log_line_is_exactly_kafkas(lines: LogLines) -> None:
    cluster = Cluster()
    for partition in range(3):
        cluster.commit(1, partition=partition)
    assert await expiry_task.delete_expired_offsets(cluster.manager, cluster.clock) == 0
    cluster.clock.passed_ms += RETENTION_MS
    assert await expiry_task.delete_expired_offsets(cluster.manager, cluster.clock) == 3
    assert [event for event in lines.events if event.startswith("Removed")] == [
        "Removed 0 expired offsets in 0 milliseconds.",
        "Removed 3 expired offsets in 0 milliseconds.",
    ]


async def test_others_run_while_many_groups_are_looked_at(lines: LogLines) -> None:
    """And what happens to the groups meanwhile does no harm: their partition may be lost, or they deleted."""
    cluster = Cluster()
    cluster.clock.look_ns = SLICE_NS + 1  # it gives way after every group
    for number in range(10):
        cluster.commit(1, group=f"g{number}")
    cluster.clock.passed_ms += RETENTION_MS
    task = asyncio.create_task(expiry_task.delete_expired_offsets(cluster.manager, cluster.clock))
    for _ in range(3):
        await asyncio.sleep(0)
    left = [group.group_id for group in cluster.manager.current_groups()]
    assert 0 < len(left) < 10
    cluster.manager.delete_group(left[-1])
    for _ in range(2):
        await asyncio.sleep(0)
    appends = len(cluster.log.tickets)
    cluster.manager.remove_groups_for_partition(Partition(0))
    removed = await task
    assert len(cluster.log.tickets) == appends, "tombstones of a partition that was lost"
    assert removed == 10 - len(left) + 2


async def test_a_group_of_many_offsets_is_looked_at_in_steps(lines: LogLines) -> None:
    """What is committed meanwhile stays, and so does the group then."""
    cluster = Cluster()
    cluster.manager.offsets_per_step = 10
    cluster.clock.look_ns = SLICE_NS + 1
    cluster.commit_all({topic: dict.fromkeys(range(25), 1) for topic in ("t", "u")})
    cluster.clock.passed_ms += RETENTION_MS
    task = asyncio.create_task(expiry_task.delete_expired_offsets(cluster.manager, cluster.clock))
    left = [50]
    while not task.done():
        await asyncio.sleep(0)
        left.append(cluster.kept().offsets.count)
        if len(left) == 3:
            cluster.commit(2, topic="u", partition=3)
    assert max(before - after for before, after in pairwise(left)) == 10
    assert task.result() == 49
    assert next(cluster.kept().offsets.all())[:2] == ("u", 3)


async def test_the_task_runs_by_the_clock_and_asks_for_no_acknowledgement(
    tmp_path: Path, lines: LogLines
) -> None:
    async with node(tmp_path / "data", offsets_retention_check_interval_ms=20) as running:
        client = await running.client()
        await client.ask(requests.commit("g", {0: 1}, version=4, retention_ms=1))
        await eventually(lambda: running.app.stats.offset_expirations == 1, "the offset to expire")
        assert await client.fetch("g") == {}
        assert classic(running.app.manager, "g") is None
        assert any(event.startswith("Removed 1 expired offsets in ") for _, event, _ in lines.lines)
    async with node(tmp_path / "data") as running:
        assert classic(running.app.manager, "g") is None
