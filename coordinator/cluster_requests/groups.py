# SPDX-License-Identifier: Apache-2.0
"""Requests about groups: FindCoordinator v4, ListGroups v4-v5, DescribeGroups v5-v6, and those of newer kinds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator.cluster_requests.model import ClusterGroupState
from coordinator.cluster_requests.request import ClusterRequest, get_versions, make_request, read_in_one_step
from coordinator.cluster_requests.retrying import raise_for_code
from protocol.apis import ApiKey, VersionRange
from protocol.errors import ErrorCode
from protocol.newtypes import GroupId

if TYPE_CHECKING:
    from protocol.kafka_python_messages import FindCoordinatorResponse, ListGroupsResponse

    Coordinators = Sequence[FindCoordinatorResponse.Coordinator]


class ListedGroup(NamedTuple):
    """One group of ListGroups; `kind` is `classic`, `consumer`, `share` or `streams`, or empty from old brokers."""

    group: GroupId
    state: str
    kind: str
    protocol_type: str


def find_coordinators(groups: Sequence[str]) -> "ClusterRequest[Coordinators]":
    """Ask any broker for the coordinator of each group; the rows, in their order, have errors of their own."""
    from protocol.kafka_python_messages import FindCoordinatorRequest

    request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups))

    def read(response: "FindCoordinatorResponse") -> "Coordinators":
        return response.coordinators

    return make_request(ApiKey.FIND_COORDINATOR, request, read)


def list_groups(
    doing: str, states: Sequence[str] = (), types: Sequence[str] = ()
) -> ClusterRequest[list[ListedGroup]]:
    """Ask a broker for the groups that it coordinates, filtered by `states` and `types` if given."""
    from protocol.kafka_python_messages import ListGroupsRequest

    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    versions = get_versions(ApiKey.LIST_GROUPS)
    if types:
        versions = VersionRange(5, versions.max)

    def read(response: "ListGroupsResponse") -> list[ListedGroup]:
        raise_for_code(response.error_code, None, doing)
        return [
            ListedGroup(
                GroupId(g.group_id), g.group_state, getattr(g, "group_type", "") or "", g.protocol_type
            )
            for g in response.groups
        ]

    return make_request(ApiKey.LIST_GROUPS, request, read, versions)


DESCRIBING_APIS: Final = {
    "classic": ApiKey.DESCRIBE_GROUPS,
    "consumer": ApiKey.CONSUMER_GROUP_DESCRIBE,
    "streams": ApiKey.STREAMS_GROUP_DESCRIBE,
    "share": ApiKey.SHARE_GROUP_DESCRIBE,
}
"""The api that describes the groups of each kind, classic or of KIP-848, KIP-1071 or KIP-932."""
_NO_SUCH_GROUP: Final = frozenset(
    {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_GROUP_ID}
)
"""The errors of a newer kind's describing api for an unknown group; the last is for the empty id, which no group of
such a kind can have."""


def describe_groups(kind: str, groups: Sequence[str]) -> ClusterRequest[Sequence[Any]]:
    """Ask a coordinator for its groups of one kind; the rows, in the order of `groups`, have errors of their own.

    A group is known only to the describing api of its own kind (`is_absent`).
    """
    wanted, api = list(groups), DESCRIBING_APIS[kind]
    if kind == "classic":
        from protocol.kafka_python_messages import DescribeGroupsRequest

        request: object = DescribeGroupsRequest(groups=wanted, include_authorized_operations=False)
    elif kind == "consumer":
        from protocol.consumer_group_messages import ConsumerGroupDescribeRequest

        request = ConsumerGroupDescribeRequest(group_ids=wanted, include_authorized_operations=False)
    else:
        from protocol.streams_and_share_groups import ShareGroupDescribeRequest, StreamsGroupDescribeRequest

        message: Any = StreamsGroupDescribeRequest if kind == "streams" else ShareGroupDescribeRequest
        request = message(group_ids=wanted, include_authorized_operations=False)

    def read(response: Any) -> Sequence[Any]:
        by_group = {each.group_id: each for each in response.groups}
        return [by_group.get(group, each) for group, each in zip(wanted, response.groups, strict=True)]

    return make_request(api, request, read)


def is_absent(kind: str, described: Any) -> bool:
    """Return whether a row of `describe_groups` says that there is no such group of this kind.

    Before DescribeGroups v6 a group that does not exist is Dead, and there is no error.
    """
    if kind == "classic":
        is_dead: bool = described.group_state == "Dead"
        return described.error_code == ErrorCode.GROUP_ID_NOT_FOUND or is_dead
    return described.error_code in _NO_SUCH_GROUP


def fetch_group_state(kind: str, group: str) -> ClusterRequest[ClusterGroupState]:
    """Ask a group's coordinator for its state, which is `none()` if there is no such group of this kind."""
    request = describe_groups(kind, [group])

    def read(response: Any) -> ClusterGroupState:
        (found,) = response.groups
        if is_absent(kind, found):
            return ClusterGroupState.none()
        raise_for_code(found.error_code, getattr(found, "error_message", None), f"describing group {group}")
        return ClusterGroupState(kind, found.group_state, len(found.members))

    return ClusterRequest(request.api, request.versions, request.build, read_in_one_step(read))
