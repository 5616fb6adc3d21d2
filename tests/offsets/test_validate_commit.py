# SPDX-License-Identifier: Apache-2.0
"""Who may commit: every state of a group against every kind of caller (ClassicGroup.validateOffsetCommit)."""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from coordinator.groups.classic.state import GroupState
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import OffsetCommitRequest
from protocol.newtypes import GroupId, MemberId, Partition
from tests.groups.harness import Cluster
from tests.support.groups import classic

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
ILLEGAL = ErrorCode.ILLEGAL_GENERATION
FENCED = ErrorCode.FENCED_INSTANCE_ID
REBALANCE = ErrorCode.REBALANCE_IN_PROGRESS
DEAD = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Members(NamedTuple):
    """A dynamic member, the static one with the instance id `i`, and an id that was given out and not used."""

    dynamic: str
    static: str
    pending: str = "client-pending"


class Caller(NamedTuple):
    """What a commit says of its sender; `generation` is the difference from the group's, None stands for -1."""

    member: Callable[[Members], str]
    generation: int | None = 0
    instance: str | None = None


CALLERS = {
    "from outside": Caller(lambda _: "", None),
    "a member without a generation": Caller(lambda members: members.dynamic, None),
    "a stranger without a generation": Caller(lambda _: "nobody", None),
    "an instance without a generation": Caller(lambda _: "", None, "i"),
    "a member": Caller(lambda members: members.dynamic),
    "a static member": Caller(lambda members: members.static, 0, "i"),
    "a static member by its id alone": Caller(lambda members: members.static),
    "of the last generation": Caller(lambda members: members.dynamic, -1),
    "of the next generation": Caller(lambda members: members.dynamic, 1),
    "a static one of the last generation": Caller(lambda members: members.static, -1, "i"),
    "a stranger": Caller(lambda _: "nobody"),
    "with a generation alone": Caller(lambda _: ""),
    "with somebody's instance": Caller(lambda members: members.dynamic, 0, "i"),
    "with somebody's instance, of the last generation": Caller(lambda members: members.dynamic, -1, "i"),
    "with nobody's instance": Caller(lambda members: members.dynamic, 0, "other"),
    "with an empty instance": Caller(lambda members: members.dynamic, 0, ""),
    "an id that was only given out": Caller(lambda members: members.pending),
}

# caller → Empty, PreparingRebalance, CompletingRebalance, Stable, Dead
EXPECTED = {
    "from outside": (NONE, UNKNOWN, UNKNOWN, UNKNOWN, DEAD),
    "a member without a generation": (NONE, ILLEGAL, ILLEGAL, ILLEGAL, DEAD),
    "a stranger without a generation": (NONE, UNKNOWN, UNKNOWN, UNKNOWN, DEAD),
    "an instance without a generation": (NONE, FENCED, FENCED, FENCED, DEAD),
    "a member": (UNKNOWN, NONE, REBALANCE, NONE, DEAD),
    "a static member": (UNKNOWN, NONE, REBALANCE, NONE, DEAD),
    "a static member by its id alone": (UNKNOWN, NONE, REBALANCE, NONE, DEAD),
    "of the last generation": (UNKNOWN, ILLEGAL, ILLEGAL, ILLEGAL, DEAD),
    "of the next generation": (UNKNOWN, ILLEGAL, ILLEGAL, ILLEGAL, DEAD),
    "a static one of the last generation": (UNKNOWN, ILLEGAL, ILLEGAL, ILLEGAL, DEAD),
    "a stranger": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DEAD),
    "with a generation alone": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DEAD),
    "with somebody's instance": (UNKNOWN, FENCED, FENCED, FENCED, DEAD),
    "with somebody's instance, of the last generation": (UNKNOWN, FENCED, FENCED, FENCED, DEAD),
    "with nobody's instance": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DEAD),
    "with an empty instance": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DEAD),
    "an id that was only given out": (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, DEAD),
}
STATES = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE,
    GroupState.STABLE,
    GroupState.DEAD,
)
CASES = [
    pytest.param(caller, state, error, id=f"{caller} in {state.value}")
    for caller, errors in EXPECTED.items()
    for state, error in zip(STATES, errors, strict=True)
]


def group_in(state: GroupState) -> tuple[Cluster, Members]:
    """A group in this state that has, or had, two members."""
    cluster = Cluster()
    static = cluster.join(instance="i")
    dynamic = cluster.member()
    static = cluster.join(static.response.member_id, instance="i")
    members = Members(dynamic.response.member_id, static.response.member_id)
    generation = cluster.group().generation_id
    assert cluster.group().state is GroupState.COMPLETING_REBALANCE
    if state is not GroupState.COMPLETING_REBALANCE:
        for member in members[:2]:
            cluster.sync(member, generation, dict.fromkeys(members[:2], b"part"))
        assert cluster.group().state is GroupState.STABLE
    if state is GroupState.PREPARING_REBALANCE:
        cluster.member()
    elif state is GroupState.EMPTY:
        cluster.leave(*members[:2])
    if state is GroupState.DEAD:
        kept = cluster.kept()
        cluster.manager.remove_groups_for_partition(Partition(0))
        cluster.shard.groups[GroupId("g")] = kept
    else:
        cluster.group().add_pending_member(MemberId(members.pending), 1 << 40)
    assert cluster.shard.groups[GroupId("g")].classic_group.state is state
    return cluster, members


def test_the_table_is_whole() -> None:
    assert set(EXPECTED) == set(CALLERS)
    assert set(STATES) == set(GroupState)


@pytest.mark.parametrize(("caller", "state", "error"), CASES)
def test_who_may_commit(caller: str, state: GroupState, error: ErrorCode) -> None:
    cluster, members = group_in(state)
    group = cluster.shard.groups[GroupId("g")].classic_group
    asking = CALLERS[caller]
    generation = -1 if asking.generation is None else group.generation_id + asking.generation
    request = OffsetCommitRequest(
        group_id=GroupId("g"),
        generation_id_or_member_epoch=generation,
        member_id=MemberId(asking.member(members)),
        group_instance_id=asking.instance,
    )
    assert group.validate_commit(request) is error
    if state is GroupState.DEAD:
        return
    # and the same through the handler, with what it leaves behind
    answer = cluster.commit(
        42, member_id=asking.member(members), generation=generation, instance=asking.instance
    )
    assert answer is error
    assert cluster.committed() == (42 if error is NONE else -1)
    assert group.state is state


@pytest.mark.parametrize(
    ("version", "error"), [(2, ILLEGAL), (8, ILLEGAL), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_of_a_group_that_is_not_there(version: int, error: ErrorCode) -> None:
    cluster = Cluster()
    assert cluster.commit(1, member_id="m", generation=1, version=version) is error
    assert classic(cluster.manager, "g") is None


@pytest.mark.parametrize("state", [GroupState.PREPARING_REBALANCE, GroupState.STABLE])
def test_a_commit_is_a_sign_of_life(state: GroupState) -> None:
    cluster, members = group_in(state)
    group = cluster.group()
    cluster.clock.passed_ms += 9_000
    assert cluster.commit(1, member_id=members.dynamic, generation=group.generation_id) is NONE
    deadline = group.members[MemberId(members.dynamic)].session_deadline_ms
    assert deadline == cluster.clock.mono_ms() + 10_000
    assert group.members[MemberId(members.static)].session_deadline_ms < deadline


def test_a_refused_commit_is_no_sign_of_life() -> None:
    cluster, members = group_in(GroupState.STABLE)
    group = cluster.group()
    before = group.members[MemberId(members.dynamic)].session_deadline_ms
    cluster.clock.passed_ms += 5_000
    assert cluster.commit(1, member_id=members.dynamic, generation=group.generation_id - 1) is ILLEGAL
    assert cluster.commit(1) is UNKNOWN
    assert group.members[MemberId(members.dynamic)].session_deadline_ms == before


def test_answers_of_commits_that_were_taken_stay_good_after_one_that_was_refused() -> None:
    cluster, members = group_in(GroupState.STABLE)
    generation = cluster.group().generation_id
    for _ in range(2):
        assert cluster.commit(1, member_id=members.dynamic, generation=generation) is ErrorCode.NONE
        assert cluster.commit(1, member_id=members.dynamic, generation=generation - 1) is ILLEGAL


def test_the_empty_group_id_is_a_group_like_any_other() -> None:
    cluster = Cluster()
    assert cluster.commit(5, group="") is NONE
    assert cluster.committed(group="") == 5
