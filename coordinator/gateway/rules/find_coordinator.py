# SPDX-License-Identifier: Apache-2.0
"""Rule of FindCoordinator."""

from typing import Final

from coordinator.api.operations import Operation
from coordinator.gateway.questions import Right
from coordinator.gateway.rules.rule import NOT_FOR_GROUP, PASSES, Judged, May, of_group
from protocol.messages import FindCoordinatorRequest, FindCoordinatorResponse

SEVERAL_KEYS_FROM: Final = 4
"""It asks for several groups."""


class FindCoordinator:
    """Groups that may not be described are not found."""

    def rights(self, request: FindCoordinatorRequest, version: int) -> list[Right]:
        """Every group."""
        return [of_group(Operation.DESCRIBE, group) for group in self._keys(request, version)]

    def groups(self, request: FindCoordinatorRequest, version: int) -> list[str]:
        """None: where a group is says nothing of it."""
        return []

    def judge(
        self, request: FindCoordinatorRequest, version: int, may: May
    ) -> Judged[FindCoordinatorRequest, FindCoordinatorResponse]:
        """Each group for itself; before v4 there is one."""
        keys = self._keys(request, version)
        left = [key for key in keys if may(of_group(Operation.DESCRIBE, key))]
        if len(left) == len(keys):
            return PASSES
        if version < SEVERAL_KEYS_FROM:
            return Judged(answer=_not_allowed(version))
        if not left:
            return Judged(NOT_FOR_GROUP)

        def merge(response: FindCoordinatorResponse) -> FindCoordinatorResponse:
            found = iter(response.coordinators)
            response.coordinators = [
                next(found) if may(of_group(Operation.DESCRIBE, key)) else _not_found(key, version)
                for key in keys
            ]
            return response

        changed = FindCoordinatorRequest(version=version, key_type=request.key_type, coordinator_keys=left)
        return Judged(request=changed, merge=merge)

    @staticmethod
    def _keys(request: FindCoordinatorRequest, version: int) -> list[str]:
        return request.coordinator_keys if version >= SEVERAL_KEYS_FROM else [request.key]


def _not_allowed(version: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        version=version,
        error_code=int(NOT_FOR_GROUP),
        error_message="Group authorization failed.",
        node_id=-1,
        host="",
        port=-1,
    )


def _not_found(key: str, version: int) -> FindCoordinatorResponse.Coordinator:
    from coordinator.api.find_coordinator import error_response

    asked = FindCoordinatorRequest(version=version, key_type=0, coordinator_keys=[key])
    return error_response(asked, NOT_FOR_GROUP, version).coordinators[0]
