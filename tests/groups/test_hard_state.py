# SPDX-License-Identifier: Apache-2.0
"""What the log holds of a group changes by applying a record alone: in every field, and seen by every test here."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from coordinator.groups.classic import heartbeat_and_leave
from coordinator.groups.classic.member import MemberMetadata
from coordinator.groups.classic.metadata import GroupMetadata
from coordinator.groups.classic.replay import rebuild_last_record_value
from coordinator.groups.classic.state import GroupState
from coordinator.groups.offsets import expiry_and_deletion
from coordinator.groups.outcome import Outcome
from coordinator.tickets import ReplyDependencies
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.newtypes import GroupId, MemberId
from storage.errors import RecordTooLarge
from storage.format.records import GroupMetadataRecord, GroupMetadataValue, MemberValue, OffsetCommitRecord
from tests.groups.harness import Cluster


def offer(group: GroupMetadata, member: MemberMetadata) -> None:
    group.set_protocols(member, [("range", b"something else")])


def take_away(group: GroupMetadata, member: MemberMetadata) -> None:
    group.remove(member.member_id)


CHANGES: Final[Mapping[str, Callable[[GroupMetadata, MemberMetadata], Any]]] = {
    "protocol_type": lambda group, _: setattr(group, "protocol_type", "connect"),
    "generation": lambda group, _: setattr(group, "generation_id", 9),
    "protocol": lambda group, _: setattr(group, "protocol_name", "roundrobin"),
    "leader": lambda group, _: setattr(group, "leader_id", "nobody"),
    "current_state_timestamp": lambda group, _: setattr(group, "current_state_timestamp", 1),
    "members": take_away,
    "member_id": lambda _, member: setattr(member, "member_id", "another"),
    "group_instance_id": lambda _, member: setattr(member, "group_instance_id", "another"),
    "client_id": lambda _, member: setattr(member, "client_id", "another"),
    "client_host": lambda _, member: setattr(member, "client_host", "/another"),
    "rebalance_timeout": lambda _, member: setattr(member, "rebalance_timeout_ms", 1),
    "session_timeout": lambda _, member: setattr(member, "session_timeout_ms", 1),
    "subscription": offer,
    "assignment": lambda group, member: group.set_assignment(member, b"more"),
}
"""By field of a group's record: a change of it in memory."""

FIELDS: Final = {*GroupMetadataValue.__struct_fields__, *MemberValue.__struct_fields__}


def test_every_field_of_a_record_has_a_change() -> None:
    assert set(CHANGES) == FIELDS


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_a_change_without_a_record_is_found_in_every_field(field: str) -> None:
    cluster = Cluster()
    cluster.stable_group(2)
    cluster.check_hard_state()
    group = cluster.group()
    CHANGES[field](group, next(iter(group.members.values())))
    with pytest.raises((AssertionError, KeyError)):
        cluster.check_hard_state()


def test_a_change_before_its_record_is_found() -> None:
    cluster = Cluster()
    cluster.stable_group(1)
    group = cluster.group()
    group.generation_id += 1
    record = GroupMetadataRecord(GroupId("g"), rebuild_last_record_value(group))
    with pytest.raises(AssertionError):
        cluster.group_access.carry_out_outcome(ReplyDependencies(), cluster.kept(), Outcome(None, [record]))


def test_an_offset_that_changes_without_a_record_is_found() -> None:
    cluster = Cluster()
    cluster.commit(1)
    cluster.kept().offsets.by_topic["t"].clear()
    with pytest.raises(AssertionError):
        cluster.check_hard_state()


def test_a_record_that_changes_nothing_is_found() -> None:
    cluster = Cluster()
    cluster.stable_group(1)
    group = cluster.group()
    for record in (
        GroupMetadataRecord(GroupId("g"), rebuild_last_record_value(group)),
        OffsetCommitRecord(GroupId("g"), "t", 0, None),
        GroupMetadataRecord(GroupId("nobody"), None),
    ):
        with pytest.raises(AssertionError):
            cluster.group_access.carry_out_outcome(
                ReplyDependencies(), cluster.kept(), Outcome(None, [record])
            )


# --- whole outcomes ---


def facts(outcome: Outcome) -> tuple[Any, ...]:
    """All that an outcome says, but for the words of its events."""
    replies = [(reply.caller, reply.response) for reply in outcome.replies]
    names = [event.name for event in outcome.events]
    return outcome.answer, outcome.records, replies, names, outcome.independent, outcome.starts_over


def nothing_but(answer: Any) -> tuple[Any, ...]:
    return answer, [], [], [], False, False


@pytest.mark.parametrize(
    ("member_id", "generation", "answer"),
    [
        (None, 1, ErrorCode.NONE),
        (None, 2, ErrorCode.ILLEGAL_GENERATION),
        ("stranger", 1, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_heartbeat_comes_to_an_answer_and_nothing_else(
    member_id: str | None, generation: int, answer: ErrorCode
) -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    request = HeartbeatRequest(GroupId("g"), generation, MemberId(member_id or member), None)
    outcome = heartbeat_and_leave.heartbeat(cluster.group(), request, cluster.clock.mono_ms())
    assert facts(outcome) == nothing_but(answer)


def test_what_all_heartbeats_share_stays_empty() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    for _ in range(3):
        assert cluster.heartbeat(member, 1) is ErrorCode.NONE
    cluster.member()
    assert cluster.heartbeat(member, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    for shared in (heartbeat_and_leave._ALIVE, heartbeat_and_leave._REJOIN):
        assert facts(shared) == nothing_but(shared.answer)


def test_a_group_with_members_is_not_deleted() -> None:
    cluster = Cluster()
    cluster.stable_group(1)
    assert facts(
        expiry_and_deletion.plan_group_deletion(cluster.group(), cluster.kept().offsets)
    ) == nothing_but(ErrorCode.NON_EMPTY_GROUP)


def test_the_tombstone_of_a_deleted_group_follows_those_of_its_offsets() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    cluster.commit(1, member_id=member, generation=1)
    cluster.leave(member)
    answer, records, replies, names, independent, _ = facts(
        expiry_and_deletion.plan_group_deletion(cluster.group(), cluster.kept().offsets)
    )
    assert (answer, replies, names, independent) == (ErrorCode.NONE, [], [], True)
    assert records == [
        OffsetCommitRecord(GroupId("g"), "t", 0, None),
        GroupMetadataRecord(GroupId("g"), None),
    ]


# --- a log that does not take the record ---


def refusing(cluster: Cluster) -> None:
    cluster.log.records_max = 0


def test_a_sync_that_is_not_stored_changes_nothing_that_the_log_holds() -> None:
    cluster = Cluster()
    joined = cluster.member().response
    refusing(cluster)
    synced = cluster.sync(joined.member_id, 1, {joined.member_id: b"a"})
    assert synced.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.group().state is GroupState.PREPARING_REBALANCE
    assert cluster.log.records == []


def test_a_static_member_whose_new_id_is_not_stored_keeps_the_old_one() -> None:
    """As in Kafka, which takes the new id back then."""
    cluster = Cluster()
    joined = cluster.join(instance="i").response
    cluster.sync(joined.member_id, 1, {joined.member_id: b"a"}, instance="i")
    refusing(cluster)
    again = cluster.join(instance="i", session_ms=20_000, protocols=[("range", b"n")])
    assert again.response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    group = cluster.group()
    assert (group.state, list(group.members)) == (GroupState.STABLE, [joined.member_id])
    assert cluster.heartbeat(joined.member_id, 1, instance="i") is ErrorCode.NONE
    cluster.log.records_max = 1
    again = cluster.join(instance="i", session_ms=20_000, protocols=[("range", b"n"), ("other", b"o")])
    assert again.response.error_code == ErrorCode.NONE
    (member,) = group.members.values()
    assert (member.member_id, member.assignment) == (again.response.member_id, b"a")
    assert member.supported_protocols == [("range", b"n"), ("other", b"o")]
    assert member.session_timeout_ms == 20_000
    assert cluster.heartbeat(joined.member_id, 1, instance="i") is ErrorCode.FENCED_INSTANCE_ID


def test_a_group_that_is_not_stored_as_empty_is_stored_later() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    refusing(cluster)
    assert cluster.leave(member) == [ErrorCode.NONE]
    assert cluster.group().state is GroupState.PREPARING_REBALANCE
    cluster.advance(60_000)
    assert cluster.group().state is GroupState.PREPARING_REBALANCE
    cluster.log.records_max = 1
    cluster.advance(60_000)
    assert (cluster.group().state, cluster.group().generation_id) == (GroupState.EMPTY, 2)


def test_a_commit_that_is_not_stored_leaves_the_group_alone() -> None:
    cluster = Cluster()
    (member,) = cluster.stable_group(1)
    refusing(cluster)
    error = cluster.commit(1, member_id=member, generation=1)
    assert error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert cluster.group().state is GroupState.STABLE
    with pytest.raises(RecordTooLarge):
        cluster.group_access.carry_out_outcome(
            ReplyDependencies(),
            cluster.kept(),
            Outcome(None, [OffsetCommitRecord(GroupId("g"), "t", 0, None)]),
        )
