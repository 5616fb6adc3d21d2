# SPDX-License-Identifier: Apache-2.0
"""The partitioned cache: finding, adding, loading and dropping groups, and storing what they decide."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.api import (
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from coordinator.api.context import PARKED
from coordinator.groups.classic.state import GroupState
from coordinator.groups.outcome import Outcome
from coordinator.partitions.group_access import AbsentGroup, GroupEntry
from coordinator.tickets import ReplyDependencies
from protocol import hot
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    OffsetDeleteRequest,
)
from protocol.newtypes import GroupId, MemberId, Offset, Partition
from storage.errors import RecordTooLarge
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    TopicOffsetCommits,
)
from tests.groups.harness import WALL_START_MS, Call, Cluster
from tests.support.groups import classic

NONE = ErrorCode.NONE
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR


@pytest.fixture
def cluster() -> Cluster:
    """A manager with the one partition 0."""
    return Cluster()


def committed(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(Offset(offset), -1, "", WALL_START_MS)


def stored_group(generation: int = 3, *members: str) -> GroupMetadataRecord:
    values = tuple(
        MemberValue(
            member_id=MemberId(member),
            group_instance_id=None,
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout=30_000,
            session_timeout=10_000,
            subscription=b"",
            assignment=b"part",
        )
        for member in members
    )
    leader = MemberId(members[0]) if members else None
    return GroupMetadataRecord(
        GroupId("g"), GroupMetadataValue("consumer", generation, "range", leader, WALL_START_MS, values)
    )


# --- finding ---


def test_a_group_that_is_not_there(cluster: Cluster) -> None:
    assert classic(cluster.manager, "g") is None
    absent = cluster.group_access.look_up_group(ReplyDependencies(), GroupId("g"))
    assert isinstance(absent, AbsentGroup)
    assert absent.group_id == "g"
    assert classic(cluster.manager, "g") is None


def begun(cluster: Cluster) -> GroupEntry:
    """A new group, which is kept once there is something in it."""
    absent = cluster.group_access.look_up_group(ReplyDependencies(), GroupId("g"))
    assert isinstance(absent, AbsentGroup)
    kept = cluster.group_access.make_unstored_group(absent)
    assert isinstance(kept, GroupEntry)
    return kept


def test_a_group_that_is_begun_is_empty_and_kept_once_there_is_something_in_it(cluster: Cluster) -> None:
    manager = cluster.manager
    kept = begun(cluster)
    group = kept.classic_group
    assert (group.state, group.generation_id, group.protocol_type) == (GroupState.EMPTY, 0, None)
    cluster.group_access.carry_out_outcome(ReplyDependencies(), kept, Outcome())
    assert classic(manager, "g") is None
    group.add_pending_member(MemberId("m"), 1_000)
    cluster.group_access.carry_out_outcome(ReplyDependencies(), kept, Outcome())
    assert classic(manager, "g") is group
    assert list(manager.current_groups()) == [kept]
    assert cluster.log.records == [], "a group that is only in the cache is not in the log"


def test_a_group_that_is_added_twice_stays_the_first(cluster: Cluster) -> None:
    first, second = (
        cluster.shard.make_uncached_group(GroupId("g")),
        cluster.shard.make_uncached_group(GroupId("g")),
    )
    assert cluster.shard.add_or_get_existing(first) is first
    assert cluster.shard.add_or_get_existing(second) is first
    assert cluster.kept() is first


def test_no_group_is_found_or_made_where_the_partition_is_not_owned(cluster: Cluster) -> None:
    manager = cluster.manager
    cluster.commit(1)
    manager.remove_groups_for_partition(Partition(0))
    assert classic(manager, "g") is None
    assert cluster.group_access.look_up_group(ReplyDependencies(), GroupId("g")) is NOT_COORDINATOR
    cluster.log.replay(manager.begin_load(Partition(0)))
    assert classic(manager, "g") is None
    assert cluster.group_access.look_up_group(ReplyDependencies(), GroupId("g")) is LOADING


# --- loading and dropping ---


def test_loading_makes_a_partition_served(cluster: Cluster) -> None:
    manager = cluster.manager
    manager.remove_groups_for_partition(Partition(0))
    shard = manager.begin_load(Partition(0))
    assert (set(manager.loading_partitions), set(manager.owned_partitions)) == ({0}, set())
    for record in (
        stored_group(3, "m1", "m2"),
        OffsetCommitRecord(GroupId("g"), "t", 0, committed(5)),
        OffsetCommitRecord(GroupId("simple"), "t", 1, committed(6)),
        OffsetCommitRecord(GroupId("gone"), "t", 1, committed(6)),
        OffsetCommitRecord(GroupId("gone"), "t", 1, None),
    ):
        shard.apply(record)
    cluster.serve(shard)

    assert (set(manager.loading_partitions), set(manager.owned_partitions)) == (set(), {0})
    group = cluster.group()
    assert (group.state, group.generation_id, group.leader_id) == (GroupState.STABLE, 3, "m1")
    assert list(group.members) == ["m1", "m2"]
    assert cluster.committed() == 5
    assert cluster.committed(1, group="simple") == 6
    assert cluster.log.records == [], "loading writes nothing"


def test_members_that_were_loaded_expire_after_a_full_session_of_silence(cluster: Cluster) -> None:
    manager = cluster.manager
    manager.remove_groups_for_partition(Partition(0))
    shard = manager.begin_load(Partition(0))
    cluster.log.append([stored_group(3, "m1", "m2")])
    cluster.log.replay(shard)
    cluster.advance(60_000)  # however long the load takes
    cluster.serve(shard)
    cluster.advance(9_999)
    assert cluster.heartbeat("m1", 3) is NONE
    cluster.advance(1)
    assert set(cluster.group().members) == {"m1"}
    assert cluster.heartbeat("m1", 3) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_session_that_ends_before_all_groups_are_ready_waits_until_the_partition_is_served(
    cluster: Cluster,
) -> None:
    manager = cluster.manager
    manager.remove_groups_for_partition(Partition(0))
    shard = manager.begin_load(Partition(0))
    shard.apply(stored_group(3, "m1"))
    shard.apply(OffsetCommitRecord(GroupId("simple"), "t", 1, committed(6)))
    steps = manager.prepare_groups_in_steps(shard)
    next(steps)
    cluster.advance(20_000)
    assert list(shard.groups[GroupId("g")].classic_group.members) == ["m1"]
    assert cluster.log.records == []
    assert manager.find_shard_or_error(GroupId("g")) is LOADING
    assert len(list(steps)) == 1
    manager.finish_load(shard, cluster.log)
    cluster.advance(1_000)
    assert cluster.group().state is GroupState.EMPTY
    assert len(cluster.log.records) == 1


def test_a_partition_that_is_lost_before_all_groups_are_ready_leaves_no_timer_that_matters(
    cluster: Cluster,
) -> None:
    manager = cluster.manager
    manager.remove_groups_for_partition(Partition(0))
    shard = manager.begin_load(Partition(0))
    shard.apply(stored_group(3, "m1"))
    next(manager.prepare_groups_in_steps(shard))
    manager.remove_groups_for_partition(Partition(0))
    cluster.advance(1_000_000)
    assert cluster.timers.heap == []
    assert shard.groups == {}
    assert cluster.log.records == []


def test_an_offset_outlives_a_tombstone_of_its_group_alone(cluster: Cluster) -> None:
    cluster.manager.remove_groups_for_partition(Partition(0))
    shard = cluster.manager.begin_load(Partition(0))
    shard.apply(stored_group(3, "m1"))
    shard.apply(OffsetCommitRecord(GroupId("g"), "t", 0, committed(6)))
    shard.apply(GroupMetadataRecord(GroupId("g"), None))
    cluster.serve(shard)
    assert (cluster.group().state, cluster.group().members) == (GroupState.EMPTY, {})
    assert cluster.committed(0) == 6


def test_a_group_over_a_lowered_limit_rebalances_when_it_is_loaded() -> None:
    cluster = Cluster(max_size=1)
    manager = cluster.manager
    manager.remove_groups_for_partition(Partition(0))
    shard = manager.begin_load(Partition(0))
    shard.apply(stored_group(3, "m1", "m2"))
    cluster.serve(shard)
    assert cluster.group().state is GroupState.PREPARING_REBALANCE


def test_dropping_a_partition_empties_it_and_its_groups_are_dead(cluster: Cluster) -> None:
    cluster.commit(1)
    cluster.commit(1, group="h")
    groups = list(cluster.manager.current_groups())
    cluster.manager.remove_groups_for_partition(Partition(0))
    assert [kept.group.state for kept in groups] == [GroupState.DEAD] * 2
    assert list(cluster.manager.current_groups()) == []
    cluster.manager.remove_groups_for_partition(Partition(0))


def test_dropping_a_partition_answers_whoever_waits_and_leaves_no_timer_that_matters() -> None:
    cluster = Cluster(initial_rebalance_delay_ms=3_000)
    first, second = cluster.join(version=3), cluster.join(version=3)
    assert not first.answered
    cluster.manager.remove_groups_for_partition(Partition(0))
    assert first.response.error_code == second.response.error_code == NOT_COORDINATOR
    cluster.advance(1_000_000)
    assert (first.replies, second.replies) == (1, 1)


def test_dropping_a_partition_answers_waiting_syncs(cluster: Cluster) -> None:
    first = cluster.member()
    second = cluster.member()
    first = cluster.join(first.response.member_id)
    waiting = cluster.sync(second.response.member_id, first.response.generation_id)
    assert not waiting.answered
    cluster.manager.remove_groups_for_partition(Partition(0))
    assert waiting.response.error_code == NOT_COORDINATOR


def test_a_partition_cannot_be_loaded_while_it_is_owned(cluster: Cluster) -> None:
    with pytest.raises(AssertionError):
        cluster.manager.begin_load(Partition(0))


# --- what each api says without a partition ---


def ask(cluster: Cluster, handle: Callable[..., Any], request: Any, version: int) -> Any:
    call = Call(api_version=version)
    response = handle(cluster, request, call.ctx)
    return call.response if response is PARKED else response


COMMIT = hot.OffsetCommitRequest(
    group_id=GroupId("g"),
    generation_id_or_member_epoch=-1,
    topics=[
        hot.OffsetCommitRequestTopic(
            name="t",
            partitions=[hot.OffsetCommitRequestPartition(partition_index=0, committed_offset=Offset(1))],
        )
    ],
)
EVERY_API: dict[str, tuple[Callable[..., Any], Any, int, Callable[[Any], Any]]] = {
    "join": (
        join_group.handle,
        hot.JoinGroupRequest(group_id=GroupId("g"), session_timeout_ms=10_000, protocol_type="consumer"),
        9,
        lambda answer: answer.error_code,
    ),
    "sync": (
        sync_group.handle,
        hot.SyncGroupRequest(group_id=GroupId("g"), member_id=MemberId("m"), generation_id=1),
        4,
        lambda answer: answer.error_code,
    ),
    "heartbeat": (
        heartbeat.handle,
        hot.HeartbeatRequest(group_id=GroupId("g"), member_id=MemberId("m"), generation_id=1),
        4,
        lambda answer: answer.error_code,
    ),
    "leave": (
        leave_group.handle,
        hot.LeaveGroupRequest(group_id=GroupId("g"), members=[hot.MemberIdentity(member_id=MemberId("m"))]),
        5,
        lambda answer: answer.error_code,
    ),
    "commit": (
        offset_commit.handle,
        COMMIT,
        8,
        lambda answer: answer.topics[0].partitions[0].error_code,
    ),
    "fetch": (
        offset_fetch.handle,
        hot.OffsetFetchRequest(group_id=GroupId("g"), topics=None),
        7,
        lambda answer: answer.error_code,
    ),
    "fetch of several": (
        offset_fetch.handle,
        hot.OffsetFetchRequest(groups=[hot.OffsetFetchRequestGroup(group_id=GroupId("g"), topics=None)]),
        8,
        lambda answer: answer.groups[0].error_code,
    ),
    "delete offsets": (
        offset_delete.handle,
        OffsetDeleteRequest(group_id="g", topics=[]),
        0,
        lambda answer: answer.error_code,
    ),
    "describe": (
        describe_groups.handle,
        DescribeGroupsRequest(groups=["g"], include_authorized_operations=False),
        5,
        lambda answer: answer.groups[0].error_code,
    ),
    "delete": (
        delete_groups.handle,
        DeleteGroupsRequest(groups_names=["g"]),
        2,
        lambda answer: answer.results[0].error_code,
    ),
}
# The member is not known yet, and it is not to be disturbed (GroupCoordinatorService.heartbeat).
WHILE_LOADING = {"heartbeat": NONE}


@pytest.mark.parametrize("api", EVERY_API)
def test_a_partition_of_somebody_else_is_not_coordinator(cluster: Cluster, api: str) -> None:
    handle, request, version, error = EVERY_API[api]
    cluster.commit(1)
    cluster.manager.remove_groups_for_partition(Partition(0))
    assert error(ask(cluster, handle, request, version)) == NOT_COORDINATOR


@pytest.mark.parametrize("api", EVERY_API)
def test_a_partition_that_loads_is_load_in_progress(cluster: Cluster, api: str) -> None:
    handle, request, version, error = EVERY_API[api]
    cluster.commit(1)
    cluster.manager.remove_groups_for_partition(Partition(0))
    shard = cluster.manager.begin_load(Partition(0))
    assert error(ask(cluster, handle, request, version)) == WHILE_LOADING.get(api, LOADING)
    assert shard.groups == {}


def test_listing_says_so_while_anything_loads(cluster: Cluster) -> None:
    request = ListGroupsRequest(states_filter=[], types_filter=[])
    cluster.commit(1)
    answer = ask(cluster, list_groups.handle, request, 5)
    assert [group.group_id for group in answer.groups] == ["g"]
    cluster.manager.remove_groups_for_partition(Partition(0))
    assert ask(cluster, list_groups.handle, request, 5).groups == []
    cluster.manager.begin_load(Partition(0))
    assert ask(cluster, list_groups.handle, request, 5).error_code == LOADING


# --- storing ---


def test_storing_a_group_appends_its_record_and_applies_it(cluster: Cluster) -> None:
    kept = cluster.shard.add_or_get_existing(begun(cluster))
    group = kept.classic_group
    waiting = ReplyDependencies()
    cluster.group_access.carry_out_outcome(waiting, kept, Outcome("answer", [stored_group(5)]))
    assert (group.generation_id, group.protocol_type, group.state) == (5, "consumer", GroupState.EMPTY)
    assert waiting.ticket is kept.ticket is cluster.log.tickets[-1]
    assert cluster.log.replay().groups[GroupId("g")].classic_group.generation_id == 5


def test_all_records_of_a_decision_are_appended_at_once_or_none(cluster: Cluster) -> None:
    kept = cluster.shard.add_or_get_existing(begun(cluster))
    group = kept.classic_group
    cluster.group_access.carry_out_outcome(
        ReplyDependencies(), kept, Outcome(None, [stored_group(5), stored_group(6)])
    )
    assert (cluster.log.appends, group.generation_id) == ([2], 6)
    cluster.log.records_max = 1
    with pytest.raises(RecordTooLarge):
        cluster.group_access.carry_out_outcome(
            ReplyDependencies(), kept, Outcome(None, [stored_group(7), stored_group(8)])
        )
    assert (cluster.log.appends, group.generation_id) == ([2], 6)


def test_records_that_are_independent_are_appended_as_they_fit(cluster: Cluster) -> None:
    cluster.commit_all({"t": {0: 1, 1: 1, 2: 1}})
    cluster.log.appends.clear()
    cluster.log.records_max = 2
    assert cluster.manager.delete_group(GroupId("g")) is NONE
    assert cluster.log.appends == [1, 2]
    assert cluster.log.replay().groups[GroupId("g")].offsets.by_topic == {}


def test_storing_offsets_appends_their_records_and_applies_them(cluster: Cluster) -> None:
    kept = begun(cluster)
    commits = [
        TopicOffsetCommits(GroupId("g"), "t", {0: committed(10), 1: committed(11)}),
        TopicOffsetCommits(GroupId("g"), "u", {0: committed(12)}),
    ]
    waiting = ReplyDependencies()
    cluster.group_access.store_offsets(waiting, kept, commits)
    assert cluster.kept() is kept
    assert waiting.ticket is kept.ticket is cluster.log.tickets[-1]
    assert kept.offsets.by_topic == {"t": {0: committed(10), 1: committed(11)}, "u": {0: committed(12)}}
    assert cluster.log.replay().groups[GroupId("g")].offsets.by_topic == kept.offsets.by_topic
    assert cluster.stats.offset_commits == 3


def test_what_is_live_is_what_the_log_gives(cluster: Cluster) -> None:
    """Rule 1: the log changes state only through apply, and loading is the same apply."""
    members = cluster.stable_group(3)
    cluster.commit(5, member_id=members[0], generation=cluster.group().generation_id)
    cluster.commit(6, partition=1, member_id=members[1], generation=cluster.group().generation_id)
    cluster.commit(7, group="simple", retention_ms=5_000, version=4)
    live, replayed = cluster.shard.groups, cluster.log.replay().groups
    assert set(live) == set(replayed)
    for group_id, kept in live.items():
        group, again = kept.classic_group, replayed[group_id].classic_group
        assert kept.offsets.by_topic == replayed[group_id].offsets.by_topic
        assert (group.state, group.generation_id, group.leader_id) == (
            again.state,
            again.generation_id,
            again.leader_id,
        )
        assert {m.member_id: m.assignment for m in group.members.values()} == {
            m.member_id: m.assignment for m in again.members.values()
        }


def test_many_groups_of_a_lost_partition_leave_memory_in_slices() -> None:
    """Nothing happens to those that are still there: their deadlines are moot, and nothing of them expires."""
    cluster = Cluster()
    cluster.manager.unloading.at_once = 5
    (member,) = cluster.stable_group(1)
    waits = cluster.join(member, protocols=[("range", b"other")], group="g")
    for number in range(20):
        cluster.commit(number, group=f"simple-{number}")
    shard, records = cluster.shard, len(cluster.log.records)
    cluster.manager.remove_groups_for_partition(Partition(0))
    assert cluster.manager.find_shard_or_error(GroupId("g")) is ErrorCode.NOT_COORDINATOR
    assert cluster.manager.unloading.is_under_way
    assert len(shard.groups) == 16
    sum(
        cluster.manager.expire_offsets_in_steps(
            shard.groups[GroupId("simple-0")], WALL_START_MS + 100 * 86_400_000
        )
    )
    cluster.advance(3_600_000)
    assert len(cluster.log.records) == records
    assert not cluster.manager.unloading.is_under_way
    assert waits.answered
    assert shard.groups == {}
    assert cluster.env.usage.groups == cluster.env.usage.offsets == cluster.env.usage.members == 0


def test_a_partition_that_is_led_anew_while_a_topic_goes_loses_its_offsets_in_it(cluster: Cluster) -> None:
    cluster.commit_all({"t": dict.fromkeys(range(60), 1), "u": {0: 1}})
    steps = cluster.manager.delete_offsets_of_topics(frozenset({"t"}))
    next(steps)
    assert 0 < len(cluster.kept().offsets.get_topic_offsets("t")) < 60
    cluster.manager.remove_groups_for_partition(Partition(0))
    loading = cluster.manager.begin_load(Partition(0))
    cluster.log.replay(loading)
    list(steps)
    cluster.serve(loading)
    assert list(cluster.kept().offsets.by_topic) == ["u"]
