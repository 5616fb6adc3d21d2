# SPDX-License-Identifier: Apache-2.0
"""Who may commit in which state, and what becomes of a commit."""

import pytest

from coordinator.groups.classic.state import GroupState
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.groups.harness import Cluster
from tests.support.groups import classic

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_MEMBER_ID
ILLEGAL = ErrorCode.ILLEGAL_GENERATION
FENCED = ErrorCode.FENCED_INSTANCE_ID
REBALANCING = ErrorCode.REBALANCE_IN_PROGRESS


def in_state(state: GroupState) -> tuple[Cluster, str]:
    """A cluster whose group is in this state, and the id of a member (of the last one, if it is Empty)."""
    cluster = Cluster()
    leader, _ = cluster.stable_group(2)
    match state:
        case GroupState.PREPARING_REBALANCE:
            cluster.join(leader)
        case GroupState.COMPLETING_REBALANCE:
            for member_id in list(cluster.group().members):
                cluster.join(member_id)
        case GroupState.EMPTY:
            cluster.leave(*cluster.group().members)
        case _:
            pass
    assert cluster.group().state is state
    return cluster, leader


@pytest.mark.parametrize(
    ("state", "outside", "member", "wrong_generation", "stranger"),
    [
        (GroupState.EMPTY, NONE, UNKNOWN, UNKNOWN, UNKNOWN),
        (GroupState.PREPARING_REBALANCE, UNKNOWN, NONE, ILLEGAL, UNKNOWN),
        (GroupState.COMPLETING_REBALANCE, UNKNOWN, REBALANCING, ILLEGAL, UNKNOWN),
        (GroupState.STABLE, UNKNOWN, NONE, ILLEGAL, UNKNOWN),
    ],
)
def test_commits_by_state(
    state: GroupState, outside: ErrorCode, member: ErrorCode, wrong_generation: ErrorCode, stranger: ErrorCode
) -> None:
    cluster, member_id = in_state(state)
    generation = cluster.group().generation_id
    assert cluster.commit(1) is outside
    assert cluster.commit(2, member_id=member_id, generation=generation) is member
    assert cluster.commit(3, member_id=member_id, generation=generation + 1) is wrong_generation
    assert cluster.commit(4, member_id="stranger", generation=generation) is stranger


@pytest.mark.parametrize(("version", "error"), [(8, ILLEGAL), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_generation_of_a_group_that_does_not_exist(version: int, error: ErrorCode) -> None:
    cluster = Cluster()
    assert cluster.commit(1, member_id="m", generation=1, version=version) is error
    assert classic(cluster.manager, "g") is None


def test_a_commit_from_outside_makes_a_simple_group() -> None:
    cluster = Cluster()
    assert cluster.commit(7) is NONE
    group = cluster.group()
    assert (group.state, group.protocol_type, group.generation_id) == (GroupState.EMPTY, None, 0)
    assert cluster.committed() == 7


@pytest.mark.parametrize(
    ("metadata", "error"), [("x" * 4_096, NONE), ("x" * 4_097, ErrorCode.OFFSET_METADATA_TOO_LARGE)]
)
def test_metadata_at_its_limit(metadata: str, error: ErrorCode) -> None:
    cluster = Cluster()
    assert cluster.commit(1, metadata=metadata) is error
    assert cluster.committed() == (1 if error is NONE else -1)


def test_metadata_is_measured_as_java_measures_it() -> None:
    cluster = Cluster()
    assert cluster.commit(1, metadata="\U0001f600" * 2_048) is NONE  # two UTF-16 units each
    assert cluster.commit(2, metadata="\U0001f600" * 2_049) is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_offsets_may_go_back_when_a_client_wants_it() -> None:
    cluster = Cluster()
    cluster.commit(10)
    cluster.commit(3)
    assert cluster.committed() == 3
    assert cluster.log.replay().groups[GroupId("g")].offsets.by_topic["t"][0].offset == 3
