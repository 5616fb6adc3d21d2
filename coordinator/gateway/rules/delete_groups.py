# SPDX-License-Identifier: Apache-2.0
"""Rule of DeleteGroups."""

from coordinator.api.operations import Operation
from coordinator.gateway.questions import Right
from coordinator.gateway.rules.rule import NOT_FOR_GROUP, PASSES, Judged, May, of_group
from protocol.messages import DeleteGroupsRequest, DeleteGroupsResponse


class DeleteGroups:
    """Groups that may not be deleted are refused, after the others."""

    def rights(self, request: DeleteGroupsRequest, version: int) -> list[Right]:
        """Every group."""
        return [of_group(Operation.DELETE, group) for group in request.groups_names]

    def groups(self, request: DeleteGroupsRequest, version: int) -> list[str]:
        """All that are asked for."""
        return list(request.groups_names)

    def judge(
        self, request: DeleteGroupsRequest, version: int, may: May
    ) -> Judged[DeleteGroupsRequest, DeleteGroupsResponse]:
        """Each group for itself."""
        groups = list(dict.fromkeys(request.groups_names))
        refused = [group for group in groups if not may(of_group(Operation.DELETE, group))]
        if not refused:
            return PASSES
        make = DeleteGroupsResponse.DeletableGroupResult
        results = [make(version=version, group_id=group, error_code=int(NOT_FOR_GROUP)) for group in refused]
        left = [group for group in groups if may(of_group(Operation.DELETE, group))]
        if not left:
            return Judged(answer=DeleteGroupsResponse(version=version, throttle_time_ms=0, results=results))

        def merge(response: DeleteGroupsResponse) -> DeleteGroupsResponse:
            response.results = [*response.results, *results]
            return response

        return Judged(request=DeleteGroupsRequest(version=version, groups_names=left), merge=merge)
