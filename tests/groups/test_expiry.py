# SPDX-License-Identifier: Apache-2.0
"""When offsets expire, each row of the table at its boundary, and what is left of a group then."""

import asyncio
from typing import Any

import pytest

from coordinator.groups.classic.state import GroupState
from coordinator.jobs import expiry_task
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, Partition
from storage.format.records import GroupMetadataRecord, OffsetCommitRecord, decode_key_and_value
from tests.groups.harness import Cluster
from tests.support.consumer_protocol import encode_subscription
from tests.support.groups import classic
from tests.support.log_lines import LogLines

RETENTION_MS = 7 * 86_400_000
RANGE_ON_T = (("range", encode_subscription(["t"])),)


def check(cluster: Cluster) -> int:
    """Run the expiry check now, as the task does; returns how many offsets went."""
    return asyncio.run(expiry_task.delete_expired_offsets(cluster.manager, cluster.clock))


def sleep_through(cluster: Cluster, delta_ms: int) -> None:
    """Let time pass while nobody can expire by a session: no timer fires."""
    cluster.clock.passed_ms += delta_ms


def tombstones(cluster: Cluster) -> list[Any]:
    """The log's tombstones, decoded."""
    return [decode_key_and_value(key, value) for key, value in cluster.log.records if value is None]


def test_simple_consumers_offsets_expire_by_their_commit() -> None:
    cluster = Cluster()
    cluster.commit(1, partition=0)
    sleep_through(cluster, 1_000)
    cluster.commit(2, partition=1)
    sleep_through(cluster, RETENTION_MS - 1_001)
    assert check(cluster) == 0
    sleep_through(cluster, 1)
    assert check(cluster) == 1
    assert (cluster.committed(0), cluster.committed(1)) == (-1, 2)
    sleep_through(cluster, 1_000)
    assert check(cluster) == 1
    assert classic(cluster.manager, "g") is None


def test_an_empty_groups_offsets_expire_by_the_moment_it_became_empty() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    cluster.commit(1, member_id=member, generation=1)
    sleep_through(cluster, RETENTION_MS)
    cluster.leave(member)
    assert check(cluster) == 0
    sleep_through(cluster, RETENTION_MS - 1)
    assert check(cluster) == 0
    sleep_through(cluster, 1)
    assert check(cluster) == 1
    assert classic(cluster.manager, "g") is None


def test_stable_consumers_lose_only_topics_that_nobody_consumes() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1, protocols=RANGE_ON_T)
    cluster.commit(1, topic="t", member_id=member, generation=1)
    cluster.commit(2, topic="other", member_id=member, generation=1)
    sleep_through(cluster, RETENTION_MS)
    assert check(cluster) == 1
    assert (cluster.committed(topic="t"), cluster.committed(topic="other")) == (1, -1)


@pytest.mark.parametrize("metadata", [b"", b"no subscription"])
def test_stable_consumers_with_unknown_subscriptions_lose_nothing(metadata: bytes) -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1, protocols=(("range", metadata),))
    cluster.commit(1, member_id=member, generation=1)
    sleep_through(cluster, 2 * RETENTION_MS)
    assert check(cluster) == 0


def test_members_that_are_no_consumers_lose_nothing() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1, protocol_type="connect")
    cluster.commit(1, member_id=member, generation=1)
    sleep_through(cluster, 2 * RETENTION_MS)
    assert check(cluster) == 0


def test_a_rebalancing_group_loses_nothing() -> None:
    cluster = Cluster()
    leader, _ = cluster.stable_group(2, protocols=RANGE_ON_T)
    cluster.commit(1, topic="other", member_id=leader, generation=cluster.group().generation_id)
    cluster.join(leader, protocols=RANGE_ON_T)
    assert cluster.group().state is GroupState.PREPARING_REBALANCE
    sleep_through(cluster, 2 * RETENTION_MS)
    assert check(cluster) == 0


def test_an_explicit_retention_time_ends_an_offset_by_itself() -> None:
    cluster = Cluster()
    cluster.commit(1, partition=0, version=4, retention_ms=5_000)
    cluster.commit(2, partition=1, version=4)
    sleep_through(cluster, 4_999)
    assert check(cluster) == 0
    sleep_through(cluster, 1)
    assert check(cluster) == 1
    assert (cluster.committed(0), cluster.committed(1)) == (-1, 2)
    loaded = cluster.log.replay().groups[GroupId("g")]
    assert [partition for _, partition, _ in loaded.offsets.all()] == [1]


def test_a_stored_group_gets_a_tombstone_and_one_that_never_was_in_the_log_none() -> None:
    cluster = Cluster()
    cluster.commit(1, group="simple")
    (member,) = cluster.stable_group(1)
    cluster.commit(1, member_id=member, generation=1)
    cluster.leave(member)
    sleep_through(cluster, RETENTION_MS)
    assert check(cluster) == 2
    removed = tombstones(cluster)
    assert sorted(r.group for r in removed if isinstance(r, OffsetCommitRecord)) == ["g", "simple"]
    assert [r.group for r in removed if isinstance(r, GroupMetadataRecord)] == ["g"]
    cluster.manager.remove_groups_for_partition(Partition(0))
    loading = cluster.manager.begin_load(Partition(0))
    cluster.log.replay(loading)
    cluster.serve(loading)
    assert list(cluster.manager.current_groups()) == []


def test_an_empty_group_whose_next_member_has_its_id_already_stays() -> None:
    cluster = Cluster()
    pending = cluster.join()
    assert check(cluster) == 0
    assert cluster.join(pending.response.member_id).response.error_code == ErrorCode.NONE


def test_the_log_line_is_kafkas(lines: LogLines) -> None:
    cluster = Cluster()
    cluster.commit(1, partition=0)
    cluster.commit(1, partition=1)
    sleep_through(cluster, RETENTION_MS)
    check(cluster)
    assert lines.events[-1] == "Removed 2 expired offsets in 0 milliseconds."


def test_offsets_of_deleted_topics_go() -> None:
    cluster = Cluster()
    cluster.commit(1, topic="gone", group="g")
    cluster.commit(2, topic="stays", group="g")
    cluster.commit(3, topic="gone", group="h")
    list(cluster.manager.delete_offsets_of_topics(frozenset({"gone"})))
    assert cluster.committed(topic="gone", group="g") == -1
    assert cluster.committed(topic="gone", group="h") == -1
    assert cluster.committed(topic="stays", group="g") == 2
    assert sorted(r.group for r in tombstones(cluster)) == ["g", "h"]
