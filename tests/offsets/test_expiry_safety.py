# SPDX-License-Identifier: Apache-2.0
"""What keeps expiry and deletion from removing too much, or from stopping half way."""

from pathlib import Path

import pytest

from coordinator.groups.outcome import Instant
from coordinator.jobs import expiry_task
from coordinator.jobs.wall_clock import WallClockGuard
from coordinator.runtime.clock import SystemClock
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DurabilityTicket
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, Offset, Partition
from storage.errors import RecordTooLarge
from storage.format.batch import BatchBuilder
from storage.format.records import OffsetAndMetadata, OffsetCommitRecord, Record, UnknownRecord
from tests.groups.harness import Cluster
from tests.net import requests
from tests.partitions.running import node
from tests.support.groups import classic
from tests.support.log_lines import LogLines

RETENTION_MS = 604_800_000
INTERVAL_MS = 600_000


# --- the wall clock ---


class Clocks:
    """Two clocks that are set one by one."""

    def __init__(self) -> None:
        self.mono, self.wall = 5_000, 1_700_000_000_000

    def now(self) -> Instant:
        return Instant(self.mono, self.wall)

    def mono_ms(self) -> int:
        return self.mono

    def wall_ms(self) -> int:
        return self.wall

    def nanos(self) -> int:
        return self.mono * 1_000_000

    def pass_by(self, mono_ms: int, jump_ms: int = 0) -> None:
        self.mono += mono_ms
        self.wall += mono_ms + jump_ms


@pytest.mark.parametrize("jump_ms", [INTERVAL_MS + 1, -INTERVAL_MS - 1, 10**12])
def test_a_jump_counts_only_once_the_next_check_confirms_it(lines: LogLines, jump_ms: int) -> None:
    clocks, stats = Clocks(), Stats()
    guard = WallClockGuard(clocks, stats, INTERVAL_MS)
    clocks.pass_by(INTERVAL_MS)
    assert guard.check_wall_clock()
    clocks.pass_by(INTERVAL_MS, jump_ms)
    assert not guard.check_wall_clock()
    assert [fields for _, _, fields in lines.lines] == [{"jump_ms": jump_ms}]
    clocks.pass_by(INTERVAL_MS)
    assert guard.check_wall_clock()
    assert stats.wall_clock_jumps == 1


@pytest.mark.parametrize("jump_ms", [0, INTERVAL_MS, -INTERVAL_MS])
def test_a_clock_that_is_set_right_by_less_is_believed(jump_ms: int) -> None:
    clocks = Clocks()
    guard = WallClockGuard(clocks, Stats(), INTERVAL_MS)
    clocks.pass_by(INTERVAL_MS, jump_ms)
    assert guard.check_wall_clock()


def test_a_check_that_comes_late_is_no_jump() -> None:
    clocks = Clocks()
    guard = WallClockGuard(clocks, Stats(), INTERVAL_MS)
    clocks.pass_by(100 * INTERVAL_MS)
    assert guard.check_wall_clock()


def test_a_clock_that_jumps_and_comes_back_is_never_believed_in_between(lines: LogLines) -> None:
    clocks = Clocks()
    guard = WallClockGuard(clocks, Stats(), INTERVAL_MS)
    clocks.pass_by(INTERVAL_MS, 10**10)
    assert not guard.check_wall_clock()
    clocks.pass_by(INTERVAL_MS, -(10**10))
    assert not guard.check_wall_clock()
    clocks.pass_by(INTERVAL_MS)
    assert guard.check_wall_clock()
    assert len(lines.lines) == 2


class JumpingClock:
    """The machine's clocks, but for what the wall clock is set wrong by."""

    def __init__(self) -> None:
        self.real = SystemClock()
        self.jump_ms = 0

    def mono_ms(self) -> int:
        return self.real.mono_ms()

    def wall_ms(self) -> int:
        return self.real.wall_ms() + self.jump_ms

    def now(self) -> Instant:
        return Instant(self.mono_ms(), self.wall_ms())

    def nanos(self) -> int:
        return self.real.nanos()


async def test_a_node_expires_nothing_while_its_clock_is_wrong(tmp_path: Path, lines: LogLines) -> None:
    clock = JumpingClock()
    async with node(
        tmp_path / "data",
        metrics=True,
        clock=clock,
        offsets_retention_check_interval_ms=3_600_000,
    ) as running:
        app, client = running.app, await running.client()
        await client.commit("g", 0, 5)
        clock.jump_ms = 30 * 86_400_000
        await app._expire()
        clock.jump_ms = 0
        await app._expire()  # it came back: nothing was lost
        await app._expire()
        assert await client.fetch("g") == {0: 5}
        assert app.stats.wall_clock_jumps == 2
        clock.jump_ms = 30 * 86_400_000
        await app._expire()
        assert await client.fetch("g") == {0: 5}
        await app._expire()  # it stayed
        assert app.stats.offset_expirations == 1
        assert await client.fetch("g") == {}


# --- tombstones and the size of batches ---


class SmallLog:
    """A partition's appender with a real builder, for batches of at most `bytes_max`."""

    def __init__(self, cluster: Cluster, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.cluster = cluster

    def append(self, records: list[object]) -> DurabilityTicket:
        BatchBuilder(self.bytes_max).append_in_one_batch(records)  # type: ignore[arg-type]
        return self.cluster.log.append(records)  # type: ignore[arg-type]

    def append_offsets(self, commits: list[object]) -> DurabilityTicket:
        BatchBuilder(self.bytes_max).append_offsets(commits)  # type: ignore[arg-type]
        return self.cluster.log.append_offsets(commits)  # type: ignore[arg-type]


def small_batches(bytes_max: int) -> Cluster:
    """A partition that takes small batches only."""
    cluster = Cluster()
    cluster.shard.appender = SmallLog(cluster, bytes_max)  # type: ignore[assignment]
    return cluster


async def test_long_names_expire_where_batches_are_small() -> None:
    cluster = small_batches(1_000)
    group = "g" * 500
    for partition in range(25):
        assert cluster.commit(1, partition=partition, group=group, topic="t" * 200) is ErrorCode.NONE
    cluster.clock.passed_ms += RETENTION_MS
    assert await expiry_task.delete_expired_offsets(cluster.manager, cluster.clock) == 25
    assert classic(cluster.manager, group) is None
    assert not cluster.log.replay().groups[GroupId(group)].offsets.count


def test_deleting_a_group_with_long_names_where_batches_are_small() -> None:
    cluster = small_batches(1_000)
    group = "g" * 500
    for partition in range(25):
        cluster.commit(1, partition=partition, group=group)
    assert cluster.manager.delete_group(GroupId(group)) is ErrorCode.NONE
    assert not cluster.log.replay().groups[GroupId(group)].offsets.count


async def test_a_tombstone_that_fits_in_no_batch_stops_no_other(lines: LogLines) -> None:
    """`message.max.bytes` was larger when the offset was committed."""
    cluster = small_batches(5_000)
    for group in ("a", "g" * 3_000, "z"):
        assert cluster.commit(1, group=group) is ErrorCode.NONE
    cluster.shard.appender.bytes_max = 1_000  # type: ignore[union-attr]
    cluster.clock.passed_ms += RETENTION_MS
    assert await expiry_task.delete_expired_offsets(cluster.manager, cluster.clock) == 2
    assert [group.group_id[0] for group in cluster.manager.current_groups()] == ["g"]
    assert ("error", "expired offsets were not removed") in [
        (level, event) for level, event, _ in lines.lines
    ]
    with pytest.raises(RecordTooLarge):
        cluster.manager.delete_group(GroupId("g" * 3_000))
    list(cluster.manager.delete_offsets_of_topics(frozenset({"t"})))
    assert cluster.committed(group="g" * 3_000) == 1


# --- topics that go while a partition loads ---


async def test_a_topic_deleted_while_a_partition_loads_takes_its_offsets_with_it(tmp_path: Path) -> None:
    async with node(tmp_path / "data") as running:
        client = await running.client()
        groups = [running.group_in(partition) for partition in range(4)]
        for group in groups:
            assert await client.commit(group, 0, 7) is ErrorCode.NONE
    async with node(tmp_path / "data", held_partition=3) as running:
        list(running.app.manager.delete_offsets_of_topics(frozenset({requests.TOPIC})))
        running.disk.let_go()
        await running.loaded()
        client = await running.client()
        for group in groups:
            assert await client.fetch(group) == {}, group
        assert running.app.stats.offset_deletions == 4
        # A topic of that name that is made later is another one.
        assert await client.commit(groups[3], 0, 1) is ErrorCode.NONE
    async with node(tmp_path / "data") as running:
        client = await running.client()
        assert [await client.fetch(group) for group in groups] == [{}, {}, {}, {0: 1}]


# --- groups of protocols that are not served ---


def unknown(key_version: int, group: str, value: bytes | None = b"\0\0") -> UnknownRecord:
    name = group.encode()
    key = key_version.to_bytes(2, "big") + len(name).to_bytes(2, "big") + name
    return UnknownRecord(key_version, key, value)


def loaded(records: list[Record]) -> Cluster:
    """A partition whose log holds these records, all of a time long ago."""
    cluster = Cluster()
    cluster.manager.remove_groups_for_partition(Partition(0))
    cluster.shard = cluster.manager.begin_load(Partition(0))
    for record in records:
        cluster.shard.apply(record)
        cluster.log.stored.apply(record)
    cluster.serve(cluster.shard)
    return cluster


def old_offset(group: str) -> OffsetCommitRecord:
    return OffsetCommitRecord(GroupId(group), "t", 0, OffsetAndMetadata(Offset(5), -1, "", 1))


@pytest.mark.parametrize("key_version", [3, 17])
async def test_offsets_of_a_group_that_is_not_served_stay_until_it_is(key_version: int) -> None:
    """A broker's consumer group may have been busy to the last, whatever the age of its offsets."""
    cluster = loaded(
        [
            old_offset("simple"),
            unknown(key_version, "other"),
            old_offset("other"),
            unknown(key_version, "removed"),
            old_offset("removed"),
            unknown(key_version, "removed", None),
            unknown(5, "member's"),
            old_offset("member's"),
        ]
    )
    assert await expiry_task.delete_expired_offsets(cluster.manager, cluster.clock) == 3
    assert [group.group_id for group in cluster.manager.current_groups()] == ["other"]
    # Once members have been here, it is as any group.
    joined = cluster.member(group="other").response
    cluster.sync(joined.member_id, joined.generation_id, {joined.member_id: b""}, group="other")
    cluster.leave(joined.member_id, group="other")
    assert await expiry_task.delete_expired_offsets(cluster.manager, cluster.clock) == 0
    cluster.clock.passed_ms += RETENTION_MS
    assert await expiry_task.delete_expired_offsets(cluster.manager, cluster.clock) == 1


def test_a_key_that_makes_no_sense_names_no_group() -> None:
    cluster = loaded([UnknownRecord(3, b"\0\3\xff", b""), old_offset("simple")])
    assert cluster.shard.other_groups == set()
