# SPDX-License-Identifier: Apache-2.0
"""Static members (KIP-345): they come back under a new id, and their old one is fenced."""

import pytest

from coordinator.groups.classic.state import GroupState
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId
from tests.groups.harness import Call, Cluster

FENCED = ErrorCode.FENCED_INSTANCE_ID
NONE = ErrorCode.NONE


def static_pair(cluster: Cluster) -> tuple[str, str]:
    """A stable group of the static members a (the leader) and b; returns their ids."""
    first = cluster.join(instance="a")
    second = cluster.join(instance="b")
    first = cluster.join(first.response.member_id, instance="a")
    a, b = first.response.member_id, second.response.member_id
    generation = first.response.generation_id
    cluster.sync(b, generation, instance="b")
    cluster.sync(a, generation, {a: b"for a", b: b"for b"}, instance="a")
    assert cluster.group().state is GroupState.STABLE
    return a, b


def test_static_member_joins_without_being_sent_back_for_an_id() -> None:
    call = Cluster().join(instance="a")
    assert call.response.error_code == NONE
    assert call.response.member_id.startswith("a-")


def test_restart_in_stable_keeps_the_assignment_and_disturbs_nobody() -> None:
    cluster = Cluster()
    _, b = static_pair(cluster)
    generation = cluster.group().generation_id
    returned = cluster.join(instance="b")
    assert returned.response.error_code == NONE
    assert returned.response.generation_id == generation
    assert returned.response.member_id != b
    assert cluster.group().state is GroupState.STABLE
    new_b = returned.response.member_id
    assert cluster.sync(new_b, generation, instance="b").response.assignment == b"for b"
    assert cluster.heartbeat(b, generation, instance="b") is FENCED
    assert cluster.heartbeat(new_b, generation, instance="b") is NONE


@pytest.mark.parametrize(("version", "skips"), [(9, True), (8, False)])
def test_leader_that_restarts_does_not_assign_anew(version: int, skips: bool) -> None:
    cluster = Cluster()
    a, _ = static_pair(cluster)
    returned = cluster.join(instance="a", version=version).response
    assert returned.skip_assignment is skips
    if skips:
        assert returned.leader == returned.member_id
        assert len(returned.members) == 2
    else:
        assert (
            returned.leader == a
        )  # an id that nobody has any more: the client believes that another one leads
        assert returned.members == []
    assert cluster.group().leader_id == returned.member_id


def test_replacement_is_in_the_log() -> None:
    cluster = Cluster()
    _, b = static_pair(cluster)
    new_b = cluster.join(instance="b").response.member_id
    loaded = cluster.log.replay().groups[GroupId("g")].classic_group
    assert loaded.static_members["b"] == new_b
    assert b not in loaded.members
    assert loaded.members[new_b].assignment == b"for b"


def test_restart_with_other_protocols_than_the_chosen_one_rebalances() -> None:
    cluster = Cluster()
    protocols = (("range", b"m"), ("other", b"m"))
    call = cluster.join(instance="a", protocols=protocols)
    generation = call.response.generation_id
    cluster.sync(call.response.member_id, generation, {call.response.member_id: b"x"}, instance="a")
    returned = cluster.join(instance="a", protocols=(("other", b"m"), ("range", b"m")))
    assert returned.response.generation_id == generation + 1


def test_restart_while_completing_starts_the_rebalance_again_and_fences_the_waiting_sync() -> None:
    cluster = Cluster()
    first = cluster.join(instance="a")
    second = cluster.join(instance="b")
    first = cluster.join(first.response.member_id, instance="a")
    generation = first.response.generation_id
    waiting = cluster.sync(second.response.member_id, generation, instance="b")
    returned = cluster.join(instance="b")
    assert waiting.response.error_code == FENCED
    assert not returned.answered
    assert cluster.group().state is GroupState.PREPARING_REBALANCE


def test_restart_while_preparing_fences_the_waiting_join() -> None:
    cluster = Cluster()
    a, b = static_pair(cluster)
    waiting = cluster.join(a, instance="a")  # the leader rejoins: b is to rejoin, too
    assert not waiting.answered
    returned = cluster.join(instance="a")
    assert waiting.response.error_code == FENCED
    assert waiting.response.member_id == a
    cluster.join(b, instance="b")
    assert returned.response.error_code == NONE


def everything(cluster: Cluster, member_id: str, instance: str) -> list[ErrorCode]:
    """What each api answers to this member id with this instance id."""
    generation = cluster.group().generation_id
    join: Call = cluster.join(member_id, instance=instance)
    return [
        ErrorCode(join.response.error_code),
        ErrorCode(cluster.sync(member_id, generation, instance=instance).response.error_code),
        cluster.heartbeat(member_id, generation, instance=instance),
        cluster.commit(1, member_id=member_id, generation=generation, instance=instance),
        *cluster.leave((member_id, instance)),
    ]


def test_old_id_is_fenced_on_every_api() -> None:
    cluster = Cluster()
    _, b = static_pair(cluster)
    cluster.join(instance="b")
    assert everything(cluster, b, "b") == [FENCED] * 5


def test_instance_id_that_nobody_has_is_an_unknown_member_on_every_api() -> None:
    cluster = Cluster()
    _, b = static_pair(cluster)
    assert everything(cluster, b, "nobody") == [ErrorCode.UNKNOWN_MEMBER_ID] * 5


def test_administrator_removes_a_static_member_by_its_instance_id() -> None:
    cluster = Cluster()
    a, _ = static_pair(cluster)
    assert cluster.leave(("", "b"), ("", "nobody")) == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert set(cluster.group().members) == {a}


def test_static_member_that_does_not_rejoin_stays_until_its_session_ends() -> None:
    cluster = Cluster()
    a, b = static_pair(cluster)
    rejoined = cluster.join(a, instance="a", rebalance_ms=5_000, session_ms=60_000)
    cluster.advance(9_999)
    assert b in cluster.group().members
    cluster.advance(2)  # b's session of ten seconds is over
    assert b not in cluster.group().members
    assert rejoined.answered
