# SPDX-License-Identifier: Apache-2.0
"""The requests that the scenarios send, in the versions that the server and the codec share."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from bench import wire
from bench.wire import Api, BadReply, Call

# Within the default group.max.session.timeout.ms; no scenario lets a member fall out of its group.
SESSION_TIMEOUT_MS: Final = 300_000
REBALANCE_TIMEOUT_MS: Final = 60_000
PROTOCOL_TYPE: Final = "consumer"
PROTOCOL_NAME: Final = "range"


class Topic(NamedTuple):
    """The topic whose offsets are committed. The id is None where the server knows no topic ids."""

    name: str
    id: UUID | None
    partitions: int


class Member(NamedTuple):
    """A joined member of a group, or NOBODY's values for a commit without membership."""

    group: str
    member_id: str
    generation: int


def nobody(group: str) -> Member:
    """The identity of a consumer that commits without joining (Kafka's simple consumer)."""
    return Member(group, "", -1)


class Dialect:
    """Builds requests in negotiated versions and reads what matters from their replies."""

    def __init__(self, versions: Mapping[str, int]) -> None:
        self._versions = versions

    def version(self, api: Api) -> int:
        """The version used for an api. Raises BadReply when the server does not offer the api."""
        try:
            return self._versions[api.name]
        except KeyError:
            raise BadReply(f"the server offers no version of {api.name} that the driver knows") from None

    def offers(self, api: Api) -> bool:
        """Whether the server offers the api in a version that the codec knows."""
        return api.name in self._versions

    def _encode(self, api: Api, **fields: Any) -> Call:
        version = self.version(api)
        return wire.encode(api, version, api.request(version=version, **fields))

    # topics and coordinators

    def create_topic(self, name: str, partitions: int) -> Call:
        """CreateTopics of one topic without replicas."""
        item = wire.CREATE_TOPICS.request.CreatableTopic
        topic = item(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])
        return self._encode(wire.CREATE_TOPICS, topics=[topic], timeout_ms=30_000, validate_only=False)

    def describe_topic(self, name: str) -> Call:
        """Metadata of one topic; creates it where the server does so by itself."""
        topic = wire.METADATA.request.MetadataRequestTopic(name=name, topic_id=UUID(int=0))
        return self._encode(wire.METADATA, topics=[topic], allow_auto_topic_creation=True)

    def find_coordinators(self, groups: Sequence[str]) -> list[Call]:
        """FindCoordinator of the groups: one request for all from version 4 (KIP-699), else one each."""
        if self.version(wire.FIND_COORDINATOR) >= 4:
            return [self._encode(wire.FIND_COORDINATOR, key_type=0, coordinator_keys=list(groups))]
        return [self._encode(wire.FIND_COORDINATOR, key=group, key_type=0) for group in groups]

    # offsets

    def commit_message(self, topic: Topic, member: Member, offsets: Mapping[int, int]) -> Any:
        """An OffsetCommit of offsets by partition, not encoded yet."""
        request = wire.OFFSET_COMMIT.request
        partitions = [
            request.OffsetCommitRequestTopic.OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
            for partition, offset in offsets.items()
        ]
        topics = [
            request.OffsetCommitRequestTopic(
                name=topic.name, topic_id=topic.id or UUID(int=0), partitions=partitions
            )
        ]
        return request(
            version=self.version(wire.OFFSET_COMMIT),
            group_id=member.group,
            generation_id_or_member_epoch=member.generation,
            member_id=member.member_id,
            topics=topics,
        )

    def commit(self, topic: Topic, member: Member, offsets: Mapping[int, int]) -> Call:
        """OffsetCommit of offsets by partition."""
        return wire.encode(
            wire.OFFSET_COMMIT,
            self.version(wire.OFFSET_COMMIT),
            self.commit_message(topic, member, offsets),
        )

    def check_commit(self, topic: Topic, partitions: Sequence[int], reply: bytes) -> None:
        """Raise BadReply unless the reply confirms exactly these partitions of the topic."""
        version = self.version(wire.OFFSET_COMMIT)
        message = wire.decode(wire.OFFSET_COMMIT, version, reply)
        wire.refuse_errors(wire.OFFSET_COMMIT, message)
        confirmed = [
            p.partition_index for t in message.topics if _is(topic, t, version) for p in t.partitions
        ]
        if len(message.topics) != 1 or sorted(confirmed) != sorted(partitions):
            raise BadReply(f"OffsetCommit: asked for {len(partitions)} partitions, got {confirmed}")

    def fetch(self, topic: Topic, group: str, partitions: Sequence[int]) -> Call:
        """OffsetFetch of some partitions of one group."""
        request, version = wire.OFFSET_FETCH.request, self.version(wire.OFFSET_FETCH)
        wanted = list(partitions)
        if version < 8:
            topics = [request.OffsetFetchRequestTopic(name=topic.name, partition_indexes=wanted)]
            return self._encode(wire.OFFSET_FETCH, group_id=group, topics=topics)
        group_item = request.OffsetFetchRequestGroup
        topics = [
            group_item.OffsetFetchRequestTopics(
                name=topic.name, topic_id=topic.id or UUID(int=0), partition_indexes=wanted
            )
        ]
        item = group_item(group_id=group, member_id=None, member_epoch=-1, topics=topics)
        return self._encode(wire.OFFSET_FETCH, groups=[item], require_stable=False)

    def fetch_all(self, groups: Sequence[str]) -> Call:
        """OffsetFetch of all topics of groups that have one coordinator, from version 8 on."""
        group = wire.OFFSET_FETCH.request.OffsetFetchRequestGroup
        items = [group(group_id=each, member_id=None, member_epoch=-1, topics=None) for each in groups]
        return self._encode(wire.OFFSET_FETCH, groups=items, require_stable=False)

    def fetched(self, topic: Topic, group: str, reply: bytes) -> dict[int, int]:
        """The offsets by partition in an OffsetFetch reply. Raises BadReply on any error code."""
        version = self.version(wire.OFFSET_FETCH)
        message = wire.decode(wire.OFFSET_FETCH, version, reply)
        wire.refuse_errors(wire.OFFSET_FETCH, message)
        if version >= 8:
            groups = [g.group_id for g in message.groups]
            if groups != [group]:
                raise BadReply(f"OffsetFetch: asked for group {group}, got {groups}")
            message = message.groups[0]
        return {
            p.partition_index: p.committed_offset
            for t in message.topics
            if _is(topic, t, version)
            for p in t.partitions
        }

    def check_fetch(self, topic: Topic, group: str, expected: Mapping[int, int], reply: bytes) -> None:
        """Raise BadReply unless the reply holds exactly the expected offsets."""
        found = self.fetched(topic, group, reply)
        if found != expected:
            wrong = {p: found.get(p) for p in expected if found.get(p) != expected[p]}
            raise BadReply(f"OffsetFetch: {group} has other offsets: {dict(list(wrong.items())[:3])}")

    # members

    def join(self, topic: Topic, group: str, member_id: str) -> Call:
        """JoinGroup with one protocol, as a consumer that subscribes to the topic."""
        protocol = wire.JOIN_GROUP.request.JoinGroupRequestProtocol
        return self._encode(
            wire.JOIN_GROUP,
            group_id=group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[protocol(name=PROTOCOL_NAME, metadata=subscription(topic.name))],
        )

    def sync(self, topic: Topic, member: Member) -> Call:
        """SyncGroup of a leader that takes partition 0 itself."""
        item = wire.SYNC_GROUP.request.SyncGroupRequestAssignment
        return self._encode(
            wire.SYNC_GROUP,
            group_id=member.group,
            generation_id=member.generation,
            member_id=member.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=PROTOCOL_NAME,
            assignments=[item(member_id=member.member_id, assignment=assignment(topic.name, [0]))],
        )

    def heartbeat(self, member: Member) -> Call:
        """Heartbeat of a member."""
        return self._encode(
            wire.HEARTBEAT,
            group_id=member.group,
            generation_id=member.generation,
            member_id=member.member_id,
        )

    def leave(self, member: Member) -> Call:
        """LeaveGroup of one member (a batch of one from version 3, KIP-345)."""
        if self.version(wire.LEAVE_GROUP) < 3:
            return self._encode(wire.LEAVE_GROUP, group_id=member.group, member_id=member.member_id)
        item = wire.LEAVE_GROUP.request.MemberIdentity
        return self._encode(
            wire.LEAVE_GROUP, group_id=member.group, members=[item(member_id=member.member_id)]
        )

    def describe_groups(self, groups: Sequence[str]) -> Call:
        """DescribeGroups of groups that have one coordinator."""
        return self._encode(wire.DESCRIBE_GROUPS, groups=list(groups), include_authorized_operations=False)

    def delete_groups(self, groups: Sequence[str]) -> Call:
        """DeleteGroups of groups that have one coordinator."""
        return self._encode(wire.DELETE_GROUPS, groups_names=list(groups))


def _is(topic: Topic, item: Any, version: int) -> bool:
    # Version 10 of OffsetCommit and OffsetFetch names topics by id (KIP-848).
    return bool(item.topic_id == topic.id) if version >= 10 else bool(item.name == topic.name)


def subscription(topic: str) -> bytes:
    """A ConsumerProtocolSubscription v0 of one topic, without user data."""
    name = topic.encode()
    return struct.pack(f">hih{len(name)}si", 0, 1, len(name), name, -1)


def assignment(topic: str, partitions: Sequence[int]) -> bytes:
    """A ConsumerProtocolAssignment v0 of some partitions of one topic, without user data."""
    name, count = topic.encode(), len(partitions)
    return struct.pack(f">hih{len(name)}si{count}ii", 0, 1, len(name), name, count, *partitions, -1)
