# SPDX-License-Identifier: Apache-2.0
"""Deletes groups and removes members: DeleteGroups, LeaveGroup."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from coordinator.cli.cluster.client import Client, RefusedAnswer
from coordinator.cli.cluster.connection import NodeConnection
from coordinator.cli.cluster.model import GroupDetails, Member
from coordinator.cluster_requests.request import make_plain_request
from protocol.apis import ApiKey
from protocol.errors import ErrorCode
from protocol.hot.leave_group import LeaveGroupRequest, MemberIdentity
from protocol.newtypes import GroupId, MemberId

REASON = "removed by groupkeeper's command"


class LeavingMember(NamedTuple):
    """A member to remove: named by its id, or by its instance id if it is static, as KIP-345 wants it."""

    member_id: str
    instance_id: str | None = None

    def __str__(self) -> str:
        return self.member_id or str(self.instance_id)


def leaving_identity(member: Member) -> LeavingMember:
    """Return the identity by which a described member is removed."""
    if member.group_instance_id is not None:
        return LeavingMember("", member.group_instance_id)
    return LeavingMember(member.member_id)


def delete_groups(client: Client, groups: Sequence[str]) -> dict[str, RefusedAnswer | None]:
    """Delete groups without members; return None for each deleted group, else its refusal."""
    from protocol.kafka_python_messages import DeleteGroupsRequest

    def ask(connection: NodeConnection, named: Sequence[str]) -> Mapping[str, RefusedAnswer | None]:
        request = DeleteGroupsRequest(groups_names=list(named))
        results = connection.ask(make_plain_request(ApiKey.DELETE_GROUPS, request)).results
        return {each.group_id: _refused(each) for each in results}

    return client.ask_group_coordinators("deleting", groups, ask)


def remove_members(
    client: Client, group: str, members: Sequence[LeavingMember]
) -> dict[LeavingMember, RefusedAnswer]:
    """Remove members from a group; return the refused ones. Raises CommandError if the whole request is refused."""
    return client.ask_group_coordinator(
        "removing members of", group, lambda connection: remove_at_coordinator(connection, group, members)
    )


def remove_at_coordinator(
    connection: NodeConnection, group: str, members: Sequence[LeavingMember]
) -> dict[LeavingMember, RefusedAnswer] | RefusedAnswer:
    """Remove members from a group over the connection to its coordinator."""
    identities = [
        MemberIdentity(member_id=MemberId(each.member_id), group_instance_id=each.instance_id, reason=REASON)
        for each in members
    ]
    request = LeaveGroupRequest(group_id=GroupId(group), members=identities)
    response = connection.ask(make_plain_request(ApiKey.LEAVE_GROUP, request))
    refused = _refused(response)
    if refused is not None:
        return refused
    answers = zip(members, map(_refused, response.members), strict=True)
    return {member: answer for member, answer in answers if answer is not None}


def _refused(answer: Any) -> RefusedAnswer | None:
    return (
        None
        if answer.error_code == ErrorCode.NONE
        else RefusedAnswer(answer.error_code, getattr(answer, "error_message", None))
    )


def is_active(details: GroupDetails) -> bool:
    """Return whether a group has members, so that only they may set its offsets."""
    return details.state not in ("Empty", "Dead")
