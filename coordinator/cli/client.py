# SPDX-License-Identifier: Apache-2.0
"""What the `groups` commands ask a cluster, as any Kafka client would: one question at a time.

DescribeCluster v0 names the nodes, and each is asked for ListGroups v4-v5. FindCoordinator v4 names a group's
coordinator, and that is asked for DescribeGroups v5-v6, OffsetFetch v8-v9 and OffsetCommit v8-v9 (v10 of these two
names topics by id only).
Kafka has had these since 3.0.

ListGroups leaves out the groups of partitions that have failed, in Kafka and here. So each partition of
`__consumer_offsets` (Metadata v4-v8) is asked for a group that would be in it, which need not exist.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from coordinator.cli.connection import Connection, Versions, error_name
from coordinator.cli.errors import CommandError
from coordinator.cli.model import Assignment, CommittedOffset, GroupDetails, GroupListing, Member
from coordinator.config.values import Address
from protocol.apis import ApiKey
from protocol.embedded import decode_assignment
from protocol.errors import ErrorCode
from protocol.names import GroupId
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC

T = TypeVar("T")

RETRIABLE: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
"""Answers that are soon another: a partition loads or moves, or the offsets topic comes into being."""
FIRST_PAUSE_S: Final = 0.05
LONGEST_PAUSE_S: Final = 1.0
GROUP_KEY_TYPE: Final = 0


class NotYet(Exception):
    """The server asks for patience."""

    def __init__(self, code: int) -> None:
        super().__init__(error_name(code))


class Client:
    """Asks one cluster; whatever is not answered within `timeout_s` in all ends as CommandError."""

    def __init__(
        self,
        bootstrap: Address,
        timeout_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._pause = pause
        self._deadline = clock() + timeout_s
        self._timeout_s = timeout_s
        self._bootstrap = bootstrap
        self._connections: dict[Address, Connection] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections.values():
            connection.close()

    def list_groups(self, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[GroupListing]:
        """The groups of the cluster by id; only those in `states` and of `types` where these are given."""
        found = (group for node in self._nodes() for group in self._list_on(node, states, types))
        return sorted(found, key=lambda group: group.group)

    def missing_partitions(self) -> dict[int, str]:
        """The partitions of groups that are not served now, with the name of what their coordinator says."""
        count = self._offsets_partitions()
        if not count:
            return {}
        keys = _groups_by_partition(count)
        missing: dict[int, str] = {}
        asked: dict[Connection, list[str]] = {}
        for key, found in zip(keys, self._find_coordinators(keys), strict=True):
            if found.error_code == ErrorCode.NONE:
                asked.setdefault(self._connection(Address(found.host, found.port)), []).append(key)
            else:
                missing[partition_for(GroupId(key), count)] = error_name(found.error_code)
        for connection, groups in asked.items():
            for described in self._ask_describe(connection, groups):
                if described.error_code in RETRIABLE:
                    missing[partition_for(described.group_id, count)] = error_name(described.error_code)
        return dict(sorted(missing.items()))

    def describe_group(self, group: str) -> GroupDetails:
        """A group's state and members; CommandError if there is no such group."""
        return self._patiently(f"describing group {group}", lambda: self._describe(group))

    def committed_offsets(self, group: str) -> list[CommittedOffset]:
        """The offsets that a group has committed, by topic and partition."""
        return self._patiently(f"reading the offsets of group {group}", lambda: self._offsets(group))

    def set_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], str]:
        """Commit these offsets, by topic and partition, for a group without members.

        Returns the partitions that were refused, with the name of the error; the others are set.
        """
        return self._patiently(f"setting offsets of group {group}", lambda: self._set_offsets(group, offsets))

    def _patiently(self, doing: str, attempt: Callable[[], T]) -> T:
        """Repeat `attempt` while the server asks for patience, until this client's time is up."""
        pause_s = FIRST_PAUSE_S
        while True:
            try:
                return attempt()
            except NotYet as answer:
                if self._clock() + pause_s >= self._deadline:
                    message = f"{doing}: still {answer} after {self._timeout_s:g} s"
                    raise CommandError(message) from None
            self._pause(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _connection(self, address: Address) -> Connection:
        if address not in self._connections:
            left_s = max(0.001, self._deadline - self._clock())
            self._connections[address] = Connection(address, left_s)
        return self._connections[address]

    def _nodes(self) -> list[Address]:
        from protocol.messages import DescribeClusterRequest

        connection = self._connection(self._bootstrap)
        version = connection.version(ApiKey.DESCRIBE_CLUSTER, Versions(0, 0))
        response = connection.call(ApiKey.DESCRIBE_CLUSTER, version, DescribeClusterRequest())
        _check(response.error_code, response.error_message, "listing the nodes")
        if len(response.brokers) <= 1:
            return [self._bootstrap]  # there is no other, whatever name it goes by
        return [Address(broker.host, broker.port) for broker in response.brokers]

    def _list_on(self, node: Address, states: Sequence[str], types: Sequence[str]) -> list[GroupListing]:
        from protocol.messages import ListGroupsRequest

        def ask() -> Any:
            connection = self._connection(node)
            version = connection.version(ApiKey.LIST_GROUPS, Versions(5 if types else 4, 5))
            request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
            response = connection.call(ApiKey.LIST_GROUPS, version, request)
            _check(response.error_code, None, f"listing the groups of {node}")
            return response

        listed = self._patiently(f"listing the groups of {node}", ask).groups
        return [
            GroupListing(g.group_id, g.group_state, getattr(g, "group_type", "") or "", g.protocol_type)
            for g in listed
        ]

    def _offsets_partitions(self) -> int:
        """How many partitions `__consumer_offsets` has; 0 where there is none yet."""
        from protocol.messages import MetadataRequest

        connection = self._connection(self._bootstrap)
        version = connection.version(ApiKey.METADATA, Versions(4, 8))
        topic = MetadataRequest.MetadataRequestTopic(name=OFFSETS_TOPIC)
        request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        (found,) = connection.call(ApiKey.METADATA, version, request).topics
        return len(found.partitions)

    def _find_coordinators(self, groups: Sequence[str]) -> Sequence[Any]:
        from protocol.messages import FindCoordinatorRequest

        connection = self._connection(self._bootstrap)
        version = connection.version(ApiKey.FIND_COORDINATOR, Versions(4, 4))
        request = FindCoordinatorRequest(key_type=GROUP_KEY_TYPE, coordinator_keys=list(groups))
        found: Sequence[Any] = connection.call(ApiKey.FIND_COORDINATOR, version, request).coordinators
        return found

    def _ask_describe(self, connection: Connection, groups: Sequence[str]) -> Sequence[Any]:
        from protocol.messages import DescribeGroupsRequest

        version = connection.version(ApiKey.DESCRIBE_GROUPS, Versions(5, 6))
        request = DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)
        described: Sequence[Any] = connection.call(ApiKey.DESCRIBE_GROUPS, version, request).groups
        return described

    def _coordinator(self, group: str) -> tuple[int, Connection]:
        (found,) = self._find_coordinators([group])
        _check(found.error_code, found.error_message, f"finding the coordinator of group {group}")
        return found.node_id, self._connection(Address(found.host, found.port))

    def _describe(self, group: str) -> GroupDetails:
        node_id, connection = self._coordinator(group)
        (described,) = self._ask_describe(connection, [group])
        # before v6 a group that does not exist is Dead, and there is no error
        if described.error_code == ErrorCode.GROUP_ID_NOT_FOUND or described.group_state == "Dead":
            raise CommandError(f"group {group} not found")
        _check(described.error_code, getattr(described, "error_message", None), f"describing group {group}")
        return GroupDetails(
            group=group,
            state=described.group_state,
            protocol_type=described.protocol_type,
            protocol=described.protocol_data,
            coordinator_id=node_id,
            coordinator=str(connection.address),
            members=[_member(member, described.protocol_type) for member in described.members],
        )

    def _offsets(self, group: str) -> list[CommittedOffset]:
        from protocol.hot.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

        _, connection = self._coordinator(group)
        version = connection.version(ApiKey.OFFSET_FETCH, Versions(8, 9))
        everything = OffsetFetchRequestGroup(group_id=GroupId(group), topics=None)
        response = connection.call(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(groups=[everything]))
        (answer,) = response.groups
        _check(answer.error_code, None, f"reading the offsets of group {group}")
        return sorted(
            CommittedOffset(
                topic.name, p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata or ""
            )
            for topic in answer.topics
            for p in topic.partitions
            if p.error_code == ErrorCode.NONE
        )

    def _set_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], str]:
        from protocol.hot.offset_commit import (
            OffsetCommitRequest,
            OffsetCommitRequestPartition,
            OffsetCommitRequestTopic,
        )

        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, index), offset in offsets.items():
            topic = topics.setdefault(name, OffsetCommitRequestTopic(name=name, partitions=[]))
            topic.partitions.append(
                OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            )
        _, connection = self._coordinator(group)
        version = connection.version(ApiKey.OFFSET_COMMIT, Versions(8, 9))
        request = OffsetCommitRequest(group_id=GroupId(group), topics=list(topics.values()))
        response = connection.call(ApiKey.OFFSET_COMMIT, version, request)
        codes = {(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}
        if not RETRIABLE.isdisjoint(codes.values()):
            raise NotYet(next(code for code in codes.values() if code in RETRIABLE))
        return {place: error_name(code) for place, code in codes.items() if code != ErrorCode.NONE}


def _groups_by_partition(count: int) -> list[str]:
    """For each of so many partitions the id of a group that would be in it."""
    found: dict[int, str] = {}
    for number in itertools.count():
        if len(found) == count:
            break
        group = f"groupkeeper-probe-{number}"
        found.setdefault(partition_for(GroupId(group), count), group)
    return [found[partition] for partition in range(count)]


def _member(member: Any, protocol_type: str) -> Member:
    assigned = None
    if protocol_type == "consumer" and member.member_assignment:
        assigned = decode_assignment(bytes(member.member_assignment))
    return Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=sorted(
            Assignment(topic, sorted(partitions)) for topic, partitions in (assigned or {}).items()
        ),
    )


def _check(code: int, message: str | None, doing: str) -> None:
    if code in RETRIABLE:
        raise NotYet(code)
    if code != ErrorCode.NONE:
        raise CommandError(f"{doing}: {error_name(code)}{f' ({message})' if message else ''}")
