# SPDX-License-Identifier: Apache-2.0
"""A manager with one partition, a clock that tests move, timers that they fire, and a log in memory."""

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Final

from coordinator.api import heartbeat, join_group, leave_group, offset_commit, sync_group
from coordinator.api.context import PARKED, RequestContext, Work
from coordinator.authorization.authorizer import ALLOW_ALL
from coordinator.catalogue.topic import Topic
from coordinator.groups.classic.group import ClassicGroup
from coordinator.groups.classic.metadata import NO_MEMBERS, NO_PENDING_MEMBERS, NO_STATIC_MEMBERS
from coordinator.groups.classic.replay import rebuild_last_record_value
from coordinator.groups.classic.state import GroupState
from coordinator.groups.config import GroupCoordinatorConfig, GroupEnvironment
from coordinator.groups.outcome import Instant, Reply
from coordinator.partitions.group_access import GroupAccess
from coordinator.partitions.manager import GroupMetadataManager
from coordinator.partitions.shard import GroupEntry, Shard
from coordinator.telemetry.stats import Stats
from coordinator.tickets import DurabilityTicket
from protocol.errors import ErrorCode
from protocol.hot.heartbeat import HeartbeatRequest
from protocol.hot.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from protocol.hot.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.hot.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from protocol.hot.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from protocol.newtypes import GroupId, LeaderEpoch, MemberId, Offset, Partition
from storage.errors import RecordTooLarge
from storage.format.batch_builder import BATCH_BYTES_MAX
from storage.format.records import (
    GroupMetadataValue,
    OffsetCommitRecord,
    Record,
    TopicOffsetCommits,
    UnknownRecord,
    decode_key_and_value,
    encode_record_key,
    encode_record_value,
)

WALL_START_MS = 1_700_000_000_000


class FakeClock:
    """Clocks that stand still until they are moved; each look at the fine one takes `look_ns`."""

    def __init__(self, look_ns: int = 1) -> None:
        self.passed_ms = 0
        self.look_ns = look_ns
        self._looked_ns = 0

    def mono_ms(self) -> int:
        return self.passed_ms

    def wall_ms(self) -> int:
        return WALL_START_MS + self.passed_ms

    def now(self) -> Instant:
        return Instant(self.mono_ms(), self.wall_ms())

    def nanos(self) -> int:
        self._looked_ns += self.look_ns
        return self.passed_ms * 1_000_000 + self._looked_ns


class FakeTimers:
    """Timers that fire when the test moves the clock past them, each at its own deadline."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.heap: list[tuple[int, int, Callable[[Any], None], Any]] = []
        self.tie = count()

    @property
    def deadline_cutoff_ms(self) -> int:
        return self.clock.mono_ms()

    def call_at(self, deadline_ms: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        heapq.heappush(self.heap, (deadline_ms, next(self.tie), callback, argument))

    def advance(self, delta_ms: int) -> None:
        """Let time pass and everything happen that is due in it."""
        end = self.clock.passed_ms + delta_ms
        while self.heap and self.heap[0][0] <= end:
            deadline_ms, _, callback, argument = heapq.heappop(self.heap)
            self.clock.passed_ms = max(self.clock.passed_ms, deadline_ms)
            callback(argument)
        self.clock.passed_ms = end


class MemoryLog:
    """Takes records, in their bytes, as the real log does; none becomes durable, and each append has its ticket.

    It also knows what they say, so that every append is held to the first rule: what the log holds of a group has not
    changed before the record that changes it is appended.
    """

    partition = Partition(0)
    leader_epoch = LeaderEpoch(0)

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.tickets: list[DurabilityTicket] = []
        self.appends: list[int] = []
        """How many records each append brought."""
        self.records_max = 1_000_000
        """More are too large for one append."""
        self.stored = Shard(Partition(0))
        """What the records say."""
        self.live: Shard | None = None
        """Whose hard state is looked at before each append."""

    def append(self, records: Sequence[Record]) -> DurabilityTicket:
        if len(records) > self.records_max:
            raise RecordTooLarge(f"{len(records)} records")
        encoded = [(encode_record_key(record), encode_record_value(record)) for record in records]
        if self.live is not None:
            assert_hard_state_is_stored(self.live, self.stored)
        for key, value in encoded:
            record = decode_key_and_value(key, value)
            assert_changes_something(self.stored, record)
            self.stored.apply(record)
        self.records += encoded
        self.appends.append(len(records))
        self.tickets.append(DurabilityTicket(Partition(0), len(self.tickets) + 1))
        return self.tickets[-1]

    def append_offsets(self, commits: Sequence[TopicOffsetCommits]) -> DurabilityTicket:
        return self.append(
            [
                OffsetCommitRecord(commit.group, commit.topic, partition, value)
                for commit in commits
                for partition, value in commit.values.items()
            ]
        )

    def replay(self, shard: Shard | None = None) -> Shard:
        """What loading this log gives, in `shard` or one by itself."""
        shard = shard or Shard(Partition(0))
        for key, value in self.records:
            shard.apply(decode_key_and_value(key, value))
        return shard


def assert_hard_state_is_stored(live: Shard, stored: Shard) -> None:
    """What the log holds is what the groups that are at rest have in memory, field by field, and nothing else.

    A group that rebalances has left its stored generation behind; one that is being deleted is Dead meanwhile.
    """
    for kept in live.groups.values():
        group, there = kept.classic_group, stored.groups.get(kept.group_id)
        assert kept.offsets.by_topic == ({} if there is None else there.offsets.by_topic), kept.group_id
        known = None if there is None else there.classic_group
        if group.state not in (GroupState.EMPTY, GroupState.STABLE):
            continue
        if known is None or known.generation_id == 0:
            # It was never stored itself.
            assert rebuild_last_record_value(group) == NEVER_STORED, group.group_id
        else:
            assert rebuild_last_record_value(group) == rebuild_last_record_value(known), group.group_id
            assert group.subscribed_topics == known.subscribed_topics, group.group_id
            assert group.state is known.state, group.group_id


def assert_changes_something(stored: Shard, record: Record) -> None:
    """No decision writes a record that says what the log says already; a commit may bring what is there."""
    if isinstance(record, UnknownRecord) or (isinstance(record, OffsetCommitRecord) and record.value):
        return
    kept = stored.groups.get(record.group)
    assert kept is not None or record.value is not None, f"a tombstone of what is not there: {record}"
    if kept is None:
        return
    if isinstance(record, OffsetCommitRecord):
        assert record.partition in kept.offsets.get_topic_offsets(record.topic), (
            f"a tombstone of nothing: {record}"
        )
    else:
        assert record.value != rebuild_last_record_value(kept.classic_group), (
            f"the log has that already: {record}"
        )


NEVER_STORED: Final = GroupMetadataValue(
    protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=-1, members=()
)
"""What is in memory of a group at rest of which the log holds no generation."""


class NotEncoded:
    """The api of a request whose reply stays an object: what would be made while it is encoded is made here."""

    @staticmethod
    def encode_in_steps(response: Any, _errors: Counter[int]) -> Work:
        yield
        return _made(response)


def _made(message: Any) -> Any:
    for name, field in message._struct.fields.items():
        if field.is_struct_array() and getattr(message, name) is not None:
            setattr(message, name, [_made(item) for item in getattr(message, name) if item is not None])
    return message


class Call:
    """One request, and its reply once there is one."""

    def __init__(self, client_id: str = "client", api_version: int = 9) -> None:
        self.ctx = RequestContext(
            sink=self,
            api_key=-1,
            api_version=api_version,
            correlation_id=0,
            client_id=client_id,
            client_host="/127.0.0.1",
            api=NotEncoded,
        )
        self.response: Any = None
        self.replies = 0

    def answer_parked_request(self, ctx: RequestContext, response: Any) -> None:
        """Hear the reply, as a connection does."""
        self.response = response
        self.replies += 1

    def claim_first_api_use(self, api_key: int) -> bool:
        """Nothing is said here that is said once."""
        return False

    def run_in_slices(self, ctx: RequestContext, work: Work) -> None:
        """Do all the work at once."""
        try:
            while True:
                next(work)
        except StopIteration as done:
            self.answer_parked_request(ctx, done.value)

    @property
    def answered(self) -> bool:
        return self.replies > 0


class Cluster:
    """The manager and what surrounds it."""

    def __init__(self, *, batch_bytes_max: int = BATCH_BYTES_MAX, **config: Any) -> None:
        config.setdefault("initial_rebalance_delay_ms", 0)
        self.clock = FakeClock()
        self.timers = FakeTimers(self.clock)
        self.log = MemoryLog()
        suffixes = count(1)
        self.env = GroupEnvironment(GroupCoordinatorConfig(**config), lambda: f"{next(suffixes):036d}")
        self.manager = GroupMetadataManager(
            self.env,
            self.clock,
            self.timers,
            Stats(),
            num_partitions=1,
            deliver=self.deliver,
            batch_bytes_max=batch_bytes_max,
        )
        self.group_access = GroupAccess(self.manager)
        self.catalogue = AllTopics()
        self.authorizer = ALLOW_ALL
        self.shard = self.manager.begin_load(Partition(0))
        self.serve(self.shard)

    def serve(self, loaded: Shard) -> None:
        """What the log holds has been applied to `loaded`: it is the partition that is served."""
        for _ in self.manager.prepare_groups_in_steps(loaded):
            pass
        for _ in self.manager.drop_deleted_topic_offsets(loaded, self.log):
            pass
        self.manager.finish_load(loaded, self.log)
        self.log.live = loaded

    def deliver(self, reply: Reply, ticket: DurabilityTicket) -> None:
        assert isinstance(reply.caller, RequestContext)
        reply.caller.answer_parked_request(reply.response)

    def group(self, group_id: str = "g") -> ClassicGroup:
        """The members of a group."""
        return self.kept(group_id).classic_group

    def kept(self, group_id: str = "g") -> GroupEntry:
        """A group, its offsets and what its runner needs."""
        kept = self.manager.find(GroupId(group_id))
        assert kept is not None, f"no group {group_id}"
        return kept

    def advance(self, delta_ms: int) -> None:
        self.timers.advance(delta_ms)
        self.check_hard_state()

    def check_hard_state(self) -> None:
        """Nothing has changed but by the records that were appended, and nothing that groups share."""
        for shared in (NO_STATIC_MEMBERS, NO_PENDING_MEMBERS, NO_MEMBERS):
            assert not shared
        if self.log.live is not None and not self.log.live.is_lost:
            assert_hard_state_is_stored(self.log.live, self.log.stored)

    # --- requests, through the real api handlers ---

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        protocols: Sequence[tuple[str, bytes]] = (("range", b"m"),),
        instance: str | None = None,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 30_000,
        version: int = 9,
        client_id: str = "client",
    ) -> Call:
        """Send a JoinGroup."""
        request = JoinGroupRequest(
            group_id=GroupId(group),
            member_id=MemberId(member_id),
            group_instance_id=instance,
            protocol_type=protocol_type,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        )
        return self._call(join_group.handle, request, version, client_id)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        version: int = 4,
    ) -> Call:
        """Send a SyncGroup; the leader's brings assignments."""
        request = SyncGroupRequest(
            group_id=GroupId(group),
            member_id=MemberId(member_id),
            generation_id=generation,
            group_instance_id=instance,
            assignments=[
                SyncGroupRequestAssignment(member_id=MemberId(key), assignment=value)
                for key, value in (assignments or {}).items()
            ],
        )
        return self._call(sync_group.handle, request, version)

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        """Send a Heartbeat and return its error."""
        request = HeartbeatRequest(GroupId(group), generation, MemberId(member_id), instance)
        return ErrorCode(self._call(heartbeat.handle, request, 4).response.error_code)

    def leave(self, *members: str | tuple[str, str | None], group: str = "g") -> list[ErrorCode]:
        """Send a LeaveGroup for member ids or (member id, instance id); returns each one's error."""
        pairs = [(member, None) if isinstance(member, str) else member for member in members]
        request = LeaveGroupRequest(
            group_id=GroupId(group),
            members=[
                MemberIdentity(member_id=MemberId(member), group_instance_id=instance)
                for member, instance in pairs
            ],
        )
        response = self._call(leave_group.handle, request, 5).response
        return [ErrorCode(member.error_code) for member in response.members]

    def commit(
        self,
        offset: int,
        *,
        partition: int = 0,
        topic: str = "t",
        member_id: str = "",
        generation: int = -1,
        group: str = "g",
        instance: str | None = None,
        metadata: str = "",
        version: int = 8,
        retention_ms: int = -1,
    ) -> ErrorCode:
        """Commit one offset and return its error."""
        request = OffsetCommitRequest(
            group_id=GroupId(group),
            generation_id_or_member_epoch=generation,
            member_id=MemberId(member_id),
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=Offset(offset),
                            committed_metadata=metadata,
                        )
                    ],
                )
            ],
        )
        response = self._call(offset_commit.handle, request, version).response
        return ErrorCode(response.topics[0].partitions[0].error_code)

    def commit_all(
        self, offsets: dict[str, dict[int, int]], *, group: str = "g"
    ) -> dict[tuple[str, int], ErrorCode]:
        """Commit these offsets, by topic and partition, in one request; returns their errors."""
        request = OffsetCommitRequest(
            group_id=GroupId(group),
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=Offset(offset)
                        )
                        for partition, offset in partitions.items()
                    ],
                )
                for topic, partitions in offsets.items()
            ],
        )
        codec = offset_commit.API.schema.codecs[8]  # many offsets are handled in the form in which they come
        request = codec.decode_request(codec.encode_request(request), 0)
        response = self._call(offset_commit.handle, request, 8).response
        return {
            (topic.name, partition.partition_index): ErrorCode(partition.error_code)
            for topic in response.topics
            for partition in topic.partitions
        }

    def committed(self, partition: int = 0, *, topic: str = "t", group: str = "g") -> int:
        """The committed offset as memory has it; -1 for none."""
        found = self.manager.find(GroupId(group))
        value = None if found is None else found.offsets.get_topic_offsets(topic).get(partition)
        return -1 if value is None else value.offset

    def _call(
        self, handle: Callable[..., Any], request: Any, version: int, client_id: str = "client"
    ) -> Call:
        call = Call(client_id=client_id, api_version=version)
        self.catalogue.make(request)
        response = handle(self, request, call.ctx)
        self.check_hard_state()
        if response is not PARKED:
            call.answer_parked_request(call.ctx, response)
        return call

    # --- what handlers see of a node ---

    @property
    def stats(self) -> Stats:
        return self.manager.stats

    # --- shortcuts ---

    def member(self, *, group: str = "g", **options: Any) -> Call:
        """Join as a new dynamic member the way of v4 and later: get an id, then join with it."""
        first = self.join(group=group, **options)
        assert first.response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return self.join(first.response.member_id, group=group, **options)

    def stable_group(self, size: int = 2, **options: Any) -> list[str]:
        """A stable group of this many members; returns their ids, the leader's first."""
        calls = [self.member(**options)]
        for _ in range(size - 1):
            before = [call.response.member_id for call in calls]
            new = self.member(**options)
            calls = [*(self.join(member_id, **options) for member_id in before), new]
        leader = self.group().leader_id
        assert leader is not None
        members: list[str] = sorted(self.group().members, key=lambda member_id: member_id != leader)
        generation = self.group().generation_id
        assignments = {member_id: f"for {member_id}".encode() for member_id in members}
        for member_id in members:
            self.sync(member_id, generation, assignments if member_id == leader else None)
        assert self.group().state is GroupState.STABLE
        return members


class AllTopics:
    """A catalogue that has every topic that is asked for, with more partitions than anybody asks for."""

    def __init__(self) -> None:
        self.topics_by_name: dict[str, Topic] = {}

    def make(self, request: Any) -> None:
        """Make the topics that a request names: compiled code looks into the dictionary itself."""
        for topic in getattr(request, "topics", None) or ():
            self.topics_by_name[topic.name] = Topic(name=topic.name, id=bytes(16), partitions=2**31 - 1)
