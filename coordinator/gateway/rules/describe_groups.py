# SPDX-License-Identifier: Apache-2.0
"""Rule of DescribeGroups."""

from typing import Final

from coordinator.api.operations import Operation
from coordinator.gateway.questions import Right
from coordinator.gateway.rules.rule import NOT_FOR_GROUP, PASSES, Judged, May, of_group
from protocol.messages import DescribeGroupsRequest, DescribeGroupsResponse

DescribedGroup = DescribeGroupsResponse.DescribedGroup

OPERATIONS_FROM: Final = 3
"""It can ask what may be done."""


class DescribeGroups:
    """Groups that may not be described are refused, before the others."""

    def rights(self, request: DescribeGroupsRequest, version: int) -> list[Right]:
        """Every group; where it is asked what may be done with it, all that can be found out."""
        asked = [Operation.DESCRIBE]
        if version >= OPERATIONS_FROM and request.include_authorized_operations:
            asked += [Operation.READ, Operation.DELETE]
        return [of_group(operation, group) for group in request.groups for operation in asked]

    def groups(self, request: DescribeGroupsRequest, version: int) -> list[str]:
        """All that are asked for."""
        return list(request.groups)

    def judge(
        self, request: DescribeGroupsRequest, version: int, may: May
    ) -> Judged[DescribeGroupsRequest, DescribeGroupsResponse]:
        """Each group for itself."""
        left = [group for group in request.groups if may(of_group(Operation.DESCRIBE, group))]
        if not left and request.groups:
            return Judged(NOT_FOR_GROUP)
        with_operations = version >= OPERATIONS_FROM and request.include_authorized_operations
        if len(left) == len(request.groups) and not with_operations:
            return PASSES

        def merge(response: DescribeGroupsResponse) -> DescribeGroupsResponse:
            if with_operations:
                _say_operations(response.groups, may)
            refused = (group for group in request.groups if not may(of_group(Operation.DESCRIBE, group)))
            response.groups = [*(_refused_group(group, version) for group in refused), *response.groups]
            return response

        changed = DescribeGroupsRequest(
            version=version, groups=left, include_authorized_operations=with_operations
        )
        return Judged(request=changed, merge=merge)


def _say_operations(groups: list[DescribedGroup], may: May) -> None:
    for group in groups:
        if not group.error_code:
            asked = (Operation.READ, Operation.DELETE, Operation.DESCRIBE)
            group.authorized_operations = {
                int(operation) for operation in asked if may(of_group(operation, group.group_id))
            }


def _refused_group(group: str, version: int) -> DescribedGroup:
    from coordinator.api.describe_groups import error_response

    asked = DescribeGroupsRequest(version=version, groups=[group])
    return error_response(asked, NOT_FOR_GROUP, version).groups[0]
