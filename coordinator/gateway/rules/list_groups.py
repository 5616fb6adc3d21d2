# SPDX-License-Identifier: Apache-2.0
"""Rule of ListGroups."""

from coordinator.api.operations import Operation
from coordinator.gateway.questions import DESCRIBE_CLUSTER, Right
from coordinator.gateway.rules.rule import PASSES, Judged, May, of_group
from protocol.messages import ListGroupsRequest, ListGroupsResponse


class ListGroups:
    """Who may describe the cluster sees all groups, others those that they may describe."""

    def rights(self, request: ListGroupsRequest, version: int) -> list[Right]:
        """The cluster; of which groups there is a question is known with the answer."""
        return [DESCRIBE_CLUSTER]

    def groups(self, request: ListGroupsRequest, version: int) -> list[str]:
        """None."""
        return []

    def judge(
        self, request: ListGroupsRequest, version: int, may: May
    ) -> Judged[ListGroupsRequest, ListGroupsResponse]:
        """All, or what may be seen."""
        if may(DESCRIBE_CLUSTER):
            return PASSES

        def keep(response: ListGroupsResponse, may_see: May) -> ListGroupsResponse:
            response.groups = [
                group for group in response.groups if may_see(of_group(Operation.DESCRIBE, group.group_id))
            ]
            return response

        return Judged(
            names=lambda response: [
                of_group(Operation.DESCRIBE, group.group_id) for group in response.groups
            ],
            keep=keep,
        )
