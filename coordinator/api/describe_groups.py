# SPDX-License-Identifier: Apache-2.0
"""The handler of DescribeGroups v0-v6.

v1: throttle time. v3: authorized operations (KIP-430). v4: group.instance.id (KIP-345). v5: flexible.
v6: GROUP_ID_NOT_FOUND and an error message (KIP-1043); before, an unknown group is Dead without an error.
"""

from collections.abc import Iterator
from typing import Final

from coordinator.api.context import ParkedSentinel, RequestContext
from coordinator.api.declaration import Api
from coordinator.api.slices import cast_as_list, respond_in_slices
from coordinator.authorization.authorizer import authorized_operations
from coordinator.authorization.permissions import NOT_ASKED, ResourceType
from coordinator.groups.classic.member import MemberSummary
from coordinator.groups.classic.state import GroupState
from coordinator.node import Node
from coordinator.partitions.group_access import AbsentGroup
from protocol.apis import VersionRange
from protocol.bounds import LISTS
from protocol.errors import ErrorCode
from protocol.kafka_python_messages import DescribeGroupsRequest, DescribeGroupsResponse, build_schema
from protocol.newtypes import GroupId
from protocol.wire import MAX_STRING_BYTES

NOT_FOUND_FROM = 6


def handle(node: Node, request: DescribeGroupsRequest, ctx: RequestContext) -> ParkedSentinel:
    """Describe each group of the request, in its order."""
    return respond_in_slices(
        node, ctx, DescribeGroupsResponse(groups=cast_as_list(_described(node, request, ctx)))
    )


def _described(
    node: Node, request: DescribeGroupsRequest, ctx: RequestContext
) -> Iterator[DescribeGroupsResponse.DescribedGroup]:
    asked = request.include_authorized_operations
    for group_id in request.groups:
        described = _describe(node, GroupId(group_id), ctx)
        described.authorized_operations = authorized_operations(
            node.authorizer, ResourceType.GROUP, group_id, asked=asked and not described.error_code
        )
        yield described


def _describe(node: Node, group_id: GroupId, ctx: RequestContext) -> DescribeGroupsResponse.DescribedGroup:
    kept = node.group_access.look_up_classic_group(ctx, group_id)
    if isinstance(kept, ErrorCode):
        return _error(group_id, kept)
    if isinstance(kept, AbsentGroup):
        described = _error(group_id, ErrorCode.NONE)
        described.group_state = GroupState.DEAD.value
        if ctx.api_version >= NOT_FOUND_FROM:
            described.error_code = int(ErrorCode.GROUP_ID_NOT_FOUND)
            described.error_message = not_found_message(group_id)
        return described
    summary = kept.classic_group.summary()
    return DescribeGroupsResponse.DescribedGroup(
        error_code=0,
        error_message=None,
        group_id=group_id,
        group_state=summary.state,
        protocol_type=summary.protocol_type,
        protocol_data=summary.protocol,
        members=cast_as_list(_member(member) for member in summary.members),
    )


def not_found_message(group_id: str) -> str:
    """Return Kafka's message about an unknown group, without the group id if that is too long for a string."""
    message = f"Group {group_id} not found."
    return message if len(message.encode()) <= MAX_STRING_BYTES else "Group not found."


def _member(member: MemberSummary) -> DescribeGroupsResponse.DescribedGroup.DescribedGroupMember:
    return DescribeGroupsResponse.DescribedGroup.DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata,
        member_assignment=member.assignment,
    )


def _error(group_id: GroupId, error: ErrorCode) -> DescribeGroupsResponse.DescribedGroup:
    return DescribeGroupsResponse.DescribedGroup(
        error_code=int(error),
        error_message=None,
        group_id=group_id,
        group_state="",
        protocol_type="",
        protocol_data="",
        members=[],
        authorized_operations=NOT_ASKED,
    )


def error_response(request: DescribeGroupsRequest, error: ErrorCode, version: int) -> DescribeGroupsResponse:
    """Return the response with one error for every group."""
    return DescribeGroupsResponse(groups=[_error(GroupId(group_id), error) for group_id in request.groups])


API: Final = Api(
    build_schema(DescribeGroupsRequest, DescribeGroupsResponse),
    versions=VersionRange(0, 6),
    handle=handle,
    error_response=error_response,
    frame=LISTS,
    changes=False,
    error_parts=("groups",),
)
