# SPDX-License-Identifier: Apache-2.0
"""Requests about groups: FindCoordinator v4, ListGroups v4-v5, DescribeGroups v5-v6."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from coordinator.cluster_requests.request import ClusterRequest, get_versions, make_request, read_in_one_step
from coordinator.cluster_requests.retrying import raise_for_code
from protocol.apis import ApiKey, VersionRange
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

    return ClusterRequest(ApiKey.LIST_GROUPS, versions, lambda _version: request, read_in_one_step(read))
