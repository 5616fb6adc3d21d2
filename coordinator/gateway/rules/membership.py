# SPDX-License-Identifier: Apache-2.0
"""Rules of the requests of members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from typing import Generic, Protocol, TypeVar

from coordinator.api.operations import Operation
from coordinator.gateway.questions import NOBODY, Right
from coordinator.gateway.rules.rule import NOT_FOR_GROUP, PASSES, Judged, May, Response, of_group
from protocol.hot.join_group import JoinGroupRequest, JoinGroupResponse
from protocol.names import GroupId


class NamesGroup(Protocol):
    """A request about one group."""

    @property
    def group_id(self) -> GroupId:
        """The group."""


Request = TypeVar("Request", bound=NamesGroup)


class OneGroup(Generic[Request, Response]):
    """Membership: the group has to be readable."""

    def rights(self, request: Request, version: int) -> list[Right]:
        """The group."""
        return [of_group(Operation.READ, request.group_id)]

    def judge(self, request: Request, version: int, may: May) -> Judged[Request, Response]:
        """All or nothing."""
        return PASSES if may(self.rights(request, version)[0]) else Judged(NOT_FOR_GROUP)

    def groups(self, request: Request, version: int) -> list[str]:
        """This one."""
        return [request.group_id]


class JoinGroup(OneGroup[JoinGroupRequest, JoinGroupResponse]):
    """As the others, but that the refusal names no member."""

    def judge(
        self, request: JoinGroupRequest, version: int, may: May
    ) -> Judged[JoinGroupRequest, JoinGroupResponse]:
        """All or nothing."""
        if may(self.rights(request, version)[0]):
            return PASSES
        return Judged(
            answer=JoinGroupResponse(error_code=NOT_FOR_GROUP, member_id=NOBODY, protocol_name=None)
        )
