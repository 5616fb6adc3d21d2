# SPDX-License-Identifier: Apache-2.0
"""Lists and describes the groups of a cluster.

ListGroups v4-v5 goes to each node; ConsumerGroupDescribe v0-v1 (KIP-848), if a coordinator offers it, and
DescribeGroups v5-v6 go to coordinators.

ListGroups leaves out the groups of partitions that have failed, in Kafka and here. So
`find_unserved_partitions` makes up a group id for each partition of `__consumer_offsets`, and describes that group.
"""

import itertools
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from coordinator.cli.cluster.client import Client, RefusedAnswer
from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cli.cluster.model import AssignedTopic, GroupDetails, GroupListing, Member
from coordinator.cluster_requests import groups as cluster_requests
from coordinator.cluster_requests.groups import describe_groups, is_absent
from coordinator.cluster_requests.retrying import RETRIABLE
from coordinator.config.values import Address
from protocol.apis import ApiKey
from protocol.consumer_protocol import decode_assignment
from protocol.errors import ErrorCode, error_name
from protocol.newtypes import GroupId
from protocol.placement import partition_for
from storage.disk.layout import OFFSETS_TOPIC

if TYPE_CHECKING:
    from protocol.consumer_group_messages import ConsumerGroupDescribeResponse
    from protocol.kafka_python_messages import DescribeGroupsResponse

    ClassicGroup = DescribeGroupsResponse.DescribedGroup
    ClassicMember = ClassicGroup.DescribedGroupMember
    ConsumerGroup = ConsumerGroupDescribeResponse.DescribedGroup
    ConsumerMember = ConsumerGroup.Member
    Assignment = ConsumerMember.Assignment

WILDCARDS: Final = frozenset("*?[")
NOT_FOUND: Final = RefusedAnswer(ErrorCode.GROUP_ID_NOT_FOUND)


def list_groups(client: Client, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[GroupListing]:
    """Return the groups of the cluster in the order of their ids, filtered by `states` and `types` if given."""
    found = (
        group for node in client.fetch_node_addresses() for group in _list_on(client, node, states, types)
    )
    return sorted(found, key=lambda group: group.group)


def _list_on(
    client: Client, node: Address, states: Sequence[str], types: Sequence[str]
) -> list[GroupListing]:
    request = cluster_requests.list_groups(f"listing the groups of {node}", states, types)
    listed = client.call_with_retries(lambda: client.connect(node).ask(request))
    return [GroupListing(each.group, each.state, each.kind, each.protocol_type) for each in listed]


def expand_group_patterns(client: Client, patterns: Sequence[str]) -> list[str]:
    """Return the ids that these names and patterns (`*`, `?`, `[...]`) stand for, each once.

    A name without wildcards stands for itself, even if there is no such group; so does the name of an existing group.
    """
    if not any(is_pattern(pattern) for pattern in patterns):
        return list(dict.fromkeys(patterns))
    known = [group.group for group in list_groups(client)]
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern in known or not is_pattern(pattern):
            found[pattern] = None
        else:
            found.update(dict.fromkeys(group for group in known if fnmatchcase(group, pattern)))
    return list(found)


def is_pattern(name: str) -> bool:
    """Return whether the name has wildcards."""
    return not WILDCARDS.isdisjoint(name)


def find_unserved_partitions(client: Client) -> dict[int, str]:
    """Return the partitions of groups that are not served now, with the name of the coordinator's error."""
    (topic,) = client.fetch_metadata([OFFSETS_TOPIC]).topics
    count = len(topic.partitions)
    if not count:
        return {}
    keys = _groups_by_partition(count)
    missing: dict[int, str] = {}
    asked: dict[NodeConnection, list[str]] = {}
    for key, found in zip(keys, client.find_coordinators(keys), strict=True):
        if found.error_code == ErrorCode.NONE:
            asked.setdefault(client.connect(Address(found.host, found.port)), []).append(key)
        else:
            missing[partition_for(GroupId(key), count)] = error_name(found.error_code)
    for connection, groups in asked.items():
        for described in connection.ask(describe_groups("classic", groups)):
            if described.error_code in RETRIABLE:
                missing[partition_for(GroupId(described.group_id), count)] = error_name(described.error_code)
    return dict(sorted(missing.items()))


def _groups_by_partition(count: int) -> list[str]:
    """Return, for each of `count` partitions, the id of a group that would be in it."""
    found: dict[int, str] = {}
    for number in itertools.count():
        if len(found) == count:
            break
        group = f"groupkeeper-probe-{number}"
        found.setdefault(partition_for(GroupId(group), count), group)
    return [found[partition] for partition in range(count)]


# --- description ---


def describe(client: Client, groups: Sequence[str]) -> dict[str, GroupDetails | RefusedAnswer]:
    """Return state and members of each group, NOT_FOUND if there is no such group."""
    return client.ask_group_coordinators("describing", groups, describe_at_coordinator)


def describe_at_coordinator(
    connection: NodeConnection, groups: Sequence[str]
) -> Mapping[str, GroupDetails | RefusedAnswer]:
    """Describe groups over the connection to their coordinator.

    DescribeGroups does not find a group of KIP-848, and ConsumerGroupDescribe does not find a classic one.
    """
    answers: dict[str, GroupDetails | RefusedAnswer] = {}
    if connection.offers(ApiKey.CONSUMER_GROUP_DESCRIBE):
        for described in connection.ask(describe_groups("consumer", groups)):
            if not is_absent("consumer", described):
                answers[described.group_id] = _consumer_group(described, connection)
    others = [group for group in groups if group not in answers]
    if others:
        found = connection.ask(describe_groups("classic", others))
        for group, classic in zip(others, found, strict=True):
            answers[group] = _classic_group(group, classic, connection)
    return answers


def _classic_group(
    group: str, described: "ClassicGroup", connection: NodeConnection
) -> GroupDetails | RefusedAnswer:
    if is_absent("classic", described):
        return NOT_FOUND
    if described.error_code != ErrorCode.NONE:
        return RefusedAnswer(described.error_code, getattr(described, "error_message", None))
    return GroupDetails(
        group=group,
        state=described.group_state,
        type="classic",
        protocol_type=described.protocol_type,
        protocol=described.protocol_data,
        coordinator_id=connection.node_id,
        coordinator=str(connection.address),
        members=[_classic_member(member, described.protocol_type) for member in described.members],
    )


def _classic_member(member: "ClassicMember", protocol_type: str) -> Member:
    assigned = None
    if protocol_type == "consumer" and member.member_assignment:
        assigned = decode_assignment(bytes(member.member_assignment))
    return Member(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=sorted(
            AssignedTopic(topic, sorted(partitions)) for topic, partitions in (assigned or {}).items()
        ),
    )


def _consumer_group(described: "ConsumerGroup", connection: NodeConnection) -> GroupDetails | RefusedAnswer:
    if described.error_code != ErrorCode.NONE:
        return RefusedAnswer(described.error_code, described.error_message)
    return GroupDetails(
        group=described.group_id,
        state=described.group_state,
        type="consumer",
        protocol_type="consumer",
        protocol=described.assignor_name,
        coordinator_id=connection.node_id,
        coordinator=str(connection.address),
        members=[_consumer_member(member) for member in described.members],
        epoch=described.group_epoch,
        assignment_epoch=described.assignment_epoch,
    )


def _consumer_member(member: "ConsumerMember") -> Member:
    kind = getattr(member, "member_type", -1)
    return Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        assignment=_assignment(member.assignment),
        epoch=member.member_epoch,
        target=_assignment(member.target_assignment),
        is_classic=None if kind is None or kind < 0 else kind == 0,
    )


def _assignment(
    assigned: "Assignment",
) -> list[AssignedTopic]:
    return sorted(
        AssignedTopic(each.topic_name, sorted(each.partitions)) for each in assigned.topic_partitions
    )
