# SPDX-License-Identifier: Apache-2.0
"""What a node takes on: each limit refuses what is new, counts it, and leaves alone what is there."""

from typing import Any

from coordinator.groups.classic.state import GroupState
from coordinator.groups.limits import NodeMemoryLimits
from protocol.bounds import ITEMS_MAX
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId, Partition
from tests.groups.harness import Call, Cluster

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE
FULL = ErrorCode.GROUP_MAX_SIZE_REACHED
MEMBER_BYTES = len("range") + len("client-") + 36 + len("client") + len("/127.0.0.1")
"""Of a member of these tests, without its metadata."""


def cluster_with(**limits: int) -> Cluster:
    return Cluster(limits=NodeMemoryLimits(**limits))


def refusals(cluster: Cluster) -> dict[str, int]:
    return dict(cluster.env.usage.refusals)


def error_of(call: Call) -> ErrorCode:
    return ErrorCode(call.response.error_code)


def reload(cluster: Cluster) -> None:
    """The partition moves away and back."""
    cluster.manager.remove_groups_for_partition(Partition(0))
    cluster.shard = cluster.manager.begin_load(Partition(0))
    cluster.log.replay(cluster.shard)
    cluster.serve(cluster.shard)


def test_no_more_groups_than_may_be() -> None:
    cluster = cluster_with(max_groups=2)
    assert cluster.commit(1, group="committed") is ErrorCode.NONE
    assert error_of(cluster.join(group="joined")) is ErrorCode.MEMBER_ID_REQUIRED
    assert cluster.commit(1, group="new") is NOT_AVAILABLE
    assert error_of(cluster.join(group="new")) is NOT_AVAILABLE
    assert refusals(cluster) == {"max.groups": 2}
    assert set(cluster.shard.groups) == {"committed", "joined"}

    assert cluster.commit(2, group="committed") is ErrorCode.NONE
    assert cluster.commit(2, group="joined", partition=1) is ErrorCode.NONE
    cluster.manager.delete_group(GroupId("committed"))
    assert cluster.commit(1, group="new") is ErrorCode.NONE, "there is room again"


def test_a_group_that_is_full_of_ids_that_nobody_joins_with_is_gone_at_the_next_check() -> None:
    cluster = cluster_with(max_groups=1)
    cluster.join(group="asked-once")
    cluster.advance(10_001)
    sum(cluster.manager.expire_offsets_in_steps(cluster.kept("asked-once"), cluster.clock.wall_ms()))
    assert error_of(cluster.join(group="new")) is ErrorCode.MEMBER_ID_REQUIRED


def test_long_group_ids_count_by_their_bytes() -> None:
    cluster = cluster_with(max_group_ids_bytes=100)
    assert cluster.commit(1, group="x" * 90) is ErrorCode.NONE
    assert cluster.commit(1, group="y" * 20) is NOT_AVAILABLE
    assert cluster.commit(1, group="\U0001f600" * 3) is NOT_AVAILABLE
    assert cluster.commit(1, group="y" * 10) is ErrorCode.NONE
    assert refusals(cluster) == {"max.group.ids.bytes": 2}


def test_no_more_members_than_may_be() -> None:
    cluster = cluster_with(max_members=2)
    members = cluster.stable_group(2)
    first = cluster.join(group="other")
    assert error_of(cluster.join(first.response.member_id, group="other")) is NOT_AVAILABLE
    assert error_of(cluster.join(group="other", version=3)) is NOT_AVAILABLE
    assert error_of(cluster.join(group="other", instance="static")) is NOT_AVAILABLE
    assert refusals(cluster) == {"max.members": 3}

    leader = cluster.join(members[0], protocols=[("range", b"other metadata")])
    assert not leader.answered, "a member that is there may rebalance"
    cluster.join(members[1])
    assert error_of(leader) is ErrorCode.NONE
    cluster.leave(members[1])
    cluster.join(first.response.member_id, group="other")
    assert len(cluster.group("other").members) == 1, "the id that was given out is still good"


def test_no_more_member_ids_are_given_out_than_may_be_and_long_ones_count_more() -> None:
    cluster = cluster_with(max_pending_members=2, max_members_bytes=10_000)
    assert error_of(cluster.join()) is ErrorCode.MEMBER_ID_REQUIRED
    assert error_of(cluster.join(client_id="x" * 20_000)) is NOT_AVAILABLE
    assert error_of(cluster.join()) is ErrorCode.MEMBER_ID_REQUIRED
    assert error_of(cluster.join()) is NOT_AVAILABLE
    assert refusals(cluster) == {"max.members.bytes": 1, "max.pending.members": 1}
    cluster.advance(10_001)
    assert error_of(cluster.join()) is ErrorCode.MEMBER_ID_REQUIRED, "those before were not used in time"


def test_the_members_of_a_group_are_no_larger_together_than_one_answer_may_be() -> None:
    cluster = cluster_with(group_members_max_bytes=2 * MEMBER_BYTES + 1_000)
    small: Any = [("range", b"x" * 400)]
    members = cluster.stable_group(2, protocols=small)
    new = cluster.join(protocols=small)
    assert error_of(cluster.join(new.response.member_id, protocols=small)) is FULL
    assert error_of(cluster.join(members[0], protocols=[("range", b"x" * 900)])) is FULL
    assert cluster.group().state is GroupState.STABLE, "a refused change changes nothing"
    assert refusals(cluster) == {"group.members.max.bytes": 2}
    assert error_of(cluster.join(members[1], protocols=small)) is ErrorCode.NONE
    assert not cluster.join(members[1], protocols=[("range", b"x" * 300)]).answered, "less is welcome"


def test_the_members_of_all_groups_have_a_limit_in_bytes() -> None:
    cluster = cluster_with(max_members_bytes=1_000)
    assert error_of(cluster.join(protocols=[("range", b"x" * 800)], version=3)) is ErrorCode.NONE
    assert error_of(cluster.join(group="h", protocols=[("range", b"x" * 800)], version=3)) is NOT_AVAILABLE
    assert refusals(cluster) == {"max.members.bytes": 1}


def test_a_static_member_that_returns_larger_than_there_is_room_for_changes_nothing() -> None:
    cluster = cluster_with(group_members_max_bytes=MEMBER_BYTES + 500)
    first = cluster.join(instance="static", protocols=[("range", b"x" * 300)])
    member_id = first.response.member_id
    cluster.sync(member_id, 1, {member_id: b"all"})
    assert error_of(cluster.join(instance="static", protocols=[("range", b"x" * 600)])) is FULL
    assert cluster.heartbeat(member_id, 1, instance="static") is ErrorCode.NONE
    replaced = cluster.join(instance="static", protocols=[("range", b"y" * 300)])
    assert error_of(replaced) is ErrorCode.NONE
    assert replaced.response.member_id != member_id


def test_assignments_that_are_given_up_are_no_longer_counted() -> None:
    cluster = Cluster()
    members = cluster.stable_group(2)
    for member_id in members:
        cluster.join(member_id)
    assert cluster.group().state is GroupState.COMPLETING_REBALANCE
    before = cluster.env.usage.member_bytes
    assigned = sum(len(member.assignment) for member in cluster.group().members.values())
    cluster.join(members[0], protocols=[("range", b"x")])
    assert cluster.group().state is GroupState.PREPARING_REBALANCE
    assert (assigned > 0, cluster.env.usage.member_bytes) == (True, before - assigned)


def test_no_more_offsets_than_may_be_but_those_that_are_there_go_on() -> None:
    cluster = cluster_with(max_offsets=2)
    assert [cluster.commit(1, partition=partition) for partition in range(3)] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        NOT_AVAILABLE,
    ]
    assert cluster.commit(1, group="new") is NOT_AVAILABLE
    assert "new" not in cluster.shard.groups
    assert [cluster.commit(2, partition=partition) for partition in range(2)] == [ErrorCode.NONE] * 2
    assert [cluster.committed(partition) for partition in range(3)] == [2, 2, -1]
    assert refusals(cluster) == {"max.offsets": 2}
    reload(cluster)
    assert cluster.commit(3, partition=1) is ErrorCode.NONE
    assert cluster.commit(3, partition=2) is NOT_AVAILABLE


def test_of_one_commit_what_is_there_is_taken_and_what_is_new_is_not() -> None:
    cluster = cluster_with(max_offsets=2)
    cluster.commit(1, partition=5)
    answers = cluster.commit_all({"t": {4: 7, 5: 7, 6: 7}, "u": {5: 7}})
    assert answers == {
        ("t", 4): ErrorCode.NONE,
        ("t", 5): ErrorCode.NONE,
        ("t", 6): NOT_AVAILABLE,
        ("u", 5): NOT_AVAILABLE,
    }
    assert [cluster.committed(partition) for partition in (4, 5, 6)] == [7, 7, -1]


def test_of_one_commit_of_many_offsets_the_log_gets_what_there_is_room_for() -> None:
    cluster = cluster_with(max_offsets=12)
    cluster.commit(1, partition=19)
    answers = cluster.commit_all({"t": dict.fromkeys(range(20), 7)})
    taken = {partition for (_, partition), error in answers.items() if error is ErrorCode.NONE}
    assert taken == {*range(11), 19}
    assert set(answers.values()) == {ErrorCode.NONE, NOT_AVAILABLE}
    reload(cluster)
    assert [cluster.committed(index) for index in range(20)] == [
        7 if index in taken else -1 for index in range(20)
    ]


def test_metadata_of_offsets_has_a_limit_of_its_own() -> None:
    cluster = cluster_with(max_offsets_metadata_bytes=10)
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert cluster.commit(1, metadata="x" * 8) is ErrorCode.NONE
    assert cluster.commit(1, partition=1, metadata="x" * 3) is too_large
    assert cluster.commit(1, partition=1, metadata="") is ErrorCode.NONE
    assert cluster.commit(2, metadata="y" * 8) is ErrorCode.NONE, "as long as before"
    assert cluster.commit(3, metadata="y" * 11) is too_large
    assert cluster.commit(4, metadata="y" * 2) is ErrorCode.NONE
    assert cluster.commit(1, partition=1, metadata="x" * 8) is ErrorCode.NONE
    assert refusals(cluster) == {"max.offsets.metadata.bytes": 2}


def test_loading_takes_what_the_log_holds_whatever_the_limits_are_by_now() -> None:
    cluster = Cluster()
    members = cluster.stable_group(3)
    for partition in range(3):
        cluster.commit(1, group="old", partition=partition, metadata="text")
    tighter = Cluster(
        limits=NodeMemoryLimits(
            max_groups=1,
            max_members=1,
            max_members_bytes=1,
            group_members_max_bytes=1,
            max_offsets=1,
            max_offsets_metadata_bytes=1,
        )
    )
    tighter.log = cluster.log
    reload(tighter)
    assert len(tighter.group().members) == 3
    assert tighter.kept("old").offsets.count == 3
    generation = tighter.group().generation_id
    for member_id in members:
        assert tighter.heartbeat(member_id, generation) is ErrorCode.NONE
        assert tighter.commit(5, member_id=member_id, generation=generation) is NOT_AVAILABLE
    assert tighter.commit(2, group="old", metadata="same") is ErrorCode.NONE
    assert not tighter.join(members[0]).answered
    assert [tighter.join(member_id).answered for member_id in members[1:]] == [False, True]
    assert error_of(tighter.join(group="new")) is NOT_AVAILABLE


def test_far_from_its_limits_a_commit_is_not_looked_at_any_closer() -> None:
    """What the hot path asks is right for the largest request that can be read."""
    cluster = cluster_with(max_offsets=ITEMS_MAX + 1)
    assert cluster.commit(1) is ErrorCode.NONE
    many = cluster.commit_all({"t": dict.fromkeys(range(1, ITEMS_MAX), 1)})  # the topic is an item, too
    assert set(many.values()) == {ErrorCode.NONE}
    assert cluster.commit(1, partition=ITEMS_MAX) is ErrorCode.NONE
    assert cluster.commit(1, partition=ITEMS_MAX + 1) is NOT_AVAILABLE
    assert cluster.env.usage.offsets == ITEMS_MAX + 1
