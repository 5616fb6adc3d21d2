# SPDX-License-Identifier: Apache-2.0
"""A partition keeps groups of any kind: here of one that has a single member, which is heard or not."""

import enum
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest

from coordinator.groups.classic.member import NEVER
from coordinator.groups.config import GroupEnvironment
from coordinator.groups.group import Group, Since
from coordinator.groups.group_totals import GroupTotals
from coordinator.groups.kinds import KINDS, GroupKind, GroupKinds
from coordinator.groups.outcome import Instant, Outcome, Reply
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.tickets import ReplyDependencies
from coordinator.version import is_compiled
from protocol.errors import ErrorCode
from protocol.hot.offset_commit import OffsetCommitRequest
from protocol.newtypes import GroupId, Offset, Partition
from storage.format.records import (
    GroupMetadataRecord,
    GroupMetadataValue,
    OffsetAndMetadata,
    OffsetCommitRecord,
    Record,
)
from tests.groups.harness import Call, Cluster

SESSION_MS: Final = 1_000


class Lone(enum.Enum):
    """Whether the member is there."""

    HEARD = "Heard"
    SILENT = "Silent"
    GONE = "Gone"


class LoneRecord(GroupMetadataRecord, frozen=True):
    """A record of a group of another kind."""


class LoneGroup:
    """A group of another kind."""

    kind = "lone"
    protocol_type: str | None = "lone"
    generation_id = 0

    def __init__(self, group_id: GroupId, _usage: GroupTotals | None = None) -> None:
        self.group_id = group_id
        self.wakeup_ms = SESSION_MS
        self.state = Lone.HEARD
        self.waiting: Any = None
        self.applied = 0
        self.refused: list[ErrorCode] = []

    @property
    def is_dead(self) -> bool:
        return self.state is Lone.GONE

    @property
    def is_empty(self) -> bool:
        return self.state is Lone.SILENT

    @property
    def has_members_or_pending(self) -> bool:
        return self.state is Lone.HEARD

    @property
    def member_count(self) -> int:
        return int(self.state is Lone.HEARD)

    def apply_record(self, record: Record) -> bool:
        assert isinstance(record, LoneRecord)
        self.state = Lone.SILENT
        self.applied += 1
        return record.value is not None

    def forget_records(self) -> None:
        self.state = Lone.GONE

    def on_loaded(self, env: GroupEnvironment, now: Instant) -> Outcome:
        return Outcome()

    def expire_due_deadlines(self, env: GroupEnvironment, now: Instant, due_ms: int) -> Outcome:
        self.state, self.wakeup_ms = Lone.SILENT, NEVER
        return Outcome()

    def replace_refused_outcome(
        self, env: GroupEnvironment, outcome: Outcome, error: ErrorCode, now: Instant
    ) -> Outcome:
        self.refused.append(error)
        return Outcome()

    def unload_and_fail_requests(self, error: ErrorCode) -> list[Reply]:
        self.state = Lone.GONE
        return [] if self.waiting is None else [Reply(self.waiting, error)]

    def start_counting_in_totals(self) -> None: ...

    def mark_dead_and_uncount(self) -> None:
        self.state = Lone.GONE

    def suspend_as_dead(self) -> None: ...

    def resume_as_empty(self) -> None: ...

    def validate_commit(self, request: OffsetCommitRequest) -> ErrorCode:
        return ErrorCode.NONE if self.state is Lone.SILENT else ErrorCode.STALE_MEMBER_EPOCH

    def validate_delete_group(self) -> ErrorCode:
        return ErrorCode.NONE if self.state is Lone.SILENT else ErrorCode.NON_EMPTY_GROUP

    def validate_delete_offsets(self) -> ErrorCode:
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        return topic == "kept"

    def offset_expiration_condition(self) -> tuple[Since | None, frozenset[str]]:
        since = (lambda committed: committed.commit_timestamp) if self.state is Lone.SILENT else None
        return since, frozenset({"kept"})

    def make_group_metadata_tombstones(self) -> Sequence[Record]:
        return []


class Kinds:
    """A cluster with a group of the other kind, "lone"."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.log.live = None  # its checks know classic groups
        self.group = LoneGroup(GroupId("lone"))
        as_any: Group = self.group
        self.kept = self.cluster.shard.add_or_get_existing(GroupEntry(self.cluster.shard, as_any))
        self.cluster.manager.start_member_sessions(self.kept)


@pytest.fixture
def kinds() -> Kinds:
    return Kinds()


def test_apis_of_the_classic_protocol_refuse_it(kinds: Kinds) -> None:
    cluster, refused = kinds.cluster, ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert cluster.join(group="lone").response.error_code == refused
    assert cluster.sync("m", 1, group="lone").response.error_code == refused
    assert cluster.heartbeat("m", 1, group="lone") is refused
    assert cluster.group_access.look_up_classic_group(ReplyDependencies(), GroupId("lone")) is refused
    assert kinds.group.state is Lone.HEARD


def test_it_decides_on_commits_and_its_offsets_are_kept(kinds: Kinds) -> None:
    assert kinds.cluster.commit(5, group="lone") is ErrorCode.STALE_MEMBER_EPOCH
    kinds.cluster.advance(SESSION_MS)
    assert kinds.group.state is Lone.SILENT
    assert kinds.cluster.commit(5, group="lone") is ErrorCode.NONE
    assert kinds.cluster.committed(group="lone") == 5
    assert kinds.cluster.env.usage.offsets == 1


def test_its_offsets_expire_as_it_says(kinds: Kinds) -> None:
    cluster = kinds.cluster
    cluster.advance(SESSION_MS)
    cluster.commit(5, group="lone")
    cluster.commit(5, group="lone", topic="kept")
    long_after_ms = cluster.clock.wall_ms() + 100 * 86_400_000
    assert sum(cluster.manager.expire_offsets_in_steps(kinds.kept, long_after_ms)) == 1
    assert list(kinds.kept.offsets.by_topic) == ["kept"]
    assert not kinds.group.is_dead


def test_it_is_deleted_with_its_offsets_once_it_lets_it(kinds: Kinds) -> None:
    cluster = kinds.cluster
    assert cluster.manager.delete_group(GroupId("lone")) is ErrorCode.NON_EMPTY_GROUP
    cluster.advance(SESSION_MS)
    cluster.commit(5, group="lone")
    assert cluster.manager.delete_group(GroupId("lone")) is ErrorCode.NONE
    assert cluster.manager.find(GroupId("lone")) is None
    assert kinds.group.is_dead
    assert cluster.env.usage.offsets == 0


def test_a_decision_of_it_that_is_too_large_comes_back_to_it(kinds: Kinds) -> None:
    kinds.cluster.log.records_max = 0
    outcome = Outcome(None, [OffsetCommitRecord(GroupId("lone"), "t", 0, None)])
    outcome.starts_over = True
    kinds.cluster.group_access.carry_out_outcome(ReplyDependencies(), kinds.kept, outcome)
    assert kinds.group.refused == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_who_waits_in_it_is_sent_on_when_the_partition_is_lost(kinds: Kinds) -> None:
    call = Call()
    kinds.group.waiting = call.ctx
    kinds.cluster.manager.remove_groups_for_partition(Partition(0))
    assert kinds.group.is_dead
    assert call.response is ErrorCode.NOT_COORDINATOR
    assert kinds.cluster.manager.find(GroupId("lone")) is None


# --- from the log ---

with_another_record = pytest.mark.skipif(
    is_compiled(), reason="compiled code takes only the types of records that it was compiled with"
)
GROUP: Final = GroupId("g")
VALUE: Final = GroupMetadataValue("", 1, None, None, -1, ())
OFFSET: Final = OffsetCommitRecord(GROUP, "t", 0, OffsetAndMetadata(Offset(7), -1, "", 1, None))


def loaded(*records: Record) -> Shard:
    """A partition that has read these records."""
    lone = GroupKind("lone", Lone, (LoneRecord,), LoneGroup)
    shard = Shard(Partition(0), kinds=GroupKinds(KINDS.simple, lone))
    for record in records:
        shard.apply(record)
    return shard


@with_another_record
@pytest.mark.parametrize("records", [[LoneRecord(GROUP, VALUE), OFFSET], [OFFSET, LoneRecord(GROUP, VALUE)]])
def test_a_group_is_of_the_kind_of_its_records(records: list[Record]) -> None:
    kept = loaded(*records).groups[GROUP]
    assert isinstance(kept.group, LoneGroup)
    assert kept.group.applied == 1
    assert [offset.offset for _, _, offset in kept.offsets.all()] == [7]


def test_a_group_that_only_offsets_name_is_a_classic_one() -> None:
    assert loaded(OFFSET).groups[GROUP].group.kind == "classic"


@with_another_record
def test_a_group_whose_record_is_removed_goes_unless_it_has_offsets() -> None:
    assert GROUP not in loaded(LoneRecord(GROUP, VALUE), LoneRecord(GROUP, None)).groups
    assert GROUP not in loaded(LoneRecord(GROUP, None)).groups
    left = loaded(LoneRecord(GROUP, VALUE), OFFSET, LoneRecord(GROUP, None)).groups[GROUP]
    assert left.group.state is Lone.GONE
    assert left.offsets.count == 1


@with_another_record
def test_records_of_two_kinds_under_one_name_are_no_group() -> None:
    stable = GroupMetadataRecord(GROUP, msgspec.structs.replace(VALUE, protocol_type="consumer"))
    with pytest.raises(ValueError, match="a record of kind lone, and it is classic"):
        loaded(stable, LoneRecord(GROUP, VALUE))


def test_the_states_of_all_kinds_are_counted() -> None:
    kinds = GroupKinds(KINDS.simple, GroupKind("lone", Lone, (), LoneGroup))
    assert kinds.state_names == [*KINDS.state_names, "Heard", "Silent", "Gone"]
    assert len(set(KINDS.state_names)) == len(KINDS.state_names)
